/**
 * The reading thread as the server sees it: started with the first mail, replaced when it ends.
 *
 * Used by the processor, one request at a time. A mail that sends the reader round in circles, or uses up its memory, costs
 * this thread and nothing else. Fails: never rejects; that the thread ended is an answer, and which mail it was the
 * processor's question.
 */
import type { Clock } from '../world/clock.js'
import type { Log } from '../world/log.js'
import type { SpawnThread, Thread } from '../world/threads.js'
import type { MailFinding, ParseAnswer, ParseRequest, ParseTask } from './parser-protocol.js'

export interface ParserThreadParts {
  readonly spawn: SpawnThread
  readonly clock: Clock
  readonly log: Log
}

/** `lost`: it ended over these mails. `unavailable`: it never came to read, which no mail is to blame for. */
export type Reading = readonly MailFinding[] | 'lost' | 'unavailable'

/** A request is read in milliseconds, the largest reports in a few seconds. */
const LIMIT_MS = 30_000
/** For strings and objects; the largest report needs about 100. */
const HEAP_MEGABYTES = 256

const PROGRAM = new URL('./parser-main.js', import.meta.url)

interface Running {
  readonly thread: Thread
  isReady: boolean
}

export class ParserThread {
  private readonly parts: ParserThreadParts
  private running: Running | undefined
  private lastNumber = 0
  private waiting: { readonly number: number; readonly resolve: (reading: Reading) => void } | undefined

  constructor(parts: ParserThreadParts) {
    this.parts = parts
  }

  /** Reads them; their octets are gone from here afterwards. One call at a time. */
  async read(tasks: readonly ParseTask[]): Promise<Reading> {
    const { thread } = (this.running ??= this.start())
    const number = ++this.lastNumber
    const reading = new Promise<Reading>(resolve => (this.waiting = { number, resolve }))
    const request: ParseRequest = { number, tasks }
    thread.post(
      request,
      tasks.map(({ octets }) => octets.buffer),
    )
    const limit = this.parts.clock.after(LIMIT_MS, () => {
      this.parts.log.error('reading inbound mail took too long', { limitMs: LIMIT_MS })
      void thread.terminate()
    })
    return reading.finally(() => limit.cancel())
  }

  /** What is being read is not answered any more but as `lost`. */
  async close(): Promise<void> {
    await this.running?.thread.terminate()
  }

  private start(): Running {
    const thread = this.parts.spawn(PROGRAM, {
      options: undefined,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.take(message as ParseAnswer),
      onEnd: ({ exitCode, fault }) => {
        const wasReady = this.running?.isReady === true
        this.running = undefined
        if (!this.waiting) return
        this.parts.log.error('the thread that reads inbound mail ended', {
          error: fault?.message ?? `exit code ${exitCode}`,
          stack: fault?.stack,
        })
        this.answer(wasReady ? 'lost' : 'unavailable')
      },
    })
    return { thread, isReady: false }
  }

  private take(message: ParseAnswer): void {
    if (message.kind === 'ready') {
      if (this.running) this.running.isReady = true
    } else if (message.number === this.waiting?.number) this.answer(message.findings)
  }

  private answer(reading: Reading): void {
    const { waiting } = this
    this.waiting = undefined
    waiting?.resolve(reading)
  }
}
