/** Which hosts are dialled, in which order, and which domains are undeliverable. */
import t from 'tap'
import type { Route } from '../../../src/mta/mta-options.js'
import { egressPolicyFor } from '../../../src/world/net/egress-policy.js'
import type { FakeZone } from '../../../src/world/dns/fake-dns.js'
import { scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta, timeouts, type MtaSetting, type Place } from '../../support/smtp/mta.js'

const accepts = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250 mx.example
  C MAIL ...
  S 250 ok
  C RCPT ...
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 ok`

const says = (greeting: string) => `S ${greeting}`

const recipientRefused = (reply: string) => `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250 mx.example
  C MAIL ...
  S 250 ok
  C RCPT ...
  S ${reply}`

/** Delivers to ann@example.com in this world. */
async function deliver(
  t: Parameters<typeof testMta>[0],
  zone: FakeZone,
  places: Record<string, Place> = {},
  setting: MtaSetting = {},
) {
  const { agent, dialler } = testMta(t, places, { zone, ...setting })
  const outcome = await agent.deliver(makeJob(), goOn)
  return { outcome, dialled: dialler.dialled }
}

const twoExchangers: FakeZone = {
  'example.com': { MX: ['20 mx2.example', '10 mx1.example'] },
  'mx1.example': { A: ['192.0.2.1'] },
  'mx2.example': { A: ['192.0.2.2'] },
}

t.test('the exchanger with the lowest preference is tried first', async t => {
  const mx = await scriptedServer(t, accepts)
  const { outcome, dialled } = await deliver(t, twoExchangers, { '192.0.2.1': mx })
  t.match(outcome, { kind: 'delivered', remoteMta: 'mx1.example' })
  t.same(dialled, ['192.0.2.1'])
})

t.test('if the first exchanger does not answer, the second gets the message', async t => {
  const mx = await scriptedServer(t, accepts)
  const { outcome } = await deliver(t, twoExchangers, { '192.0.2.2': mx })
  t.match(outcome, {
    kind: 'delivered',
    remoteMta: 'mx2.example',
    tried: [
      { host: 'mx1.example', address: '192.0.2.1', stage: 'connect', error: 'connection refused' },
      { host: 'mx2.example', address: '192.0.2.2', stage: 'final_dot' },
    ],
  })
})

for (const greeting of ['421 4.3.2 closing', '554 5.7.1 no service for you'])
  t.test(`if the first exchanger greets with "${greeting}", the second gets the message`, async t => {
    const first = await scriptedServer(t, says(greeting))
    const second = await scriptedServer(t, accepts)
    const { outcome } = await deliver(t, twoExchangers, { '192.0.2.1': first, '192.0.2.2': second })
    t.match(outcome, { kind: 'delivered', remoteMta: 'mx2.example' })
  })

t.test('if the first exchanger defers the recipient, the second gets the message', async t => {
  const first = await scriptedServer(t, recipientRefused('450 4.2.1 later'))
  const second = await scriptedServer(t, accepts)
  const { outcome } = await deliver(t, twoExchangers, { '192.0.2.1': first, '192.0.2.2': second })
  t.match(outcome, { kind: 'delivered', remoteMta: 'mx2.example' })
})

t.test('if the first exchanger rejects the recipient, no other is tried', async t => {
  const first = await scriptedServer(t, recipientRefused('550 5.1.1 no such user'))
  const { outcome, dialled } = await deliver(t, twoExchangers, { '192.0.2.1': first })
  t.match(outcome, { kind: 'bounced', status: '5.1.1' })
  t.same(dialled, ['192.0.2.1'])
})

t.test('if no exchanger can be reached, the message is deferred', async t => {
  const { outcome, dialled } = await deliver(t, twoExchangers)
  t.match(outcome, {
    kind: 'deferred',
    cause: 'transient',
    scope: 'domain',
    subtype: 'host_unreachable',
    summary: 'mx1.example [192.0.2.1]: connection refused',
  })
  t.same(dialled, ['192.0.2.1', '192.0.2.2'])
})

t.test('an address that drops packets is abandoned after the connect timeout', async t => {
  const mx = await scriptedServer(t, accepts)
  const { agent, clock } = testMta(t, { '192.0.2.1': 'silent', '192.0.2.2': mx }, { zone: twoExchangers })
  const delivery = agent.deliver(makeJob(), goOn)
  await clock.advance(0)
  await clock.advance(timeouts.connectMs)
  t.match(await delivery, {
    kind: 'delivered',
    tried: [{ error: 'connection timed out', durationMs: timeouts.connectMs }, {}],
  })
})

t.test('a deferring site is not tried at every address', async t => {
  const busy = await scriptedServer(t, ...Array.from({ length: 3 }, () => says('421 4.7.0 busy')))
  const zone = {
    'example.com': { MX: ['10 mx1.example', '20 mx2.example', '30 mx3.example', '40 mx4.example'] },
    'mx1.example': { A: ['192.0.2.1'] },
    'mx2.example': { A: ['192.0.2.2'] },
    'mx3.example': { A: ['192.0.2.3'] },
    'mx4.example': { A: ['192.0.2.4'] },
  }
  const { outcome } = await deliver(t, zone, { '*': busy })
  t.match(outcome, { kind: 'deferred', reply: { code: 421 } })
  t.equal(outcome.tried.length, 3)
})

t.test('at most ten addresses are dialled in one attempt', async t => {
  const hosts = Array.from({ length: 30 }, (_, index) => `mx${index}.example`)
  const zone: FakeZone = { 'example.com': { MX: hosts.map((host, index) => `${index} ${host}`) } }
  for (const [index, host] of hosts.entries()) zone[host] = { A: [`192.0.2.${index}`, `198.51.100.${index}`] }
  const { dialled } = await deliver(t, zone)
  t.equal(dialled.length, 10)
})

t.test('a host with many addresses does not exclude the second exchanger', async t => {
  const mx = await scriptedServer(t, accepts)
  const many = Array.from({ length: 40 }, (_, index) => `198.51.100.${index}`)
  const zone = { ...twoExchangers, 'mx1.example': { A: many } }
  const { outcome } = await deliver(t, zone, { '192.0.2.2': mx })
  t.match(outcome, { kind: 'delivered', remoteMta: 'mx2.example' })
})

t.test('exchangers of equal preference are tried in random order', async t => {
  const zone = { ...twoExchangers, 'example.com': { MX: ['10 mx1.example', '10 mx2.example'] } }
  const { agent, dialler } = testMta(t, {}, { zone })
  for (let count = 0; count < 20; count++) await agent.deliver(makeJob(), goOn)
  const first = dialler.dialled.filter((_, index) => index % 2 === 0)
  t.same(new Set(first), new Set(['192.0.2.1', '192.0.2.2']))
})

t.test('IPv6 is tried first and IPv4 next', async t => {
  const mx = await scriptedServer(t, accepts)
  const zone = {
    'example.com': { MX: ['10 mx.example'] },
    'mx.example': { A: ['192.0.2.1'], AAAA: ['2001:db8::1', '2001:db8::2'] },
  }
  const { outcome, dialled } = await deliver(t, zone, { '192.0.2.1': mx })
  t.match(outcome, { kind: 'delivered' })
  t.same(dialled, ['2001:db8::1', '192.0.2.1'])
})

t.test('a host whose IPv6 lookup fails is reached over IPv4', async t => {
  const mx = await scriptedServer(t, accepts)
  const zone: FakeZone = {
    'example.com': { MX: ['10 mx.example'] },
    'mx.example': { A: ['192.0.2.1'], AAAA: 'servfail' },
  }
  const { outcome } = await deliver(t, zone, { '192.0.2.1': mx })
  t.match(outcome, { kind: 'delivered' })
})

t.test('a source address of the right family is bound', async t => {
  const zone = {
    'example.com': { MX: ['10 mx.example'] },
    'mx.example': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
  }
  const { dialled } = await deliver(t, zone, {}, { sourceAddresses: ['203.0.113.9'] })
  t.same(dialled, ['2001:db8::1', '192.0.2.1 from 203.0.113.9'])
})

t.test(
  'a workspace with dedicated source addresses sends from them, others from the shared ones',
  async t => {
    const zone = { 'example.com': { MX: ['10 mx.example'] }, 'mx.example': { A: ['192.0.2.1'] } }
    const sources = {
      sourceAddresses: ['203.0.113.9'],
      sourcePools: [{ workspace: makeJob().workspaceId, addresses: ['203.0.113.77'] }],
    }
    const own = await deliver(t, zone, {}, sources)
    t.same(own.dialled, ['192.0.2.1 from 203.0.113.77'])
    const others = await deliver(
      t,
      zone,
      {},
      { ...sources, sourcePools: [{ workspace: 'w2', addresses: ['203.0.113.77'] }] },
    )
    t.same(others.dialled, ['192.0.2.1 from 203.0.113.9'])
  },
)

t.test('a domain without MX is its own mail exchanger', async t => {
  const mx = await scriptedServer(t, accepts)
  const { outcome } = await deliver(t, { 'example.com': { A: ['192.0.2.1'] } }, { '192.0.2.1': mx })
  t.match(outcome, { kind: 'delivered', remoteMta: 'example.com' })
})

t.test('a domain with MX is never dialled at its own address', async t => {
  const zone = {
    'example.com': { MX: ['10 mx.example'], A: ['192.0.2.80'] },
    'mx.example': { A: ['192.0.2.1'] },
  }
  const { dialled } = await deliver(t, zone)
  t.same(dialled, ['192.0.2.1'])
})

t.test('a domain that does not exist bounces with 5.1.2', async t => {
  const { outcome } = await deliver(t, {})
  t.match(outcome, {
    kind: 'bounced',
    status: '5.1.2',
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'bad_destination',
    tried: [],
    summary: 'the domain example.com does not exist',
  })
})

t.test('a domain with neither MX nor address bounces with 5.1.2', async t => {
  const { outcome } = await deliver(t, { 'example.com': { TXT: ['v=spf1 -all'] } })
  t.match(outcome, { kind: 'bounced', status: '5.1.2' })
})

t.test('a null MX bounces with 5.1.10 without dialling', async t => {
  const zone = { 'example.com': { MX: ['0 .'], A: ['192.0.2.1'] } }
  const { outcome, dialled } = await deliver(t, zone)
  t.match(outcome, {
    kind: 'bounced',
    status: '5.1.10',
    subtype: 'domain_accepts_no_mail',
    summary: 'the domain example.com accepts no mail (null MX)',
  })
  t.same(dialled, [])
})

t.test('a null MX next to real ones is ignored', async t => {
  const mx = await scriptedServer(t, accepts)
  const zone = { 'example.com': { MX: ['0 .', '10 mx.example'] }, 'mx.example': { A: ['192.0.2.1'] } }
  t.match((await deliver(t, zone, { '192.0.2.1': mx })).outcome, { kind: 'delivered' })
})

t.test('exchangers without any address bounce with 5.4.4', async t => {
  const { outcome } = await deliver(t, { 'example.com': { MX: ['10 gone.example'] } })
  t.match(outcome, { kind: 'bounced', status: '5.4.4', scope: 'domain' })
})

/** `mx0.example` with preference 0, `mx1.example` with 1 and so on; none of them has an address. */
const manyExchangers = (count: number): FakeZone => ({
  'example.com': { MX: Array.from({ length: count }, (_, index) => `${index} mx${index}.example`) },
})

t.test('the first of many exchangers with an address is found', async t => {
  const mx = await scriptedServer(t, accepts)
  const zone = { ...manyExchangers(40), 'mx27.example': { A: ['192.0.2.27'] } }
  const { outcome } = await deliver(t, zone, { '192.0.2.27': mx })
  t.match(outcome, { kind: 'delivered', remoteMta: 'mx27.example' })
})

t.test('a partial lookup of five hundred exchangers is never permanent', async t => {
  const { outcome } = await deliver(t, manyExchangers(500))
  t.match(outcome, {
    kind: 'deferred',
    permanence: 'transient',
    summary: 'none of the first 50 of the 500 mail exchangers of example.com can be dialled',
  })
  const loopback = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`mx${index}.example`, { A: ['127.0.0.1'] }]),
  )
  t.match((await deliver(t, { ...manyExchangers(500), ...loopback })).outcome, { kind: 'deferred' })
})

t.test("if one exchanger has no address and the other's lookup fails, the message is deferred", async t => {
  const zone: FakeZone = { ...twoExchangers, 'mx1.example': { A: ['127.0.0.1'] }, 'mx2.example': 'servfail' }
  t.match((await deliver(t, zone)).outcome, { kind: 'deferred', subtype: 'dns_unavailable' })
})

t.test('a rejecting host does not decide for one whose lookup failed', async t => {
  const closed = await scriptedServer(t, says('554 5.7.1 no service for you'))
  const zone: FakeZone = { ...twoExchangers, 'mx2.example': 'servfail' }
  t.match((await deliver(t, zone, { '192.0.2.1': closed })).outcome, {
    kind: 'deferred',
    reply: { code: 554 },
  })
})

for (const [what, zone] of [
  ['the MX look-up', { 'example.com': 'servfail' }],
  [
    'the look-up of the only exchanger',
    { 'example.com': { MX: ['10 mx.example'] }, 'mx.example': 'servfail' },
  ],
  ["the look-up of the domain's own address", { 'example.com': { A: 'servfail' } }],
] as const satisfies readonly (readonly [string, FakeZone])[])
  t.test(`a message is deferred if ${what} fails temporarily`, async t => {
    const { outcome } = await deliver(t, zone)
    t.match(outcome, {
      kind: 'deferred',
      cause: 'transient',
      scope: 'domain',
      subtype: 'dns_unavailable',
      tried: [],
    })
  })

t.test('an exchanger with our host name is this server: the mail would loop', async t => {
  const zone = {
    'example.com': { MX: ['10 mail.sender.example'] },
    'mail.sender.example': { A: ['203.0.113.9'] },
  }
  const { outcome, dialled } = await deliver(t, zone)
  t.match(outcome, { kind: 'bounced', status: '5.4.6', cause: 'config', subtype: 'routing_loop' })
  t.same(dialled, [])
})

t.test('an exchanger at one of our addresses is this server, in any notation', async t => {
  const zone = { 'example.com': { MX: ['10 mx.example'] }, 'mx.example': { AAAA: ['2001:db8::9'] } }
  const { outcome } = await deliver(t, zone, {}, { ownAddresses: ['2001:DB8:0:0::9'] })
  t.match(outcome, { kind: 'bounced', status: '5.4.6' })
})

t.test('as a backup MX we deliver only to better exchangers', async t => {
  const zone = {
    'example.com': { MX: ['10 mx1.example', '20 mail.sender.example', '20 mx2.example', '30 mx3.example'] },
    'mx1.example': { A: ['192.0.2.1'] },
    'mail.sender.example': { A: ['203.0.113.9'] },
    'mx2.example': { A: ['192.0.2.2'] },
    'mx3.example': { A: ['192.0.2.3'] },
  }
  const { outcome, dialled } = await deliver(t, zone)
  t.match(outcome, { kind: 'deferred' })
  t.same(dialled, ['192.0.2.1'])
})

for (const address of ['127.0.0.1', '127.8.9.10', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1'])
  t.test(`an exchanger at ${address} is not dialled`, async t => {
    const records = address.includes(':') ? { AAAA: [address] } : { A: [address] }
    const { outcome, dialled } = await deliver(t, {
      'example.com': { MX: ['10 evil.example'] },
      'evil.example': records,
    })
    t.match(outcome, { kind: 'bounced', status: '5.4.6', cause: 'config' })
    t.same(dialled, [])
  })

for (const address of [
  '10.0.0.5',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  'fd00::25',
  'fe80::1',
  '64:ff9b::a00:5',
])
  t.test(`an exchanger at ${address} is not dialled on the word of foreign DNS`, async t => {
    const zone = {
      'example.com': { MX: ['10 mx.example'] },
      'mx.example': address.includes(':') ? { AAAA: [address] } : { A: [address] },
    }
    const { outcome, dialled } = await deliver(t, zone, { '*': await scriptedServer(t) })
    t.match(outcome, {
      kind: 'deferred',
      cause: 'config',
      subtype: 'address_not_public',
      summary: /add a route for it, or set mta\.allow_private/,
      tried: [{ host: 'mx.example', error: /^not tried: the address is not public/ }],
    })
    t.same(dialled, [])
    const allowed = await deliver(
      t,
      zone,
      { '*': await scriptedServer(t, accepts) },
      { egress: egressPolicyFor({ allowPrivate: true }) },
    )
    t.match(allowed.outcome, { kind: 'delivered' })
  })

t.test('only exchangers at public addresses get the mail', async t => {
  const mx = await scriptedServer(t, accepts)
  const zone = { ...twoExchangers, 'mx1.example': { A: ['10.0.0.5', '127.0.0.1'] } }
  const { outcome, dialled } = await deliver(t, zone, { '192.0.2.2': mx })
  t.match(outcome, { kind: 'delivered', tried: [{ error: /^not tried/ }, { host: 'mx2.example' }] })
  t.same(dialled, ['192.0.2.2'])
})

const route = (parts: Partial<Route>): Route => ({
  domain: '*',
  host: '10.0.0.5',
  port: 25,
  tls: 'none',
  ...parts,
})

t.test('the first matching route applies, without DNS', async t => {
  const mx = await scriptedServer(t, accepts, accepts, accepts, accepts)
  const { agent, dialler } = testMta(
    t,
    { '*': mx },
    {
      zone: {},
      routes: [
        route({ domain: 'Exact.Example', host: '10.0.0.1' }),
        route({ domain: '*.exact.example', host: '10.0.0.2' }),
        route({ domain: '*.example', host: '10.0.0.3' }),
        route({ domain: '*', host: '10.0.0.4' }),
      ],
    },
  )
  for (const domain of ['exact.example', 'sub.exact.example', 'inexact.example', 'other.test'])
    t.match(await agent.deliver(makeJob({ recipient: `ann@${domain}` }), goOn), { kind: 'delivered' })
  t.same(dialler.dialled, ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'])
})

t.test('a route may lead to this machine', async t => {
  const mx = await scriptedServer(t, accepts)
  const { outcome, dialled } = await deliver(
    t,
    {},
    { '*': mx },
    { routes: [route({ host: '127.0.0.1', port: 2525 })] },
  )
  t.match(outcome, { kind: 'delivered', tried: [{ address: '127.0.0.1', port: 2525 }] })
  t.same(dialled, ['127.0.0.1'])
})

t.test('a route host known only to the system resolver is reached', async t => {
  const mx = await scriptedServer(t, accepts)
  const { outcome } = await deliver(
    t,
    {},
    { '127.0.0.1': mx },
    {
      routes: [route({ host: 'localhost' })],
      systemLookup: async () => ({ kind: 'found', records: ['::1', '127.0.0.1'], ttlSeconds: 0 }),
    },
  )
  t.match(outcome, {
    kind: 'delivered',
    remoteMta: 'localhost',
    tried: [{ address: '::1' }, { address: '127.0.0.1' }],
  })
})

t.test('a route host without an address is a configuration problem: the mail is deferred', async t => {
  const { outcome } = await deliver(t, {}, {}, { routes: [route({ host: 'typo.example' })] })
  t.match(outcome, { kind: 'deferred', cause: 'config', subtype: 'route_unresolved', tried: [] })
})

t.test('a shutdown during routing dials no host', async t => {
  const { agent, dialler } = testMta(t, {}, { zone: twoExchangers })
  t.match(await agent.deliver(makeJob(), AbortSignal.abort()), {
    kind: 'deferred',
    subtype: 'shutdown',
    tried: [],
  })
  t.same(dialler.dialled, [])
})
