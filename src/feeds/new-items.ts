/**
 * Decides which items of a feed are new.
 *
 *   item                                                        new
 *   one of its keys is remembered                               no
 *   dated before the newest item the feed sent                  no, and the result says so
 *   no item of the feed is remembered, and it was last read     those dated later than that reading
 *     by a version that remembered items by their ids only
 *   any other                                                   yes
 *
 * Used by runs and previews; changes nothing.
 */
import { isoTime } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import type { Feed, FeedItem } from './feed.js'
import { findUnseen } from './feed-store.js'

export interface NewItems {
  readonly items: readonly FeedItem[]
  /** Sentence about items that are unknown and yet not new; undefined without any. */
  readonly leftOut: string | undefined
}

export async function findNewItems(
  db: Queries,
  feed: Pick<Feed, 'seq' | 'newestSentAt' | 'idsOnlyUntil'>,
  read: readonly FeedItem[],
): Promise<NewItems> {
  const unseen = await findUnseen(
    db,
    feed.seq,
    read.flatMap(({ keys }) => keys),
  )
  const unknown = read.filter(({ keys }) => keys.every(key => unseen.has(key)))
  const { idsOnlyUntil: until, newestSentAt: newest } = feed
  if (until !== null && unknown.length === read.length) {
    const items = unknown.filter(({ at }) => at !== null && at > until)
    return { items, leftOut: leftOut(unknown, items, 'because all guids of the feed have changed') }
  }
  if (newest === null) return { items: unknown, leftOut: undefined }
  const items = unknown.filter(({ at }) => at === null || at >= newest)
  return { items, leftOut: leftOut(unknown, items, `dated before the newest item sent, ${isoTime(newest)}`) }
}

function leftOut(unknown: readonly FeedItem[], items: readonly FeedItem[], why: string): string | undefined {
  const count = unknown.length - items.length
  return count === 0 ? undefined : `${count} left out as old, ${why}`
}

/** @param now ms since epoch UTC; later dates are mistakes, or announcements, and would make all that follows old */
export function newestDate(items: readonly FeedItem[], now: number): number | null {
  const dates = items.flatMap(({ at }) => (at === null || at > now ? [] : [at]))
  return dates.length === 0 ? null : Math.max(...dates)
}
