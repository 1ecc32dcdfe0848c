/** Sending domains and suppressions by the command line. */
import t from 'tap'
import type { Answer } from 'dns-packet'
import { dnsServer, RCODE } from '../support/smtp/dns-server.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { initialise } from '../support/program/process.js'

interface DomainView {
  readonly id: string
  readonly domain: string
  readonly verified: boolean
  readonly dns_records: {
    readonly type: string
    readonly name: string
    readonly value: string
    readonly purpose: string
    readonly status: string
    readonly alternative?: { readonly name: string; readonly value: string }
  }[]
}

/** Zone lines by question, e.g. `TXT _dmarc.sender.test`. */
const zone = new Map<string, Answer>()

async function openZone(t: Parameters<typeof dnsServer>[0]) {
  const { address } = await dnsServer(t, ({ question }) => {
    const answer = zone.get(question)
    return answer ? { answers: [answer] } : { rcode: RCODE.NXDOMAIN }
  })
  return { POSTROAD_DNS_SERVERS: address }
}

t.test('an operator of one workspace lists what is in it, on a remote appliance too', async t => {
  const postroad = await openTestAppliance(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'shop')
  for (const [name, workspace] of [
    ['shop.test', 'shop'],
    ['other.test', 'default'],
  ] as const)
    await postroad.run('domain', 'add', name, '--workspace', workspace)
  const token = await tokenWith(postroad, [{ workspaceId: id, role: 'operator' }])
  const remote = ['--server', postroad.baseUrl, '--token', token]
  t.match(await postroad.run('domain', 'list', ...remote), { status: 1, err: /name one in workspace_id/ })
  const listed = await postroad.json<DomainView[]>('domain', 'list', '--workspace', 'shop', ...remote)
  t.same(
    listed.map(({ domain }) => domain),
    ['shop.test'],
  )
  t.same(await postroad.json('queue', 'summary', '--workspace', 'shop', ...remote), [])
  t.match(await postroad.run('inbound', 'list', ...remote), {
    status: 1,
    err: /whole appliance: it requires the permission inbound:read in all workspaces/,
  })
})

t.test('a domain is added, verified by DNS, listed and removed', async t => {
  const postroad = await initialise(t, { env: await openZone(t) })
  const owner = ['--workspace', postroad.workspaceId]
  const added = await postroad.json<DomainView>('domain', 'add', 'Sender.TEST.', ...owner)
  t.match(added, { domain: 'sender.test', verified: false, vouched: false })
  t.same(
    added.dns_records.map(({ type, purpose, status }) => `${type} ${purpose} ${status}`),
    [
      'TXT verification pending',
      ...Array.from({ length: 4 }, () => 'CNAME dkim pending'),
      'TXT dmarc pending',
    ],
  )
  t.match(await postroad.run('domain', 'add', 'sender.test', ...owner), { status: 1, err: /already exists/ })
  t.match(await postroad.run('domain', 'add', 'not a domain', ...owner), { status: 1, err: /domain/ })

  const { status, out } = await postroad.run('domain', 'verify', 'sender.test', '--json', ...owner)
  t.equal(status, 1, 'nothing is published yet')
  t.match(JSON.parse(out), { verified: false, dns_records: [{ status: 'failed' }, { status: 'failed' }] })

  const [verification, first, second] = added.dns_records
  zone.set(`TXT ${verification!.name}`, { type: 'TXT', name: verification!.name, data: verification!.value })
  zone.set(`CNAME ${first!.name}`, { type: 'CNAME', name: first!.name, data: first!.value })
  const { name, value } = second!.alternative!
  zone.set(`TXT ${name}`, { type: 'TXT', name, data: value.match(/.{1,255}/g)! })
  const verified = await postroad.json<DomainView>('domain', 'verify', 'sender.test', ...owner)
  t.match(
    verified.dns_records.map(({ status }) => status),
    ['verified', 'verified', 'verified', 'failed', 'failed', 'failed'],
  )
  t.equal(verified.verified, true, 'without the optional records')

  const listed = await postroad.json<DomainView[]>('domain', 'list')
  t.match(
    listed.find(({ domain }) => domain === 'sender.test'),
    { id: added.id, verified: true, workspace_id: postroad.workspaceId },
  )
  t.match(await postroad.run('domain', 'list'), { out: /sender\.test +verified/ })
  t.same(await postroad.json('domain', 'remove', 'sender.test', ...owner), { success: true })
  t.notOk(
    (await postroad.json<DomainView[]>('domain', 'list')).some(({ domain }) => domain === 'sender.test'),
  )
})

