/**
 * Upkeep of the database as a resource: what retention has emptied is given back to the file system, in the quiet hours.
 *
 * A file that shrinks and grows again gains nothing: it is begun where a fifth of it holds nothing, and a rest stays for new mail.
 * Each step is a transaction of a few milliseconds, with a rest behind it in which others write; the job ends with the quiet hours.
 * Fails: as the database does; what was given back stays so.
 */
import type { Database } from '../db/database.js'
import { pauseFor } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import { resource } from './resource.js'

export interface UpkeepParts {
  readonly database: Database
  readonly log: Log
  readonly isQuietHour: () => boolean
}

/** Of the file, without content: from so much on it is begun, and so much is left. */
const BEGIN_SHARE = 0.2
const LEFT_SHARE = 0.05
/** Less is not worth it. */
const LEAST_OCTETS = 16 * 1_024 * 1_024
const FIRST_PAGES = 64
const MOST_PAGES = 2_048
/** Of one step: longer halves the next one, much shorter doubles it. */
const LONG_MS = 4
const SHORT_MS = 1
const REST_MS = 20

export const databaseUpkeep = resource({
  open: (parts: UpkeepParts) => ({
    jobs: [
      {
        name: 'shrink database',
        schedule: '*/20 * * * *',
        run: async stopping => {
          if (parts.isQuietHour()) await shrinkDatabase(parts, stopping)
        },
      },
    ],
  }),
})

export async function shrinkDatabase(
  { database, log, isQuietHour }: UpkeepParts,
  stopping: AbortSignal,
): Promise<void> {
  const { figures, shrink } = database
  const before = figures?.()
  if (!figures || !shrink || !before?.canShrink) return
  if (before.freeOctets < Math.max(LEAST_OCTETS, BEGIN_SHARE * before.octets)) return
  const enough = LEFT_SHARE * before.octets
  let pages = FIRST_PAGES
  let free = before.freeOctets
  while (free > enough && isQuietHour() && !stopping.aborted) {
    const tookMs = await shrink(pages)
    const now = figures().freeOctets
    // Somebody has it open who still reads the end of the file, or nothing is left to move.
    if (now >= free) break
    free = now
    if (tookMs > LONG_MS) pages = Math.max(1, Math.floor(pages / 2))
    else if (tookMs < SHORT_MS) pages = Math.min(MOST_PAGES, 2 * pages)
    await pauseFor(REST_MS)
  }
  log.info('database shrunk', { octets: before.octets - figures().octets })
}
