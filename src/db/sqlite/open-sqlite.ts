/**
 * Opens the embedded SQLite database: one connection that writes, one that only reads.
 *
 * Called by the composition root and by commands. Brings the schema up to date before handing anything out. Fails
 * with a plain Error whose text an operator can act on: unreadable or damaged file, newer schema, disk full.
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
import { Checkpointer, type CheckpointerParts, type LogLength } from '../threads/checkpointer.js'
import type { Database, DatabaseFigures, Queries } from '../database.js'
import { GroupCommit, type OnCommitted } from '../group-commit.js'
import { migrateToLatest } from '../migrate.js'
import { StorageWatch, UNWATCHED, type StorageWatchParts } from './storage-watch.js'
import type { Log } from '../../world/log.js'
import { slowReadingDialect, sqliteDialect, sqliteReadingDialect } from './sqlite-dialect.js'
import { SlowReader, type ReadingLine, type SlowReaderParts } from '../threads/slow-reader.js'
import type { Tables } from '../tables.js'

export interface SqliteOptions {
  /** Path of the database file; its folder exists. */
  readonly file: string
  readonly clock: Clock
  /** False for commands that only look: an older schema is then refused instead of migrated. */
  readonly mayMigrate?: boolean
  /** For a server, which writes much and must not stand still: checkpoints in a thread, instead of inside of commits. */
  readonly checkpoints?: Omit<CheckpointerParts, 'clock'>
  /** For a server, which many wait for: a thread for reads that take long. */
  readonly slowReads?: SlowReaderParts
  /** For a server, which runs for long: looks at the file first, and notices when the disk is full or the files are gone. */
  readonly watch?: StorageWatchParts
  readonly onCommitted?: OnCommitted | undefined
}

export async function openSqlite({
  file,
  clock,
  mayMigrate = true,
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
    if (watch) makeShrinkable(writeHandle, watch.log)
    await migrateToLatest(writer, 'sqlite', mayMigrate)
  } catch (error) {
    await writer.destroy()
    throw error
  }
  // Only now, since a migration may have an index of millions of rows to sort.
  readyForWork(writeHandle)
  const readHandle = openReader(file)
  const reading = sqliteReadingDialect(readHandle, writeHandle, clock)
  const reader: Queries = Object.assign(new Kysely<Tables>({ dialect: reading.dialect }), {
    run: reading.run,
  })
  const slow = slowReads && new SlowReader(slowReads, clock, file)
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
  const groups = new GroupCommit(writer, clock, { checkpointer, storage, logSync, run, onCommitted })
  // Seen from the writing connection, only other processes change it: the reading one never writes.
  const selectVersion = writeHandle.prepare('pragma data_version').pluck()
  const dataVersion = () => Number(selectVersion.get())
  let seenVersion = dataVersion()
  let versionOfTurn: number | undefined
  return {
    dialect: 'sqlite',
    reader,
    slowReader,
    exportReader,
    figures: figuresOf(readHandle, writeHandle),
    shrink: pages =>
      groups.write(
        async () => {
          const started = clock.monotonic()
          writeHandle.pragma(`incremental_vacuum(${pages})`)
          return clock.monotonic() - started
        },
        { canWait: true },
      ),
    storage: storage ?? UNWATCHED,
    write: (work, options) => groups.write(work, options),
    ...(checkpoints && { lending: { file, lend: use => groups.lend(use) } }),
    hasForeignWrites() {
      const before = seenVersion
      seenVersion = dataVersion()
      return seenVersion !== before
    },
    foreignVersion() {
      if (versionOfTurn === undefined) {
        versionOfTurn = dataVersion()
        void nextTurn().then(() => (versionOfTurn = undefined))
      }
      return versionOfTurn
    },
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

/** Octets of a database that is written anew in well under a second. */
const SMALL = 64 * 1_024 * 1_024

/**
 * A file of an earlier version learns to give back what it does not need by being written anew, which nobody could wait for where it is
 * large: then it is left to `postroad compact`, and what is free in it is used for new mail as before.
 */
function makeShrinkable(handle: BetterSqlite.Database, log: Log): void {
  const number = (name: string) => Number(handle.pragma(name, { simple: true }))
  if (number('auto_vacuum') !== 0 || number('page_count') * number('page_size') > SMALL) return
  try {
    writeAnew(handle)
  } catch (error) {
    // A full disk, say: it is tried again at the next start.
    log.debug('database rewrite failed', { error: describeError(error) })
  }
}

/** Writes a database that nobody else has open anew, without what is free in it. @throws Error of SQLite */
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

function figuresOf(reading: BetterSqlite.Database, writing: BetterSqlite.Database): () => DatabaseFigures {
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

/** A checkpoint of the kind that does nothing tells how much there would be to do. */
function logLengthOf(handle: BetterSqlite.Database): () => LogLength {
  const ask = handle.prepare<[], [number, number, number]>('pragma wal_checkpoint(noop)').raw()
  return () => {
    const [, written = 0, broughtOver = 0] = ask.get() ?? []
    return { written, broughtOver }
  }
}
