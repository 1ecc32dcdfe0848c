/**
 * Kysely dialect for reads in threads (`slow-reader.ts`), which use no handle here. A transaction is a snapshot, which keeps a thread.
 *
 * Used through `Database.slowReader` and `exportReader`. Throws what the reader throws; `unavailable` once the thread of a snapshot is gone.
 */
import {
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type Dialect,
  type QueryResult,
} from 'kysely'
import { SlowDriver, type SnapshotConnection } from '../slow-driver.js'
import { tooLong } from '../slow-read-limits.js'
import type { ReadingLine, ReadingThread, SlowQuestion, SlowReader } from './slow-reader.js'
import { OwnAdapter } from './sqlite-dialect.js'

const BEGIN: SlowQuestion = { sql: 'begin', parameters: [] }
const COMMIT: SlowQuestion = { sql: 'commit', parameters: [] }

export function slowReadingDialect(reader: SlowReader, line: ReadingLine): Dialect {
  return {
    createAdapter: () => new OwnAdapter(),
    createDriver: () => new SlowReadingDriver(reader, line),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

class SlowReadingDriver extends SlowDriver<SlowConnection> {
  private readonly reader: SlowReader
  private readonly line: ReadingLine

  constructor(reader: SlowReader, line: ReadingLine) {
    super()
    this.reader = reader
    this.line = line
  }

  async acquireConnection(): Promise<SlowConnection> {
    return new SlowConnection(this.reader, this.line)
  }

  async destroy(): Promise<void> {
    // The reader is closed by its owner, since several drivers share it.
  }
}

class SlowConnection implements SnapshotConnection {
  private readonly reader: SlowReader
  private readonly line: ReadingLine
  private thread: ReadingThread | undefined
  /** Statements of a snapshot run one after the other. */
  private last: Promise<unknown> = Promise.resolve()

  constructor(reader: SlowReader, line: ReadingLine) {
    this.reader = reader
    this.line = line
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.thread ? this.runIn(this.thread, query) : this.reader.run(query, this.line)
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('slow reads are not streamed')
  }

  async beginSnapshot(): Promise<void> {
    await this.reader.run(BEGIN, this.line, thread => {
      this.thread = thread
      thread.keep(this)
    })
  }

  /** Gives its thread back, if it has one. */
  async endSnapshot(): Promise<void> {
    const { thread } = this
    if (!thread) return
    this.thread = undefined
    await this.runIn(thread, COMMIT).catch(() => {})
    if (thread.isKeptBy(this)) thread.release()
  }

  private runIn<Row>(thread: ReadingThread, question: SlowQuestion): Promise<QueryResult<Row>> {
    const result = this.last.then(() => {
      if (!thread.isKeptBy(this)) throw tooLong()
      return this.reader.runIn<Row>(thread, question)
    })
    this.last = result.catch(() => {})
    return result
  }
}
