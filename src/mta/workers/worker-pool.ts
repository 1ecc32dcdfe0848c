/**
 * The delivery agent that runs composing, signing and SMTP in worker threads.
 *
 * The queue calls it through `queue/delivery-agent.ts` as if there were no threads. If a thread crashes, that is logged, the thread
 * restarted and its jobs end as `deferred`. Without a running thread, jobs wait, so that no attempt is used up. Starts with one thread and
 * adds others under load; they stay. A small server mostly needs one, and each takes some 10 MB.
 *
 *   (absent) -> starting -> ready -> ended -> starting (immediately, or after a back-off if it ended early)
 *                             └──> spent (a task took too long): replaced at once, ends when its deliveries have ended
 */
import { setMaxListeners } from 'node:events'
import type { RenderRequest, RenderResult } from '../../content/rendering/render-request.js'
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { AppError } from '../../core/errors.js'
import type { Outcome } from '../../mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../../queue/delivery-agent.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, ThreadEnd } from '../../world/threads.js'
import { shutdownOutcome } from '../attempt-outcome.js'
import type { AgentOptions } from './worker-agent.js'
import { DeliveryThread, WORKER_LOST, type Unfinished } from './worker-thread.js'

interface WorkerPoolParts {
  readonly clock: Clock
  readonly log: Log
  readonly spawn: SpawnThread
  /** Maximum number of threads, >= 1. */
  readonly workers: number
  /** Its idle connection limits apply per thread. */
  readonly agent: AgentOptions
  readonly idleMs: number
  /** Time limit for building one message or one rendering, ms; `TASK_LIMIT_MS` unless a test sets another. */
  readonly taskLimitMs?: number | undefined
  /** Time limit for QUIT on idle connections, ms. */
  readonly quitMs: number
}

export interface WorkerPool extends DeliveryAgent {
  /**
   * Renders for a waiting request, in the least busy thread. The caller bounds concurrency.
   *
   * @throws AppError unavailable if no thread is running, or it ends meanwhile
   */
  render(request: RenderRequest): Promise<RenderResult>
  /** Terminates the threads. Jobs in flight get no outcome; the queue retries them, as after a crash. */
  terminate(): Promise<void>
}

interface Slot {
  readonly number: number
  thread: DeliveryThread | undefined
  /** Monotonic; undefined until the slot is first used. */
  startedAt: number | undefined
  failures: number
  restart: Timer | undefined
}

interface Waiting {
  readonly begin: () => void
  readonly cancel: () => void
}

/** Most messages take a millisecond, the largest a second. Shorter than requests wait for a rendering (`RENDER_QUEUE_LIMITS`). */
const TASK_LIMIT_MS = 4_000
/** A task interrupted before it used much CPU time was held up by another one or by the machine, and is tried again. */
const MAX_INTERRUPTIONS = 3
/** Threads that a task is given to, if others' tasks take too long in each. */
const MAX_TRIES = 10

/** Spent threads kept for their deliveries, more than there are threads; beyond it, the oldest is ended as if it had crashed. */
const MAX_RETIRING_MORE = 2

/** A thread that ran this long is restarted immediately. */
const STABLE_AFTER_MS = 10_000
const RESTART_BACKOFF: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }
/** Threads do not fail together, so the delays need no jitter. */
const NO_JITTER = 0.5

/** Queueing behind this many jobs is cheaper than a new connection with a TLS handshake. */
const LOAD_TOLERANCE = 2
/** Added to the QUIT time limit for the message round trip. */
const CLOSING_MARGIN_MS = 1_000

export function openWorkerPool(parts: WorkerPoolParts): WorkerPool {
  return new ThreadPool(parts)
}

class ThreadPool implements WorkerPool {
  private readonly parts: WorkerPoolParts
  private readonly taskLimitMs: number
  private readonly slots: readonly Slot[]
  /** Spent threads with deliveries in progress; oldest first. */
  private readonly retiring = new Set<DeliveryThread>()
  private readonly waiting = new Set<Waiting>()
  private readonly inFlight = new Set<Promise<unknown>>()
  private isClosing = false

