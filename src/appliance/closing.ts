/** How a server ends: all steps share one grace period, and deliveries that outlast it are abandoned. */
import type { QueueManager } from '../queue/queue-manager.js'
import type { Clock } from '../world/time/clock.js'
import type { World } from '../world/world.js'

/** Milliseconds left of the grace period that all closing steps share; it starts with the first call. */
export function graceFrom(clock: Clock, graceMs: number): () => number {
  let end: number | undefined
  return () => {
    end ??= clock.monotonic() + graceMs
    return Math.max(0, end - clock.monotonic())
  }
}

/** Time for recording interrupted deliveries. */
const WRITING_DOWN_MS = 1_000

/**
 * A server may take ten minutes to answer the final dot (RFC 5321 §4.5.3.2.6), and such a delivery is not interrupted. It is abandoned when
 * the grace period ends; its next attempt is in the database.
 */
export async function stopQueue(
  queue: QueueManager,
  graceMs: number,
  { clock, log }: Pick<World, 'clock' | 'log'>,
): Promise<void> {
  const isOver = new AbortController()
  const writingMs = Math.min(WRITING_DOWN_MS, graceMs / 5)
  const limitMs = Math.max(WRITING_DOWN_MS, graceMs)
  try {
    await Promise.race([queue.stop(graceMs - writingMs), clock.sleep(limitMs, isOver.signal)])
  } finally {
    isOver.abort()
  }
  if (queue.activeCount === 0) return
  log.warn('deliveries interrupted', { deliveries: queue.activeCount })
  await queue.clearActiveClaims()
}
