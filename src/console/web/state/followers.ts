/** When open screens read again what they show: after changes, or by polling without a stream. Pure. */

/** Between two reads of the same data. */
export const PAUSE_MS = 1_000
export const POLL_MS = 15_000

export interface Follower<Topic> {
  readonly topics: readonly Topic[]
  readonly read: () => void
  readonly pauseMs: number
  readonly pollMs: number
  /** Something has changed since it was read. */
  isDue: boolean
  /** Ms since epoch. */
  readAt: number
}

export function markChanged<Topic>(followers: Iterable<Follower<Topic>>, changed: readonly Topic[]): void {
  for (const follower of followers)
    if (follower.topics.some(topic => changed.includes(topic))) follower.isDue = true
}

/** Changes may have been missed. */
export function markAll<Topic>(followers: Iterable<Follower<Topic>>): void {
  for (const follower of followers) follower.isDue = true
}

/** Rereads followers that are due and not paused. @param isStreaming false: followers not read for a long time are due too */
export function readDue<Topic>(
  followers: Iterable<Follower<Topic>>,
  now: number,
  isStreaming: boolean,
): void {
  for (const follower of followers) {
    const { isDue, readAt, pauseMs, pollMs, read } = follower
    const sinceMs = now - readAt
    if (sinceMs < pauseMs || !(isDue || (!isStreaming && sinceMs >= pollMs))) continue
    follower.isDue = false
    follower.readAt = now
    read()
  }
}
