/**
 * Waiting for the write lock while another process holds it (the command line beside a running server).
 *
 * SQLite would wait inside of the statement, and with it everything else that this process does. Here it is asked again and
 * again, and between two tries the event loop goes on. Used for every transaction (`sqlite-dialect.ts`). Fails: with
 * SQLITE_BUSY once the patience is over.
 */
import { pauseFor, type Clock } from '../../world/time/clock.js'
import { sqliteCode } from './storage-fault.js'

/** For how long somebody else's transaction is waited for; those of the command line are a few ms long. */
export const LOCK_PATIENCE_MS = 5_000

/** Shorter than what a long import leaves between two of its transactions. */
const LONGEST_PAUSE_MS = 5

/** @param begin throws SQLITE_BUSY at once, or nearly, where the lock is taken */
export async function takeWriteLock(begin: () => void, clock: Clock): Promise<void> {
  const end = clock.monotonic() + LOCK_PATIENCE_MS
  for (let pause = 1; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      begin()
      return
    } catch (error) {
      if (!sqliteCode(error)?.startsWith('SQLITE_BUSY') || clock.monotonic() >= end) throw error
    }
    await pauseFor(pause)
  }
}
