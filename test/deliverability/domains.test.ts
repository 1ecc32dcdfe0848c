/** Sending domains on both databases: adding, the records to publish, verifying against DNS, removing. */
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { plainBox } from '../../src/accounts/secret-box.js'
import { dnsRecords } from '../../src/deliverability/domains/dns-records.js'
import {
  findDomain,
  findDomainByName,
  listDomains,
  readSigningKeys,
  type Domain,
} from '../../src/deliverability/domains/domain-store.js'
import {
  addDomain,
  deleteDomain,
  ensureApplianceDomain,
  readDomainName,
  verifyDomain,
} from '../../src/deliverability/domains/domains.js'
import { dkimRecord, publicKeyText } from '../../src/mail/dkim/dkim-record.js'
import type { FakeRecords } from '../../src/world/dns/fake-dns.js'
import { systemRandom } from '../../src/world/random.js'
import { eachDatabase } from '../support/db/database.js'
import { domainOffice, publish, ZONE } from '../support/domains.js'

const PAGE = { limit: 100, offset: 0 }
/** RFC 8463 §4: the bare 32 bytes. */
const RECORD = {
  rsa: /^v=DKIM1; k=rsa; p=MII[A-Za-z0-9+/]+=*$/,
  ed25519: /^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/,
}

const statuses = (domain: Domain) =>
  dnsRecords(domain, ZONE).map(({ purpose, status }) => `${purpose} ${status}`)

