/**
 * The appliance's DKIM zone as name servers take it: the TXT records that customers' CNAMEs lead to.
 *
 * Called by `postroad dns zone`. Makes text; serves nothing (`served-zone.ts` does).
 * Standards: RFC 6376 §3.6.2 (records), RFC 1035 §5.1 (master files).
 */
import type { Queries, Database } from '../../db/database.js'
import { dkimRecord } from '../../mail/dkim/dkim-record.js'
import { listPublishedKeys, findPublishedKey } from './dkim-key-store.js'
import { dkimTarget, TTL_SECONDS, zoneStrings } from '../domains/dns-records.js'
import { TtlCache, type Watch } from '../../core/ttl-cache.js'
import type { TextRecords, ZoneSource } from '../../nameserver/name-server.js'
import type { Clock } from '../../world/time/clock.js'

export interface ZoneRecord {
  /** Without the dot at its end. */
  readonly name: string
  readonly type: 'TXT'
  /** Seconds. */
  readonly ttl: number
  /** In one piece, however long. */
  readonly value: string
  /** The sending domain whose key it is. */
  readonly domain: string
}

/** Mail waits in the queue for 30 days at most (`mta.retry.expire`), and is verified in the days after it was sent. */
export const REMOVED_DOMAIN_MS = 37 * 24 * 3_600_000

/** All keys there are, those of domains removed lately included: their queued mail is still signed. */
export async function zoneRecords(db: Queries, dkimZone: string, now: number): Promise<ZoneRecord[]> {
  const keys = await listPublishedKeys(db, now - REMOVED_DOMAIN_MS)
  return keys.map(key => ({
    name: dkimTarget(key, dkimZone),
    type: 'TXT',
    ttl: TTL_SECONDS,
    value: dkimRecord(key.algorithm, key.publicKey),
    domain: key.domain,
  }))
}

/** Lines to include in the zone's file; SOA and NS are the operator's. */
export function zoneFile(records: readonly ZoneRecord[], dkimZone: string): string {
  return [
    `; DKIM keys of ${dkimZone}: include this below its SOA and NS records, and again after each change.`,
    `$ORIGIN ${dkimZone}.`,
    ...recordLines(records),
  ].join('\n')
}

/** The same as a file by itself, for a name server that has the zone to itself. @param serial of the SOA: seconds since epoch */
export function wholeZoneFile(
  records: readonly ZoneRecord[],
  dkimZone: string,
  hostname: string,
  serial: number,
): string {
  return [
    `; DKIM keys of ${dkimZone}: to be written and loaded again after each change.`,
    `$ORIGIN ${dkimZone}.`,
    `$TTL ${TTL_SECONDS}`,
    `@ IN SOA ${hostname}. postmaster.${hostname}. ( ${serial} 7200 900 1209600 60 )`,
    `@ IN NS ${hostname}.`,
    ...recordLines(records),
  ].join('\n')
}

/** What the zone above has to hold, so that questions come to the appliance. */
export function delegationLine(dkimZone: string, hostname: string): string {
  return `${dkimZone}. ${TTL_SECONDS} IN NS ${hostname}.`
}

function recordLines(records: readonly ZoneRecord[]): string[] {
  return records.map(
    ({ name, ttl, value, domain }) => `${name}. ${ttl} IN TXT ( ${zoneStrings(value)} ) ; ${domain}`,
  )
}

export interface ServedZoneParts {
  readonly database: Database
  readonly clock: Clock
  readonly watch: Watch
}

const CACHE_MS = 5_000
/** As `dkim-keys.ts` makes them; who asks for anything else costs no look into the database. */
const SELECTOR = /^pr[0-9a-f]{2,40}e?[12]$/

export function openServedZone({ database, clock, watch }: ServedZoneParts): ZoneSource {
  const remembered = new TtlCache<TextRecords | undefined>(watch, CACHE_MS)
  return {
    async find(label) {
      if (!SELECTOR.test(label)) return undefined
      return remembered.get(label, async () => {
        const key = await findPublishedKey(database.reader, label, clock.now() - REMOVED_DOMAIN_MS)
        return key && { ttl: TTL_SECONDS, values: [dkimRecord(key.algorithm, key.publicKey)] }
      })
    },
  }
}
