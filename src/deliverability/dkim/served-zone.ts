/**
 * The DKIM zone as the appliance's own name server answers it: one name for each selector, looked up when it is asked for.
 *
 * Opened by the composition root where `dns.listen` is set; publishes what `dkim-zone.ts` writes for other name servers. What was found is
 * remembered for some seconds, and forgotten when a service or another process changes something. Fails: rejects where the database does.
 */
import type { Database } from '../../db/database.js'
import { TtlCache, type Watch } from '../../core/ttl-cache.js'
import { dkimRecord } from '../../mail/dkim/dkim-record.js'
import type { TextRecords, ZoneSource } from '../../nameserver/name-server.js'
import type { Clock } from '../../world/time/clock.js'
import { TTL_SECONDS } from '../domains/dns-records.js'
import { findPublishedKey } from './dkim-key-store.js'
import { REMOVED_MS } from './dkim-zone.js'

export interface ServedZoneParts {
  readonly database: Database
  readonly clock: Clock
  readonly watch: Watch
}

const REMEMBERED_MS = 5_000
/** As `dkim-keys.ts` makes them; who asks for anything else costs no look into the database. */
const SELECTOR = /^pr[0-9a-f]{2,40}e?[12]$/

export function openServedZone({ database, clock, watch }: ServedZoneParts): ZoneSource {
  const remembered = new TtlCache<TextRecords | undefined>(watch, REMEMBERED_MS)
  return {
    async find(label) {
      if (!SELECTOR.test(label)) return undefined
      return remembered.get(label, async () => {
        const key = await findPublishedKey(database.reader, label, clock.now() - REMOVED_MS)
        return key && { ttl: TTL_SECONDS, values: [dkimRecord(key.algorithm, key.publicKey)] }
      })
    },
  }
}
