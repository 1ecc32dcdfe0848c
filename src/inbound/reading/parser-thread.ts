/**
 * The server's side of a parser thread: started with the first mail, restarted when it ends.
 *
 * One per processor loop, one request at a time. A mail that makes the parser loop or exhausts its memory costs only
 * this thread; each mail has a timeout. Never rejects: that the thread ended is a result, and with it at which mail.
 */
import type { Services } from '../../db/services.js'
import { nextTurn, type Timer } from '../../world/time/clock.js'
import type { Thread } from '../../world/threads.js'
import type { MailFinding, ParseAnswer, ParseRequest, ParseTask } from '../parser-protocol.js'

export type ParserThreadParts = Pick<Services, 'clock' | 'log' | 'spawn'>

/**
 * `read`: all were parsed. `ended`, `overdue`: the thread crashed or timed out at the mail after the last finding.
 * `unavailable`: the thread did not start, which is no mail's fault.
 */
export interface Reading {
  readonly findings: readonly MailFinding[]
  readonly end: 'read' | 'ended' | 'overdue' | 'unavailable'
}

/** Per mail. Most take milliseconds, the largest reports a second or two. */
const MAIL_TIMEOUT_MS = 10_000
const START_TIMEOUT_MS = 60_000
/** For strings and objects; the largest report needs about 60. Buffers are not counted. */
const HEAP_MEGABYTES = 160

const PROGRAM = new URL('./parser-main.js', import.meta.url)

interface Running {
  readonly thread: Thread
  isReady: boolean
}

interface PendingRead {
  readonly number: number
  readonly findings: MailFinding[]
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

  /** Parses mails; their buffers are transferred. One call at a time. */
  async read(tasks: readonly ParseTask[]): Promise<Reading> {
    // A thread started now would outlive the server.
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

  /** Allows `read` again after `close` has resolved. */
  reopen(): void {
    this.isClosed = false
  }

  /** Reads in progress and later ones end as `ended`. */
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
          this.parts.log.error('inbound parser thread ended', {
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

  /** Restarted by every message of the thread. */
  private startTimeout(limitMs: number): void {
    this.timeout?.cancel()
    const limit = this.parts.clock.after(limitMs, () => void this.endOverdue(limit))
    this.timeout = limit
  }

  private async endOverdue(limit: Timer): Promise<void> {
    // The answer may be waiting in this thread's event loop.
    await nextTurn()
    const { pending: waiting } = this
    if (!waiting || this.timeout !== limit) return
    waiting.isOverdue = true
    this.parts.log.error('inbound mail parsing timed out', { limitMs: MAIL_TIMEOUT_MS })
    await this.running?.thread.terminate()
  }

  private settle(end: Reading['end']): void {
    this.timeout?.cancel()
    const { pending: waiting } = this
    this.pending = undefined
    waiting?.resolve({ findings: waiting.findings, end })
  }
}
