/** The DKIM zone file. */
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { dnsRecords } from '../../src/deliverability/domains/dns-records.js'
import {
  wholeZoneFile,
  zoneFile,
  zoneRecords,
  openServedZone,
} from '../../src/deliverability/domains/dkim/dkim-zone.js'
import { addDomain, deleteDomain, ensureApplianceDomain } from '../../src/deliverability/domains/domains.js'
import { rotateDomain } from '../../src/deliverability/domains/dkim/rotate-dkim.js'
import { eachDatabase } from '../support/db/database.js'
import { domainOffice, ZONE } from '../support/domains.js'

const DAY_MS = 24 * 3_600_000

eachDatabase(t, 'the zone answers at the target of every CNAME', async (t, database) => {
  const { parts, clock } = domainOffice(database)
  const domains = [
    await addDomain(parts, 'w1', 'one.example', SHELL),
    await addDomain(parts, 'w2', 'two.example', SHELL, 'vouched'),
    await ensureApplianceDomain(parts, 'mail.example.net'),
  ]
  await rotateDomain(parts, 'w2', domains[1]!.id, SHELL)
  const wanted = domains
    .flatMap(domain => dnsRecords(domain, ZONE))
    .flatMap(({ type, value, alternative }) => (type === 'CNAME' ? [[value, alternative?.value]] : []))
  const records = await zoneRecords(database.reader, ZONE, clock.now())
  t.same(new Map(records.map(({ name, value }) => [name, value])), new Map(wanted as [string, string][]))
  t.equal(records.length, 12)
  t.match(records[0], { type: 'TXT', ttl: 3_600 })
})

eachDatabase(
  t,
  'a removed domain stays in the zone while its mail may be in transit',
  async (t, database) => {
    const { parts, clock } = domainOffice(database)
    const { id } = await addDomain(parts, 'w1', 'one.example', SHELL)
    await deleteDomain(parts, 'w1', id, SHELL)
    const count = async () => (await zoneRecords(database.reader, ZONE, clock.now())).length
    await clock.advance(37 * DAY_MS)
    t.equal(await count(), 4)
    await clock.advance(1)
    t.equal(await count(), 0)
  },
)

t.test('a key longer than a DNS string is split without loss', async t => {
  const value = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
  const name = `pr1.${ZONE}`
  const file = zoneFile([{ name, type: 'TXT', ttl: 3_600, value, domain: 'one.example' }], ZONE)
  const [line = ''] = file.split('\n').filter(text => text.startsWith('pr1'))
  t.match(line, /^pr1\.dkim\.mail\.example\.net\. 3600 IN TXT \( ("[^"]{1,255}" ?)+\) ; one\.example$/)
  const strings = [...line.matchAll(/"([^"]*)"/g)].map(([, text]) => text)
  t.equal(strings.length, 2)
  t.equal(strings.join(''), value)
})

t.test('a zone without domains is a comment and its origin', async t => {
  t.match(zoneFile([], ZONE), /^; .*\n\$ORIGIN dkim\.mail\.example\.net\.$/)
})

eachDatabase(t, 'the name server answers as the zone file, removed domains included', async (t, database) => {
  const { parts, clock } = domainOffice(database)
  await addDomain(parts, 'w1', 'one.example', SHELL)
  const { id } = await addDomain(parts, 'w1', 'two.example', SHELL)
  await rotateDomain(parts, 'w1', id, SHELL, true)
  const zone = openServedZone({ database, clock })
  const served = async () => {
    const records = await zoneRecords(database.reader, ZONE, clock.now())
    for (const { name, value, ttl } of records)
      t.same(await zone.find(name.split('.')[0] ?? ''), { ttl, values: [value] })
    return records
  }
  const records = await served()
  t.equal(records.length, 8)
  await deleteDomain(parts, 'w1', id, SHELL)
  await served()
  await clock.advance(38 * DAY_MS)
  t.equal((await served()).length, 4)
  const gone = records
    .filter(({ domain }) => domain === 'two.example')
    .map(({ name }) => name.split('.')[0] ?? '')
  for (const label of [...gone, 'pr0000000000e1', 'www', '']) t.equal(await zone.find(label), undefined)
})

t.test('a whole zone file has its SOA and name server', async t => {
  const file = wholeZoneFile([], ZONE, 'mail.example.net', 1_700_000_000)
  t.match(file, /^@ IN SOA mail\.example\.net\. postmaster\.mail\.example\.net\. \( 1700000000 /m)
  t.match(file, /^@ IN NS mail\.example\.net\.$/m)
})
