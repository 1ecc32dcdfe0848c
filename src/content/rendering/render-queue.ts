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
  readonly atOnce: number
  readonly waiting: number
  readonly waitingPerWorkspace: number
  /** Queued or running. */
  readonly perNetwork: number
  /** From call to result, ms. */
  readonly limitMs: number
  /** Cache size, UTF-16 units. */
  readonly keptUnits: number
}

/** Few at a time, since the threads also deliver mail. */
export const RENDER_QUEUE_LIMITS: RenderQueueLimits = {
  atOnce: 2,
  waiting: 200,
  waitingPerWorkspace: 50,
  perNetwork: 4,
  limitMs: 5_000,
  keptUnits: 8 * 1_024 * 1_024,
}

const RETRY_MS = 1_000

interface Waiting {
  readonly task: RenderTask
  readonly settle: (result: RenderResult) => void
  readonly fail: (error: unknown) => void
  readonly late: Timer
}

export class RenderQueue {
  private readonly parts: RenderQueueParts
  private readonly bounds: RenderQueueLimits
  /** By workspace, round robin: the one served last moves to the end. */
  private readonly lines = new Map<string, Set<Waiting>>()
  private waitingCount = 0
  private atWork = 0
  private readonly ofNetworks = new Map<string, number>()
  private readonly underWay = new Map<string, Promise<RenderResult>>()
  private readonly kept = new Results()

  constructor(parts: RenderQueueParts, bounds = RENDER_QUEUE_LIMITS) {
    this.parts = parts
    this.bounds = bounds
  }

  async render(task: RenderTask): Promise<RenderResult> {
    const { key, network } = task
    const known = this.kept.find(key)
    if (known) return known
    this.enter(network)
    try {
      return await (this.underWay.get(key) ?? this.begin(task))
    } finally {
      this.leave(network)
    }
  }

  private enter(network: string | undefined): void {
    if (network === undefined) return
    const count = this.ofNetworks.get(network) ?? 0
    const { perNetwork } = this.bounds
    if (count >= perNetwork)
      throw new AppError('rate_limited', `${perNetwork} pages are already being rendered for this address`, {
        retryAfterMs: RETRY_MS,
      })
    this.ofNetworks.set(network, count + 1)
  }

  private leave(network: string | undefined): void {
    if (network === undefined) return
    const count = this.ofNetworks.get(network) ?? 0
    if (count <= 1) this.ofNetworks.delete(network)
    else this.ofNetworks.set(network, count - 1)
  }

  private begin(task: RenderTask): Promise<RenderResult> {
    const line = this.lines.get(task.workspaceId) ?? new Set<Waiting>()
    const { waiting, waitingPerWorkspace, limitMs } = this.bounds
    if (this.waitingCount >= waiting || line.size >= waitingPerWorkspace)
      throw busy('too many renderings are waiting')
    const result = new Promise<RenderResult>((settle, fail) => {
      const late = this.parts.clock.after(limitMs, () => {
        this.giveUp(one)
        fail(busy(`rendering took longer than ${limitMs / 1_000} s`))
      })
      const one: Waiting = { task, settle, fail, late }
      line.add(one)
      this.lines.set(task.workspaceId, line)
      this.waitingCount += 1
    })
    this.underWay.set(task.key, result)
    const forget = () => this.underWay.delete(task.key)
    result.then(forget, forget)
    this.takeTurns()
    return result
  }

  private giveUp(one: Waiting): void {
    const { workspaceId } = one.task
    const line = this.lines.get(workspaceId)
    if (!line?.delete(one)) return
    this.waitingCount -= 1
    if (line.size === 0) this.lines.delete(workspaceId)
  }

  private takeTurns(): void {
    while (this.atWork < this.bounds.atOnce) {
      const [turn] = this.lines
      if (!turn) return
      const [workspaceId, line] = turn
      const [first] = line
      if (first) this.giveUp(first)
      if (this.lines.delete(workspaceId)) this.lines.set(workspaceId, line)
      if (first) void this.work(first)
    }
  }

  /** Keeps its slot until the thread is done, even after the caller timed out. */
  private async work({ task, settle, fail, late }: Waiting): Promise<void> {
    this.atWork += 1
    try {
      const result = await this.parts.render(await task.load())
      this.kept.keep(task.key, result, this.bounds.keptUnits)
      settle(result)
    } catch (error) {
      fail(error)
    } finally {
      late.cancel()
      this.atWork -= 1
      this.takeTurns()
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

class Results {
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

  keep(key: string, result: RenderResult, most: number): void {
    this.drop(key)
    this.byKey.set(key, result)
    this.units += unitsOf(result)
    for (const oldest of this.byKey.keys()) {
      if (this.units <= most) break
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
