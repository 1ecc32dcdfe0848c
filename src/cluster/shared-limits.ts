/**
 * Limits that all nodes keep together: requests per key, mails per key, requests per address.
 *
 * Each node counts in memory, and may count up to what it holds of a limit. The database has what each node holds (`limit-use-store.ts`),
 * never more in all than the limit, so that the limit is exact however requests are spread. What a node holds follows its demand: it draws
 * more before that runs out, and gives back what it does not use within about a second. Only the first request for a name in a while waits
 * for the database; requests that come meanwhile share the statement. Nothing is drawn while one node is alone.
 *
 * If the database does not answer, each node allows its equal share until it does.
 */
import { createHash } from 'node:crypto'
import { describeError } from '../core/errors.js'
import type { Services } from '../db/services.js'
import { SlidingWindow, type WindowState } from '../http/sliding-window.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Asked, Drawn } from './limit-use-store.js'

export interface SharedLimitParts extends Pick<Services, 'clock' | 'log'> {
  /** Nodes that share the database, this one included. */
  readonly nodes: () => number
  readonly draw: (nodes: number, asked: readonly Asked[]) => Promise<readonly Drawn[]>
  /** Deletes what counts no more; called about once a minute. */
  readonly clear?: () => Promise<void>
}

/** Interval in which what is held is adapted to what is used. */
const TICK_MS = 1_000
/** Uses by other nodes count even after those are gone. */
const MEMORY_MS = 60_000
/** Names per statement. */
const MAX_ASKED = 500
/** Names that are shared, by window. Beyond it, each node allows its equal share. */
const MAX_SHARED = 10_000
/** A name whose limit is used up is not asked for again before. */
const REFUSED_MS = 250
/** After this long without an answer each node allows its equal share. */
const PATIENCE_MS = 1_000
/** How long after its last statement a node's part still counts, beyond the window. */
const KEEP_MS = 5_000
/** Longest time until uses after the last statement are reported. */
const REPORT_MS = 3_000

interface Ask {
  readonly asked: Asked
  isAnswered: boolean
  readonly answer: (drawn: Drawn | undefined) => void
}

export class SharedLimits {
  private readonly parts: SharedLimitParts
  private readonly windows: SharedWindow[] = []
  private readonly asks: Ask[] = []
  private isDrawing = false
  private sharedUntil = -Infinity
  private wasShared = false
  private clearedAt: number
  private timer: Timer | undefined
  private isStopped = false

  constructor(parts: SharedLimitParts) {
    this.parts = parts
    this.clearedAt = parts.clock.monotonic()
  }

  /** One for each kind: a kind opened twice is the same window. */
  window(kind: string, windowMs?: number): SlidingWindow {
    const known = this.windows.find(one => one.kind === kind)
    if (known) return known
    const window = new SharedWindow(this, this.parts.clock, kind, windowMs)
    this.windows.push(window)
    return window
  }

  get nodes(): number {
    return this.parts.nodes()
  }

  /** Whether what other nodes count matters. */
  get isShared(): boolean {
    const now = this.parts.clock.monotonic()
    if (this.nodes > 1) this.sharedUntil = now + MEMORY_MS
    return now < this.sharedUntil
  }

  /** Call it once the node is a member. */
  start(): void {
    this.timer = this.parts.clock.after(TICK_MS, () => {
      this.tick()
      if (!this.isStopped) this.start()
    })
  }

  stop(): void {
    this.isStopped = true
    this.timer?.cancel()
  }

  /** @returns undefined if the database did not answer */
  draw(asked: Asked): Promise<Drawn | undefined> {
    return new Promise(resolve => {
      const ask: Ask = {
        asked,
        isAnswered: false,
        answer(drawn) {
          ask.isAnswered = true
          timer.cancel()
          resolve(drawn)
        },
      }
      const timer = this.parts.clock.after(PATIENCE_MS, () => ask.answer(undefined))
      this.asks.push(ask)
      if (!this.isDrawing) void this.drawAll()
    })
  }

