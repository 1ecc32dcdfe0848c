/**
 * The steps of shutting down that `phases/` registers: work is handed over, deliveries finish or are abandoned, resources end. All share one
 * grace period.
 */
import type { Membership } from '../cluster/membership.js'
import type { QueueManager } from '../queue/queue-manager.js'
import type { OpenResource } from '../resource/resource.js'
import type { Clock } from '../world/time/clock.js'
import type { World } from '../world/world.js'
import type { BackgroundWork } from './background-work.js'

/** Milliseconds left of the grace period that all closing steps share; it starts with the first call. */
export function graceFrom(clock: Clock, graceMs: number): () => number {
  let end: number | undefined
  return () => {
    end ??= clock.monotonic() + graceMs
    return Math.max(0, end - clock.monotonic())
  }
}

/** How long the jobs of a drained node may take to end. */
export const DRAIN_MS = 60 * 60_000

/** Hands this node's shares and its background work to other nodes. */
export async function retire(
  membership: Membership,
  background: BackgroundWork,
  graceLeft: () => number,
  clock: Clock,
): Promise<void> {
  await membership.retire()
  const isOver = new AbortController()
  await Promise.race([background.follow(), clock.sleep(graceLeft(), isOver.signal)])
  isOver.abort()
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

export async function stopResources(resources: readonly OpenResource[]): Promise<void> {
  await Promise.all(resources.map(async one => one.stop?.()))
}
