/**
 * Runs renderings that requests wait for in other threads, a few at a time, fair between workspaces.
 *
 * Opened by the composition root; used by previews, template validation and the view-in-browser page. Concurrent equal renderings share one
 * result, and results are cached. Memory is bounded: queued tasks load their input only when they run, and the cache has a size limit.
 * Throws AppError rate_limited for a network with too many requests, unavailable if the queue is full or the time limit passes.
 */
import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import { FairGate, FairShares } from '../../core/fair-shares.js'
import type { Clock } from '../../world/time/clock.js'
import type { RenderRequest, RenderResult } from './render-request.js'

export interface RenderTask {
  /** Equal for equal results; must cover everything the result depends on (`renderKey`). */
  readonly key: string
  readonly workspaceId: string
  /** Of a visitor without a key; see `addressKey`. */
  readonly network?: string
  /** Called when the task leaves the queue. */
  load(): Promise<RenderRequest>
}

export interface RenderQueueParts {
  readonly clock: Clock
  /** Renders in another thread; rejects if that thread exits. */
  readonly render: (request: RenderRequest) => Promise<RenderResult>
}

export interface RenderQueueLimits {
  /** Running in other threads. */
  readonly concurrency: number
  readonly queued: number
  /** Queued or running. */
  readonly perNetwork: number
  /** From call to result, ms. */
  readonly limitMs: number
  /** Cache size, UTF-16 units. */
  readonly cacheUnits: number
}

/** Few at a time, since the threads also deliver mail. */
export const RENDER_QUEUE_LIMITS: RenderQueueLimits = {
  concurrency: 2,
  queued: 200,
  perNetwork: 4,
  limitMs: 5_000,
  cacheUnits: 8 * 1_024 * 1_024,
}

const RETRY_MS = 1_000

export class RenderQueue {
  private readonly parts: RenderQueueParts
  private readonly bounds: RenderQueueLimits
  private readonly gate: FairGate
  private readonly networks: FairShares
  private readonly inFlight = new Map<string, Promise<RenderResult>>()
  private readonly cache = new ResultCache()

  constructor(parts: RenderQueueParts, bounds = RENDER_QUEUE_LIMITS) {
    this.parts = parts
    this.bounds = bounds
    this.gate = new FairGate(bounds.concurrency, bounds.queued, () => busy('too many renderings are waiting'))
    this.networks = new FairShares(Infinity, { perOwner: bounds.perNetwork })
  }

  async render(task: RenderTask): Promise<RenderResult> {
    const { key, network } = task
    const known = this.cache.find(key)
    if (known) return known
    if (network === undefined) return this.inFlight.get(key) ?? this.begin(task)
    const visitor = { owner: network }
    if (this.networks.take(visitor) !== undefined) {
      const { perNetwork } = this.bounds
      throw new AppError('rate_limited', `${perNetwork} pages are already being rendered for this address`, {
        retryAfterMs: RETRY_MS,
      })
    }
    try {
      return await (this.inFlight.get(key) ?? this.begin(task))
    } finally {
      this.networks.release(visitor)
    }
  }

  private begin(task: RenderTask): Promise<RenderResult> {
    const { key, workspaceId, network } = task
    const { limitMs } = this.bounds
    let isLate = false
    const result = new Promise<RenderResult>((settle, fail) => {
      const timeout = this.parts.clock.after(limitMs, () => {
        isLate = true
        fail(busy(`rendering took longer than ${limitMs / 1_000} s`))
      })
      const holder = network === undefined ? { owner: workspaceId } : { owner: workspaceId, key: network }
      this.gate
        // Keeps its place until the thread is done, even after the caller timed out.
        .run(holder, async () => (isLate ? undefined : this.work(task)))
        .then(done => done && settle(done), fail)
        .finally(() => timeout.cancel())
    })
    this.inFlight.set(key, result)
    const forget = () => this.inFlight.delete(key)
    result.then(forget, forget)
    return result
  }

  private async work(task: RenderTask): Promise<RenderResult> {
    const result = await this.parts.render(await task.load())
    this.cache.keep(task.key, result, this.bounds.cacheUnits)
    return result
  }
}

function busy(message: string): AppError {
  return new AppError('unavailable', `${message}; try again`, { retryAfterMs: RETRY_MS })
}

/** @param values everything the result depends on, JSON-serializable */
export function renderKey(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64')
}

class ResultCache {
  private readonly byKey = new Map<string, RenderResult>()
  private units = 0

  find(key: string): RenderResult | undefined {
    const known = this.byKey.get(key)
    if (known) {
      this.byKey.delete(key)
      this.byKey.set(key, known)
    }
    return known
  }

  keep(key: string, result: RenderResult, maxUnits: number): void {
    this.drop(key)
    this.byKey.set(key, result)
    this.units += unitsOf(result)
    for (const oldest of this.byKey.keys()) {
      if (this.units <= maxUnits) break
      this.drop(oldest)
    }
  }

  private drop(key: string): void {
    const known = this.byKey.get(key)
    if (!known) return
    this.byKey.delete(key)
    this.units -= unitsOf(known)
  }
}

function unitsOf(result: RenderResult): number {
  const { subject = '', html = '', text = '' } = result.kind === 'mail' ? result : {}
  return 200 + subject.length + html.length + text.length
}
