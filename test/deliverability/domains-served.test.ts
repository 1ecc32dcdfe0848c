/** Sending domains over HTTP on the running server: added, published, verified, sent from, rotated, removed. */
import t, { type Test } from 'tap'
import type { Answer } from 'dns-packet'
import { openTestAppliance } from '../support/program/appliance.js'
import { dnsServer, RCODE } from '../support/smtp/dns-server.js'

const DOMAINS = '/api/v1/domains'
const mail = { to: 'ann@one.test', from_email: 'me@shop.example', subject: 'Hello', text: 'Hello.\n' }
const notFound = { status: 404, body: { error: { code: 'not_found' } } }

interface DnsRecord {
  readonly type: string
  readonly name: string
  readonly value: string
  readonly purpose: string
  readonly status: string
  readonly required: boolean
  readonly found: readonly string[]
  readonly alternative?: { readonly name: string; readonly value: string }
}

/** The appliance and the DNS that it asks; names that are not in the zone do not exist. */
async function open(t: Test) {
  const zone = new Map<string, Answer>()
  const { address } = await dnsServer(t, ({ question }) => {
    const answer = zone.get(question)
    return answer ? { answers: [answer] } : { rcode: RCODE.NXDOMAIN }
  })
  const postroad = await openTestAppliance(t, { env: { POSTROAD_DNS_SERVERS: address } })
  const { key } = postroad
  return {
    ...postroad,
    zone,
    add: (domain: unknown) => postroad.post(DOMAINS, { domain }, { key }),
    verify: (id: string) => postroad.post(`${DOMAINS}/${id}/verify`, '', { key }),
    show: (id: string) => postroad.get(`${DOMAINS}/${id}`, { key }),
    remove: (id: string) => postroad.delete(`${DOMAINS}/${id}`, { key }),
    publish: (records: readonly DnsRecord[]) => {
      for (const { type, name, value } of records)
        zone.set(
          `${type} ${name}`,
          type === 'TXT' ? { type, name, data: value } : { type: 'CNAME', name, data: value },
        )
    },
  }
}

const requiredOf = (records: readonly DnsRecord[]) => records.filter(({ required }) => required)

// answers: GET /domains/{id}/report-statistics: domain_invalid; GET /domains/{id}/reports: domain_invalid
// answers: GET /domains/{id}/reports/{reportId}: domain_invalid
t.test('reports about an unverified domain are rejected', async t => {
  const { add, key, ...postroad } = await open(t)
  const { id } = (await add('shop.example')).body.data
  const refused = { status: 403, body: { error: { code: 'domain_invalid' } } }
  t.match(await postroad.get(`${DOMAINS}/${id}/reports`, { key }), refused)
  t.match(await postroad.get(`${DOMAINS}/${id}/report-statistics`, { key }), refused)
  t.match(
    await postroad.get(`${DOMAINS}/${id}/reports/0192f000-0000-7000-8000-00000000abcd`, { key }),
    refused,
  )
})

// proves: Conventions > A single resource is returned | Timestamps are ISO 8601 strings
// proves: Other resources > Domain domain (string) Adding returns
// proves: Deliverability, domains, analytics, tracking > POST /domains; Errors > 200 | 201
// proves: decisions: Deliverability > DNS record in dns_records {type
t.test('adding a domain returns the records to publish', async t => {
  const { add, show } = await open(t)
  const { status, body } = await add(' Shop.Example. ')
  t.equal(status, 201)
  t.match(body.data, {
    id: String,
    domain: 'shop.example',
    verified: false,
    verified_at: null,
    created_at: '2026-01-05T10:00:00.000Z',
  })
  const records = body.data.dns_records as DnsRecord[]
  t.match(requiredOf(records), [
    {
      type: 'TXT',
      purpose: 'verification',
      name: '_postroad.shop.example',
      value: /^postroad-verification=/,
    },
    {
      type: 'CNAME',
      purpose: 'dkim',
      name: /\._domainkey\.shop\.example$/,
      alternative: { type: 'TXT', value: /^v=DKIM1/ },
    },
    {
      type: 'CNAME',
      purpose: 'dkim',
      name: /\._domainkey\.shop\.example$/,
      alternative: { type: 'TXT', value: /^v=DKIM1/ },
    },
  ])
  t.ok(records.every(({ status }) => status === 'pending'))
  t.match(records[0], { ttl: Number, required: true })
  t.notMatch(JSON.stringify(body), 'PRIVATE KEY')
  t.match(await show(body.data.id as string), { status: 200, body: { data: body.data as object } })
})

// proves: Other resources > Domain domain (string) Adding returns
// proves: Deliverability, domains, analytics, tracking > POST /domains; Errors > 409 | duplicate
// answers: POST /domains: duplicate
t.test('a domain exists once per workspace, and may exist in another', async t => {
  const { add, ...postroad } = await open(t)
  t.match(await add('shop.example'), { status: 201 })
  t.match(await add('SHOP.example.'), { status: 409, body: { error: { code: 'duplicate', path: 'domain' } } })
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  t.match(await postroad.post(DOMAINS, { domain: 'shop.example' }, { key: stranger }), { status: 201 })
})

// proves: Other resources > Domain domain (string) Adding returns
// proves: Deliverability, domains, analytics, tracking > POST /domains
t.test('an invalid domain is rejected by field name', async t => {
  const { add, key, ...postroad } = await open(t)
  for (const domain of [
    '',
    'localhost',
    'ann@shop.example',
    'https://shop.example',
    '*.shop.example',
    '192.0.2.1',
    'a b',
    7,
    null,
  ])
    t.match(
      await add(domain),
      { status: 400, body: { error: { code: 'validation_error', path: 'domain' } } },
      String(domain),
    )
  t.match(await postroad.post(DOMAINS, {}, { key }), {
    body: { error: { code: 'validation_error', path: 'domain' } },
  })
  t.match(await postroad.post(DOMAINS, { domain: 'a.example', verified: true }, { key }), {
    status: 400,
    body: { error: { path: 'verified' } },
  })
  t.match((await postroad.get(DOMAINS, { key })).body, { data: [], pagination: { total: 0 } })
})

