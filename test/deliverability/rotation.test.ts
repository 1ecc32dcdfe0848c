/** Rotation of DKIM keys on both databases: publish, switch, retire, and what prevents it. */
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { plainBox } from '../../src/accounts/secret-box.js'
import type { Database } from '../../src/db/database.js'
import { dnsRecords } from '../../src/deliverability/domains/dns-records.js'
import { readSigningKeys, type Domain } from '../../src/deliverability/domains/domain-store.js'
import { addDomain, deleteDomain, verifyDomain } from '../../src/deliverability/domains/domains.js'
import { renewRetiredKeys } from '../../src/deliverability/domains/dkim/dkim-keys.js'
import { rotateDomain } from '../../src/deliverability/domains/dkim/rotate-dkim.js'
import { eachDatabase } from '../support/db/database.js'
import { domainOffice, keyStates, publish, ZONE, type DomainOffice } from '../support/domains.js'

const HOUR_MS = 3_600_000
const WEEK_MS = 7 * 24 * HOUR_MS

/** A verified domain, all its records published. */
async function verified({ parts, zone }: DomainOffice, as: 'CNAME' | 'TXT' = 'CNAME'): Promise<Domain> {
  const { id } = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, await verifyDomain(parts, 'w1', id, SHELL), as, 'all')
  return verifyDomain(parts, 'w1', id, SHELL)
}

async function signing(database: Database, { id }: Domain): Promise<string[]> {
  return (
    (await readSigningKeys(database.reader, [id], plainBox)).get(id)?.map(({ selector }) => selector) ?? []
  )
}

const namesOf = ({ selectors }: Domain, wanted: string) =>
  selectors.filter(({ state }) => state === wanted).map(({ name }) => name)

const recordOf = (domain: Domain, wanted: string) =>
  dnsRecords(domain, ZONE).find(({ algorithm, keyState }) => `${algorithm} ${keyState}` === wanted)!

eachDatabase(
  t,
  'after a rotation both standby keys sign, and the previous ones stay published',
  async (t, database) => {
    const office = domainOffice(database)
    const domain = await verified(office)
    const rotated = await rotateDomain(office.parts, 'w1', domain.id, SHELL)
    t.same(await signing(database, domain), namesOf(domain, 'standby'))
    t.same(namesOf(rotated, 'retiring'), namesOf(domain, 'active'))
    t.same(keyStates(rotated), [
      'rsa retiring verified',
      'rsa active verified',
      'ed25519 retiring verified',
      'ed25519 active verified',
    ])
    const values = (records: Domain) => dnsRecords(records, ZONE).map(({ alternative }) => alternative?.value)
    t.same(values(rotated), values(domain), 'the owner has nothing to publish')
    t.equal(rotated.verifiedAt, domain.verifiedAt)
  },
)

eachDatabase(
  t,
  'a second rotation within 7 days is rejected with the time from which it is possible',
  async (t, database) => {
    const { parts, clock, ...office } = domainOffice(database)
    const domain = await verified({ parts, clock, ...office })
    const possible = new Date(clock.now() + WEEK_MS).toISOString()
    const rotated = await rotateDomain(parts, 'w1', domain.id, SHELL)
    await clock.advance(WEEK_MS - 1)
    const refusal = { code: 'conflict', message: new RegExp(possible) }
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), refusal)
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL, true), refusal, 'forced or not')
    t.same(await signing(database, domain), namesOf(rotated, 'active'))
  },
)

eachDatabase(t, 'two concurrent rotations rotate once', async (t, database) => {
  const office = domainOffice(database)
  const domain = await verified(office)
  const results = await Promise.allSettled(
    [1, 2, 3].map(() => rotateDomain(office.parts, 'w1', domain.id, SHELL)),
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const result of results) if (result.status === 'rejected') t.match(result.reason, { code: 'conflict' })
  t.same(await signing(database, domain), namesOf(domain, 'standby'))
})

eachDatabase(t, 'a standby key without its record is rejected by name', async (t, database) => {
  const office = domainOffice(database)
  const { parts, zone } = office
  const domain = await verified(office)
  for (const missing of ['rsa standby', 'ed25519 standby']) {
    const { name } = recordOf(domain, missing)
    const records = zone[name]!
    Reflect.deleteProperty(zone, name)
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), {
      code: 'conflict',
      message: `the standby key ${name} was not found in DNS`,
    })
    zone[name] = 'servfail'
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), {
      code: 'conflict',
      message: /did not answer/,
    })
    zone[name] = records
  }
  t.same(await signing(database, domain), namesOf(domain, 'active'))
})

eachDatabase(t, 'a rotation is rejected while the CNAME leads to a stale key', async (t, database) => {
  const office = domainOffice(database, 'real')
  const { parts, zone } = office
  const domain = await verified(office)
  const standby = recordOf(domain, 'rsa standby')
  zone[standby.value] = { TXT: [recordOf(domain, 'rsa active').alternative!.value] }
  await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), {
    code: 'conflict',
    message: `DNS has a different key at ${standby.name}; reload the zone`,
  })
  zone[standby.value] = { TXT: [standby.alternative!.value] }
  await t.resolves(rotateDomain(parts, 'w1', domain.id, SHELL))
})

eachDatabase(t, 'a domain without published Ed25519 keys rotates with RSA only', async (t, database) => {
  const { parts, zone } = domainOffice(database)
  const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, domain)
  await verifyDomain(parts, 'w1', domain.id, SHELL)
  await rotateDomain(parts, 'w1', domain.id, SHELL)
  t.same(await signing(database, domain), namesOf(domain, 'standby').slice(0, 1))
})

