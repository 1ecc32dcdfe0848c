/**
 * A background worker: runs pieces of work while there are any, then sleeps until the next is due or it is woken. Backs off after failures.
 *
 * A wake during a piece is not lost; a wake during back-off takes effect when it ends. Pieces never overlap. Never rejects: failures are
 * logged and retried.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { LogEvent } from '../log-events.js'
import type { Log } from '../log.js'
import { nextTurn, type Clock } from './clock.js'

export interface WorkerParts {
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  /** Logged when a piece fails. */
  readonly failure: LogEvent<'error'>
  readonly failureFields?: Readonly<Record<string, string>>
  readonly retry?: BackoffPolicy
  /**
   * @param stopping aborted by `stop`
   * @returns when the next piece is due, ms since epoch UTC: `AT_ONCE` if there may be more to do now, `WHEN_WOKEN` if nothing is planned
   */
  readonly runPiece: (stopping: AbortSignal) => Promise<number>
  /** Changes when another process commits. Checked every second while idle; a change ends the sleep. */
  readonly version?: () => number
}

export const AT_ONCE = 0
export const WHEN_WOKEN = Infinity

const RETRY: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }
/** Jitter separates processes that retry together; there is only one here. */
const NO_JITTER = 0.5
/** Longest single timer while idle: due times follow the wall clock, which may be set. */
const POLL_MS = 1_000

export class Worker {
  private readonly parts: WorkerParts
  private stopping = new AbortController()
  private running: Promise<void> | undefined
  private isWoken = false
  private endSleep: () => void = () => {}
  private failures = 0

  constructor(parts: WorkerParts) {
    this.parts = parts
  }

  get isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  /** Starts the worker if it is not running. Does nothing between `stop` and `reopen`. */
  start(): void {
    if (!this.isStopped) this.running ??= this.loop(this.stopping.signal)
  }

  /** Allows `start` again after `stop` has resolved. */
  reopen(): void {
    if (!this.isStopped) return
    this.stopping = new AbortController()
    this.running = undefined
    this.failures = 0
  }

  /** There may be work. Cheap. */
  wake(): void {
    this.isWoken = true
    this.endSleep()
  }

  /** Waits for the current piece. */
  async stop(): Promise<void> {
    this.stopping.abort()
    this.wake()
    await this.running
  }

  /** Runs as a job of the scheduler: until `stopping` aborts and the current piece has ended. */
  async run(stopping: AbortSignal): Promise<void> {
    if (stopping.aborted) return
    this.stopping = new AbortController()
    const stop = () => void this.stop()
    stopping.addEventListener('abort', stop, { once: true })
    this.running = this.loop(this.stopping.signal)
    await this.running
    stopping.removeEventListener('abort', stop)
  }

  /** Call after a piece that did its work; an empty piece proves nothing. */
  resetBackoff(): void {
    this.failures = 0
  }

  private async loop(stopping: AbortSignal): Promise<void> {
    const { runPiece, version = () => 0 } = this.parts
    while (!stopping.aborted)
      try {
        this.isWoken = false
        // Read before the piece, so that commits during it count.
        const before = version()
        const nextAt = await runPiece(stopping)
        // Lets waiting requests run between pieces.
        await nextTurn()
        while (!this.isOver(nextAt) && before === version()) await this.sleepUntil(nextAt)
      } catch (error) {
        await this.backOff(error, stopping)
      }
  }

  private isOver(nextAt: number): boolean {
    return this.isWoken || this.isStopped || nextAt <= this.parts.clock.now()
  }

  private sleepUntil(nextAt: number): Promise<void> {
    const { clock, version } = this.parts
    return new Promise(resolve => {
      const needsTimer = version !== undefined || nextAt < WHEN_WOKEN
      const timer = needsTimer ? clock.after(Math.min(POLL_MS, nextAt - clock.now()), resolve) : undefined
      this.endSleep = () => {
        timer?.cancel()
        resolve()
      }
    })
  }

  private async backOff(error: unknown, stopping: AbortSignal): Promise<void> {
    const { clock, log, failure, failureFields, retry = RETRY } = this.parts
    this.failures += 1
    const retryInMs = retryDelayMs(retry, this.failures, NO_JITTER)
    log.error(failure, { ...failureFields, error: describeError(error), retryInMs })
    await clock.sleep(retryInMs, stopping)
  }
}
