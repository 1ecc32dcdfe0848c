/** The resolver against a real server on the loopback. */
import t from 'tap'
import type { Answer } from 'dns-packet'
import { actFor } from '../../src/core/holder.js'
import { openResolver } from '../../src/world/dns/dns-client.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import {
  dnsServer,
  RCODE,
  type AnswerWith,
  type DnsServer,
  type ScriptedAnswer,
} from '../support/smtp/dns-server.js'

const TIMEOUT = 3_000

function resolverOf(servers: readonly DnsServer[], clock = new FakeClock(), signal?: AbortSignal) {
  const addresses = servers.map(server => server.address)
  return openResolver({ servers: addresses, timeoutMs: TIMEOUT, clock, random: new SeededRandom(), signal })
}

/** A server with one answer per question, and NXDOMAIN for the rest. */
function zone(answers: Record<string, ScriptedAnswer>): AnswerWith {
  return ({ question }) => answers[question] ?? { rcode: RCODE.NXDOMAIN }
}

const a = (name: string, address: string, ttl = 300): Answer => ({ type: 'A', name, data: address, ttl })
const cname = (name: string, target: string, ttl = 300): Answer => ({
  type: 'CNAME',
  name,
  data: target,
  ttl,
})
const soa = (ttl: number, minimum: number): Answer => ({
  type: 'SOA',
  name: 'example',
  ttl,
  data: { mname: 'ns.example', rname: 'root.example', serial: 1, refresh: 1, retry: 1, expire: 1, minimum },
})

t.test('each type of record is found with its time to live', async t => {
  const server = await dnsServer(
    t,
    zone({
      'MX example.com': {
        answers: [
          {
            type: 'MX',
            name: 'example.com',
            ttl: 600,
            data: { preference: 10, exchange: 'MX1.Example.COM' },
          },
          {
            type: 'MX',
            name: 'example.com',
            ttl: 300,
            data: { preference: 20, exchange: 'mx2.example.com' },
          },
        ],
      },
      'MX nomail.example': {
        answers: [{ type: 'MX', name: 'nomail.example', ttl: 60, data: { preference: 0, exchange: '.' } }],
      },
      'A mx1.example.com': { answers: [a('mx1.example.com', '192.0.2.1', 120)] },
      'AAAA mx1.example.com': {
        answers: [{ type: 'AAAA', name: 'mx1.example.com', ttl: 120, data: '2001:db8::1' }],
      },
      'TXT example.com': {
        answers: [{ type: 'TXT', name: 'example.com', ttl: 60, data: ['v=spf1 ', '-all'] }],
      },
      'CNAME www.example.com': { answers: [cname('www.example.com', 'Host.Example.com', 30)] },
    }),
  )
  const resolver = resolverOf([server])
  t.same(await resolver.mx('example.com'), {
    kind: 'found',
    ttlSeconds: 300,
    records: [
      { exchange: 'mx1.example.com', preference: 10 },
      { exchange: 'mx2.example.com', preference: 20 },
    ],
  })
  t.match(await resolver.mx('nomail.example'), { records: [{ exchange: '', preference: 0 }] })
  t.same(await resolver.ipv4('mx1.example.com'), { kind: 'found', records: ['192.0.2.1'], ttlSeconds: 120 })
  t.same(await resolver.ipv6('mx1.example.com'), { kind: 'found', records: ['2001:db8::1'], ttlSeconds: 120 })
  t.same(await resolver.txt('example.com'), { kind: 'found', records: ['v=spf1 -all'], ttlSeconds: 60 })
  t.same(await resolver.cname('www.example.com'), {
    kind: 'found',
    records: ['host.example.com'],
    ttlSeconds: 30,
  })
})

t.test('NXDOMAIN and NODATA are distinguished', async t => {
  const server = await dnsServer(
    t,
    zone({
      'A gone.example': { rcode: RCODE.NXDOMAIN, authorities: [soa(900, 60)] },
      'A bare.example': { authorities: [soa(30, 900)] },
    }),
  )
  const resolver = resolverOf([server])
  t.same(await resolver.ipv4('gone.example'), { kind: 'missing', why: 'nxdomain', ttlSeconds: 60 })
  t.same(await resolver.ipv4('bare.example'), { kind: 'missing', why: 'nodata', ttlSeconds: 30 })
})