// proves: What the service does > Sending domains (custom-domain verification) suppressions
// proves: States and transitions > Domain
// proves: Deliverability, domains, analytics, tracking > GET /domains/:id | POST /domains/:id/verify
// proves: decisions: Deliverability > DNS record in dns_records {type
t.test('with its records published a domain is verified, and mail is sent in its name', async t => {
  const { add, verify, show, publish, clock, ...postroad } = await open(t)
  const { id, dns_records: records } = (await add('shop.example')).body.data as {
    id: string
    dns_records: DnsRecord[]
  }
  const early = await verify(id)
  t.match(
    early,
    { status: 200, body: { data: { verified: false, checked_at: '2026-01-05T10:00:00.000Z' } } },
    'no error',
  )
  t.ok((early.body.data.dns_records as DnsRecord[]).every(({ status }) => status === 'failed'))
  t.match(await postroad.send(postroad.key, mail), {
    status: 403,
    body: { error: { code: 'domain_invalid', path: 'from_email' } },
  })

  publish(requiredOf(records))
  await clock.advance(60_000)
  t.match(await verify(id), {
    status: 200,
    body: { data: { verified: true, verified_at: '2026-01-05T10:01:00.000Z' } },
  })
  const shown = (await show(id)).body.data as { verified: boolean; dns_records: DnsRecord[] }
  t.ok(shown.verified)
  t.ok(requiredOf(shown.dns_records).every(({ status }) => status === 'verified'))
  const sent = await postroad.send(postroad.key, mail)
  t.equal(sent.status, 200)
  t.match(
    await postroad.messageOnce(postroad.key, String(sent.body.data.results[0].message_id), 'delivered'),
    {
      from: 'me@shop.example',
    },
  )
})

// proves: What the service does > Sending domains (custom-domain verification) suppressions
// proves: States and transitions > Domain; Email > 4
// proves: Deliverability, domains, analytics, tracking > POST /domains/:id/verify; Errors > domain_invalid
// proves: decisions: Deliverability > DNS record in dns_records {type
// answers: POST /email/send: domain_invalid
t.test(
  'without one of its DKIM records a domain is not verified, and the values in DNS are shown',
  async t => {
    const { add, verify, publish, zone, ...postroad } = await open(t)
    const { id, dns_records: records } = (await add('shop.example')).body.data as {
      id: string
      dns_records: DnsRecord[]
    }
    publish(requiredOf(records))
    const dkim = records.find(({ purpose }) => purpose === 'dkim')!
    zone.set(`CNAME ${dkim.name}`, { type: 'CNAME', name: dkim.name, data: 'elsewhere.example' })
    const { status, body } = await verify(id)
    t.match({ status, body }, { status: 200, body: { data: { verified: false } } })
    t.match(
      requiredOf(body.data.dns_records as DnsRecord[]).filter(one => one.status !== 'verified'),
      [{ name: dkim.name, status: 'failed', found: ['elsewhere.example'] }],
    )
    t.match(await postroad.send(postroad.key, mail), {
      status: 403,
      body: { error: { code: 'domain_invalid' } },
    })
  },
)

// proves: Conventions > A list is returned as; Deliverability, domains, analytics, tracking > GET /domains
t.test('domains are listed by name in pages, for their workspace', async t => {
  const { add, key, ...postroad } = await open(t)
  for (const domain of ['c.example', 'a.example', 'b.example']) await add(domain)
  const names = async (query: string, asker = key) =>
    (await postroad.get(`${DOMAINS}${query}`, { key: asker })).body.data.map(
      ({ domain }: { domain: string }) => domain,
    )
  t.same(await names(''), ['a.example', 'b.example', 'c.example'])
  t.same(await names('?limit=1&offset=1'), ['b.example'])
  t.match((await postroad.get(`${DOMAINS}?limit=2`, { key })).body, {
    pagination: { total: 3, limit: 2, offset: 0, has_more: true },
  })
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  t.same(await names('', await postroad.makeKey('--workspace', id)), [])
})

// proves: Deliverability, domains, analytics, tracking > GET /domains/:id | DELETE /domains/:id; Errors > 200 | 201
t.test('a removed domain is gone and can be added again', async t => {
  const { add, remove, show, verify } = await open(t)
  const { id } = (await add('shop.example')).body.data as { id: string }
  t.match(await remove(id), { status: 200, body: { data: { success: true } } })
  for (const answer of [await remove(id), await show(id), await verify(id)]) t.match(answer, notFound)
  const again = await add('shop.example')
  t.equal(again.status, 201)
  t.not(again.body.data.id, id)
})

// proves: decisions: Deliverability > DNS record in dns_records {type
// answers: POST /domains/{id}/rotate-dkim: conflict
t.test('a domain with unpublished standby keys or a recent rotation is not rotated', async t => {
  const { add, publish, key, ...postroad } = await open(t)
  const { id, dns_records: records } = (await add('shop.example')).body.data as {
    id: string
    dns_records: DnsRecord[]
  }
  const rotate = () => postroad.post(`${DOMAINS}/${id}/rotate-dkim`, '', { key })
  const conflict = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await rotate(), conflict)
  publish(records)
  t.match(await rotate(), { status: 200, body: { data: { domain: 'shop.example' } } })
  t.match(await rotate(), conflict)
})
