/** The appliance's own mail with one-time links: who can read it, what becomes of it, and how much of it there is. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { simpleParser } from 'mailparser'
import t from 'tap'
import { POSTGRES_SERVER } from '../../support/db/real-postgres.js'
import { readAllRows } from '../../support/db/rows.js'
import { mailedLink } from '../../support/program/account-mail.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { beside } from '../../support/program/beside.js'
import { openBrowser, signedIn, type Browser } from '../../support/program/operators.js'
import { routeTo } from '../../support/program/process.js'
import { openSink } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'

const OPEN = { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' }

async function addWorkspace(appliance: TestAppliance, name: string): Promise<string> {
  return (await appliance.json<{ id: string }>('workspace', 'create', name)).id
}

function invite(by: Browser, email: string, workspace?: string) {
  const where = workspace === undefined ? {} : { workspace_id: workspace }
  return by.ask('POST', '/operators', { email, role: 'viewer', send_mail: true, ...where })
}

/** Everything in the data folder, as it lies on the disk. */
function octetsOf(folder: string): string {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(file => file.isFile())
    .map(file => readFileSync(join(file.parentPath, file.name), 'latin1'))
    .join('\n')
}

// proves: decisions: Added after a day's work > The appliance's own mail (invitations
t.test('a mailed link is shown in no view, and lies in no file of the appliance', async t => {
  const appliance = await openTestAppliance(t, { env: OPEN })
  const owner = await signedIn(appliance)
  const viewer = await signedIn(appliance, { role: 'viewer', workspace: appliance.workspaceId })
  const created = await invite(owner, 'bob@example.com')
  t.match(created, { status: 201, body: { data: { link: null, link_token: null } } })
  const token = await mailedLink(appliance, 'bob@example.com')

  const seen = async (browser: Browser, path: string, headers: Readonly<Record<string, string>> = {}) => {
    const { status, body } = await browser.ask('GET', path, undefined, headers)
    t.equal(status, 200, path)
    t.notMatch(JSON.stringify(body), 'bob@example.com', path)
  }
  for (const path of ['/messages', '/queue'])
    for (const browser of [owner, viewer])
      await seen(browser, `${path}?workspace_id=${appliance.workspaceId}`)
  await seen(owner, '/messages')
  await seen(owner, '/queue')
  await seen(viewer, '/api/v1/email', { 'X-Workspace': appliance.workspaceId })
  t.same((await owner.ask('GET', '/captured')).body.data, [], 'the local inbox')
  t.notMatch(octetsOf(appliance.dataDir), token, 'data folder, with the database')
  await beside(appliance, async ({ reader }) => {
    const all = JSON.stringify([...(await readAllRows(reader))])
    t.match(all, 'bob@example.com')
    t.notMatch(all, token, 'every table')
  })
  if (POSTGRES_SERVER === undefined) {
    const backup = join(t.testdir(), 'backup.db')
    await appliance.run('backup', backup)
    t.notMatch(readFileSync(backup, 'latin1'), token, 'backup')
  }

  t.match((await owner.ask('GET', '/account-mail')).body.data, [
    { kind: 'invitation', to: 'bob@example.com', state: 'delivered', attempts: 1, next_attempt_at: null },
  ])
  t.match(await viewer.ask('GET', '/account-mail'), { status: 403 })
  const bob = openBrowser(appliance)
  t.match(await bob.ask('POST', '/session/link', { token }), { status: 200 })
  t.match((await owner.ask('GET', '/operators/bob@example.com')).body.data, { address_proved: true })
})

t.test(
  'an invitation reaches the mailbox by the ordinary routes, from the appliance and without a return path',
  async t => {
    const sink = await openSink(t)
    const appliance = await openTestAppliance(t, {
      env: { ...OPEN, POSTROAD_MTA_CAPTURE: 'false', ...routeTo(sink.port) },
      toml: 'public_url = "http://mail.postroad.test"',
    })
    const owner = await signedIn(appliance, {}, 'http://mail.postroad.test')
    await invite(owner, 'bob@one.test')
    const mail = await until('the invitation', () =>
      sink.accepted.find(({ recipients }) => recipients.includes('bob@one.test')),
    )
    t.equal(mail.sender, '')
    const { from, text, html } = await simpleParser(mail.raw)
    t.match(from, { value: [{ address: 'notify@mail.postroad.test' }] })
    t.match(mail.raw.toString(), /^DKIM-Signature: .*d=mail\.postroad\.test/ms)
    const [, token] = /http:\/\/mail\.postroad\.test\/console\/#\/link\/([\w-]{43})\s/.exec(text ?? '') ?? []
    t.match(html, token)
    t.notMatch(octetsOf(appliance.dataDir), token)

    await invite(owner, 'unknown@one.test')
    const [line] = await until('the refusal', async () => {
      const { data } = (await owner.ask('GET', '/account-mail')).body as { data: { state: string }[] }
      return data[0]?.state === 'failed' && data
    })
    t.match(line, { to: 'unknown@one.test', state: 'failed', reason: /550/, next_attempt_at: null })
    t.match(
      appliance.log.lines,
      [{ event: 'account mail failed', fields: { recipient: 'unknown@one.test' } }].slice(1),
    )
    t.ok(appliance.log.lines.some(({ event }) => event === 'account mail failed'))
    t.notOk(JSON.stringify(appliance.log.lines).includes('#/link/'), 'no link in the log')
    const key = await appliance.makeKey()
    t.match(await appliance.get('/api/v1/email', { key }), { status: 200, body: { data: { length: 0 } } })
  },
)