t.test('a domain is accepted in any spelling and stored as lower-case A-labels', async t => {
  for (const [text, domain] of [
    ['example.com', 'example.com'],
    [' Example.COM. ', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['a.b.c.d.example', 'a.b.c.d.example'],
    ['1und1.example', '1und1.example'],
  ] as const)
    t.equal(readDomainName(text), domain)
})

t.test('an invalid domain name is rejected', async t => {
  const refused = [
    '',
    ' ',
    '.',
    'localhost',
    '-a.example',
    'a-.example',
    'a..example',
    '.example.com',
    '127.0.0.1',
    '[::1]',
    '::1',
    'ann@example.com',
    'https://example.com',
    'example.com/',
    '*.example.com',
    'exa mple.com',
    'exam_ple.com',
    'example.com\r\nX: y',
    'example.com\0',
    '%65xample.com',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(110)}example`,
  ]
  for (const text of refused)
    t.throws(() => readDomainName(text), { code: 'validation_error', path: 'domain' }, JSON.stringify(text))
})

eachDatabase(t, 'a new domain comes with the records to publish', async (t, database) => {
  const { parts } = domainOffice(database)
  const domain = await addDomain(parts, 'w1', 'Example.com', SHELL)
  t.match(domain, { domain: 'example.com', owner: 'w1', verifiedAt: null, checkedAt: null, isVouched: false })
  t.match(domain.selectors, [
    { algorithm: 'rsa', state: 'active' },
    { algorithm: 'rsa', state: 'standby' },
    { algorithm: 'ed25519', state: 'active' },
    { algorithm: 'ed25519', state: 'standby' },
  ])
  const records = dnsRecords(domain, ZONE)
  t.match(records, [
    {
      type: 'TXT',
      name: '_postroad.example.com',
      value: /^postroad-verification=[0-9a-f]{32}$/,
      purpose: 'verification',
      required: true,
      status: 'pending',
      found: [],
      ttl: 3_600,
    },
    { type: 'CNAME', purpose: 'dkim', required: true, algorithm: 'rsa', keyState: 'active' },
    { type: 'CNAME', purpose: 'dkim', required: true, algorithm: 'rsa', keyState: 'standby' },
    { type: 'CNAME', purpose: 'dkim', required: false, algorithm: 'ed25519', keyState: 'active' },
    { type: 'CNAME', purpose: 'dkim', required: false, algorithm: 'ed25519', keyState: 'standby' },
    { type: 'TXT', name: '_dmarc.example.com', value: 'v=DMARC1; p=none', purpose: 'dmarc', required: false },
  ])
  for (const { name, value, alternative, algorithm } of records.filter(({ purpose }) => purpose === 'dkim')) {
    const selector = name.replace('._domainkey.example.com', '')
    t.match(selector, /^pr[0-9a-f]{10}e?[12]$/)
    t.equal(value, `${selector}.${ZONE}`)
    t.match(alternative, { type: 'TXT', name, value: RECORD[algorithm ?? 'rsa'] })
  }
  t.notMatch(JSON.stringify(await findDomain(database.reader, 'w1', domain.id)), 'PRIVATE KEY')
})

eachDatabase(t, 'a domain is unique within a workspace, not across workspaces', async (t, database) => {
  const { parts } = domainOffice(database)
  const first = await addDomain(parts, 'w1', 'example.com', SHELL)
  await t.rejects(addDomain(parts, 'w1', 'EXAMPLE.com.', SHELL), { code: 'duplicate', path: 'domain' })
  const second = await addDomain(parts, 'w2', 'example.com', SHELL)
  t.not(second.verificationToken, first.verificationToken)
  const atOnce = await Promise.allSettled([
    addDomain(parts, 'w3', 'example.com', SHELL),
    addDomain(parts, 'w3', 'example.com', SHELL),
  ])
  t.same(atOnce.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

eachDatabase(t, "another workspace's domain cannot be read, verified or removed", async (t, database) => {
  const { parts } = domainOffice(database)
  const { id } = await addDomain(parts, 'w1', 'example.com', SHELL)
  t.equal(await findDomain(database.reader, 'w2', id), undefined)
  t.equal(await findDomainByName(database.reader, 'w2', 'example.com'), undefined)
  t.match(await listDomains(database.reader, 'w2', PAGE), { items: [], total: 0 })
  await t.rejects(verifyDomain(parts, 'w2', id, SHELL), { code: 'not_found' })
  await t.rejects(deleteDomain(parts, 'w2', id, SHELL), { code: 'not_found' })
  t.ok(await findDomain(database.reader, 'w1', id))
})

eachDatabase(t, 'domains are listed by name, in pages', async (t, database) => {
  const { parts } = domainOffice(database)
  for (const name of ['c.example', 'a.example', 'b.example']) await addDomain(parts, 'w1', name, SHELL)
  const { items, total } = await listDomains(database.reader, 'w1', { limit: 2, offset: 1 })
  t.equal(total, 3)
  t.same(
    items.map(({ domain, selectors }) => [domain, selectors.length]),
    [
      ['b.example', 4],
      ['c.example', 4],
    ],
  )
})

for (const as of ['CNAME', 'TXT'] as const)
  eachDatabase(t, `with the DKIM records published as ${as} it is verified`, async (t, database) => {
    const { parts, zone, clock } = domainOffice(database)
    const added = await addDomain(parts, 'w1', 'example.com', SHELL)
    publish(zone, added, as)
    await clock.advance(60_000)
    const verified = await verifyDomain(parts, 'w1', added.id, SHELL)
    t.equal(verified.verifiedAt, clock.now())
    t.equal(verified.checkedAt, clock.now())
    t.same(statuses(verified), [
      'verification verified',
      'dkim verified',
      'dkim verified',
      'dkim failed',
      'dkim failed',
      'dmarc failed',
    ])
    t.same(await findDomain(database.reader, 'w1', added.id), verified)
  })

eachDatabase(
  t,
  'without published records verification fails, and every record shows it',
  async (t, database) => {
    const { parts } = domainOffice(database)
    const { id } = await addDomain(parts, 'w1', 'example.com', SHELL)
    const checked = await verifyDomain(parts, 'w1', id, SHELL)
    t.equal(checked.verifiedAt, null)
    t.same(statuses(checked), [
      'verification failed',
      ...Array.from({ length: 4 }, () => 'dkim failed'),
      'dmarc failed',
    ])
  },
)

eachDatabase(t, 'a wrong record fails alone and shows the values found', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  const [token, first] = dnsRecords(added, ZONE)
  const { publicKey } = await systemRandom.keyPair('rsa')
  const otherKey = dkimRecord('rsa', publicKeyText(publicKey))
  const wrong: readonly (readonly [name: string, records: FakeRecords, found: string[]])[] = [
    [token!.name, { TXT: ['postroad-verification=0'] }, ['postroad-verification=0']],
    [first!.name, { CNAME: 'elsewhere.example' }, ['elsewhere.example']],
    [first!.name, { TXT: [otherKey] }, [otherKey.slice(0, 300)]],
    [first!.name, { TXT: ['v=DKIM1; k=rsa; p='] }, ['v=DKIM1; k=rsa; p=']],
  ]
  for (const [name, records, found] of wrong) {
    publish(zone, added)
    zone[name] = records
    const checked = await verifyDomain(parts, 'w1', added.id, SHELL)
    t.equal(checked.verifiedAt, null)
    t.match(
      dnsRecords(checked, ZONE).filter(({ required, status }) => required && status !== 'verified'),
      [{ name, status: 'failed', found }],
    )
  }
})

eachDatabase(t, 'the right record counts among others and in another case', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  const [token, first] = dnsRecords(added, ZONE)
  zone[token!.name] = { TXT: ['v=spf1 -all', token!.value] }
  zone[first!.name] = { CNAME: first!.value.toUpperCase() }
  t.ok((await verifyDomain(parts, 'w1', added.id, SHELL)).verifiedAt)
})

eachDatabase(
  t,
  'silent name servers leave a verified domain verified, and the findings say so',
  async (t, database) => {
    const { parts, zone, clock } = domainOffice(database)
    const added = await addDomain(parts, 'w1', 'example.com', SHELL)
    publish(zone, added)
    const { verifiedAt } = await verifyDomain(parts, 'w1', added.id, SHELL)
    for (const name of Object.keys(zone)) zone[name] = 'servfail'
    await clock.advance(60_000)
    const checked = await verifyDomain(parts, 'w1', added.id, SHELL)
    t.equal(checked.verifiedAt, verifiedAt)
    t.equal(checked.checkedAt, clock.now())
    t.match(
      dnsRecords(checked, ZONE).filter(({ required }) => required),
      Array.from({ length: 3 }, () => ({ status: 'pending', found: [/^DNS did not answer: .*SERVFAIL/] })),
    )
  },
)

eachDatabase(t, 'silent name servers verify nothing', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  zone[dnsRecords(added, ZONE)[0]!.name] = 'servfail'
  t.equal((await verifyDomain(parts, 'w1', added.id, SHELL)).verifiedAt, null)
})

eachDatabase(t, 'removed records end a verification', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  t.ok((await verifyDomain(parts, 'w1', added.id, SHELL)).verifiedAt)
  for (const name of Object.keys(zone)) Reflect.deleteProperty(zone, name)
  const looked = await verifyDomain(parts, 'w1', added.id, SHELL)
  t.ok(looked.verifiedAt, 'the operator who only looks ends nothing')
  t.ok(looked.failingSince)
  const client = { type: 'api_key', id: 'k1', name: 'shop' } as const
  t.equal((await verifyDomain(parts, 'w1', added.id, client)).verifiedAt, null)
})

eachDatabase(t, 'a vouched domain is verified from the start, whatever DNS says', async (t, database) => {
  const { parts, clock } = domainOffice(database)
  const added = await addDomain(parts, 'w1', 'printer.lan', SHELL, 'vouched')
  t.match(added, { isVouched: true, verifiedAt: clock.now() })
  const checked = await verifyDomain(parts, 'w1', added.id, SHELL)
  t.equal(checked.verifiedAt, added.verifiedAt)
  t.equal(statuses(checked)[0], 'verification failed')
})

eachDatabase(
  t,
  'a removed domain is gone and can be added again; its queued mail is still signed',
  async (t, database) => {
    const { parts } = domainOffice(database)
    const added = await addDomain(parts, 'w1', 'example.com', SHELL)
    await deleteDomain(parts, 'w1', added.id, SHELL)
    await t.rejects(deleteDomain(parts, 'w1', added.id, SHELL), { code: 'not_found' })
    await t.rejects(verifyDomain(parts, 'w1', added.id, SHELL), { code: 'not_found' })
    t.match(await listDomains(database.reader, 'w1', PAGE), { items: [], total: 0 })
    const keys = (await readSigningKeys(database.reader, [added.id], plainBox)).get(added.id)
    t.match(keys, [{ domain: 'example.com', algorithm: 'rsa', privateKey: /BEGIN PRIVATE KEY/ }])
    t.equal(keys?.[0]?.selector, added.selectors.find(({ state }) => state === 'active')?.name)
    const again = await addDomain(parts, 'w1', 'example.com', SHELL)
    t.not(again.id, added.id)
  },
)

eachDatabase(t, 'only the active key of each domain signs', async (t, database) => {
  const { parts } = domainOffice(database)
  const one = await addDomain(parts, 'w1', 'one.example', SHELL)
  const two = await addDomain(parts, 'w1', 'two.example', SHELL)
  const keys = await readSigningKeys(database.reader, [one.id, two.id, 'unknown'], plainBox)
  t.equal(keys.size, 2)
  t.same(
    keys.get(two.id)?.map(({ domain }) => domain),
    ['two.example'],
  )
  t.equal((await readSigningKeys(database.reader, [], plainBox)).size, 0)
})

eachDatabase(
  t,
  "the server's own domain is created on first use and found afterwards",
  async (t, database) => {
    const { parts } = domainOffice(database)
    const made = await ensureApplianceDomain(parts, 'mail.example.net')
    t.ok(made.verifiedAt)
    t.same(await ensureApplianceDomain(parts, 'Mail.Example.Net'), made)
  },
)
