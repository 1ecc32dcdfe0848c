/** Finding, fetching and caching MTA-STS policies. */
import t from 'tap'
import type { StsLookup } from '../../../src/mta/routing/mta-sts.js'
import type { HttpResponse } from '../../../src/world/net/fetch.js'
import { announced, policyText, served, stsWorld } from '../../support/smtp/mta-sts.js'
import { comeToRest } from '../../support/turns.js'

const MINUTE = 60_000
const DAY = 86_400_000

function modeOf(lookup: StsLookup): string {
  return lookup.kind === 'policy' ? lookup.policy.mode : lookup.kind
}

t.test('a policy is fetched over HTTPS from its well-known URL, at the address in DNS', async t => {
  const { policies, http } = stsWorld(t)
  http.answer(served(policyText()))
  t.same(await policies.find('example.com'), {
    kind: 'policy',
    policy: { mode: 'enforce', mx: ['mx.example'], maxAgeSeconds: 86_400 },
  })
  t.same(http.requests, [
    {
      method: 'GET',
      url: 'https://mta-sts.example.com/.well-known/mta-sts.txt',
      address: '192.0.2.80',
      timeoutMs: 10_000,
      maxBytes: 65_536,
    },
  ])
})

t.test('a domain without a record has no policy, and its web server is not contacted', async t => {
  const { policies, http } = stsWorld(t, {}, { zone: { '_mta-sts.example.com': { TXT: ['v=spf1 -all'] } } })
  t.same(await policies.find('example.com'), { kind: 'none' })
  t.same(http.requests, [])
})

t.test('without a DNS answer or a cached policy there is no policy', async t => {
  const { policies, http } = stsWorld(t, {}, { zone: { '_mta-sts.example.com': 'servfail' } })
  t.same(await policies.find('example.com'), { kind: 'none' })
  t.same(http.requests, [])
})

t.test('a policy of mode none is no policy, and is cached like others', async t => {
  const { policies, http } = stsWorld(t)
  http.answer(served(policyText({ mode: 'none', mx: [] })))
  t.same(await policies.find('example.com'), { kind: 'none' })
  t.same(await policies.find('example.com'), { kind: 'none' })
  t.equal(http.requests.length, 1)
})

t.test('the next address of the policy host is tried within the same time limit', async t => {
  const zone = { 'mta-sts.example.com': { A: ['192.0.2.80'], AAAA: ['2001:db8::80'] } }
  const { policies, http } = stsWorld(t, {}, { zone })
  http.answer(new Error('connection refused')).answer(served(policyText()))
  t.equal(modeOf(await policies.find('example.com')), 'enforce')
  t.match(http.requests, [
    { address: '2001:db8::80', timeoutMs: 5_000 },
    { address: '192.0.2.80', timeoutMs: 10_000 },
  ])
})

for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '100.64.0.1', '192.168.0.1'])
  t.test(`a policy host at ${address} is not contacted`, async t => {
    const { policies, http } = stsWorld(t, {}, { zone: { 'mta-sts.example.com': { A: [address] } } })
    t.match(await policies.find('example.com'), { kind: 'unavailable', reason: /is not public/ })
    t.same(http.requests, [])
  })

for (const [what, answer, reason] of [
  ['the certificate is wrong', new Error('self-signed certificate'), /self-signed certificate/],
  ['there is a redirect', served(policyText(), { status: 301, headers: { location: '/' } }), /answered 301/],
  ['there is no such file', served('not found', { status: 404 }), /answered 404/],
  ['the answer is a success of another kind', served(policyText(), { status: 203 }), /answered 203/],
  [
    'the file is a web page',
    served(policyText(), { headers: { 'content-type': 'text/html' } }),
    /text\/plain/,
  ],
  ['the file has no type', served(policyText(), { headers: {} }), /text\/plain/],
  ['the file is cut at 64 KB', served(policyText(), { isTruncated: true }), /longer than 64 KB/],
  ['the file is not UTF-8', served('', { body: Buffer.from([0xff, 0xfe]) }), /UTF-8/],
  ['the policy is malformed', served(policyText({ mode: 'strict' })), /malformed: its mode/],
] as const satisfies readonly (readonly [string, Partial<HttpResponse> | Error, RegExp])[])
  t.test(`a policy is unavailable if ${what}, and the fetch is retried after five minutes`, async t => {
    const { policies, http, clock } = stsWorld(t)
    http.answer(answer).answer(served(policyText()))
    t.match(await policies.find('example.com'), { kind: 'unavailable', reason })
    await clock.advance(5 * MINUTE - 1)
    t.match(await policies.find('example.com'), { kind: 'unavailable', reason })
    t.equal(http.requests.length, 1)
    await clock.advance(1)
    t.equal(modeOf(await policies.find('example.com')), 'enforce')
  })

t.test('the content type is compared ignoring case and parameters', async t => {
  const { policies, http } = stsWorld(t)
  http.answer(served(policyText(), { headers: { 'content-type': 'Text/Plain;charset=us-ascii' } }))
  t.equal(modeOf(await policies.find('example.com')), 'enforce')
})

