/**
 * Deletes expired records in small steps, so that other writers never wait long.
 *
 * Run by the jobs of `resource/retention.ts`. The size of a step follows from how long the previous one took. Other writers run between
 * steps, and shutdown stops after the current step. Fails: as a step does; earlier steps stay committed.
 */
import type { Tx } from '../db/database.js'
import type { RemoveSome, Write } from '../db/retention.js'
import type { Services } from '../db/services.js'
import { pauseFor } from '../world/time/clock.js'

export type PruneParts = Pick<Services, 'database' | 'clock' | 'log'>

const FIRST_LIMIT = 32
const MAX_LIMIT = 256
/** Write time of a step: a longer one halves the next step, a much shorter one doubles it. */
const LONG_MS = 4
const SHORT_MS = 1
/** Pause between steps: deletion is never urgent. */
const REST_MS = 8

/** @param what name in the log, e.g. `events` */
export async function prune(
  { database, clock, log }: PruneParts,
  what: string,
  removeSome: RemoveSome,
  stopping: AbortSignal,
): Promise<void> {
  let limit = FIRST_LIMIT
  let removed = 0
  let wroteMs = 0
  const write: Write = work =>
    database.write(
      async tx => {
        const started = clock.monotonic()
        const result = await work(tx)
        wroteMs += clock.monotonic() - started
        return result
      },
      { isLong: true },
    )
  try {
    for (let hasMore = true; hasMore && !stopping.aborted;) {
      wroteMs = 0
      const step = await removeSome(limit, write)
      removed += step.removed
      hasMore = step.hasMore
      limit = nextLimit(limit, wroteMs)
      if (hasMore) await pauseFor(REST_MS)
    }
  } finally {
    if (removed > 0) log.info('old records deleted', { what, records: removed })
  }
}

/** Steps that each delete the oldest rows of a table. */
export function oldest(remove: (tx: Tx, limit: number) => Promise<number>): RemoveSome {
  return async (limit, write) => {
    const removed = await write(tx => remove(tx, limit))
    return { removed, hasMore: removed > 0 }
  }
}

function nextLimit(limit: number, tookMs: number): number {
  if (tookMs > LONG_MS) return Math.max(1, Math.floor(limit / 2))
  return tookMs < SHORT_MS ? Math.min(MAX_LIMIT, 2 * limit) : limit
}
