/**
 * A reading thread as the server sees it: started with the first mail, replaced when it ends.
 *
 * Each loop of the processor has one of its own and makes one request at a time. A mail that sends the reader round in
 * circles, or uses up its memory, costs this thread and nothing else; each mail has a time limit of its own.
 * Fails: never rejects; that the thread ended is an answer, and with it which mail it was busy with.
 */
import { nextTurn, type Clock, type Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import type { MailFinding, ParseAnswer, ParseRequest, ParseTask } from './parser-protocol.js'

export interface ParserThreadParts {
  readonly spawn: SpawnThread
  readonly clock: Clock
  readonly log: Log
}

/**
 * `read`: all of them. `ended`: the thread came to its end over the one that follows those that were read, and `overdue`: it
 * was ended there, since that took too long. `unavailable`: it never came to read, which no mail is to blame for.
 */
export interface Reading {
  readonly findings: readonly MailFinding[]
  readonly end: 'read' | 'ended' | 'overdue' | 'unavailable'
}

/** For one mail: one is read in milliseconds, the largest reports in a second or two. */
const MAIL_TIMEOUT_MS = 10_000
/** For the start of a thread. */
const START_TIMEOUT_MS = 60_000
/** For strings and objects; the largest report needs about 60. Its octets, unpacked 10 MB at most, are kept elsewhere. */
const HEAP_MEGABYTES = 160

const PROGRAM = new URL('./parser-main.js', import.meta.url)

interface Running {
  readonly thread: Thread
  isReady: boolean
}

interface PendingRead {
  readonly number: number
  readonly findings: MailFinding[]
  /** How many are read. */
  readonly wanted: number
  readonly resolve: (reading: Reading) => void
  isOverdue: boolean
}

export class ParserThread {
  private readonly parts: ParserThreadParts
  private running: Running | undefined
  private lastNumber = 0
  private pending: PendingRead | undefined
  private timeout: Timer | undefined
  private isClosed = false

  constructor(parts: ParserThreadParts) {
    this.parts = parts
  }

  /** Reads them; their octets are gone from here afterwards. One call at a time. */
  async read(tasks: readonly ParseTask[]): Promise<Reading> {
    // A thread that began now would outlive the server.
    if (this.isClosed) return { findings: [], end: 'ended' }
    const { thread, isReady } = (this.running ??= this.start())
    const number = ++this.lastNumber
    const reading = new Promise<Reading>(resolve => {
      this.pending = { number, findings: [], wanted: tasks.length, resolve, isOverdue: false }
    })
    const request: ParseRequest = { number, tasks }
    thread.post(
      request,
      tasks.map(({ octets }) => octets.buffer),
    )
    this.startTimeout(isReady ? MAIL_TIMEOUT_MS : START_TIMEOUT_MS)
    return reading
  }

  /** What is being read, or would be, is not answered any more but as `ended`. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.running?.thread.terminate()
  }

  private start(): Running {
    const thread = this.parts.spawn(PROGRAM, {
      options: undefined,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.onMessage(message as ParseAnswer),
      onEnd: ({ exitCode, fault }) => {
        const wasReady = this.running?.isReady === true
        this.running = undefined
        if (!this.pending) return
        if (!this.isClosed)
          this.parts.log.error('the thread that reads inbound mail ended', {
            error: fault?.message ?? `exit code ${exitCode}`,
            stack: fault?.stack,
          })
        const ended = this.pending.isOverdue ? 'overdue' : 'ended'
        this.settle(wasReady ? ended : 'unavailable')
      },
    })
    return { thread, isReady: false }
  }

  private onMessage(message: ParseAnswer): void {
    const { pending: waiting } = this
    if (message.kind === 'ready') {
      if (this.running) this.running.isReady = true
      if (waiting) this.startTimeout(MAIL_TIMEOUT_MS)
    } else if (waiting?.number === message.number) {
      waiting.findings.push(message.finding)
      if (waiting.findings.length === waiting.wanted) this.settle('read')
      else this.startTimeout(MAIL_TIMEOUT_MS)
    }
  }

  /** From now on, until the next sign of it. */
  private startTimeout(limitMs: number): void {
    this.timeout?.cancel()
    const limit = this.parts.clock.after(limitMs, () => void this.endOverdue(limit))
    this.timeout = limit
  }

  private async endOverdue(limit: Timer): Promise<void> {
    // It may have answered while this thread was held up itself.
    await nextTurn()
    const { pending: waiting } = this
    if (!waiting || this.timeout !== limit) return
    waiting.isOverdue = true
    this.parts.log.error('reading an inbound mail took too long', { limitMs: MAIL_TIMEOUT_MS })
    await this.running?.thread.terminate()
  }

  private settle(end: Reading['end']): void {
    this.timeout?.cancel()
    const { pending: waiting } = this
    this.pending = undefined
    waiting?.resolve({ findings: waiting.findings, end })
  }
}
