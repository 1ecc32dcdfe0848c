/**
 * Waits for the write lock while another process holds it (the command line beside a running server).
 *
 * SQLite would block the whole process. This polls instead, so that the event loop runs in between. Used for every transaction
 * (`sqlite-dialect.ts`). Throws SQLITE_BUSY on timeout.
 */
import { pauseFor, type Clock } from '../../world/time/clock.js'
import { sqliteCode } from './storage-fault.js'

/** How long to wait; transactions of the command line take a few ms. */
export const LOCK_PATIENCE_MS = 5_000

/** Shorter than the pause that a long import makes between transactions. */
const LONGEST_PAUSE_MS = 5

/** @param begin throws SQLITE_BUSY without waiting long if the lock is taken */
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