t.test('a policy is fetched once while its id is unchanged', async t => {
  const { policies, http, clock } = stsWorld(t)
  http.answer(served(policyText()))
  await policies.find('example.com')
  await clock.advance(DAY - 1)
  t.equal(modeOf(await policies.find('example.com')), 'enforce')
  t.equal(http.requests.length, 1)
})

t.test('concurrent deliveries share one fetch', async t => {
  const { policies, http } = stsWorld(t)
  http.answer(served(policyText()))
  const lookups = await Promise.all([1, 2, 3].map(() => policies.find('example.com')))
  t.same(lookups.map(modeOf), ['enforce', 'enforce', 'enforce'])
  t.equal(http.requests.length, 1)
})

t.test('a new id causes a new fetch', async t => {
  const { policies, http, zone } = stsWorld(t)
  http.answer(served(policyText())).answer(served(policyText({ mode: 'testing' })))
  t.equal(modeOf(await policies.find('example.com')), 'enforce')
  zone['_mta-sts.example.com'] = announced('2')
  t.equal(modeOf(await policies.find('example.com')), 'testing')
  t.equal(modeOf(await policies.find('example.com')), 'testing')
  t.equal(http.requests.length, 2)
})

t.test(
  'if a new policy cannot be fetched the old one stays in force, and the fetch is retried after five minutes',
  async t => {
    const { policies, http, clock, zone } = stsWorld(t)
    http
      .answer(served(policyText()))
      .answer(new Error('unreachable'))
      .answer(served(policyText({ mode: 'testing' })))
    await policies.find('example.com')
    zone['_mta-sts.example.com'] = announced('2')
    t.equal(modeOf(await policies.find('example.com')), 'enforce')
    t.equal(modeOf(await policies.find('example.com')), 'enforce')
    t.equal(http.requests.length, 2)
    await clock.advance(5 * MINUTE)
    t.equal(modeOf(await policies.find('example.com')), 'testing')
  },
)

for (const [what, records] of [
  ['DNS fails', 'servfail'],
  ['the record is gone', {}],
  ['the record is malformed', { TXT: ['v=STSv1; id=!;'] }],
] as const)
  t.test(`a cached policy stays in force if ${what}, but no longer than its max_age`, async t => {
    const { policies, http, clock, zone } = stsWorld(t)
    http.answer(served(policyText({ maxAge: 3_600 })))
    await policies.find('example.com')
    zone['_mta-sts.example.com'] = records
    await clock.advance(60 * MINUTE)
    t.equal(modeOf(await policies.find('example.com')), 'enforce')
    await clock.advance(1)
    t.equal(modeOf(await policies.find('example.com')), 'none')
    t.equal(http.requests.length, 1)
  })

t.test('after its max_age a policy is refetched, and dropped if that fails', async t => {
  const { policies, http, clock } = stsWorld(t)
  http.answer(served(policyText({ maxAge: 3_600 }))).answer(served(policyText({ maxAge: 3_600 })))
  await policies.find('example.com')
  await clock.advance(61 * MINUTE)
  t.equal(modeOf(await policies.find('example.com')), 'enforce')
  t.equal(http.requests.length, 2)
  http.answer(new Error('unreachable'))
  await clock.advance(61 * MINUTE)
  t.match(await policies.find('example.com'), { kind: 'unavailable', reason: /unreachable/ })
})

t.test('a policy in use is refreshed daily in the background', async t => {
  const { policies, http, clock } = stsWorld(t)
  const long = { maxAge: 10 * 86_400 }
  http.answer(served(policyText(long))).answer(served(policyText({ ...long, mode: 'testing' })))
  await policies.find('example.com')
  await clock.advance(DAY)
  t.equal(modeOf(await policies.find('example.com')), 'enforce', 'the one at hand')
  await comeToRest()
  t.equal(modeOf(await policies.find('example.com')), 'testing', 'the one fetched meanwhile')
  t.equal(http.requests.length, 2)
})

t.test('a failed daily refresh keeps the policy and is not repeated at each delivery', async t => {
  const { policies, http, clock } = stsWorld(t)
  http.answer(served(policyText({ maxAge: 10 * 86_400 }))).answer(new Error('unreachable'))
  await policies.find('example.com')
  await clock.advance(DAY)
  for (let count = 0; count < 3; count += 1) {
    t.equal(modeOf(await policies.find('example.com')), 'enforce')
    await comeToRest()
  }
  t.equal(http.requests.length, 2)
})

t.test('a bounded number of domains is cached; the least recently used is evicted', async t => {
  const zone = Object.fromEntries(
    ['a', 'b', 'c'].flatMap(name => [
      [`_mta-sts.${name}.example`, announced('1')],
      [`mta-sts.${name}.example`, { A: ['192.0.2.80'] }],
    ]),
  )
  const { policies, http } = stsWorld(t, {}, { zone, maxDomains: 2 })
  for (let count = 0; count < 4; count += 1) http.answer(served(policyText()))
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await policies.find(`${name}.example`)
  t.same(
    http.requests.map(({ url }) => new URL(url).hostname),
    ['mta-sts.a.example', 'mta-sts.b.example', 'mta-sts.c.example', 'mta-sts.b.example'],
  )
})
