/**
 * Runs renderings that requests wait for in other threads, a few at a time, fair between workspaces.
 *
 * Opened by the composition root; used by previews, template validation and the view-in-browser page. Concurrent equal renderings share one
 * result, and results are cached. Memory is bounded: queued tasks load their input only when they run, and the cache has a size limit.
 * Throws AppError rate_limited for a network with too many requests, unavailable if the queue is full or the time limit passes.
 */
import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
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
  readonly queuedPerWorkspace: number
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
  queuedPerWorkspace: 50,
  perNetwork: 4,
  limitMs: 5_000,
  cacheUnits: 8 * 1_024 * 1_024,
}

const RETRY_MS = 1_000

interface QueuedTask {
  readonly task: RenderTask
  readonly settle: (result: RenderResult) => void
  readonly fail: (error: unknown) => void
  readonly timeout: Timer
}

export class RenderQueue {
  private readonly parts: RenderQueueParts
  private readonly bounds: RenderQueueLimits
  /** By workspace, round robin: the one served last moves to the end. */
  private readonly queues = new Map<string, Set<QueuedTask>>()
  private queuedCount = 0
  private runningCount = 0
  private readonly perNetworkCounts = new Map<string, number>()
  private readonly inFlight = new Map<string, Promise<RenderResult>>()
  private readonly cache = new ResultCache()

  constructor(parts: RenderQueueParts, bounds = RENDER_QUEUE_LIMITS) {
    this.parts = parts
    this.bounds = bounds
  }

  async render(task: RenderTask): Promise<RenderResult> {
    const { key, network } = task
    const known = this.cache.find(key)
    if (known) return known
    this.acquire(network)
    try {
      return await (this.inFlight.get(key) ?? this.begin(task))
    } finally {
      this.release(network)
    }
  }

  private acquire(network: string | undefined): void {
    if (network === undefined) return
    const count = this.perNetworkCounts.get(network) ?? 0
    const { perNetwork } = this.bounds
    if (count >= perNetwork)
      throw new AppError('rate_limited', `${perNetwork} pages are already being rendered for this address`, {
        retryAfterMs: RETRY_MS,
      })
    this.perNetworkCounts.set(network, count + 1)
  }

  private release(network: string | undefined): void {
    if (network === undefined) return
    const count = this.perNetworkCounts.get(network) ?? 0
    if (count <= 1) this.perNetworkCounts.delete(network)
    else this.perNetworkCounts.set(network, count - 1)
  }

  private begin(task: RenderTask): Promise<RenderResult> {
    const queue = this.queues.get(task.workspaceId) ?? new Set<QueuedTask>()
    const { queued, queuedPerWorkspace, limitMs } = this.bounds
    if (this.queuedCount >= queued || queue.size >= queuedPerWorkspace)
      throw busy('too many renderings are waiting')
    const result = new Promise<RenderResult>((settle, fail) => {
      const timeout = this.parts.clock.after(limitMs, () => {
        this.dequeue(one)
        fail(busy(`rendering took longer than ${limitMs / 1_000} s`))
      })
      const one: QueuedTask = { task, settle, fail, timeout }
      queue.add(one)
      this.queues.set(task.workspaceId, queue)
      this.queuedCount += 1
    })
    this.inFlight.set(task.key, result)
    const forget = () => this.inFlight.delete(task.key)
    result.then(forget, forget)
    this.dispatch()
    return result
  }

  private dequeue(one: QueuedTask): void {
    const { workspaceId } = one.task
    const queue = this.queues.get(workspaceId)
    if (!queue?.delete(one)) return
    this.queuedCount -= 1
    if (queue.size === 0) this.queues.delete(workspaceId)
  }

  private dispatch(): void {
    while (this.runningCount < this.bounds.concurrency) {
      const [turn] = this.queues
      if (!turn) return
      const [workspaceId, queue] = turn
      const [first] = queue
      if (first) this.dequeue(first)
      if (this.queues.delete(workspaceId)) this.queues.set(workspaceId, queue)
      if (first) void this.work(first)
    }
  }

  /** Keeps its slot until the thread is done, even after the caller timed out. */
  private async work({ task, settle, fail, timeout }: QueuedTask): Promise<void> {
    this.runningCount += 1
    try {
      const result = await this.parts.render(await task.load())
      this.cache.keep(task.key, result, this.bounds.cacheUnits)
      settle(result)
    } catch (error) {
      fail(error)
    } finally {
      timeout.cancel()
      this.runningCount -= 1
      this.dispatch()
    }
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
