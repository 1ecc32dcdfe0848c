/** Sending domains for tests: the services over a database, and their view of DNS, which the test declares. */
import { plainBox } from '../../src/accounts/secret-box.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { dnsRecords } from '../../src/deliverability/domains/dns-records.js'
import type { DomainParts } from '../../src/deliverability/domains/domain-parts.js'
import type { Domain } from '../../src/deliverability/domains/domain-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { fakeDns, type FakeRecords, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { systemRandom } from '../../src/world/random.js'

export const ZONE = 'dkim.mail.example.net'

export interface DomainOffice {
  /** Changed by the test on the way. */
  readonly zone: FakeZone
  readonly clock: FakeClock
  readonly parts: DomainParts
}

/** @param keys `repeated` hands out one key per algorithm again and again, which is quick; `real` makes each anew */
export function domainOffice(database: Database, keys: 'repeated' | 'real' = 'repeated'): DomainOffice {
  const zone: FakeZone = {}
  const clock = new FakeClock()
  const random = new SeededRandom()
  if (keys === 'real') random.keyPair = algorithm => systemRandom.keyPair(algorithm)
  const parts: DomainParts = {
    database,
    clock,
    random,
    newId: () => uuidv7(clock.now(), random.bytes(10)),
    freshResolver: () => fakeDns(zone),
    dkimZone: ZONE,
    reportAddress: 'dmarc@mail.example.net',
    seal: plainBox,
  }
  return { zone, clock, parts }
}

/** What the domain's owner publishes, as CNAMEs or as their alternatives: what is required, or all but DMARC. */
export function publish(
  zone: FakeZone,
  domain: Domain,
  as: 'CNAME' | 'TXT' = 'CNAME',
  which: 'required' | 'all' = 'required',
): void {
  for (const { type, name, value, alternative, required, purpose } of dnsRecords(domain, ZONE)) {
    if (which === 'required' ? !required : purpose === 'dmarc') continue
    const records: FakeRecords =
      type === 'CNAME' && as === 'CNAME' ? { CNAME: value } : { TXT: [alternative?.value ?? value] }
    zone[name] = records
  }
}

/** E.g. `rsa active verified`, in the order of the records. */
export function keyStates(domain: Domain): string[] {
  return dnsRecords(domain, ZONE).flatMap(({ algorithm, keyState, status }) =>
    algorithm && keyState ? [`${algorithm} ${keyState} ${status}`] : [],
  )
}
