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
import type { Classification, Outcome } from '../../mail/outcome.js'

export type SiteLimits = Omit<SiteFacts, 'name'>

/** Deliveries at a time after the first answer. */
const FIRST_WINDOW = 4
/** Failures of sessions that were open together are one event. */
const SHRINK_PAUSE_MS = 5_000
const FAILURES_BEFORE_BACKOFF = 3
const FIRST_BACKOFF_MS = 30_000
const MAX_BACKOFF_MS = 15 * 60_000
/** How long an answer speaks for a site. */
const PROVEN_MS = 10 * 60_000
/** Small messages are under way and none has ended for so long: it may have gone silent in the middle. */
const SILENT_MS = 30_000
/** How long a delivery is left to a site that has not answered while others wait for the connection; doubled each time. */
export const FIRST_PATIENCE_MS = 5_000
const MAX_PATIENCE_MS = 120_000

/** How long rests are that nobody named a time for, ms. */
export interface BackoffLimits {
  readonly firstMs: number
  readonly maxMs: number
}

/**
 * No rest holds mail back for longer than the operator lets it wait for its next attempt.
 *
 * @param retry the queue's own delays
 */
export function siteBackoff({ firstMs, maxMs }: BackoffPolicy): BackoffLimits {
  return { firstMs: Math.min(FIRST_BACKOFF_MS, firstMs), maxMs: Math.min(MAX_BACKOFF_MS, maxMs) }
}
/** A server's wish is granted up to this. */
const MAX_REQUESTED_BACKOFF_MS = 60 * 60_000
/** Successes in a row after which earlier rests are forgotten. */
const STREAK_TO_RESET = 20
/** How long a message may wait in reserve. */
const PREFETCH_MS = 50
/** Weight of the latest delivery in the average. */
const LATEST = 0.1
/** Messages that may leave at once after a quiet time, as a share of a minute's. */
const BURST_SHARE = 1 / 6

export class SitePace {
  private readonly clock: Clock
  private limits: SiteLimits
  private readonly backoffLimits: BackoffLimits
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
  private failureStreak = 0
  /** Since when small messages are under way without any having ended. */
  private lastProgressAt = 0
  /** While it is silent: when one more may try. */
  private nextProbeAt = -Infinity
  private successStreak = 0
  /** Rests since the site was last calm. */
  private backoffCount = 0
  private backoffUntil = -Infinity
  private isProbing = true
  /** How long deliveries took, the latest counting most. */
  private averageDurationMs: number | undefined
  private tokens: number
  private tokensAt: number

  constructor(clock: Clock, limits: SiteLimits, restLengths: BackoffLimits) {
    this.clock = clock
    this.limits = limits
    this.backoffLimits = restLengths
    this.window = Math.min(FIRST_WINDOW, limits.connections)
    this.threshold = limits.connections
    this.tokens = this.burst
    this.tokensAt = clock.monotonic()
  }

  /** How many messages may be claimed now: those that may begin, and a few in reserve where the site is quick. */
  get freeSlots(): number {
    if (this.isBackingOff) return 0
    const free = Math.min(this.concurrency + this.prefetchSlots - this.active, this.takeableTokens())
    if (this.isSilent) return free > 0 && this.clock.monotonic() >= this.nextProbeAt ? 1 : 0
    return Math.max(0, free)
  }

  /** Deliveries that may be under way at the same time; 0 while the site rests. */
  get concurrency(): number {
    if (this.isBackingOff) return 0
    return this.isProbing || this.standing === 'new' ? 1 : Math.floor(this.window)
  }

  /** None wait longer for their turn than about `RESERVE_MS`. */
  private get prefetchSlots(): number {
    if (
      this.successStreak < STREAK_TO_RESET ||
      this.averageDurationMs === undefined ||
      this.limits.messagesPerMinute > 0
    )
      return 0
    return Math.floor(this.window * Math.min(1, PREFETCH_MS / this.averageDurationMs))
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
    if (this.failureStreak >= FAILURES_BEFORE_BACKOFF) return 'doubtful'
    if (this.clock.monotonic() - this.answeredAt < PROVEN_MS) return this.isSilent ? 'doubtful' : 'proven'
    return this.failureStreak > 0 ? 'doubtful' : 'new'
  }

  /** How long a delivery may take before it makes room for another site's, ms; those of a site that answers have all the time. */
  get patienceMs(): number {
    if (this.standing === 'proven') return Infinity
    return Math.min(MAX_PATIENCE_MS, FIRST_PATIENCE_MS * 2 ** this.failureStreak)
  }

  /**
   * When slots may be free again although no delivery ends, on the monotonic clock: the end of a rest, the next token, or one
   * more try at a site that has gone silent; undefined when only the end of a delivery can free one.
   */
  get nextSlotAt(): number | undefined {
    if (this.isBackingOff) return this.backoffUntil
    if (this.takeableTokens() < 1)
      return this.clock.monotonic() + Math.ceil(((1 - this.tokens) * 60_000) / this.limits.messagesPerMinute)
    return this.isSilent && this.active < this.concurrency ? this.nextProbeAt : undefined
  }

  get isBackingOff(): boolean {
    return this.clock.monotonic() < this.backoffUntil
  }

