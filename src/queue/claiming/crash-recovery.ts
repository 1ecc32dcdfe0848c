/**
 * What a process that is gone had in hand falls due again at the next start.
 *
 * Called once by the queue manager, before it looks at the queue. A message that was in hand when the process ended is most
 * likely innocent and due at once; one that was in hand at several ends in a row may be their cause and waits, longer each
 * time and each for a time of its own, so that those that were in hand together are not in hand together again. The first
 * waits are short: what goes to a slow server is in hand at most ends, whatever their cause, and other mail needs no more than
 * some seconds between two of them. An attempt whose outcome was written down is a clean end and forgets all that. Fails: as
 * the database does.
 *
 *   crashes in a row   1, 2        3       4       5      ...
 *   due                at once    5 s     10 s    20 s    ... up to `mta.retry.max`
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { Random } from '../../world/random.js'
import { requeueOrphans, findOrphans } from '../queue-store.js'

export interface RecoveryParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Names this run of the process. */
  readonly incarnation: string
  readonly retry: BackoffPolicy
}

/** Ends of the process that say nothing about the message yet. */
const HARMLESS_CRASHES = 2
const FIRST_WAIT_MS = 5_000

export async function recoverOrphans(parts: RecoveryParts): Promise<void> {
  const { database, clock, log, incarnation } = parts
  const orphans = await findOrphans(database.reader, incarnation)
  if (orphans.length === 0) return
  const now = clock.now()
  const waits = new Map<number, string[]>()
  for (const { messageId, crashes } of orphans) {
    const dueAt = now + waitAfter(crashes + 1, parts)
    waits.set(dueAt, [...(waits.get(dueAt) ?? []), messageId])
  }
  await database.write(async tx => {
    for (const [dueAt, ids] of waits) await requeueOrphans(tx.db, ids, dueAt)
  })
  log.info('messages were in hand when the server ended', {
    dueNow: waits.get(now)?.length ?? 0,
    putOff: orphans.length - (waits.get(now)?.length ?? 0),
  })
}

function waitAfter(crashes: number, { retry, random }: RecoveryParts): number {
  if (crashes <= HARMLESS_CRASHES) return 0
  const waits = { ...retry, firstMs: Math.min(FIRST_WAIT_MS, retry.firstMs), factor: 2 }
  return retryDelayMs(waits, crashes - HARMLESS_CRASHES, random.fraction())
}
