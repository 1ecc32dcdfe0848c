/**
 * Requeues messages that were claimed by nodes that are gone.
 *
 * Runs in the transaction that removes them, and when a node joins. A message that was in progress during one or two crashes is due
 * immediately; one that was in progress during more of them may be the cause and waits, longer each time and with
 * jitter, so that suspects are not retried together. The first waits are short because mail to a slow server is in
 * progress at most crashes, whatever their cause. A committed outcome resets the count.
 *
 *   consecutive crashes   1, 2        3       4       5      ...
 *   due                   at once     5 s     10 s    20 s   ... up to `mta.retry.max`
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { requeueOrphans, findOrphans } from '../queue-store.js'

export interface RecoveryParts extends Pick<Services, 'clock' | 'random' | 'log'> {
  readonly retry: BackoffPolicy
}

/** Crashes that are not yet held against the message. */
const HARMLESS_CRASHES = 2
const FIRST_WAIT_MS = 5_000

export async function recoverOrphans(tx: Tx, parts: RecoveryParts): Promise<void> {
  const { clock, log } = parts
  const orphans = await findOrphans(tx.db)
  if (orphans.length === 0) return
  const now = clock.now()
  const waits = new Map<number, string[]>()
  for (const { messageId, crashes } of orphans) {
    const dueAt = now + waitAfter(crashes + 1, parts)
    waits.set(dueAt, [...(waits.get(dueAt) ?? []), messageId])
  }
  for (const [dueAt, ids] of waits) await requeueOrphans(tx.db, ids, dueAt)
  tx.changed('queue')
  tx.onCommit(() =>
    log.info('claims of a crashed process released', {
      dueNow: waits.get(now)?.length ?? 0,
      deferred: orphans.length - (waits.get(now)?.length ?? 0),
    }),
  )
}

function waitAfter(crashes: number, { retry, random }: RecoveryParts): number {
  if (crashes <= HARMLESS_CRASHES) return 0
  const waits = { ...retry, firstMs: Math.min(FIRST_WAIT_MS, retry.firstMs), factor: 2 }
  return retryDelayMs(waits, crashes - HARMLESS_CRASHES, random.fraction())
}
