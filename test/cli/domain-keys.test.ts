/** DKIM keys by the command line and the API: rotation, the zone for operators, sealed in the database. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { dkimVerdicts, dkimZone } from '../support/dkim.js'
import { initialise, install, type Installation } from '../support/program/process.js'

interface DomainView {
  readonly id: string
  readonly dns_records: {
    readonly type: string
    readonly name: string
    readonly value: string
    readonly algorithm?: string
    readonly key_state?: string
    readonly alternative?: { readonly name: string; readonly value: string }
  }[]
}

const KEY = Buffer.alloc(32, 7).toString('base64')

const keyStates = ({ dns_records: records }: DomainView) =>
  records.flatMap(({ algorithm, key_state: state }) => (algorithm ? [`${algorithm} ${state ?? ''}`] : []))

const ROTATED = ['rsa retiring', 'rsa active', 'ed25519 retiring', 'ed25519 active']

t.test(
  'a rotation prints the state of each key, and a second one is refused with the time it is allowed',
  async t => {
    const postroad = await initialise(t)
    const owner = ['--workspace', postroad.workspaceId]
    const added = await postroad.json<DomainView>('domain', 'add', 'printer.test', '--vouch', ...owner)
    t.same(keyStates(added), ['rsa active', 'rsa standby', 'ed25519 active', 'ed25519 standby'])
    const { status, out } = await postroad.run('domain', 'rotate', 'printer.test', ...owner)
    t.equal(status, 0)
    t.match(out, /rsa retiring +CNAME +pr\w+1\._domainkey/)
    t.match(out, /ed25519 active +CNAME +pr\w+e2\._domainkey/)
    t.match(await postroad.run('domain', 'rotate', 'printer.test', ...owner), {
      status: 1,
      err: /retry after \d{4}-\d\d-\d\dT/,
    })
    t.match(await postroad.run('domain', 'list'), { out: /printer\.test +vouched .* pr\w+1 retiring, / })
    const listed = await postroad.json<DomainView[]>('domain', 'list')
    t.same(keyStates(listed.find(({ id }) => id === added.id)!), ROTATED)
  },
)

t.test('a domain whose DNS does not answer is rotated only with --force', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('domain', 'add', 'sender.test', ...owner)
  const rotate = ['domain', 'rotate', 'sender.test', ...owner]
  t.match(await postroad.run(...rotate), { status: 1, err: /standby key pr\w+2\._domainkey\.sender\.test/ })
  t.same(keyStates(await postroad.json<DomainView>(...rotate, '--force')), ROTATED)
})

t.test('the API rotates once, then answers 409', async t => {
  const postroad = await openTestAppliance(t)
  const owner = ['--workspace', postroad.workspaceId]
  const { id } = await postroad.json<DomainView>('domain', 'add', 'printer.test', '--vouch', ...owner)
  const path = `/api/v1/domains/${id}/rotate-dkim`
  const rotated = await postroad.post(path, '', { key: postroad.key })
  t.equal(rotated.status, 200)
  t.same(keyStates((rotated.body as { data: DomainView }).data), ROTATED)
  t.match(await postroad.post(path, '', { key: postroad.key }), { status: 409 })
  t.match(await postroad.post('/api/v1/domains/none/rotate-dkim', '', { key: postroad.key }), { status: 404 })
  const reader = await postroad.makeKey('--permissions', 'domains:read')
  t.match(await postroad.post(path, '', { key: reader }), { status: 403 })
})

t.test('retired keys are replaced when the server starts', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('domain', 'add', 'printer.test', '--vouch', ...owner)
  await postroad.json('domain', 'rotate', 'printer.test', ...owner)
  const handle = new BetterSqlite(join(postroad.dataDir, 'postroad.db'))
  handle.exec('update dkim_keys set retire_at = 1 where retire_at is not null')
  handle.close()
  const listed = async () => (await postroad.json<DomainView[]>('domain', 'list')).map(keyStates)
  t.match(await listed(), [ROTATED], 'a command leaves it')
  t.equal((await postroad.run('migrate')).status, 0)
  t.match(await listed(), [['rsa standby', 'rsa active', 'ed25519 standby', 'ed25519 active']])
})

t.test("dns zone prints the targets of all domains' CNAMEs", async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const added = await postroad.json<DomainView>('domain', 'add', 'sender.test', ...owner)
  const records = await postroad.json<{ name: string; type: string; ttl: number; value: string }[]>(
    'dns',
    'zone',
  )
  for (const { type, value, alternative } of added.dns_records)
    if (type === 'CNAME')
      t.same(
        records.filter(({ name }) => name === value),
        [{ name: value, type: 'TXT', ttl: 3_600, value: alternative?.value }],
      )
  t.equal(records.length, 8, 'with those of the shared address')
  const { out } = await postroad.run('dns', 'zone')
  t.match(out, /^\$ORIGIN dkim\.mx\.postroad\.test\.$/m)
  t.equal(out.match(/ IN TXT \( "v=DKIM1; k=(rsa|ed25519); p=/g)?.length, 8)
})

/** Every file of the data folder, as text. */
function onDisk({ dataDir }: Installation): string {
  return readdirSync(dataDir)
    .map(name => readFileSync(join(dataDir, name), 'latin1'))
    .join('\n')
}

