/**
 * Runs renderings that a request waits for in other threads: a few at a time, fairly, and each only once.
 *
 * Opened by the composition root; called by the preview route, by what reads templates, and by the page that shows a mail in the
 * browser. Equal renderings under way are one, and results are kept for a while. Memory is bounded: by waiting tasks, which load
 * what they need only when their turn comes, and by what is kept.
 * Throws AppError rate_limited to a network that asks for too much at once, unavailable where too many wait or it takes too long.
 */
import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { RenderRequest, RenderResult } from './render-request.js'

export interface RenderTask {
  /** Equal for renderings with the same result; whatever the result depends on belongs into it (`renderKey`). */
  readonly key: string
  readonly workspaceId: string
  /** Of a visitor, who has no key; see `addressKey`. */
  readonly network?: string
  /** Called when it leaves the queue. */
  load(): Promise<RenderRequest>
}

export interface RenderDeskParts {
  readonly clock: Clock
  /** Carries one out in another thread; rejects if that thread ends. */
  readonly render: (request: RenderRequest) => Promise<RenderResult>
}

export interface RenderBounds {
  /** Under way in other threads. */
  readonly atOnce: number
  /** Queued. */
  readonly waiting: number
  readonly waitingPerWorkspace: number
  /** Waiting or under way. */
  readonly perNetwork: number
  /** From the call to the answer, ms. */
  readonly limitMs: number
  /** UTF-16 units of results that are kept. */
  readonly keptUnits: number
}

/** Few at once: the threads have mail to deliver. */
export const RENDER_DESK_BOUNDS: RenderBounds = {
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

export class RenderDesk {
  private readonly parts: RenderDeskParts
  private readonly bounds: RenderBounds
  /** By workspace, in the order of turns: the one served last goes to the end. */
  private readonly lines = new Map<string, Set<Waiting>>()
  private waitingCount = 0
  private atWork = 0
  private readonly ofNetworks = new Map<string, number>()
  private readonly underWay = new Map<string, Promise<RenderResult>>()
  private readonly kept = new Results()

  constructor(parts: RenderDeskParts, bounds = RENDER_DESK_BOUNDS) {
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
      throw new AppError('rate_limited', `${perNetwork} pages are being made for this address already`, {
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

  /** Holds its place until the thread is done with it, also when nobody waits for it any more. */
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

/** @param values whatever the result depends on, as JSON has it */
export function renderKey(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64')
}

/** Results by key; the one used longest ago goes first. */
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