  private tick(): void {
    const isJoined = this.isShared && !this.wasShared
    this.wasShared = this.isShared
    for (const window of this.windows) window.tick(isJoined)
    const { clock, clear } = this.parts
    if (!this.wasShared || clock.monotonic() - this.clearedAt < MEMORY_MS) return
    this.clearedAt = clock.monotonic()
    clear?.().catch(() => {})
  }

  private async drawAll(): Promise<void> {
    this.isDrawing = true
    // Gathers what is asked for in this turn.
    await Promise.resolve()
    while (this.asks.length > 0) {
      const asks = this.asks.splice(0, MAX_ASKED).filter(({ isAnswered }) => !isAnswered)
      if (asks.length === 0) continue
      try {
        const drawn = await this.parts.draw(
          this.nodes,
          asks.map(({ asked }) => asked),
        )
        const byName = new Map(drawn.map(one => [one.name, one]))
        for (const { asked, answer } of asks) answer(byName.get(asked.name))
      } catch (error) {
        this.parts.log.debug('limits not shared', { error: describeError(error) })
        for (const { answer } of asks) answer(undefined)
      }
    }
    this.isDrawing = false
  }
}

/** This node's share of one limit. */
interface Part {
  limit: number
  held: number
  others: number
  /** Amounts that callers were told they may take, and those that they wait for. */
  promised: number
  waiting: number
  /** Taken since the last tick, and in the tick before. */
  taken: number
  takenBefore: number
  /** Monotonic, ms. */
  askedAt: number
  takenAt: number
  refusedUntil: number
  toppedUpAt: number
  asking: Promise<void> | undefined
}

class SharedWindow extends SlidingWindow {
  readonly kind: string
  private readonly limits: SharedLimits
  private readonly parts = new Map<string, Part>()

  constructor(limits: SharedLimits, clock: Clock, kind: string, windowMs?: number) {
    super(clock, windowMs)
    this.limits = limits
    this.kind = kind
  }

  override prepare(name: string, amount: number, limit: number): Promise<void> | undefined {
    if (!this.isSharing(limit)) return undefined
    const part = this.partOf(name, limit)
    if (!part) return undefined
    if (!this.promise(name, part, amount)) {
      if (this.clock.monotonic() < part.refusedUntil) return undefined
      return this.wait(name, part, amount)
    }
    this.topUp(name, part)
    return undefined
  }

  override take(name: string, amount: number, limit: number): WindowState {
    if (!this.isSharing(limit)) return super.take(name, amount, limit)
    const part = this.partOf(name, limit)
    // A caller that cannot wait is not refused before the others were asked.
    const most = part && part.askedAt > -Infinity ? Math.min(limit, part.held) : this.shareOf(limit)
    const state = this.takeUpTo(name, amount, limit, most)
    if (!part) return state
    part.promised = Math.max(0, part.promised - amount)
    if (state.isAllowed) {
      part.taken += amount
      part.takenAt = this.clock.monotonic()
    }
    if (this.used(name) > part.held) part.held = this.used(name)
    return { ...state, remaining: Math.max(0, limit - part.others - this.used(name)) }
  }

  /** @param isJoined other nodes have just come: they learn what was counted here */
  tick(isJoined: boolean): void {
    if (!this.limits.isShared) {
      this.parts.clear()
      return
    }
    const now = this.clock.monotonic()
    if (isJoined) this.holdAll()
    for (const [name, part] of this.parts) {
      part.takenBefore = Math.max(part.taken, Math.floor(part.takenBefore / 2))
      part.taken = part.promised = 0
      if (part.asking) continue
      const used = this.used(name)
      const wanted = used + (part.takenBefore === 0 ? 0 : extraOf(part))
      if (part.held === 0 && wanted === 0) this.parts.delete(name)
      if (!this.isChanged(part, wanted, now)) continue
      // First here, so that nobody else gets what is still used.
      part.held = Math.max(used, Math.min(part.held, wanted))
      part.asking = this.ask(name, part, part.held, Math.max(0, wanted - part.held))
    }
  }

