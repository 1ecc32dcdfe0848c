/**
 * Checks for `/health` that the database accepts writes, by a real but cheap write.
 *
 * One check at a time; its result is cached for a second, and it times out after two. Never throws; a failure is the result.
 */
import { sql } from 'kysely'
import { AppError, describeError } from '../core/errors.js'
import type { Clock } from '../world/time/clock.js'
import type { Database, StorageFault } from './database.js'

/** The single row that is written. */
export interface WriteTrialRow {
  id: number
  tried_at: number
}

declare module './tables.js' {
  interface Tables {
    write_trials: WriteTrialRow
  }
}

const HOLDS_MS = 1_000
const PATIENCE_MS = 2_000

/** @returns what is wrong; undefined if healthy */
export type CheckHealth = () => Promise<StorageFault | undefined>

export function healthOf(database: Database, clock: Clock): CheckHealth {
  let last: { readonly at: number; readonly fault: StorageFault | undefined } | undefined
  let running: Promise<StorageFault | undefined> | undefined

  async function check(): Promise<StorageFault | undefined> {
    const fault = (await tryWrite(database, clock)) ?? database.storage.fault
    last = { at: clock.monotonic(), fault }
    return fault
  }

  return async () => {
    if (last && clock.monotonic() - last.at < HOLDS_MS) return last.fault ?? database.storage.fault
    return (running ??= check().finally(() => (running = undefined)))
  }
}

async function tryWrite(database: Database, clock: Clock): Promise<StorageFault | undefined> {
  const over = new AbortController()
  try {
    return await Promise.race([
      write(database, clock.now()),
      clock.sleep(PATIENCE_MS, over.signal).then(() => ({
        code: 'database_busy' as const,
        isFatal: true,
        reason: `the database has taken no write for ${PATIENCE_MS / 1_000} seconds`,
      })),
    ])
  } catch (error) {
    // A lock held by another process is reported by the code that waits for it.
    const code =
      error instanceof AppError && error.code === 'unavailable' ? 'database_busy' : 'database_failing'
    return database.storage.fault ?? { code, isFatal: true, reason: describeError(error) }
  } finally {
    over.abort()
  }
}

async function write(database: Database, now: number): Promise<undefined> {
  await database.write(({ db }) =>
    sql`insert into write_trials (id, tried_at) values (1, ${now})
      on conflict (id) do update set tried_at = ${now}`.execute(db),
  )
  return undefined
}