for (const [what, rcode] of [
  ['SERVFAIL', RCODE.SERVFAIL],
  ['REFUSED', RCODE.REFUSED],
] as const)
  t.test(`${what} is no answer`, async t => {
    const server = await dnsServer(t, () => ({ rcode }))
    t.same(await resolverOf([server]).mx('example.com'), {
      kind: 'unavailable',
      reason: `example.com MX: server answered ${what}`,
    })
  })

t.test('a referral is no answer', async t => {
  const server = await dnsServer(t, () => ({
    authorities: [{ type: 'NS', name: 'example', ttl: 60, data: 'ns.example' }],
  }))
  t.match(await resolverOf([server]).ipv4('www.example'), { kind: 'unavailable', reason: /referral/ })
})

t.test('a silent server is queried twice', async t => {
  const server = await dnsServer(t, () => 'silence')
  const clock = new FakeClock()
  const answer = resolverOf([server], clock).ipv4('www.example')
  await server.heard(1)
  await clock.advance(TIMEOUT)
  await server.heard(2)
  await clock.advance(TIMEOUT)
  t.match(await answer, { kind: 'unavailable', reason: /no answer in time/ })
  t.same(server.asked, ['udp A www.example', 'udp A www.example'])
})

t.test('a port where nobody listens is no answer', async t => {
  const server = await dnsServer(t, () => 'silence')
  const resolver = openResolver({
    servers: [server.address.replace('127.0.0.1', '127.0.0.53')],
    timeoutMs: TIMEOUT,
    clock: new FakeClock(),
    random: new SeededRandom(),
  })
  t.match(await resolver.ipv4('www.example'), { kind: 'unavailable', reason: /ECONNREFUSED/ })
})

t.test('after a failure the next server is queried, and first from then on', async t => {
  const broken = await dnsServer(t, () => ({ rcode: RCODE.SERVFAIL }))
  const good = await dnsServer(t, zone({ 'A one.example': { answers: [a('one.example', '192.0.2.1')] } }))
  const resolver = resolverOf([broken, good])
  t.match(await resolver.ipv4('one.example'), { kind: 'found' })
  t.match(await resolver.ipv4('two.example'), { kind: 'missing' })
  t.equal(broken.asked.length, 1)
  t.equal(good.asked.length, 2)
})

t.test('an answer that is cut off is fetched over TCP', async t => {
  const many = Array.from({ length: 100 }, (_, index) => a('many.example', `192.0.2.${index}`))
  const server = await dnsServer(t, ({ transport }) =>
    transport === 'udp' ? { truncated: true } : { answers: many },
  )
  const answer = await resolverOf([server]).ipv4('many.example')
  t.match(answer, { kind: 'found', records: { length: 100 } })
  t.same(server.asked, ['udp A many.example', 'tcp A many.example'])
})

t.test('aliases are followed inside an answer, and the shortest time to live holds', async t => {
  const server = await dnsServer(
    t,
    zone({
      'A www.example': {
        answers: [
          cname('www.example', 'b.example', 500),
          cname('b.example', 'C.example', 20),
          a('c.example', '192.0.2.1', 300),
        ],
      },
    }),
  )
  t.same(await resolverOf([server]).ipv4('www.example'), {
    kind: 'found',
    records: ['192.0.2.1'],
    ttlSeconds: 20,
  })
})

t.test('an incomplete CNAME chain is followed with another query', async t => {
  const server = await dnsServer(
    t,
    zone({
      'A www.example': { answers: [cname('www.example', 'b.example', 20)] },
      'A b.example': { answers: [a('b.example', '192.0.2.1', 300)] },
    }),
  )
  t.same(await resolverOf([server]).ipv4('www.example'), {
    kind: 'found',
    records: ['192.0.2.1'],
    ttlSeconds: 20,
  })
  t.same(server.asked, ['udp A www.example', 'udp A b.example'])
})

t.test('an alias that leads nowhere is missing', async t => {
  const server = await dnsServer(
    t,
    zone({
      'A www.example': {
        rcode: RCODE.NXDOMAIN,
        answers: [cname('www.example', 'gone.example')],
        authorities: [soa(60, 60)],
      },
      'A web.example': { answers: [cname('web.example', 'bare.example')], authorities: [soa(60, 60)] },
    }),
  )
  const resolver = resolverOf([server])
  t.match(await resolver.ipv4('www.example'), { kind: 'missing', why: 'nxdomain' })
  t.match(await resolver.ipv4('web.example'), { kind: 'missing', why: 'nodata' })
})