  /** Whether the others should learn what this node holds now. */
  private isChanged({ held, limit, takenAt, askedAt }: Part, wanted: number, now: number): boolean {
    if (held === 0) return false
    if (wanted === 0 || held - wanted > limit / 50) return true
    if (takenAt >= askedAt && now - askedAt >= REPORT_MS) return true
    return now - askedAt >= this.windowMs / 2
  }

  private holdAll(): void {
    for (const name of [...this.names()].slice(-MAX_SHARED)) {
      const used = this.used(name)
      const part = used > 0 ? this.partOf(name, used) : undefined
      if (part) part.held = Math.max(part.held, used)
    }
  }

  private isSharing(limit: number): boolean {
    return limit > 0 && Number.isFinite(limit) && this.limits.isShared
  }

  /** @returns undefined if too many names are shared */
  private partOf(name: string, limit: number): Part | undefined {
    const known = this.parts.get(name)
    if (known) {
      if (limit < known.held) known.held = Math.max(limit, this.used(name))
      known.limit = limit
      return known
    }
    if (this.parts.size >= MAX_SHARED) return undefined
    const part: Part = {
      limit,
      held: 0,
      others: 0,
      promised: 0,
      waiting: 0,
      taken: 0,
      takenBefore: 0,
      askedAt: -Infinity,
      takenAt: -Infinity,
      refusedUntil: -Infinity,
      toppedUpAt: -Infinity,
      asking: undefined,
    }
    this.parts.set(name, part)
    return part
  }

  private shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / Math.max(1, this.limits.nodes)))
  }

  /** @returns whether what this node holds has room for the amount */
  private promise(name: string, part: Part, amount: number): boolean {
    if (this.used(name) + part.promised + amount > Math.min(part.limit, part.held)) return false
    part.promised += amount
    return true
  }

  /** Draws before what is held runs out, without anybody waiting. */
  private topUp(name: string, part: Part): void {
    const left = part.held - this.used(name) - part.promised
    const now = this.clock.monotonic()
    if (part.asking || part.held >= part.limit || left >= extraOf(part) / 2) return
    if (!this.mayAsk(part) || now - part.toppedUpAt < REFUSED_MS) return
    part.toppedUpAt = now
    part.asking = this.ask(name, part, part.held, extraOf(part))
  }

  private async wait(name: string, part: Part, amount: number): Promise<void> {
    part.waiting += amount
    do {
      const need = this.used(name) + part.promised + part.waiting
      await (part.asking ??= this.ask(name, part, Math.max(part.held, need), extraOf(part)))
    } while (!this.promise(name, part, amount) && this.mayAsk(part))
    part.waiting -= amount
  }

  private mayAsk({ refusedUntil }: Part): boolean {
    return this.clock.monotonic() >= refusedUntil
  }

  private async ask(name: string, part: Part, need: number, extra: number): Promise<void> {
    part.askedAt = this.clock.monotonic()
    const drawn = await this.limits.draw({
      name: digestOf(`${this.kind} ${name}`),
      limit: part.limit,
      used: this.used(name),
      need,
      extra,
      keepMs: this.windowMs + KEEP_MS,
    })
    part.asking = undefined
    part.held = drawn?.held ?? Math.max(part.held, this.shareOf(part.limit))
    part.others = drawn?.others ?? part.others
    if (part.held < need) part.refusedUntil = this.clock.monotonic() + REFUSED_MS
  }
}

/** Amount to hold beyond the used one: enough for about two seconds. */
function extraOf({ limit, taken, takenBefore }: Part): number {
  return Math.min(Math.ceil(limit / 4), Math.max(2 * Math.max(taken, takenBefore), Math.ceil(limit / 100)))
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
