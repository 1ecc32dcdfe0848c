/**
 * How fast one site (a set of MX hosts) is served: deliveries at a time, messages per minute, and rests.
 *
 * A site that has not answered yet gets one delivery at a time. Then their number grows with success and is halved by
 * trouble, at most once in a while, so that ten sessions that fail together count as one failure. A site that asks for it, or
 * that cannot be reached several times running, is given a rest; afterwards one message tries whether it is better. Rests grow
 * when they do not help. All of it is in memory: after a restart every site is new again. Every duration here is measured on
 * the monotonic clock: what the operator does to the wall clock changes no rest.
 *
 *   probing (one at a time) ──answer──> open ──asked, or unreachable three times──> resting ──time──> probing
 *        │                                                                             ^
 *        └───────────────────────────────────trouble───────────────────────────────────┘
 */
import type { BackoffPolicy } from '../../core/backoff.js'
import type { Clock } from '../../world/time/clock.js'
import type { Standing } from './connection-shares.js'
import type { SiteFacts } from '../delivery-agent.js'
import type { PaceSignal } from './pace-signal.js'

export type SiteLimits = Omit<SiteFacts, 'name'>

/** Deliveries at a time after the first answer. */
const FIRST_WINDOW = 4
/** Failures of sessions that were open together are one event. */
const SHRINK_PAUSE_MS = 5_000
const UNREACHABLE_BEFORE_REST = 3
const FIRST_REST_MS = 30_000
const LONGEST_REST_MS = 15 * 60_000
/** How long an answer speaks for a site. */
const PROVEN_MS = 10 * 60_000
/** Small messages are under way and none has ended for so long: it may have gone silent in the middle. */
const SILENT_MS = 30_000
/** How long a delivery is left to a site that has not answered while others wait for the connection; doubled each time. */
export const FIRST_PATIENCE_MS = 5_000
const LONGEST_PATIENCE_MS = 120_000

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
  private limits: SiteLimits
  private readonly restLengths: RestLengths
  private active = 0
  /** Of those, messages that take no time to send. */
  private activeSmall = 0
  /** Deliveries at a time; grows by fractions. */
  private window: number
  /** Below it the window grows by one per success, above it by one per window of successes. */
  private threshold: number
  private lastShrinkAt = -Infinity
  private answeredAt = -Infinity
  /** Deliveries in a row that ended without an answer. */
  private unreachable = 0
  /** Since when small messages are under way without any having ended. */
  private quietSince = 0
  /** While it is silent: when one more may try. */
  private nextTryAt = -Infinity
  private calm = 0
  /** Rests since the site was last calm. */
  private rests = 0
  private restEndsAt = -Infinity
  private isProbing = true
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
    this.tokensAt = clock.monotonic()
  }

  /** How many messages may be claimed now: those that may begin, and a few in reserve where the site is quick. */
  get freeSlots(): number {
    if (this.isResting) return 0
    const free = Math.min(this.atATime + this.reserveSlots - this.active, this.takeableTokens())
    if (this.isSilent) return free > 0 && this.clock.monotonic() >= this.nextTryAt ? 1 : 0
    return Math.max(0, free)
  }

  /** Deliveries that may be under way at the same time; 0 while the site rests. */
  get atATime(): number {
    if (this.isResting) return 0
    return this.isProbing || this.standing === 'new' ? 1 : Math.floor(this.window)
  }

  /** None wait longer for their turn than about `RESERVE_MS`. */
  private get reserveSlots(): number {
    if (this.calm < CALM_AFTER || this.averageMs === undefined || this.limits.messagesPerMinute > 0) return 0
    return Math.floor(this.window * Math.min(1, RESERVE_MS / this.averageMs))
  }

  /** The configuration was read again: from now on these hold. What was learnt of the site stays. */
  setLimits(limits: SiteLimits): void {
    const { connections, messagesPerMinute } = this.limits
    if (limits.connections === connections && limits.messagesPerMinute === messagesPerMinute) return
    this.limits = limits
    this.window = Math.min(this.window, limits.connections)
    this.threshold = Math.max(this.threshold, limits.connections)
    this.tokens = this.burst
    this.tokensAt = this.clock.monotonic()
  }

  /** What it has to show for being given connections. */
  get standing(): Standing {
    if (this.unreachable >= UNREACHABLE_BEFORE_REST) return 'doubtful'
    if (this.clock.monotonic() - this.answeredAt < PROVEN_MS) return this.isSilent ? 'doubtful' : 'proven'
    return this.unreachable > 0 ? 'doubtful' : 'new'
  }

  /** How long a delivery may take before it makes room for another site's, ms; those of a site that answers have all the time. */
  get patienceMs(): number {
    if (this.standing === 'proven') return Infinity
    return Math.min(LONGEST_PATIENCE_MS, FIRST_PATIENCE_MS * 2 ** this.unreachable)
  }

  /**
   * When slots may be free again although no delivery ends, on the monotonic clock: the end of a rest, the next token, or one
   * more try at a site that has gone silent; undefined when only the end of a delivery can free one.
   */
  get retryAt(): number | undefined {
    if (this.isResting) return this.restEndsAt
    if (this.takeableTokens() < 1)
      return this.clock.monotonic() + Math.ceil(((1 - this.tokens) * 60_000) / this.limits.messagesPerMinute)
    return this.isSilent && this.active < this.atATime ? this.nextTryAt : undefined
  }

  get isResting(): boolean {
    return this.clock.monotonic() < this.restEndsAt
  }

  /** It rests because nobody answers there. */
  get isGivenUp(): boolean {
    return this.isResting && this.unreachable > 0
  }

  get isIdle(): boolean {
    return this.active === 0
  }

  /** Nothing learnt that would be a pity to forget. */
  get isBlank(): boolean {
    return !this.isResting && this.rests === 0 && this.standing === 'new'
  }

  /** For the operator: what the pace is now. */
  get state(): { active: number; window: number; restLeftMs: number | undefined } {
    return {
      active: this.active,
      window: this.isProbing ? 1 : Math.floor(this.window),
      restLeftMs: this.isResting ? this.restEndsAt - this.clock.monotonic() : undefined,
    }
  }

  /** The operator knows better: one message tries now. What earlier rests taught is kept, should it fail. */
  endRest(): void {
    this.restEndsAt = -Infinity
  }

  /** Takes slots for deliveries that are about to begin. */
  reserve(count: number, isLarge = false): void {
    const now = this.clock.monotonic()
    if (this.isSilent) this.nextTryAt = now + SILENT_MS
    if (!isLarge) {
      if (this.activeSmall === 0) this.quietSince = now
      this.activeSmall += count
    }
    this.active += count
    if (this.limits.messagesPerMinute > 0) {
      this.takeableTokens()
      this.tokens -= count
    }
  }

  /** Gives back slots for which there was nothing to deliver. */
  release(count: number, isLarge = false): void {
    this.active -= count
    if (!isLarge) this.activeSmall -= count
    if (this.limits.messagesPerMinute > 0) this.tokens += count
  }

  /** A delivery has ended. @param durationMs how long it took, where that is known */
  end(signal: PaceSignal, durationMs?: number, isLarge = false): void {
    this.active -= 1
    if (!isLarge) this.activeSmall -= 1
    if (signal.kind === 'success' && durationMs !== undefined)
      this.averageMs = LATEST * durationMs + (1 - LATEST) * (this.averageMs ?? durationMs)
    if (signal.kind !== 'unreachable' && signal.kind !== 'none') this.noteAnswer()
    switch (signal.kind) {
      case 'none':
        break
      case 'success':
        this.grow()
        break
      case 'neutral':
        // It answered; that is the end of being unreachable, but no reason to go faster.
        this.isProbing = false
        break
      case 'busy':
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

  /** Large messages take their time, so they say nothing about that. */
  private get isSilent(): boolean {
    return this.activeSmall > 0 && this.clock.monotonic() - this.quietSince >= SILENT_MS
  }

  private noteAnswer(): void {
    this.unreachable = 0
    this.answeredAt = this.quietSince = this.clock.monotonic()
  }

  private grow(): void {
    this.isProbing = false
    this.calm += 1
    if (this.calm >= CALM_AFTER) this.rests = 0
    const step = this.window < this.threshold ? 1 : 1 / this.window
    this.window = Math.min(this.limits.connections, this.window + step)
  }

  private shrink(): void {
    this.calm = 0
    const now = this.clock.monotonic()
    if (now - this.lastShrinkAt < SHRINK_PAUSE_MS) return
    this.lastShrinkAt = now
    this.window = this.threshold = Math.max(1, this.window / 2)
  }

  /** Sessions that were open when the rest began report the same trouble; only a longer wish changes anything then. */
  private rest(askedMs: number | undefined): void {
    const now = this.clock.monotonic()
    const own = Math.min(this.restLengths.longestMs, this.restLengths.firstMs * 2 ** this.rests)
    if (!this.isResting) this.rests += 1
    else if (askedMs === undefined) return
    this.restEndsAt = Math.max(this.restEndsAt, now + Math.min(askedMs ?? own, LONGEST_ASKED_REST_MS))
    this.isProbing = true
  }

  private get burst(): number {
    return Math.max(1, this.limits.messagesPerMinute * BURST_SHARE)
  }

  private takeableTokens(): number {
    const { messagesPerMinute } = this.limits
    if (messagesPerMinute === 0) return Infinity
    const now = this.clock.monotonic()
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.tokensAt) * messagesPerMinute) / 60_000)
    this.tokensAt = now
    return Math.floor(this.tokens)
  }
}