t.test('CNAME loops end, in one answer or across several', async t => {
  const server = await dnsServer(
    t,
    zone({
      'A one.example': {
        answers: [cname('one.example', 'two.example'), cname('two.example', 'one.example')],
      },
      'A left.example': { answers: [cname('left.example', 'right.example')] },
      'A right.example': { answers: [cname('right.example', 'left.example')] },
    }),
  )
  const resolver = resolverOf([server])
  t.match(await resolver.ipv4('one.example'), { kind: 'unavailable', reason: /too many aliases/ })
  t.match(await resolver.ipv4('left.example'), { kind: 'unavailable', reason: /too many aliases/ })
})

t.test('an answer with a wrong id or question is ignored', async t => {
  const forged = [a('www.example', '203.0.113.66')]
  const server = await dnsServer(t, ({ id }) => [
    { id: (id + 1) & 0xffff, answers: forged },
    { question: { type: 'A', name: 'other.example' }, answers: forged },
    { question: { type: 'MX', name: 'www.example' }, answers: forged },
    { answers: [a('www.example', '192.0.2.1')] },
  ])
  t.match(await resolverOf([server]).ipv4('www.example'), { kind: 'found', records: ['192.0.2.1'] })
})

t.test('unrelated records in an answer are ignored', async t => {
  const server = await dnsServer(t, () => ({
    authoritative: true,
    answers: [a('other.example', '203.0.113.66')],
  }))
  t.match(await resolverOf([server]).ipv4('www.example'), { kind: 'missing', why: 'nodata' })
})

t.test('every query has a random port and id', async t => {
  const server = await dnsServer(t, zone({}))
  const resolver = resolverOf([server])
  for (let count = 0; count < 8; count++) await resolver.ipv4(`name${count}.example`)
  t.ok(new Set(server.sources.map(source => source.port)).size > 1, 'ports differ')
  const steps = server.sources.slice(1).map((source, index) => source.id - (server.sources[index]?.id ?? 0))
  t.ok(new Set(steps).size > 1, 'ids are not counted')
})

t.test('a server without EDNS is queried again without it', async t => {
  const server = await dnsServer(t, ({ hasEdns }) =>
    hasEdns ? { rcode: RCODE.FORMERR } : { answers: [a('old.example', '192.0.2.1')] },
  )
  t.match(await resolverOf([server]).ipv4('old.example'), { kind: 'found' })
})

t.test('an answer is cached for its TTL', async t => {
  const server = await dnsServer(
    t,
    zone({ 'A www.example': { answers: [a('www.example', '192.0.2.1', 60)] } }),
  )
  const clock = new FakeClock()
  const resolver = resolverOf([server], clock)
  await resolver.ipv4('www.example')
  await clock.advance(59_000)
  t.match(await resolver.ipv4('WWW.example.'), { kind: 'found', ttlSeconds: 1 })
  t.equal(server.asked.length, 1)
  await clock.advance(1_000)
  await resolver.ipv4('www.example')
  t.equal(server.asked.length, 2)
})

t.test(
  'answers are cached for an hour at most, negative ones for five minutes, failures for five seconds',
  async t => {
    const server = await dnsServer(
      t,
      zone({
        'A www.example': { answers: [a('www.example', '192.0.2.1', 86_400)] },
        'A gone.example': { rcode: RCODE.NXDOMAIN, authorities: [soa(86_400, 86_400)] },
        'A broken.example': { rcode: RCODE.SERVFAIL },
      }),
    )
    const clock = new FakeClock()
    const resolver = resolverOf([server], clock)
    t.match(await resolver.ipv4('www.example'), { ttlSeconds: 3_600 })
    t.match(await resolver.ipv4('gone.example'), { ttlSeconds: 300 })
    await resolver.ipv4('broken.example')
    await resolver.ipv4('broken.example')
    t.equal(server.asked.length, 3)
    await clock.advance(5_000)
    await resolver.ipv4('broken.example')
    await clock.advance(295_000)
    await resolver.ipv4('gone.example')
    await resolver.ipv4('www.example')
    t.same(server.asked.slice(3), ['udp A broken.example', 'udp A gone.example'])
  },
)

