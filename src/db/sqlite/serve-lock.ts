/**
 * Keeps a second server off the same data folder.
 *
 * The lock is an exclusive transaction held open on a small SQLite database. The operating system releases it when the process ends, even
 * by kill -9, so there are no stale locks.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'

/** Another server runs on this data folder; the message names its process. */
export class LockedError extends Error {
  override readonly name = 'LockedError'
}

/** Long enough to outlast a command that only tests the lock. */
const WAIT_MS = 300

/** @throws LockedError; Error if there is no such folder, which a server on PostgreSQL needs as well */
export function takeServeLock(dataDir: string): Disposable {
  if (!existsSync(dataDir))
    throw new Error(
      `data_dir ${dataDir} does not exist; create it for the user that runs postroad: install -d -m 700 -o postroad -g postroad ${dataDir}`,
    )
  const handle = lock(dataDir, WAIT_MS)
  const pidFile = pidFileIn(dataDir)
  if (!handle)
    throw new LockedError(
      `another postroad serves ${dataDir}${readPid(pidFile)}; stop it first, or use another data_dir`,
    )
  writeFileSync(pidFile, `${process.pid}\n`)
  return {
    [Symbol.dispose]() {
      rmSync(pidFile, { force: true })
      handle.close()
    },
  }
}

/** Whether a server runs on this data folder now. */
export function isServing(dataDir: string): boolean {
  if (!existsSync(dataDir)) return false
  const handle = lock(dataDir, 0)
  handle?.close()
  return handle === undefined
}

/** @returns undefined if another process holds it */
function lock(dataDir: string, waitMs: number): BetterSqlite.Database | undefined {
  const handle = new BetterSqlite(join(dataDir, 'serve.lock'), { timeout: waitMs })
  try {
    handle.exec('begin exclusive')
    return handle
  } catch (error) {
    handle.close()
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw error
  }
}

function pidFileIn(dataDir: string): string {
  return join(dataDir, 'serve.pid')
}

function readPid(file: string): string {
  try {
    return ` (process ${readFileSync(file, 'utf8').trim()})`
  } catch {
    return ''
  }
}