t.test('a reset by mail replaces every link before it, and a removed account gets no mail', async t => {
  const appliance = await openTestAppliance(t, { env: OPEN })
  const owner = await signedIn(appliance)
  const { id } = (await invite(owner, 'bob@example.com')).body.data as { id: string }
  const first = await mailedLink(appliance, 'bob@example.com')
  await owner.ask('POST', `/operators/${id}/reset`, { send_mail: true })
  const second = await mailedLink(appliance, 'bob@example.com', 2)
  const bob = openBrowser(appliance)
  t.equal((await bob.ask('POST', '/session/link', { token: first })).status, 401)
  t.match(await bob.ask('POST', '/session/link/preview', { token: second }), {
    status: 200,
    body: { data: { kind: 'reset', email: 'bob@example.com', needs_sign_in: false } },
  })
  t.equal((await owner.ask('DELETE', `/operators/${id}`)).status, 200)
  t.equal((await bob.ask('POST', '/session/link', { token: second })).status, 401)
})

t.test('without a shared address the mail comes from postmaster at the host', async t => {
  const sink = await openSink(t)
  const appliance = await openTestAppliance(t, {
    env: {
      ...OPEN,
      POSTROAD_MTA_SHARED_ADDRESS: '',
      POSTROAD_MTA_CAPTURE: 'false',
      ...routeTo(sink.port),
    },
  })
  const owner = await signedIn(appliance)
  await invite(owner, 'bob@one.test')
  const [mail] = await until('the invitation', () => sink.accepted.length > 0 && sink.accepted)
  t.match((await simpleParser(mail?.raw ?? '')).from, { value: [{ address: 'postmaster@mx.postroad.test' }] })
})

// A hundred mails to one mailbox in a second must not be possible.
t.test('a mailbox gets three mails an hour, however they are asked for', async t => {
  const appliance = await openTestAppliance(t, { env: OPEN })
  const [shop, other] = [await addWorkspace(appliance, 'shop'), await addWorkspace(appliance, 'other')]
  const owner = await signedIn(appliance)
  const ann = await signedIn(appliance, { role: 'owner', workspace: shop })
  const eve = await signedIn(appliance, { role: 'owner', workspace: other })
  const spellings = Array.from({ length: 20 }, (_, at) => `bob+${at}@example.com`)
  const answers = await Promise.all(spellings.map(email => invite(ann, email, shop)))
  t.same(answers.map(({ status }) => status).sort(), [
    ...Array<number>(3).fill(201),
    ...Array<number>(17).fill(429),
  ])
  const refused = answers.find(({ status }) => status === 429)
  t.ok(Number(refused?.headers.get('retry-after')) > 0)
  await Promise.all(spellings.map(email => invite(eve, email, other)))
  const { id } = (await invite(owner, 'bob@example.com')).body.data as { id: string }
  t.ok(id, 'operators of all workspaces have a share of their own')
  const resets = await Promise.all(
    Array.from({ length: 10 }, () => owner.ask('POST', `/operators/${id}/reset`, { send_mail: true })),
  )
  t.equal(resets.filter(({ status }) => status === 200).length, 2)
  const { total } = (await owner.ask('GET', '/account-mail?limit=1')).body.pagination as { total: number }
  t.equal(total, 3 + 3 + 3)
  appliance.clock.skip(3_600_000)
  const later = await signedIn(appliance, { role: 'owner', workspace: shop })
  t.equal((await invite(later, 'bob@example.com', shop)).status, 201, 'an hour later')
})

t.test('one operator and one workspace send thirty an hour, and leave the others theirs', async t => {
  const appliance = await openTestAppliance(t, { env: OPEN })
  const [shop, other] = [await addWorkspace(appliance, 'shop'), await addWorkspace(appliance, 'other')]
  const ann = await signedIn(appliance, { role: 'owner', workspace: shop })
  const second = await signedIn(appliance, { role: 'owner', workspace: shop })
  const eve = await signedIn(appliance, { role: 'owner', workspace: other })
  const answers = []
  for (let at = 0; at < 31; at += 1) answers.push(await invite(ann, `user${at}@example.com`, shop))
  t.same(
    answers.map(({ status }) => status),
    [...Array<number>(30).fill(201), 429],
  )
  t.equal((await invite(second, 'more@example.com', shop)).status, 429, 'the workspace has had its share')
  t.equal((await invite(eve, 'more@example.com', other)).status, 201)
})
