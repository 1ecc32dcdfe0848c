/** Which keys sign for a domain: RSA always, Ed25519 once its record is found. */
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { dnsRecords } from '../../src/deliverability/domains/dns-records.js'
import {
  readSigningKeys,
  type Domain,
  type KeyCipher,
} from '../../src/deliverability/domains/domain-store.js'
import {
  addDomain,
  deleteDomain,
  ensureApplianceDomain,
  verifyDomain,
} from '../../src/deliverability/domains/domains.js'
import type { Database } from '../../src/db/database.js'
import { plainBox, secretBox } from '../../src/accounts/secret-box.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
import { domainOffice, publish, ZONE } from '../support/domains.js'

async function algorithms(database: Database, { id }: Domain): Promise<string[]> {
  return (
    (await readSigningKeys(database.reader, [id], plainBox)).get(id)?.map(({ algorithm }) => algorithm) ?? []
  )
}

for (const as of ['CNAME', 'TXT'] as const)
  eachDatabase(t, `a domain with all keys published as ${as} signs twice, RSA first`, async (t, database) => {
    const { parts, zone } = domainOffice(database)
    const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
    t.same(await algorithms(database, domain), ['rsa'], 'nothing was looked up yet')
    publish(zone, domain, as, 'all')
    await verifyDomain(parts, 'w1', domain.id, SHELL)
    t.same(await algorithms(database, domain), ['rsa', 'ed25519'])
    const keys = (await readSigningKeys(database.reader, [domain.id], plainBox)).get(domain.id)
    t.same(
      keys?.map(({ selector }) => selector),
      domain.selectors.filter(({ state }) => state === 'active').map(({ name }) => name),
    )
  })

eachDatabase(t, 'without the Ed25519 record a verified domain signs with RSA only', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, domain)
  t.ok((await verifyDomain(parts, 'w1', domain.id, SHELL)).verifiedAt)
  t.same(await algorithms(database, domain), ['rsa'])
})

eachDatabase(t, 'a removed Ed25519 record ends its signature, not the verification', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, domain, 'CNAME', 'all')
  await verifyDomain(parts, 'w1', domain.id, SHELL)
  for (const { name, algorithm } of dnsRecords(domain, ZONE))
    if (algorithm === 'ed25519') Reflect.deleteProperty(zone, name)
  t.ok((await verifyDomain(parts, 'w1', domain.id, SHELL)).verifiedAt)
  t.same(await algorithms(database, domain), ['rsa'])
})

eachDatabase(t, 'the standby Ed25519 record alone does not let the active key sign', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, domain, 'CNAME', 'all')
  const active = dnsRecords(domain, ZONE).find(
    ({ algorithm, keyState }) => algorithm === 'ed25519' && keyState === 'active',
  )
  Reflect.deleteProperty(zone, active!.name)
  await verifyDomain(parts, 'w1', domain.id, SHELL)
  t.same(await algorithms(database, domain), ['rsa'])
})

eachDatabase(t, 'a vouched domain and the shared one sign twice without DNS', async (t, database) => {
  const { parts } = domainOffice(database)
  const vouched = await addDomain(parts, 'w1', 'printer.lan', SHELL, 'vouched')
  const shared = await ensureApplianceDomain(parts, 'mail.example.net')
  t.same(await algorithms(database, vouched), ['rsa', 'ed25519'])
  t.same(await algorithms(database, shared), ['rsa', 'ed25519'])
  await deleteDomain(parts, 'w1', vouched.id, SHELL)
  t.same(await algorithms(database, vouched), ['rsa', 'ed25519'], 'its queued mail')
})

eachDatabase(t, 'sealed keys open only with the cipher of their database', async (t, database) => {
  const office = domainOffice(database)
  const random = new SeededRandom(7)
  const seal = secretBox(random.bytes(32), random)
  const { id } = await addDomain({ ...office.parts, seal }, 'w1', 'printer.lan', SHELL, 'vouched')
  const privateKeys = async (by: KeyCipher) =>
    (await readSigningKeys(database.reader, [id], by)).get(id)?.map(({ privateKey }) => privateKey)
  await t.rejects(privateKeys(plainBox), /sealed/)
  t.match(await privateKeys(seal), [/^-----BEGIN PRIVATE KEY/, /^-----BEGIN PRIVATE KEY/])
  const other = secretBox(random.bytes(32), random)
  await t.rejects(privateKeys(other), { name: 'SealError' })
})
