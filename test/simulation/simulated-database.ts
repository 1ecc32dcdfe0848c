/**
 * A database whose statements and commits take as long, and fail as often, as a seed says. Its tables are real: SQLite in
 * memory. Time is a fake clock's, so that a run is repeated exactly.
 *
 * Each node has its own; all see the same rows. What PostgreSQL does and SQLite cannot is simulated: a commit whose
 * answer is lost, and commits of other nodes.
 */
import BetterSqlite from 'better-sqlite3'
import { Kysely, type KyselyPlugin, type QueryResult, type UnknownRow } from 'kysely'
import { AppError } from '../../src/core/errors.js'
import { ReportedChanges, type Topic } from '../../src/db/changes.js'
import { UNWATCHED, type Database, type Tx } from '../../src/db/database.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { isTransient } from '../../src/db/faults/transient-error.js'
import { migratedSqlite } from '../support/db/database.js'

/** What happens to one write. */
export type Fate = 'commits' | 'fails' | 'commits, and its answer is lost'

export interface Weather {
  /** Resolves after as long as a statement, or the way to the database and back, takes now. */
  readonly delay: () => Promise<void>
  readonly fate: () => Fate
}

/** The rows. Statements here take no time: for the test itself. */
export interface SharedTables {
  readonly db: Kysely<Tables>
  /** A database as one node sees it. */
  open(weather: Weather): NodeDatabase
  close(): Promise<void>
}

export interface NodeDatabase extends Database {
  /** The node is killed: nothing that it still does reaches the tables. */
  cut(): void
}

class Cut extends Error {}

export async function openTables(): Promise<SharedTables> {
  const image = Buffer.from(await migratedSqlite())
  // No write-ahead log in memory (https://www.sqlite.org/fileformat.html#file_format_version_numbers).
  image.fill(1, 18, 20)
  const handle = new BetterSqlite(image)
  const db = new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
  const nodes = new Set<ReportedChanges>()
  return {
    db,
    open(weather) {
      const changes = new ReportedChanges()
      nodes.add(changes)
      let isCut = false
      const reader = db.withPlugin(
        slow(async () => {
          await weather.delay()
          if (isCut) await never()
        }),
      )
      return {
        dialect: 'sqlite',
        reader,
        slowReader: reader,
        exportReader: reader,
        storage: UNWATCHED,
        changes,
        isTransient,
        async write(work) {
          await weather.delay()
          const fate = weather.fate()
          const tx = new Work(db, () => isCut)
          let result
          try {
            result = await tx.run(work, fate === 'fails')
          } catch (error) {
            if (isCut) await never()
            tx.rolledBack()
            throw error
          }
          // Others hear of it at once, its own node when the answer arrives.
          for (const other of nodes) if (other !== changes) for (const topic of tx.topics) other.report(topic)
          await weather.delay()
          if (isCut) await never()
          if (fate === 'commits, and its answer is lost') {
            tx.rolledBack()
            throw unavailable()
          }
          for (const topic of tx.topics) changes.report(topic)
          tx.committed()
          return result
        },
        announce(topic) {
          if (!isCut) for (const other of nodes) if (other !== changes) other.report(topic)
        },
        cut() {
          isCut = true
          nodes.delete(changes)
        },
        async [Symbol.asyncDispose]() {},
      }
    },
    close: () => db.destroy(),
  }
}

class Work {
  readonly topics: Topic[] = []
  private readonly onCommit: (() => void)[] = []
  private readonly onRollback: (() => void)[] = []

  private readonly db: Kysely<Tables>
  private readonly isCut: () => boolean

  constructor(db: Kysely<Tables>, isCut: () => boolean) {
    this.db = db
    this.isCut = isCut
  }

  run<T>(work: (tx: Tx) => Promise<T>, fails: boolean): Promise<T> {
    return this.db.transaction().execute(async db => {
      const result = await work({
        db,
        changed: topic => this.topics.push(topic),
        onCommit: callback => this.onCommit.push(callback),
        onRollback: callback => this.onRollback.push(callback),
      })
      if (this.isCut()) throw new Cut()
      if (fails) throw unavailable()
      return result
    })
  }

  committed(): void {
    for (const callback of this.onCommit) callback()
  }

  rolledBack(): void {
    for (const callback of this.onRollback) callback()
  }
}

function unavailable(): AppError {
  return new AppError('unavailable', 'the connection to the database was lost')
}

function never(): Promise<never> {
  return new Promise(() => {})
}

/** Results arrive late; what they say was true when they were read. */
function slow(delay: () => Promise<void>): KyselyPlugin {
  return {
    transformQuery: ({ node }) => node,
    async transformResult({ result }): Promise<QueryResult<UnknownRow>> {
      await delay()
      return result
    },
  }
}
