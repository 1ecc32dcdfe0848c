/**
 * How fast one site (a set of MX hosts) is served: deliveries at a time, messages per minute, and rests.
 *
 * The number of deliveries at a time starts small, grows with success and is halved by trouble, at most once in a
 * while, so that ten sessions that fail together count as one failure. A site that asks for it, or that cannot be
 * reached several times running, is given a rest; afterwards one message tries whether it is better. Rests grow when
 * they do not help. All of it is in memory: after a restart every site starts small again.
 *
 *   open ──asked, or unreachable three times──> resting ──time──> probing (one at a time) ──success──> open
 *                                                  ^                  │
 *                                                  └──────trouble─────┘
 */
import type { BackoffPolicy } from '../core/backoff.js'
import type { Clock } from '../world/clock.js'
import type { SiteFacts } from './delivery-agent.js'
import type { PaceSignal } from './pace-signal.js'

export type SiteLimits = Omit<SiteFacts, 'name'>

const FIRST_WINDOW = 4
/** Failures of sessions that were open together are one event. */
const SHRINK_PAUSE_MS = 5_000
const UNREACHABLE_BEFORE_REST = 3
const FIRST_REST_MS = 30_000
const LONGEST_REST_MS = 15 * 60_000

/** How long rests are that nobody named a time for, ms. */
export interface RestLengths {
  readonly firstMs: number
  readonly longestMs: number
}

/**
 * No rest holds mail back for longer than the operator lets it wait for its next attempt.
 *
 * @param retry the queue's own delays
 */
export function restLengths({ firstMs, maxMs }: BackoffPolicy): RestLengths {
  return { firstMs: Math.min(FIRST_REST_MS, firstMs), longestMs: Math.min(LONGEST_REST_MS, maxMs) }
}
/** A server's wish is granted up to this. */
const LONGEST_ASKED_REST_MS = 60 * 60_000
/** Successes in a row after which earlier rests are forgotten. */
const CALM_AFTER = 20
/** How long a message may wait in reserve. */
const RESERVE_MS = 50
/** Weight of the latest delivery in the average. */
const LATEST = 0.1
/** Messages that may leave at once after a quiet time, as a share of a minute's. */
const BURST_SHARE = 1 / 6

export class SitePace {
  private readonly clock: Clock
  private readonly limits: SiteLimits
  private readonly restLengths: RestLengths
  private active = 0
  /** Deliveries at a time; grows by fractions. */
  private window: number
  /** Below it the window grows by one per success, above it by one per window of successes. */
  private threshold: number
  private lastShrinkAt = -Infinity
  private unreachable = 0
  private calm = 0
  /** Rests since the site was last calm. */
  private rests = 0
  private restsUntil = 0
  private isProbing = false
  /** How long deliveries took, the latest counting most. */
  private averageMs: number | undefined
  private tokens: number
  private tokensAt: number

  constructor(clock: Clock, limits: SiteLimits, restLengths: RestLengths) {
    this.clock = clock
    this.limits = limits
    this.restLengths = restLengths
    this.window = Math.min(FIRST_WINDOW, limits.connections)
    this.threshold = limits.connections
    this.tokens = this.burst
    this.tokensAt = clock.now()
  }

  /** How many messages may be claimed now: those that may begin, and a few in reserve where the site is quick. */
  get freeSlots(): number {
    if (this.isResting) return 0
    return Math.max(0, Math.min(this.atATime + this.reserveSlots - this.active, this.takeableTokens()))
  }

  /** Deliveries that may be under way at the same time; 0 while the site rests. */
  get atATime(): number {
    if (this.isResting) return 0
    return this.isProbing ? 1 : Math.floor(this.window)
  }

  /** None wait longer for their turn than about `RESERVE_MS`. */
  private get reserveSlots(): number {
    if (this.calm < CALM_AFTER || this.averageMs === undefined || this.limits.messagesPerMinute > 0) return 0
    return Math.floor(this.window * Math.min(1, RESERVE_MS / this.averageMs))
  }

