/**
 * Opens the embedded SQLite database: one connection for writing, two for reading only.
 *
 * Used by the composition root and by commands. Migrates the schema first. Throws an Error an operator can act on: unreadable or damaged
 * file, unusable schema, disk full.
 */
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { describeError } from '../../core/errors.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { checkContent, checkHeader } from './check-file.js'
import {
  commitsCheckpoint,
  commitsSync,
  logPathOf,
  openReader,
  openWriter,
  readyForWork,
  OPENING_TIMEOUT_MS,
} from './connections.js'
import { LogSync } from './log-sync.js'
import { Checkpointer, type CheckpointerParts, type LogLength } from './checkpointer.js'
import { ReportedChanges } from '../changes.js'
import { UNWATCHED, type Database, type FileSize, type OnCommitted, type Queries } from '../database.js'
import { GroupCommit } from './group-commit.js'
import { migrateToLatest, type UpgradeSteps } from '../migrate.js'
import { MIGRATIONS } from '../migrations.js'
import { StorageWatch, type StorageWatchParts } from './storage-watch.js'
import type { Log } from '../../world/log.js'
import { SlowReader, type ReadingLine, type SlowReaderParts } from './slow-reader.js'
import { slowReadingDialect } from './slow-reading-dialect.js'
import { sqliteDialect, sqliteReadingDialect } from './sqlite-dialect.js'
import type { Tables } from '../tables.js'
import { isTransient } from '../faults/transient-error.js'

export interface SqliteOptions {
  /** Path of the database file; its folder exists. */
  readonly file: string
  readonly clock: Clock
  /** False for commands: an older schema is rejected instead of migrated. */
  readonly mayMigrate?: boolean
  readonly upgradeSteps?: UpgradeSteps | undefined
  /** For a server: checkpoints in a thread instead of within commits. */
  readonly checkpoints?: Omit<CheckpointerParts, 'clock'>
  /** For a server: a thread for long reads. */
  readonly slowReads?: SlowReaderParts
  /** For a server: checks the file at opening, and monitors disk space and files. */
  readonly watch?: StorageWatchParts
  readonly onCommitted?: OnCommitted | undefined
}

export async function openSqlite({
  file,
  clock,
  mayMigrate = true,
  upgradeSteps,
  checkpoints,
  watch,
  slowReads,
  onCommitted,
}: SqliteOptions): Promise<Database> {
  if (watch) checkHeader(file)
  const writeHandle = openWriter(file)
  const { dialect, run } = sqliteDialect(writeHandle, clock)
  const writer = new Kysely<Tables>({ dialect })
  try {
    if (watch) checkContent(file, writeHandle)
    await migrateToLatest(writer, 'sqlite', mayMigrate, MIGRATIONS, upgradeSteps)
    // After the check, so that a refused database is not modified.
    if (watch) makeShrinkable(writeHandle, watch.log)
  } catch (error) {
    await writer.destroy()
    throw error
  }
  // Only now, since a migration may have to sort an index of millions of rows.
  readyForWork(writeHandle)
  const readHandle = openReader(file)
  const reading = sqliteReadingDialect({
    writer: writeHandle,
    reader: readHandle,
    snapshots: openReader(file),
  })
  const reader: Queries = Object.assign(new Kysely<Tables>({ dialect: reading.dialect }), {
    run: reading.run,
  })
  const slow = slowReads && new SlowReader(slowReads, file)
  const readerIn = (line: ReadingLine): Queries =>
    slow ? new Kysely<Tables>({ dialect: slowReadingDialect(slow, line) }) : reader
  const [slowReader, exportReader] = [readerIn('pages'), readerIn('exports')]
  const checkpointer =
    checkpoints &&
    new Checkpointer(
      { ...checkpoints, clock },
      {
        file,
        logLength: logLengthOf(writeHandle),
        commitsCheckpoint: isWanted => commitsCheckpoint(writeHandle, isWanted),
      },
    )
  const storage = watch && new StorageWatch(watch, clock, file)
  await storage?.start()
  const logSync = watch && new LogSync(watch.disk.openSynced(logPathOf(writeHandle)), clock)
  if (logSync) commitsSync(writeHandle, false)
  const changes = new ReportedChanges(foreignVersionOf(writeHandle))
  const groups = new GroupCommit(writer, clock, { checkpointer, storage, logSync, run, changes, onCommitted })
  return {
    dialect: 'sqlite',
    reader,
    slowReader,
    exportReader,
    file: {
      size: sizeOf(readHandle, writeHandle),
      shrink: pages =>
        groups.write(async () => {
          const started = clock.monotonic()
          writeHandle.pragma(`incremental_vacuum(${pages})`)
          return clock.monotonic() - started
        }),
    },
    changes,
    isTransient,
    storage: storage ?? UNWATCHED,
    write: (work, options) => groups.write(work, options),
    async [Symbol.asyncDispose]() {
      await groups.idle()
      storage?.close()
      logSync?.close()
      await checkpointer?.close()
      await slow?.close()
      await reader.destroy()
      await writer.destroy()
    },
  }
}

/**
 * Grows with commits of other connections. Seen from the writing one, only other processes change it, since the reading one never writes.
 * Read once per turn of the event loop.
 */
function foreignVersionOf(writing: BetterSqlite.Database): () => number {
  const select = writing.prepare('pragma data_version').pluck()
  let ofTurn: number | undefined
  return () => {
    if (ofTurn === undefined) {
      ofTurn = Number(select.get())
      void nextTurn().then(() => (ofTurn = undefined))
    }
    return ofTurn
  }
}

/** Size of a database that VACUUM rewrites in well under a second. */
const SMALL = 64 * 1_024 * 1_024

/**
 * Files of earlier versions need a VACUUM before they can return free pages to the file system. Large ones are left to `postroad compact`;
 * their free pages are reused as before.
 */
function makeShrinkable(handle: BetterSqlite.Database, log: Log): void {
  const number = (name: string) => Number(handle.pragma(name, { simple: true }))
  if (number('auto_vacuum') !== 0 || number('page_count') * number('page_size') > SMALL) return
  try {
    writeAnew(handle)
  } catch (error) {
    // E.g. a full disk; retried at the next start.
    log.debug('database rewrite failed', { error: describeError(error) })
  }
}

/** Vacuums a database that nobody else has open. @throws Error of SQLite */
export function compactFile(file: string): void {
  const handle = new BetterSqlite(file, { timeout: OPENING_TIMEOUT_MS })
  try {
    writeAnew(handle)
  } finally {
    handle.close()
  }
}

function writeAnew(handle: BetterSqlite.Database): void {
  handle.pragma('auto_vacuum = incremental')
  handle.exec('vacuum')
  handle.pragma('wal_checkpoint(truncate)')
}

function sizeOf(reading: BetterSqlite.Database, writing: BetterSqlite.Database): () => FileSize {
  const logLength = logLengthOf(writing)
  const number = (name: string) => Number(reading.pragma(name, { simple: true }))
  const pageOctets = number('page_size')
  return () => ({
    octets: number('page_count') * pageOctets,
    freeOctets: number('freelist_count') * pageOctets,
    logOctets: logLength().written * pageOctets,
    canShrink: number('auto_vacuum') !== 0,
  })
}

/** A no-op checkpoint reports how many pages are pending. */
function logLengthOf(handle: BetterSqlite.Database): () => LogLength {
  const ask = handle.prepare<[], [number, number, number]>('pragma wal_checkpoint(noop)').raw()
  return () => {
    const [, written = 0, broughtOver = 0] = ask.get() ?? []
    return { written, broughtOver }
  }
}
