/**
 * The delivery agent that has others work for it: composing, signing and SMTP run in threads of their own.
 *
 * Opened by the composition root, called by the queue through `queue/delivery-agent.ts` as if there were no threads. Knows
 * no database and no SMTP. Fails: a thread that ends by itself is logged and replaced, and its jobs end as `deferred`;
 * while there is none to be had, jobs wait, so that none of their attempts is used up.
 *
 * One thread is there from the beginning; the others come once there is more to do than one does at a time, and stay: most of the
 * time a server of little mail needs one, and each takes some 10 MB.
 *
 *   (absent) -> starting -> ready -> ended -> (at once, or after a pause when it did not last) starting
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
import { concludeShutdown } from '../conclude.js'
import type { AgentOptions } from './worker-agent.js'
import { DeliveryThread } from './worker-thread.js'

export interface WorkerPoolParts {
  readonly clock: Clock
  readonly log: Log
  readonly spawn: SpawnThread
  /** How many threads, >= 1. */
  readonly workers: number
  /** What each of them runs; its limits of idle connections are for one thread. */
  readonly agent: AgentOptions
  /** How long a connection waits for its next message, ms. */
  readonly idleMs: number
  /** How long saying goodbye to idle connections may take, ms. */
  readonly quitMs: number
}

export interface WorkerPool extends DeliveryAgent {
  /**
   * Renders for a waiting request, in the least busy thread. The caller bounds concurrency.
   *
   * @throws AppError unavailable where no thread is there, or it ends meanwhile
   */
  render(request: RenderRequest): Promise<RenderResult>
  /** Ends the threads wherever they are. What is in hand gets no outcome: the queue tries it again, as after a crash. */
  terminate(): Promise<void>
}

interface Place {
  readonly number: number
  thread: DeliveryThread | undefined
  /** On the monotonic clock; undefined until it is needed. */
  startedAt: number | undefined
  /** Threads in a row that did not last. */
  failures: number
  restart: Timer | undefined
}

/** A job that no thread could take yet. */
interface Waiting {
  readonly begin: () => void
  readonly giveUp: () => void
}

/** A thread that ran so long was right in itself; the next one is started at once. */
const LASTING_MS = 10_000
const PAUSES: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }
/** Threads do not fail together, so their pauses need no jitter. */
const NO_JITTER = 0.5

/** Waiting behind so many jobs takes less than a new connection with its TLS handshake. */
const EQUAL_LOAD = 2
/** For the way there and back, beyond the time for QUIT. */
const CLOSING_MARGIN_MS = 1_000

export function openWorkerPool(parts: WorkerPoolParts): WorkerPool {
  return new ThreadedAgent(parts)
}

class ThreadedAgent implements WorkerPool {
  private readonly parts: WorkerPoolParts
  private readonly places: readonly Place[]
  private readonly waiting = new Set<Waiting>()
  private readonly underWay = new Set<Promise<unknown>>()
  private isClosing = false

  constructor(parts: WorkerPoolParts) {
    this.parts = parts
    this.places = Array.from({ length: parts.workers }, (_, index) => ({
      number: index + 1,
      thread: undefined,
      startedAt: undefined,
      failures: 0,
      restart: undefined,
    }))
    this.startOneMore()
  }

  deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    // One shutdown signal serves every delivery at once; that many listeners are no leak.
    setMaxListeners(0, signal)
    if (this.isClosing) return Promise.resolve(concludeShutdown())
    return this.awaited(this.handOver(job, signal))
  }

  render(request: RenderRequest): Promise<RenderResult> {
    return this.isClosing ? Promise.reject(noThread()) : this.awaited(this.handOverRendering(request))
  }

  /** Closing waits for it. */
  private awaited<T>(work: Promise<T>): Promise<T> {
    this.underWay.add(work)
    const forget = () => this.underWay.delete(work)
    work.then(forget, forget)
    return work
  }

  async close(): Promise<void> {
    this.stopStarting()
    await Promise.allSettled(this.underWay)
    const limitMs = this.parts.quitMs + CLOSING_MARGIN_MS
    await Promise.all(this.threads().map(thread => thread.close(limitMs)))
  }

  async terminate(): Promise<void> {
    this.stopStarting()
    await Promise.all(this.threads().map(thread => thread.terminate()))
  }

  private stopStarting(): void {
    this.isClosing = true
    for (const { restart } of this.places) restart?.cancel()
    for (const { giveUp } of this.waiting) giveUp()
  }

  private startOneMore(): void {
    const place = this.places.find(({ startedAt }) => startedAt === undefined)
    if (place) this.start(place)
  }

  private start(place: Place): void {
    place.startedAt = this.parts.clock.monotonic()
    place.thread = new DeliveryThread({
      ...this.parts,
      onReady: () => {
        for (const { begin } of this.waiting) begin()
      },
      onEnd: (end, lost) => this.replace(place, end, lost),
    })
  }

  private replace(place: Place, { exitCode, fault }: ThreadEnd, lost: number): void {
    place.thread = undefined
    if (this.isClosing) return
    const { clock, log } = this.parts
    const hasLasted = clock.monotonic() - (place.startedAt ?? 0) >= LASTING_MS
    place.failures = hasLasted ? 0 : place.failures + 1
    const pauseMs = place.failures === 0 ? 0 : retryDelayMs(PAUSES, place.failures, NO_JITTER)
    log.error('delivery thread ended', {
      thread: place.number,
      deliveriesLost: lost,
      error: fault?.message ?? `exit code ${exitCode}`,
      stack: fault?.stack,
      restartInMs: pauseMs,
    })
    place.restart = clock.after(pauseMs, () => this.start(place))
  }

  private handOver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    const domain = job.recipient.slice(job.recipient.lastIndexOf('@') + 1)
    const thread = this.choose(domain)
    if ((thread?.load ?? this.waiting.size) > EQUAL_LOAD) this.startOneMore()
    return thread === undefined ? this.wait(job, signal) : thread.deliver(job, domain, signal)
  }

  private handOverRendering(request: RenderRequest): Promise<RenderResult> {
    const [thread] = this.readyThreads()
    if ((thread?.load ?? this.waiting.size) > EQUAL_LOAD) this.startOneMore()
    if (thread) return thread.render(request)
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        begin: () => {
          this.waiting.delete(waiting)
          resolve(this.handOverRendering(request))
        },
        giveUp: () => {
          this.waiting.delete(waiting)
          reject(noThread())
        },
      }
      this.waiting.add(waiting)
    })
  }

  /** The one with least to do; of those about equal in that, one that can use an open connection. */
  private choose(domain: string): DeliveryThread | undefined {
    const [least, ...others] = this.readyThreads()
    if (least === undefined || least.isConnectedTo(domain)) return least
    const equals = others.filter(({ load }) => load <= least.load + EQUAL_LOAD)
    return equals.find(thread => thread.isConnectedTo(domain)) ?? least
  }

  /** The one with least to do first. */
  private readyThreads(): DeliveryThread[] {
    const ready = this.threads().filter(thread => thread.isReady)
    return ready.sort((one, other) => one.load - other.load)
  }

  private threads(): DeliveryThread[] {
    return this.places.flatMap(({ thread }) => thread ?? [])
  }

  private wait(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    return new Promise(resolve => {
      const leave = () => {
        this.waiting.delete(waiting)
        signal.removeEventListener('abort', giveUp)
      }
      const giveUp = () => {
        leave()
        resolve(concludeShutdown())
      }
      const begin = () => {
        leave()
        resolve(this.handOver(job, signal))
      }
      const waiting: Waiting = { begin, giveUp }
      this.waiting.add(waiting)
      signal.addEventListener('abort', giveUp, { once: true })
      if (signal.aborted) giveUp()
    })
  }
}

function noThread(): AppError {
  return new AppError('unavailable', 'no thread can render it; try again')
}