  /**
   * When slots may be free again although no delivery ends: the end of a rest, or the next token; undefined when only
   * the end of a delivery can free one.
   */
  get retryAt(): number | undefined {
    if (this.isResting) return this.restsUntil
    if (this.limits.messagesPerMinute === 0 || this.takeableTokens() >= 1) return undefined
    return this.clock.now() + Math.ceil(((1 - this.tokens) * 60_000) / this.limits.messagesPerMinute)
  }

  get isResting(): boolean {
    return this.clock.now() < this.restsUntil
  }

  /** Nothing under way and nothing learnt that would be a pity to forget. */
  get isForgettable(): boolean {
    return this.active === 0 && !this.isResting && this.rests === 0
  }

  /** For the operator: what the pace is now. */
  get state(): { active: number; window: number; restsUntil: number | undefined } {
    return {
      active: this.active,
      window: this.isProbing ? 1 : Math.floor(this.window),
      restsUntil: this.isResting ? this.restsUntil : undefined,
    }
  }

  /** The operator knows better: one message tries now. What earlier rests taught is kept, should it fail. */
  endRest(): void {
    this.restsUntil = 0
  }

  /** Takes slots for deliveries that are about to begin. */
  reserve(count: number): void {
    this.active += count
    if (this.limits.messagesPerMinute > 0) {
      this.takeableTokens()
      this.tokens -= count
    }
  }

  /** Gives back slots for which there was nothing to deliver. */
  release(count: number): void {
    this.active -= count
    if (this.limits.messagesPerMinute > 0) this.tokens += count
  }

  /** A delivery has ended. @param durationMs how long it took, where that is known */
  end(signal: PaceSignal, durationMs?: number): void {
    this.active -= 1
    if (signal.kind === 'success' && durationMs !== undefined)
      this.averageMs = LATEST * durationMs + (1 - LATEST) * (this.averageMs ?? durationMs)
    switch (signal.kind) {
      case 'success':
        this.grow()
        break
      case 'neutral':
        // It answered; that is the end of being unreachable, but no reason to go faster.
        this.unreachable = 0
        this.isProbing = false
        break
      case 'busy':
        this.unreachable = 0
        if (this.isProbing) this.rest(undefined)
        else this.shrink()
        break
      case 'asked':
        this.shrink()
        this.rest(signal.waitMs)
        break
      case 'unreachable':
        this.unreachable += 1
        this.shrink()
        if (this.isProbing || this.unreachable >= UNREACHABLE_BEFORE_REST) this.rest(undefined)
    }
  }

  private grow(): void {
    this.unreachable = 0
    this.isProbing = false
    this.calm += 1
    if (this.calm >= CALM_AFTER) this.rests = 0
    const step = this.window < this.threshold ? 1 : 1 / this.window
    this.window = Math.min(this.limits.connections, this.window + step)
  }

  private shrink(): void {
    this.calm = 0
    const now = this.clock.now()
    if (now - this.lastShrinkAt < SHRINK_PAUSE_MS) return
    this.lastShrinkAt = now
    this.window = this.threshold = Math.max(1, this.window / 2)
  }

  /** Sessions that were open when the rest began report the same trouble; only a longer wish changes anything then. */
  private rest(askedMs: number | undefined): void {
    const now = this.clock.now()
    const own = Math.min(this.restLengths.longestMs, this.restLengths.firstMs * 2 ** this.rests)
    if (!this.isResting) this.rests += 1
    else if (askedMs === undefined) return
    this.restsUntil = Math.max(this.restsUntil, now + Math.min(askedMs ?? own, LONGEST_ASKED_REST_MS))
    this.isProbing = true
  }

  private get burst(): number {
    return Math.max(1, this.limits.messagesPerMinute * BURST_SHARE)
  }

  private takeableTokens(): number {
    const { messagesPerMinute } = this.limits
    if (messagesPerMinute === 0) return Infinity
    const now = this.clock.now()
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.tokensAt) * messagesPerMinute) / 60_000)
    this.tokensAt = now
    return Math.floor(this.tokens)
  }
}
