/**
 * The server's DKIM zone: the TXT records that customers' CNAMEs point to.
 *
 * `zoneFile` and `wholeZoneFile` write it for other name servers (`postroad dns zone`); `openServedZone` answers it from our own name
 * server (`dns.listen`), cached for seconds. Standards: RFC 6376 §3.6.2 (records), RFC 1035 §5.1 (master files).
 */
import { watchOf } from '../../../db/changes.js'
import type { Queries } from '../../../db/database.js'
import type { Services } from '../../../db/services.js'
import { dkimRecord } from '../../../mail/dkim/dkim-record.js'
import { listPublishedKeys, findPublishedKey } from './dkim-key-store.js'
import { dkimTarget, TTL_SECONDS, zoneStrings } from '../dns-records.js'
import { TtlCache } from '../../../core/ttl-cache.js'
import type { TextRecords, ZoneSource } from '../../../nameserver/name-server.js'

export interface ZoneRecord {
  /** Without the trailing dot. */
  readonly name: string
  readonly type: 'TXT'
  readonly ttl: number
  /** Not split into strings. */
  readonly value: string
  readonly domain: string
}

/** Mail is queued for at most 30 days (`mta.retry.expire`) and verified within days after it was sent. */
export const REMOVED_DOMAIN_MS = 37 * 24 * 3_600_000

/** All keys, including those of recently removed domains, whose queued mail is still signed. */
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

/** Lines to include in a zone file that has its own SOA and NS records. */
export function zoneFile(records: readonly ZoneRecord[], dkimZone: string): string {
  return [
    `; DKIM keys of ${dkimZone}: include this below its SOA and NS records; regenerate it after each change.`,
    `$ORIGIN ${dkimZone}.`,
    ...recordLines(records),
  ].join('\n')
}

/** A complete zone file. @param serial of the SOA: seconds since epoch */
export function wholeZoneFile(
  records: readonly ZoneRecord[],
  dkimZone: string,
  hostname: string,
  serial: number,
): string {
  return [
    `; DKIM keys of ${dkimZone}: regenerate and reload this after each change.`,
    `$ORIGIN ${dkimZone}.`,
    `$TTL ${TTL_SECONDS}`,
    `@ IN SOA ${hostname}. postmaster.${hostname}. ( ${serial} 7200 900 1209600 60 )`,
    `@ IN NS ${hostname}.`,
    ...recordLines(records),
  ].join('\n')
}

/** The record that delegates the zone to this server, for the parent zone. */
export function delegationLine(dkimZone: string, hostname: string): string {
  return `${dkimZone}. ${TTL_SECONDS} IN NS ${hostname}.`
}

function recordLines(records: readonly ZoneRecord[]): string[] {
  return records.map(
    ({ name, ttl, value, domain }) => `${name}. ${ttl} IN TXT ( ${zoneStrings(value)} ) ; ${domain}`,
  )
}

export type ServedZoneParts = Pick<Services, 'database' | 'clock'>

const CACHE_MS = 5_000
/** The names `dkim-keys.ts` generates; others need no database read. */
const SELECTOR = /^pr[0-9a-f]{2,40}e?[12]$/

export function openServedZone({ database, clock }: ServedZoneParts): ZoneSource {
  const remembered = new TtlCache<TextRecords | undefined>(
    watchOf(database.changes, clock, ['domains']),
    CACHE_MS,
  )
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