const signed = ['send', '--dry-run', '--from', 'notify@mail.postroad.test', '--to', 'ann@one.test']

t.test(
  'with secrets.key the data folder contains no plain private key, and mail is still signed',
  async t => {
    const postroad = await initialise(t)
    t.ok(onDisk(postroad).includes('BEGIN PRIVATE KEY'))
    postroad.writeConfig(`[secrets]\nkey = "${KEY}"`)
    t.equal((await postroad.run('migrate')).status, 0)
    await postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId)
    t.notOk(onDisk(postroad).includes('PRIVATE KEY'))
    // How the PKCS#8 form of every RSA key begins (RFC 5208 §5, version and algorithm).
    t.notOk(onDisk(postroad).includes('AgEAMA0GCSqGSIb3DQEBAQUA'))
    const { status, out } = await postroad.run(...signed, '--subject', 'sealed')
    t.equal(status, 0)
    t.match(out, /DKIM-Signature: [^]*a=rsa-sha256[^]*DKIM-Signature: [^]*a=ed25519-sha256/)
  },
)

t.test('with secrets.key set from the start no secret is ever stored plain', async t => {
  const postroad = install(t, { toml: `[secrets]\nkey = "${KEY}"` })
  t.equal((await postroad.run('init')).status, 0)
  t.notOk(onDisk(postroad).includes('PRIVATE KEY'))
  t.equal((await postroad.run(...signed, '--subject', 'sealed')).status, 0)
})

t.test('a server that seals its secrets at start signs its mail', async t => {
  const postroad = await openTestAppliance(t, { toml: `[secrets]\nkey = "${KEY}"` })
  const mail = { to: 'ann@one.test', from_email: 'me@else.test', subject: 'Sealed', html: '<p>x</p>' }
  const { body } = await postroad.send(postroad.key, mail)
  const id = String(body.data.results[0].message_id)
  await postroad.messageOnce(postroad.key, id, 'delivered')
  const captured = await postroad.get(`/capture/${id}`)
  const shared = (await postroad.json<DomainView[]>('domain', 'list'))[0]!
  const raw = Buffer.from(String(captured.body.data.raw), 'latin1')
  t.same(await dkimVerdicts(raw, dkimZone(shared)), [
    'mail.postroad.test rsa-sha256 pass',
    'mail.postroad.test ed25519-sha256 pass',
  ])
})

t.test('a command does not seal keys beside a server that reads them plain', async t => {
  const postroad = await initialise(t)
  postroad.writeConfig(`[secrets]\nkey = "${KEY}"`)
  await postroad.json('domain', 'list')
  t.ok(onDisk(postroad).includes('BEGIN PRIVATE KEY'))
})

t.test('a wrong or missing secrets.key is reported at start without showing a key', async t => {
  const postroad = await initialise(t)
  postroad.writeConfig(`[secrets]\nkey = "${KEY}"`)
  t.equal((await postroad.run('migrate')).status, 0)
  const wrong = Buffer.alloc(32, 8).toString('base64')
  postroad.writeConfig(`[secrets]\nkey = "${wrong}"`)
  for (const args of [['serve'], ['domain', 'list'], ['migrate']]) {
    const ended = await postroad.run(...args)
    t.match(ended, { status: 1, out: '', err: /^postroad: secrets\.key is not the key/ }, args.join(' '))
    t.notMatch(ended.err, wrong)
  }
  postroad.writeConfig('')
  t.match(await postroad.run('serve'), { status: 1, err: /are sealed: set secrets\.key/ })
  postroad.writeConfig('[secrets]\nkey = "hunter2"')
  const ended = await postroad.run('config', 'check')
  t.match(ended, { status: 2, err: /secrets\.key.*32 bytes in base64/ })
  t.notMatch(ended.err, 'hunter2')
})

t.test('config show hides secrets.key', async t => {
  const postroad = await initialise(t)
  postroad.writeConfig(`[secrets]\nkey = "${KEY}"`)
  const { out } = await postroad.run('config', 'show')
  t.match(out, /\[secrets\]\nkey = "\*+"/)
  t.notMatch(out, KEY)
})

t.test('a key file with a different key than before is reported', async t => {
  const postroad = await initialise(t)
  const file = join(postroad.dataDir, '..', 'secrets.key')
  writeFileSync(file, KEY)
  postroad.writeConfig(`[secrets]\nkey = "${file}"`)
  t.equal((await postroad.run('migrate')).status, 0)
  t.equal((await postroad.run('domain', 'list')).status, 0)
  writeFileSync(file, Buffer.alloc(32, 9).toString('base64'))
  t.match(await postroad.run('domain', 'list'), { status: 1, err: /secrets\.key is not the key/ })
})
