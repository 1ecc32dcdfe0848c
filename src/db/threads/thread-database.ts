/**
 * The database as a thread sees it that writes by itself: connections of its own, and the server's leave for each transaction.
 *
 * Opened by the programs that `writing-thread.ts` runs, never in the main thread. One write is one transaction; several wait for each other.
 * The schema is the server's business. Fails: as `Database` says; a write that the server does not let pass rejects with its reason.
 */
import { Kysely } from 'kysely'
import { AppError, describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import type { OwnThread } from '../../world/threads.js'
import { clockFrom, type Clock } from '../../world/time/clock.js'
import type { Database, Queries, Tx } from '../database.js'
import {
  commitsCheckpoint,
  commitsSync,
  openReader,
  openWriter,
  readyForWork,
} from '../sqlite/connections.js'
import { sqliteDialect, sqliteReadingDialect } from '../sqlite/sqlite-dialect.js'
import { sqliteCode, storageRefusal } from '../sqlite/storage-fault.js'
import { UNWATCHED } from '../sqlite/storage-watch.js'
import type { Tables } from '../tables.js'
import type {
  WritingAnswer,
  WritingFault,
  WritingMessage,
  WritingOptions,
  WritingRefusal,
} from './writing-protocol.js'

export interface ThreadDatabase {
  /** As the server's. */
  readonly clock: Clock
  readonly database: Database
  /** The server wants the work to come to an end. */
  readonly stopping: AbortSignal
  /** Lines of the server's log. */
  readonly log: Pick<Log, 'error'>
  /** To be called last; ends the thread. */
  readonly finished: () => void
}

export function openThreadDatabase(thread: OwnThread): ThreadDatabase {
  const { file, now } = thread.options as WritingOptions
  const clock = clockFrom(now)
  const say = (message: WritingMessage) => thread.post(message)
  const turns = new Turns(say)
  const stop = new AbortController()
  thread.listen(message => {
    const answer = message as WritingAnswer
    if (answer.kind === 'stop') stop.abort()
    else turns.answered(answer)
  })
  const writeHandle = openWriter(file)
  // A thread of the server's does that.
  commitsCheckpoint(writeHandle, false)
  // Its pieces are promised to nobody: they are on disk with the next commit that somebody is told of, and in their order.
  commitsSync(writeHandle, false)
  readyForWork(writeHandle)
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
      storage: UNWATCHED,
      write: work =>
        turns.take(callbacks =>
          writer.transaction().execute(async transaction => {
            const db = Object.assign(transaction, { run })
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
        await reader.destroy()
        await writer.destroy()
      },
    },
  }
}

/** Asks for one turn after the other. */
class Turns {
  private readonly say: (message: WritingMessage) => void
  private last: Promise<unknown> = Promise.resolve()
  private onTurn: () => void = () => {}
  private onSettled: (refusal: WritingRefusal | undefined) => void = () => {}

  constructor(say: (message: WritingMessage) => void) {
    this.say = say
  }

  answered(answer: Exclude<WritingAnswer, { kind: 'stop' }>): void {
    if (answer.kind === 'turn') this.onTurn()
    else this.onSettled(answer.refusal)
  }

  /** @param transact is handed where to put what is called once its commit counts */
  take<T>(transact: (callbacks: (() => void)[]) => Promise<T>): Promise<T> {
    const turn = this.last.then(() => this.runTurn(transact))
    this.last = turn.catch(() => undefined)
    return turn
  }

  private async runTurn<T>(transact: (callbacks: (() => void)[]) => Promise<T>): Promise<T> {
    const [given, settled] = [
      new Promise<boolean>(resolve => (this.onTurn = () => resolve(true))),
      new Promise<WritingRefusal | undefined>(resolve => (this.onSettled = resolve)),
    ]
    this.say({ kind: 'turn' })
    // Where nothing can be stored at the moment the turn is refused before it is given.
    if (!(await Promise.race([given, settled.then(() => false)]))) throw unavailable(await settled)
    const callbacks: (() => void)[] = []
    const outcome = await transact(callbacks).then(
      result => ({ result }),
      (thrown: unknown) => ({ error: thrown instanceof Error ? thrown : new Error(String(thrown)) }),
    )
    this.say({ kind: 'over', ...('error' in outcome && faultOf(outcome.error)) })
    const refusal = await settled
    if ('error' in outcome) throw storageRefusal(outcome.error)
    if (refusal) throw unavailable(refusal)
    for (const callback of callbacks) callback()
    return outcome.result
  }
}

function unavailable({ message, retryAfterMs }: WritingRefusal = { message: '' }): AppError {
  return new AppError('unavailable', message, { ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

/** Of the storage; what the work itself threw is nobody else's business. */
function faultOf(error: Error): { readonly fault?: WritingFault } {
  const code = sqliteCode(error)
  return code === undefined ? {} : { fault: { message: describeError(error), code } }
}