  constructor(parts: WorkerPoolParts) {
    this.parts = parts
    this.taskLimitMs = parts.taskLimitMs ?? TASK_LIMIT_MS
    this.slots = Array.from({ length: parts.workers }, (_, index) => ({
      number: index + 1,
      thread: undefined,
      startedAt: undefined,
      failures: 0,
      restart: undefined,
    }))
    this.startOneMore()
  }

  deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    // All deliveries listen on one shutdown signal, so many listeners are not a leak.
    setMaxListeners(0, signal)
    if (this.isClosing) return Promise.resolve(shutdownOutcome())
    return this.track(this.deliverAnywhere(job, signal))
  }

  render(request: RenderRequest): Promise<RenderResult> {
    return this.isClosing ? Promise.reject(noThreadError()) : this.track(this.renderAnywhere(request))
  }

  private async deliverAnywhere(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    const outcome = await this.finish(() => this.dispatch(job, signal))
    if (outcome === 'gave up') return this.isClosing ? shutdownOutcome() : WORKER_LOST
    if (outcome !== 'too long') return outcome
    const summary = `the message could not be built: it takes longer than ${this.taskLimitMs / 1_000} s`
    return { kind: 'unsendable', tried: [], summary }
  }

  private async renderAnywhere(request: RenderRequest): Promise<RenderResult> {
    const result = await this.finish(() => this.dispatchRender(request))
    if (result === 'gave up') throw noThreadError()
    if (result !== 'too long') return result
    return { kind: 'refused', message: `it takes longer than ${this.taskLimitMs / 1_000} s to render` }
  }

  /** Gives a task to other threads until one has finished it, or the task itself took too long. */
  private async finish<T extends { readonly kind: string }>(
    begin: () => Promise<T | Unfinished>,
  ): Promise<T | 'too long' | 'gave up'> {
    let interruptions = 0
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const end = await begin()
      if (!isUnfinished(end)) return end
      if (end.kind === 'interrupted') {
        interruptions += 1
        if (end.cpuMs >= this.taskLimitMs / 2 || interruptions === MAX_INTERRUPTIONS) return 'too long'
      }
      if (this.isClosing) break
    }
    return 'gave up'
  }

  /** `close` waits for tracked work. */
  private track<T>(work: Promise<T>): Promise<T> {
    this.inFlight.add(work)
    const forget = () => this.inFlight.delete(work)
    work.then(forget, forget)
    return work
  }

  async close(): Promise<void> {
    this.stopStarting()
    await Promise.allSettled(this.inFlight)
    const limitMs = this.parts.quitMs + CLOSING_MARGIN_MS
    await Promise.all([...this.threads(), ...this.retiring].map(thread => thread.close(limitMs)))
  }

  async terminate(): Promise<void> {
    this.stopStarting()
    await Promise.all([...this.threads(), ...this.retiring].map(thread => thread.terminate()))
  }

  private stopStarting(): void {
    this.isClosing = true
    for (const { restart } of this.slots) restart?.cancel()
    for (const { cancel } of this.waiting) cancel()
  }

  private startOneMore(): void {
    const place = this.slots.find(({ startedAt }) => startedAt === undefined)
    if (place) this.start(place)
  }

  private start(place: Slot): void {
    place.startedAt = this.parts.clock.monotonic()
    const thread: DeliveryThread = new DeliveryThread({
      ...this.parts,
      taskLimitMs: this.taskLimitMs,
      onReady: () => {
        for (const { begin } of this.waiting) begin()
      },
      onSpent: () => this.retire(place, thread),
      onFinished: () => void thread.close(this.parts.quitMs + CLOSING_MARGIN_MS),
      onEnd: (end, lost) => {
        if (!this.retiring.delete(thread)) this.replace(place, end, lost)
      },
    })
    place.thread = thread
  }

  private retire(place: Slot, thread: DeliveryThread): void {
    place.thread = undefined
    this.retiring.add(thread)
    if (this.isClosing) return
    this.parts.log.warn('delivery thread replaced', {
      thread: place.number,
      deliveriesInProgress: thread.load,
    })
    this.start(place)
    const [oldest] = this.retiring
    if (this.retiring.size > this.parts.workers + MAX_RETIRING_MORE) oldest?.abandon()
  }

  private replace(place: Slot, { exitCode, fault }: ThreadEnd, lost: number): void {
    place.thread = undefined
    if (this.isClosing) return
    const { clock, log } = this.parts
    const hasLasted = clock.monotonic() - (place.startedAt ?? 0) >= STABLE_AFTER_MS
    place.failures = hasLasted ? 0 : place.failures + 1
    const pauseMs = place.failures === 0 ? 0 : retryDelayMs(RESTART_BACKOFF, place.failures, NO_JITTER)
    log.error('delivery thread ended', {
      thread: place.number,
      deliveriesLost: lost,
      error: fault?.message ?? `exit code ${exitCode}`,
      stack: fault?.stack,
      restartInMs: pauseMs,
    })
    place.restart = clock.after(pauseMs, () => this.start(place))
  }

  private dispatch(job: DeliveryJob, signal: AbortSignal): Promise<Outcome | Unfinished> {
    const domain = job.recipient.slice(job.recipient.lastIndexOf('@') + 1)
    const thread = this.pickThread(domain)
    if ((thread?.load ?? this.waiting.size) > LOAD_TOLERANCE) this.startOneMore()
    return thread === undefined ? this.enqueue(job, signal) : thread.deliver(job, domain, signal)
  }

  private dispatchRender(request: RenderRequest): Promise<RenderResult | Unfinished> {
    const [thread] = this.readyThreads()
    if ((thread?.load ?? this.waiting.size) > LOAD_TOLERANCE) this.startOneMore()
    if (thread) return thread.render(request)
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        begin: () => {
          this.waiting.delete(waiting)
          resolve(this.dispatchRender(request))
        },
        cancel: () => {
          this.waiting.delete(waiting)
          reject(noThreadError())
        },
      }
      this.waiting.add(waiting)
    })
  }

  /** The least busy thread, or an about equally busy one with a connection to the domain. */
  private pickThread(domain: string): DeliveryThread | undefined {
    const [least, ...others] = this.readyThreads()
    if (least === undefined || least.isConnectedTo(domain)) return least
    const equals = others.filter(({ load }) => load <= least.load + LOAD_TOLERANCE)
    return equals.find(thread => thread.isConnectedTo(domain)) ?? least
  }

  private readyThreads(): DeliveryThread[] {
    const ready = this.threads().filter(thread => thread.isReady)
    return ready.sort((one, other) => one.load - other.load)
  }

  private threads(): DeliveryThread[] {
    return this.slots.flatMap(({ thread }) => thread ?? [])
  }

  private enqueue(job: DeliveryJob, signal: AbortSignal): Promise<Outcome | Unfinished> {
    return new Promise(resolve => {
      const leave = () => {
        this.waiting.delete(waiting)
        signal.removeEventListener('abort', cancel)
      }
      const cancel = () => {
        leave()
        resolve(shutdownOutcome())
      }
      const begin = () => {
        leave()
        resolve(this.dispatch(job, signal))
      }
      const waiting: Waiting = { begin, cancel }
      this.waiting.add(waiting)
      signal.addEventListener('abort', cancel, { once: true })
      if (signal.aborted) cancel()
    })
  }
}

function isUnfinished(end: { readonly kind: string }): end is Unfinished {
  return end.kind === 'returned' || end.kind === 'interrupted'
}

function noThreadError(): AppError {
  return new AppError('unavailable', 'no rendering thread is available; try again', { retryAfterMs: 1_000 })
}

interface ReplaceablePool extends WorkerPool {
  replace(next: WorkerPool): void
}

export function replaceablePool(first: WorkerPool): ReplaceablePool {
  let current = first
  const leaving = new Set<WorkerPool>()

  async function retire(pool: WorkerPool): Promise<void> {
    leaving.add(pool)
    try {
      await pool.close()
      await pool.terminate()
    } finally {
      leaving.delete(pool)
    }
  }

  return {
    deliver: (job, signal) => current.deliver(job, signal),
    render: request => current.render(request),
    replace(next) {
      const former = current
      current = next
      void retire(former)
    },
    async close() {
      await Promise.all([current, ...leaving].map(pool => pool.close()))
    },
    async terminate() {
      await Promise.all([current, ...leaving].map(pool => pool.terminate()))
    },
  }
}
