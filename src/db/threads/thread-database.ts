/**
 * The database in a writing thread: its own connections, and write turns granted by the server (`turns.ts`).
 *
 * Opened by programs that `writing-thread.ts` runs, never in the main thread. One write is one transaction; concurrent writes are queued.
 * Never migrates. Fails as `Database` says. That a commit was lost because the files are gone may only be reported by a later write.
 */
import { Kysely } from 'kysely'
import { systemDisk } from '../../world/disk.js'
import type { Log } from '../../world/log.js'
import type { OwnThread } from '../../world/threads.js'
import { clockFrom, type Clock } from '../../world/time/clock.js'
import type { Database, Queries, Tx } from '../database.js'
import {
  commitsCheckpoint,
  commitsSync,
  logPathOf,
  openReader,
  openWriter,
  readyForWork,
} from '../sqlite/connections.js'
import { sqliteDialect, sqliteReadingDialect } from '../sqlite/sqlite-dialect.js'
import { UNWATCHED } from '../sqlite/storage-watch.js'
import type { Tables } from '../tables.js'
import { EarlySync } from './early-sync.js'
import { Turns } from './turns.js'
import type { WritingAnswer, WritingMessage, WritingOptions } from './writing-protocol.js'

export interface ThreadDatabase {
  /** As the server's. */
  readonly clock: Clock
  readonly database: Database
  /** Aborted when the server asks the work to finish. */
  readonly stopping: AbortSignal
  /** Written to the server's log. */
  readonly log: Pick<Log, 'error'>
  /** Call last; ends the thread. */
  readonly finished: () => void
}

export function openThreadDatabase(thread: OwnThread): ThreadDatabase {
  const { file, now, wanted } = thread.options as WritingOptions
  const clock = clockFrom(now)
  const say = (message: WritingMessage) => thread.post(message)
  const turns = new Turns({ say, clock, wanted })
  const stop = new AbortController()
  thread.listen(message => {
    const answer = message as WritingAnswer
    if (answer.kind === 'stop') stop.abort()
    else turns.answered(answer)
  })
  const writeHandle = openWriter(file)
  // The server's checkpoint thread does that.
  commitsCheckpoint(writeHandle, false)
  // No caller is told of its commits before the next synced commit, and the log preserves their order.
  commitsSync(writeHandle, false)
  readyForWork(writeHandle)
  const sync = new EarlySync(systemDisk.openSynced(logPathOf(writeHandle)))
  const { dialect, run } = sqliteDialect(writeHandle, clock)
  const writer = new Kysely<Tables>({ dialect })
  const reading = sqliteReadingDialect(openReader(file), writeHandle, clock)
  const reader: Queries = Object.assign(new Kysely<Tables>({ dialect: reading.dialect }), {
    run: reading.run,
  })
  const version = () => Number(writeHandle.pragma('data_version', { simple: true }))
  let seenVersion = version()
  return {
    clock,
    stopping: stop.signal,
    log: { error: (event, fields = {}) => say({ kind: 'trouble', event, fields }) },
    finished: () => say({ kind: 'finished' }),
    database: {
      dialect: 'sqlite',
      reader,
      slowReader: reader,
      exportReader: reader,
      storage: UNWATCHED,
      write: work =>
        turns.take(callbacks =>
          writer.transaction().execute(async transaction => {
            const db = Object.assign(transaction, { run })
            callbacks.push(() => sync.committed())
            try {
              return await work({ db, onCommit: callback => callbacks.push(callback) } satisfies Tx)
            } finally {
              Object.assign(db, { run: undefined })
            }
          }),
        ),
      hasForeignWrites() {
        const before = seenVersion
        seenVersion = version()
        return seenVersion !== before
      },
      foreignVersion: version,
      async [Symbol.asyncDispose]() {
        await turns.end()
        await sync.close()
        await reader.destroy()
        await writer.destroy()
      },
    },
  }
}
