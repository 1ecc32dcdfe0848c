/**
 * Which unfinished uploads a crash has left, judged by their ids, which contain their time.
 *
 * Pure but for the clock.
 */
import { firstIdAt, LAST_ID } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { Clock } from '../world/time/clock.js'

/** Longer than any upload takes. */
const LONGEST_UPLOAD_MS = 86_400_000

/**
 * Call it before this process receives anything.
 *
 * @returns unfinished uploads with ids below this one are left behind: all of them, but where other nodes may be receiving only those of
 * the day before
 */
export function leftBehindBefore(database: Database, clock: Clock): string {
  return database.announce === undefined ? LAST_ID : firstIdAt(clock.now() - LONGEST_UPLOAD_MS)
}