eachDatabase(t, 'a forced rotation, and one of a vouched domain, needs no DNS', async (t, database) => {
  const { parts: usual } = domainOffice(database)
  const parts = { ...usual, freshResolver: () => t.fail('DNS was asked') as never }
  const vouched = await addDomain(parts, 'w1', 'printer.lan', SHELL, 'vouched')
  await rotateDomain(parts, 'w1', vouched.id, SHELL)
  t.same(await signing(database, vouched), namesOf(vouched, 'standby'))
  const unverified = await addDomain(parts, 'w1', 'example.com', SHELL)
  await rotateDomain(parts, 'w1', unverified.id, SHELL, true)
  t.same(await signing(database, unverified), namesOf(unverified, 'standby').slice(0, 1))
})

eachDatabase(t, "another workspace's domain and a removed one are not rotated", async (t, database) => {
  const office = domainOffice(database)
  const domain = await verified(office)
  await t.rejects(rotateDomain(office.parts, 'w2', domain.id, SHELL), { code: 'not_found' })
  await deleteDomain(office.parts, 'w1', domain.id, SHELL)
  await t.rejects(rotateDomain(office.parts, 'w1', domain.id, SHELL), { code: 'not_found' })
  t.same(await signing(database, domain), namesOf(domain, 'active'))
})

eachDatabase(
  t,
  'after 7 days the retired selectors get new keys, usable once cached records expired',
  async (t, database) => {
    const office = domainOffice(database, 'real')
    const { parts, clock } = office
    const domain = await verified(office)
    const before = new Map(domain.selectors.map(({ name, publicKey }) => [name, publicKey]))
    const { selectors } = await rotateDomain(parts, 'w1', domain.id, SHELL)
    await clock.advance(WEEK_MS - 1)
    await renewRetiredKeys(parts, clock.now())
    t.same((await verifyDomain(parts, 'w1', domain.id, SHELL)).selectors, selectors, 'a moment too early')
    await clock.advance(1)
    await renewRetiredKeys(parts, clock.now())
    const renewed = await verifyDomain(parts, 'w1', domain.id, SHELL)
    t.same(keyStates(renewed), [
      'rsa standby verified',
      'rsa active verified',
      'ed25519 standby verified',
      'ed25519 active verified',
    ])
    for (const { name, state, publicKey } of renewed.selectors)
      t.equal(publicKey === before.get(name), state === 'active', `${name} ${state}`)
    t.same(await signing(database, domain), namesOf(domain, 'standby'), 'what signs stays')

    const known = new Date(clock.now() + HOUR_MS).toISOString()
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), {
      code: 'conflict',
      message: new RegExp(known),
    })
    await clock.advance(HOUR_MS)
    await rotateDomain(parts, 'w1', domain.id, SHELL)
    t.same(await signing(database, domain), namesOf(domain, 'active'), 'back on the first selectors')
  },
)

eachDatabase(
  t,
  'with TXT records a new key is pending: the domain stays verified, and rotation waits',
  async (t, database) => {
    const office = domainOffice(database, 'real')
    const { parts, clock, zone } = office
    const domain = await verified(office, 'TXT')
    await rotateDomain(parts, 'w1', domain.id, SHELL)
    await clock.advance(WEEK_MS + HOUR_MS)
    await renewRetiredKeys(parts, clock.now())
    await clock.advance(HOUR_MS)
    const { name } = recordOf(domain, 'rsa active')
    await t.rejects(rotateDomain(parts, 'w1', domain.id, SHELL), {
      code: 'conflict',
      message: `the standby key ${name} is not published yet`,
    })
    const pending = await verifyDomain(parts, 'w1', domain.id, SHELL)
    t.equal(pending.verifiedAt, domain.verifiedAt)
    t.same(keyStates(pending), [
      'rsa standby pending',
      'rsa active verified',
      'ed25519 standby pending',
      'ed25519 active verified',
    ])
    t.not(
      recordOf(pending, 'rsa standby').alternative?.value,
      recordOf(domain, 'rsa active').alternative?.value,
    )
    publish(zone, pending, 'TXT', 'all')
    t.same(namesOf(await rotateDomain(parts, 'w1', domain.id, SHELL), 'active'), namesOf(domain, 'active'))
  },
)

eachDatabase(t, 'a retired key is renewed once, even concurrently', async (t, database) => {
  const office = domainOffice(database, 'real')
  const { parts, clock } = office
  const domain = await verified(office)
  await rotateDomain(parts, 'w1', domain.id, SHELL)
  await clock.advance(WEEK_MS)
  const views = await Promise.all([1, 2, 3].map(() => verifyDomain(parts, 'w1', domain.id, SHELL)))
  const last = await verifyDomain(parts, 'w1', domain.id, SHELL)
  const keysOf = ({ selectors }: Domain) => selectors.map(({ publicKey }) => publicKey)
  for (const view of views) t.same(keysOf(view), keysOf(last))
})

eachDatabase(t, 'a removed domain keeps the keys of its last mail', async (t, database) => {
  const office = domainOffice(database)
  const { parts, clock } = office
  const domain = await verified(office)
  await rotateDomain(parts, 'w1', domain.id, SHELL)
  await deleteDomain(parts, 'w1', domain.id, SHELL)
  await clock.advance(WEEK_MS)
  await renewRetiredKeys(parts, clock.now())
  t.same(await signing(database, domain), namesOf(domain, 'standby'))
})
