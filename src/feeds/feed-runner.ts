/**
 * Runs the feeds that are due: a job of every minute.
 *
 * A few at a time, since each may wait for its server, and workspaces in turns. What is not due any more when the transaction begins, because another node or a
 * request ran it or it was changed, is left alone. Never throws for one feed; a failed one is retried in the next minute.
 */
import { AppError, describeError } from '../core/errors.js'
import { FairGate } from '../core/fair-shares.js'
import { actFor } from '../core/holder.js'
import type { Feed, FeedParts } from './feed.js'
import { MAX_FEEDS } from './feed-schema.js'
import { finishRun, listDueFeeds } from './feed-store.js'
import { REPORTED_FAILURES, runFeed } from './run-feed.js'

const AT_ONCE = 16
/** More than one workspace may have. */
const LIST_SIZE = 4 * MAX_FEEDS
/** Interval of checks whether a removed workspace was restored. */
const REMOVED_RECHECK_MS = 3_600_000

export async function runDueFeeds(parts: FeedParts, stopping: AbortSignal): Promise<void> {
  const { database, clock } = parts.send
  const stopped = new Promise<void>(resolve => {
    stopping.addEventListener('abort', () => resolve(), { once: true })
  })
  for (;;) {
    const due = await listDueFeeds(database.reader, clock.now(), LIST_SIZE)
    const gate = new FairGate(AT_ONCE)
    let done = 0
    const run = (feed: Feed) => {
      const holder = { owner: feed.workspaceId }
      return gate.run(holder, async () => {
        if (stopping.aborted) return
        if (await actFor(holder, () => runOne(parts, feed, stopping))) done += 1
      })
    }
    // Fetches in progress at shutdown are abandoned: nothing was written, so the next start runs them.
    await Promise.race([Promise.all(due.map(run)), stopped])
    if (stopping.aborted || due.length < LIST_SIZE || done === 0) return
  }
}

/** @returns whether it is not due any more */
async function runOne(parts: FeedParts, feed: Feed, stopping: AbortSignal): Promise<boolean> {
  const { log } = parts
  try {
    const run = await runFeed(parts, feed)
    if (run.status === 'failed' && feed.failures + 1 >= REPORTED_FAILURES)
      log.warn('feed failing', { feed: feed.id, error: run.reason ?? '' })
    else log.debug('feed run', { feed: feed.id, status: run.status })
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return true
    if (error instanceof AppError && error.code === 'workspace_not_found') return postpone(parts, feed)
    if (stopping.aborted) return false
    log.error('feed run failed, retrying', { feed: feed.id, error: describeError(error) })
    return false
  }
}

/** Its workspace was removed; it goes with the workspace, or comes back with it. */
async function postpone({ send: { database, clock } }: FeedParts, feed: Feed): Promise<boolean> {
  await database.write(tx => finishRun(tx.db, feed, { ...feed, nextAt: clock.now() + REMOVED_RECHECK_MS }))
  return true
}