  /** It rests because nobody answers there. */
  get isUnreachable(): boolean {
    return this.isBackingOff && this.failureStreak > 0
  }

  get isIdle(): boolean {
    return this.active === 0
  }

  /** Nothing learnt that would be a pity to forget. */
  get isForgettable(): boolean {
    return !this.isBackingOff && this.backoffCount === 0 && this.standing === 'new'
  }

  /** For the operator: what the pace is now. */
  get state(): { active: number; window: number; backoffLeftMs: number | undefined } {
    return {
      active: this.active,
      window: this.isProbing ? 1 : Math.floor(this.window),
      backoffLeftMs: this.isBackingOff ? this.backoffUntil - this.clock.monotonic() : undefined,
    }
  }

  /** The operator knows better: one message tries now. What earlier rests taught is kept, should it fail. */
  resetBackoff(): void {
    this.backoffUntil = -Infinity
  }

  /** Takes slots for deliveries that are about to begin. */
  reserve(count: number, isLarge = false): void {
    const now = this.clock.monotonic()
    if (this.isSilent) this.nextProbeAt = now + SILENT_MS
    if (!isLarge) {
      if (this.activeSmall === 0) this.lastProgressAt = now
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
      this.averageDurationMs = LATEST * durationMs + (1 - LATEST) * (this.averageDurationMs ?? durationMs)
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
        if (this.isProbing) this.backOff(undefined)
        else this.shrink()
        break
      case 'asked':
        this.shrink()
        this.backOff(signal.waitMs)
        break
      case 'unreachable':
        this.failureStreak += 1
        this.shrink()
        if (this.isProbing || this.failureStreak >= FAILURES_BEFORE_BACKOFF) this.backOff(undefined)
    }
  }

  /** Large messages take their time, so they say nothing about that. */
  private get isSilent(): boolean {
    return this.activeSmall > 0 && this.clock.monotonic() - this.lastProgressAt >= SILENT_MS
  }

  private noteAnswer(): void {
    this.failureStreak = 0
    this.answeredAt = this.lastProgressAt = this.clock.monotonic()
  }

  private grow(): void {
    this.isProbing = false
    this.successStreak += 1
    if (this.successStreak >= STREAK_TO_RESET) this.backoffCount = 0
    const step = this.window < this.threshold ? 1 : 1 / this.window
    this.window = Math.min(this.limits.connections, this.window + step)
  }

  private shrink(): void {
    this.successStreak = 0
    const now = this.clock.monotonic()
    if (now - this.lastShrinkAt < SHRINK_PAUSE_MS) return
    this.lastShrinkAt = now
    this.window = this.threshold = Math.max(1, this.window / 2)
  }

  /** Sessions that were open when the rest began report the same trouble; only a longer wish changes anything then. */
  private backOff(askedMs: number | undefined): void {
    const now = this.clock.monotonic()
    const own = Math.min(this.backoffLimits.maxMs, this.backoffLimits.firstMs * 2 ** this.backoffCount)
    if (!this.isBackingOff) this.backoffCount += 1
    else if (askedMs === undefined) return
    this.backoffUntil = Math.max(this.backoffUntil, now + Math.min(askedMs ?? own, MAX_REQUESTED_BACKOFF_MS))
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

export type PaceSignal =
  | { readonly kind: 'success' | 'neutral' | 'busy' | 'unreachable' | 'none' }
  /** `waitMs` where the reply named a time. */
  | { readonly kind: 'asked'; readonly waitMs: number | undefined }

/** Failures that are ours or nobody's: they say nothing about the site. */
const OWN_FAILURES: ReadonlySet<string> = new Set([
  'shutdown',
  'internal_error',
  'worker_lost',
  'signing_key',
])

/**
 * Failures that one message, or the one domain it is for, has with a site that may serve thousands of others: what it
 * needs and the host has not, and what the domain's own records forbid.
 */
const OF_ONE_MESSAGE: ReadonlySet<string> = new Set([
  'smtputf8_unsupported',
  '8bitmime_unsupported',
  'message_too_big',
  'mta_sts_failure',
  'address_not_public',
])

const BUSY: ReadonlySet<string> = new Set(['server_busy', 'system_full', 'system_failure', 'network_failure'])

export function paceSignal(outcome: Outcome): PaceSignal {
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'success' }
    case 'unsendable':
      return { kind: 'none' }
    case 'bounced':
      return { kind: outcome.reply === undefined ? 'none' : 'neutral' }
    case 'deferred':
      if (OWN_FAILURES.has(outcome.subtype)) return { kind: 'none' }
      if (OF_ONE_MESSAGE.has(outcome.subtype)) return { kind: 'neutral' }
      if (outcome.reply === undefined) return { kind: 'unreachable' }
      if (isAboutOurPace(outcome)) return { kind: 'asked', waitMs: outcome.retryAfterMs }
      return { kind: outcome.reply.code === 421 || BUSY.has(outcome.subtype) ? 'busy' : 'neutral' }
  }
}

/** Greylisting names a time as well, but for one recipient only: its scope is the address. */
function isAboutOurPace({ cause, scope }: Classification): boolean {
  return scope === 'source' && cause !== 'config'
}
