/**
 * Upkeep of the database: shrinking its file, retention of the event log, and the retry of events set aside.
 *
 * The file shrinks during quiet hours, once a fifth of it is free, and keeps some free space for new mail so that it does not shrink and grow
 * in turns. Each step is a transaction of a few milliseconds followed by a pause for other writers; the job stops when quiet hours end.
 * Fails: as the database does; earlier steps stay committed.
 */
import type { Services } from '../db/services.js'
import type { Dispatcher } from '../events/dispatcher.js'
import { setAsideRoutes, type SetAsideParts } from './set-aside-routes.js'
import { deleteEventsBefore } from '../events/store.js'
import { oldest } from '../scheduler/prune.js'
import { pauseFor } from '../world/time/clock.js'
import { resource } from './resource.js'

export interface UpkeepParts extends Pick<Services, 'database' | 'log'> {
  readonly isQuietHour: () => boolean
}

/** Free share of the file at which shrinking starts, and the share it leaves. */
const BEGIN_SHARE = 0.2
const LEFT_SHARE = 0.05
/** Less is not worth the work. */
const MIN_FREE_OCTETS = 16 * 1_024 * 1_024
const FIRST_PAGES = 64
const MAX_PAGES = 2_048
/** Duration of a step: a longer one halves the next step, a much shorter one doubles it. */
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
  const { file } = database
  const before = file?.size()
  if (!file || !before?.canShrink) return
  if (before.freeOctets < Math.max(MIN_FREE_OCTETS, BEGIN_SHARE * before.octets)) return
  const enough = LEFT_SHARE * before.octets
  let pages = FIRST_PAGES
  let free = before.freeOctets
  while (free > enough && isQuietHour() && !stopping.aborted) {
    const tookMs = await file.shrink(pages)
    const now = file.size().freeOctets
    // No progress: a reader still uses the end of the file, or nothing is left to move.
    if (now >= free) break
    free = now
    if (tookMs > LONG_MS) pages = Math.max(1, Math.floor(pages / 2))
    else if (tookMs < SHORT_MS) pages = Math.min(MAX_PAGES, 2 * pages)
    await pauseFor(REST_MS)
  }
  log.info('database shrunk', { octets: before.octets - file.size().octets })
}

export interface EventLogParts extends SetAsideParts {
  readonly eventLog: Pick<Dispatcher, 'passed' | 'retrySetAside'>
}

export const eventLog = resource({
  kept: {
    events: {
      default: '30d',
      description: 'The event log. Events that are still to be processed are kept longer.',
    },
  },
  chapters: { 'Set-aside events': 'Events that a part of the server failed to process, kept for a retry.' },
  open: ({ eventLog, ...parts }: EventLogParts) => ({
    routes: setAsideRoutes(parts),
    jobs: [
      {
        // The command only marks events to retry; consumers run in the server alone.
        name: 'retry-set-aside-events',
        schedule: '* * * * *',
        async run() {
          await eventLog.retrySetAside()
        },
      },
    ],
    retention: [
      {
        what: 'events',
        keep: ['events'],
        async begin(before) {
          const passed = await eventLog.passed()
          return oldest((tx, limit) => deleteEventsBefore(tx.db, before, passed, limit))
        },
      },
    ],
  }),
})