t.test('a negative answer without an SOA is not cached', async t => {
  const server = await dnsServer(t, zone({}))
  const resolver = resolverOf([server])
  await resolver.ipv4('gone.example')
  await resolver.ipv4('gone.example')
  t.equal(server.asked.length, 2)
})

t.test('a time to live with its highest bit set counts as zero', async t => {
  const server = await dnsServer(
    t,
    zone({ 'A www.example': { answers: [a('www.example', '192.0.2.1', 2 ** 31)] } }),
  )
  t.match(await resolverOf([server]).ipv4('www.example'), { kind: 'found', ttlSeconds: 0 })
})

t.test('identical concurrent questions share one query', async t => {
  const server = await dnsServer(t, zone({ 'MX example.com': { authorities: [soa(60, 60)] } }))
  const resolver = resolverOf([server])
  const answers = await Promise.all(Array.from({ length: 50 }, () => resolver.mx('example.com')))
  t.equal(server.asked.length, 1)
  t.ok(answers.every(answer => answer.kind === 'missing'))
})

t.test('a thousand questions at once are all answered, with a bounded number of sockets', async t => {
  const server = await dnsServer(t, () => 'silence')
  const clock = new FakeClock()
  const resolver = resolverOf([server], clock)
  const answers = Promise.all(
    Array.from({ length: 1_000 }, (_, index) => resolver.ipv4(`name${index}.example`)),
  )
  const over = new AbortController()
  void answers.finally(() => over.abort())
  t.ok(clock.waiting <= 256, 'no more than that wait for an answer')
  while (!over.signal.aborted) await clock.advance(TIMEOUT)
  t.equal((await answers).length, 1_000)
})

t.test('names that one workspace asks for, and nobody answers, delay no lookup of another', async t => {
  const server = await dnsServer(t, ({ question }) => {
    const [, name = ''] = question.split(' ')
    return name.endsWith('.dead.example') ? 'silence' : { answers: [a(name, '192.0.2.1')] }
  })
  const stopping = new AbortController()
  const resolver = resolverOf([server], new FakeClock(), stopping.signal)
  const silent = actFor({ owner: 'w1' }, () =>
    Promise.all(Array.from({ length: 2_000 }, (_, at) => resolver.ipv4(`name${at}.dead.example`))),
  )
  // Its socket holds no more than these.
  await server.heard(256)
  for (const owner of ['w2', 'w3'])
    t.match(await actFor({ owner }, () => resolver.ipv4(`${owner}.example`)), { kind: 'found' })
  stopping.abort()
  t.match((await silent).at(-1), { kind: 'unavailable' })
})

t.test('invalid names are missing without a query', async t => {
  const server = await dnsServer(t, zone({}))
  const resolver = resolverOf([server])
  for (const name of [
    '',
    'a..b',
    `${'x'.repeat(64)}.example`,
    `${'a.'.repeat(127)}example`,
    'white space.example',
    'ünicode.example',
  ])
    t.match(await resolver.ipv4(name), { kind: 'missing', why: 'nxdomain' })
  t.same(server.asked, [])
})

t.test('without servers every lookup is unavailable', async t => {
  const resolver = openResolver({
    servers: ['no address'],
    timeoutMs: TIMEOUT,
    clock: new FakeClock(),
    random: new SeededRandom(),
  })
  t.match(await resolver.ipv4('www.example'), { kind: 'unavailable', reason: /no name server is configured/ })
})

t.test('an abort ends questions under way, and later ones are not asked', async t => {
  const server = await dnsServer(t, () => 'silence')
  const limit = new AbortController()
  const resolver = resolverOf([server, server], new FakeClock(), limit.signal)
  const answers = Promise.all([resolver.ipv4('a.example'), resolver.txt('b.example')])
  await server.heard(2)
  limit.abort()
  t.match(await answers, [
    { kind: 'unavailable', reason: /before the time for all lookups ended/ },
    { kind: 'unavailable' },
  ])
  t.match(await resolver.mx('c.example'), { kind: 'unavailable' })
  t.equal(server.asked.length, 2)
})