t.test('a vouched domain is shown as vouched', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  t.match(await postroad.json('domain', 'add', 'bücher.test', '--vouch', ...owner), {
    domain: 'xn--bcher-kva.test',
    verified: true,
    vouched: true,
  })
  const { out } = await postroad.run('domain', 'list')
  t.match(out, /xn--bcher-kva\.test +vouched/)
  t.match(out, /mail\.postroad\.test +shared address/)
})

t.test('DMARC reports are requested at an accepted address, and the permission record is shown', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const dmarcOf = ({ dns_records: records }: DomainView) =>
    records.find(({ purpose }) => purpose === 'dmarc')?.value
  const rua = 'v=DMARC1; p=none; rua=mailto:dmarc@mx.postroad.test'
  t.equal(dmarcOf(await postroad.json<DomainView>('domain', 'add', 'sender.example', ...owner)), rua)
  const { out } = await postroad.run('domain', 'show', 'sender.example', ...owner)
  t.match(out, '*._report._dmarc.mx.postroad.test. 3600 IN TXT "v=DMARC1;"')
  t.equal(dmarcOf(await postroad.json<DomainView>('domain', 'add', 'postroad.test', ...owner)), rua)
  const within = await postroad.run('domain', 'show', 'postroad.test', ...owner)
  t.notMatch(within.out, '_report', 'receivers do not ask where host and domain are of one organisation')
})

t.test('--zone prints every record in zone file syntax', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const { out } = await postroad.run('domain', 'add', 'sender.example', '--zone', ...owner)
  const { dns_records: records } = await postroad.json<DomainView>(
    'domain',
    'show',
    'sender.example',
    ...owner,
  )
  const lines = out.split('\n').filter(line => line !== '' && !line.startsWith(';'))
  t.same(
    lines,
    records.map(
      ({ type, name, value }) => `${name}. 3600 IN ${type} ${type === 'TXT' ? `"${value}"` : `${value}.`}`,
    ),
  )
  const strings = [...out.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text)
  t.ok(strings.every(text => text.length <= 255))
  for (const { alternative } of records)
    if (alternative) t.ok(out.includes(`; or, instead of this CNAME: ${alternative.name}. 3600 IN TXT`))
  t.equal((await postroad.run('domain', 'show', 'sender.example', '--zone', ...owner)).out, out)
})

t.test('unanswered DNS queries change no verification', async t => {
  const silence = await dnsServer(t, () => ({ rcode: RCODE.SERVFAIL }))
  const postroad = await initialise(t, { env: { POSTROAD_DNS_SERVERS: silence.address } })
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('domain', 'add', 'sender.test', ...owner)
  const { status, out } = await postroad.run('domain', 'verify', 'sender.test', ...owner)
  t.equal(status, 1)
  t.match(out, /pending +verification/)
})

t.test('suppressions are added, listed and removed', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const suppression = { email: 'ann@one.test', reason: 'manual', scope: 'all', source_message_id: null }
  t.match(await postroad.json('suppress', 'add', 'Ann@One.test', ...owner), suppression)
  t.match(await postroad.json('suppress', 'add', '@Closed.test', ...owner), { email: '@closed.test' })
  t.match(await postroad.run('suppress', 'add', 'ann@one.test', ...owner), { status: 1, err: /already/ })
  for (const text of ['ann', '@', '@closed', 'ann@one.test\nbob'])
    t.match(await postroad.run('suppress', 'add', text, ...owner), {
      status: 1,
      err: /not a valid address or @domain/,
    })
  const listed = await postroad.json<{ email: string }[]>('suppress', 'list', ...owner)
  t.same(
    listed.map(({ email }) => email),
    ['@closed.test', 'ann@one.test'],
  )
  t.equal((await postroad.json<unknown[]>('suppress', 'list', '--limit', '1', ...owner)).length, 1)
  t.same(await postroad.json('suppress', 'remove', 'ANN@one.test', ...owner), { success: true })
  t.match(await postroad.run('suppress', 'list', ...owner), { status: 0, out: /@closed\.test +manual +all/ })
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  t.same(await postroad.json('suppress', 'list', '--workspace', other.id), [])
})
