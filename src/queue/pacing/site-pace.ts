/**
 * The pace of one site (a set of MX hosts): concurrent deliveries, messages per minute, back-off.
 *
 * A new site gets one delivery at a time. After that the number grows with success and is halved by failures, at most
 * once in a while, so that ten sessions that fail together count as one failure. A site that asks for it, or fails
 * several times in a row, backs off; then one message probes it. Back-offs grow while they do not help. All state is in
 * memory, so after a restart every site is new. All durations use the monotonic clock.
 *
 *   probing (one at a time) ──answer──> open ──asked, or unreachable three times──> backing off ──time──> probing
 *        │                                                                             ^
 *        └───────────────────────────────────failure───────────────────────────────────┘
 *
 * `paceSignal` reduces an outcome to what it says about the site:
 *
 *   success      it accepted a message
 *   neutral      it works, and rejected or deferred only this message, recipient or sender
 *   busy         it has a local problem (421, server busy): fewer at a time
 *   asked        the host asked us to slow down: fewer at a time, and back off
 *   unreachable  it did not answer, or the session broke
 *   none         nothing: no server was asked, or the failure is ours
 */
import type { BackoffPolicy } from '../../core/backoff.js'
import type { Clock } from '../../world/time/clock.js'
import type { Standing } from './connection-shares.js'
import type { SiteFacts } from '../delivery-agent.js'
import type { Classification, Outcome } from '../../mail/outcome.js'

export type SiteLimits = Omit<SiteFacts, 'name'>

const FIRST_WINDOW = 4
/** Failures of sessions that were open together count once. */
const SHRINK_PAUSE_MS = 5_000
const FAILURES_BEFORE_BACKOFF = 3
const FIRST_BACKOFF_MS = 30_000
const MAX_BACKOFF_MS = 15 * 60_000
const PROVEN_MS = 10 * 60_000
/** With small messages in progress and none ended for this long, a site is silent. */
const SILENT_MS = 30_000
/**
 * Time limit of a delivery to a site that has not answered, while others wait for the connection; doubled per failure.
 */
export const FIRST_PATIENCE_MS = 5_000
const MAX_PATIENCE_MS = 120_000

const MAX_REQUESTED_BACKOFF_MS = 60 * 60_000
/** Consecutive successes that reset the back-off count. */
const STREAK_TO_RESET = 20
const PREFETCH_MS = 50
/** Back-offs of nodes that end this close to each other are the same. */
const SAME_BACKOFF_MS = 1_000
const AVERAGE_WEIGHT = 0.1
/** Burst after a quiet time, as a share of one minute's messages. */
const BURST_SHARE = 1 / 6

/** Back-off durations when the site asked for none, ms. */
export interface BackoffLimits {
  readonly firstMs: number
  readonly maxMs: number
}

/**
 * A back-off is never longer than the operator's retry delays.
 *
 * @param retry the queue's retry delays
 */
export function siteBackoff({ firstMs, maxMs }: BackoffPolicy): BackoffLimits {
  return { firstMs: Math.min(FIRST_BACKOFF_MS, firstMs), maxMs: Math.min(MAX_BACKOFF_MS, maxMs) }
}

export class SitePace {
  private readonly clock: Clock
  private limits: SiteLimits
  private readonly backoffLimits: BackoffLimits
  private active = 0
  private activeSmall = 0
  /** Concurrent deliveries allowed; fractional. */
  private window: number
  /**
   * Below it the window grows by one per success, above it by one per window of successes (as TCP congestion control
   * does).
   */
  private threshold: number
  private lastShrinkAt = -Infinity
  private answeredAt = -Infinity
  /** Consecutive deliveries that ended without an answer. */
  private failureStreak = 0
  /** Since when small messages are in progress without one having ended. */
  private lastProgressAt = 0
  /** While the site is silent: when one more delivery may probe it. */
  private nextProbeAt = -Infinity
  private successStreak = 0
  /** Back-offs since the last reset. */
  private backoffCount = 0
  private backoffUntil = -Infinity
  private isProbing = true
  /** Exponential moving average. */
  private averageDurationMs: number | undefined
  private tokens: number
  private tokensAt: number
  /** When a slot was last taken or freed (monotonic, ms). */
  private movedAt: number

  /** @param isShared other nodes may deliver to the site as well, so it gets no burst to begin with */
  constructor(clock: Clock, limits: SiteLimits, restLengths: BackoffLimits, isShared = false) {
    this.clock = clock
    this.limits = limits
    this.backoffLimits = restLengths
    this.window = Math.max(1, Math.min(FIRST_WINDOW, limits.connections))
    this.threshold = limits.connections
    this.tokens = isShared ? 1 : this.burst
    this.tokensAt = this.movedAt = clock.monotonic()
  }

  /** How many messages may be claimed now, including a few prefetched for a fast site. */
  get freeSlots(): number {
    if (this.concurrency === 0) return 0
    const free = Math.min(this.concurrency + this.prefetchSlots - this.active, this.takeableTokens())
    if (this.isSilent) return free > 0 && this.clock.monotonic() >= this.nextProbeAt ? 1 : 0
    return Math.max(0, free)
  }

  /** Concurrent deliveries allowed; 0 during back-off, and while it is other nodes' turn. */
  get concurrency(): number {
    if (this.isBackingOff || this.limits.connections < 1) return 0
    return this.isProbing || this.standing === 'new' ? 1 : Math.floor(this.window)
  }

  /** As many as start within about `PREFETCH_MS`. */
  private get prefetchSlots(): number {
    if (
      this.successStreak < STREAK_TO_RESET ||
      this.averageDurationMs === undefined ||
      this.limits.messagesPerMinute > 0
    )
      return 0
    return Math.floor(this.window * Math.min(1, PREFETCH_MS / this.averageDurationMs))
  }

  /**
   * Call it after a configuration reload, or when this node's share changed. What was learnt about the site is kept.
   *
   * @param isShare what was saved up of the rate is kept as well, so that changes of shares add no bursts
   */
  setLimits(limits: SiteLimits, isShare = false): void {
    const { connections, messagesPerMinute } = this.limits
    if (limits.connections === connections && limits.messagesPerMinute === messagesPerMinute) return
    const saved = this.takeableTokens() === Infinity ? 1 : this.tokens
    this.limits = limits
    this.window = Math.max(1, Math.min(this.window, limits.connections))
    this.threshold = Math.max(this.threshold, limits.connections)
    this.tokens = isShare ? Math.min(saved, this.burst) : this.burst
    this.tokensAt = this.clock.monotonic()
  }

  get standing(): Standing {
    if (this.failureStreak >= FAILURES_BEFORE_BACKOFF) return 'doubtful'
    if (this.clock.monotonic() - this.answeredAt < PROVEN_MS) return this.isSilent ? 'doubtful' : 'proven'
    return this.failureStreak > 0 ? 'doubtful' : 'new'
  }

  /** How long a delivery may take while other sites wait for its connection, ms; Infinity if the site answers. */
  get patienceMs(): number {
    if (this.standing === 'proven') return Infinity
    return Math.min(MAX_PATIENCE_MS, FIRST_PATIENCE_MS * 2 ** this.failureStreak)
  }

  /**
   * When slots may become free without a delivery ending (monotonic, ms): the end of a back-off, the next rate token,
   * or a probe of a silent site; undefined if only an ended delivery can free one.
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

  get isUnreachable(): boolean {
    return this.isBackingOff && this.failureStreak > 0
  }

  /** How long it has had no free slot without one having been taken or freed, ms; 0 during a back-off. */
  get stuckMs(): number {
    return this.isBackingOff || this.freeSlots > 0 ? 0 : this.clock.monotonic() - this.movedAt
  }

  get isIdle(): boolean {
    return this.active === 0
  }

  get isForgettable(): boolean {
    return !this.isBackingOff && this.backoffCount === 0 && this.standing === 'new'
  }

  get state(): {
    active: number
    window: number
    backoffLeftMs: number | undefined
    /** Until its rate allows another message; undefined if it does now. */
    rateLeftMs: number | undefined
  } {
    const { nextSlotAt } = this
    const isRateUsedUp = !this.isBackingOff && this.takeableTokens() < 1 && nextSlotAt !== undefined
    return {
      active: this.active,
      window: this.isProbing ? 1 : Math.floor(this.window),
      backoffLeftMs: this.isBackingOff ? this.backoffUntil - this.clock.monotonic() : undefined,
      rateLeftMs: isRateUsedUp ? nextSlotAt - this.clock.monotonic() : undefined,
    }
  }

  /** Another node was asked to wait, or could not reach the site. @returns whether this node waits longer for it */
  joinBackoff(leftMs: number): boolean {
    const until = this.clock.monotonic() + leftMs
    if (until - this.backoffUntil < SAME_BACKOFF_MS) return false
    this.backoffUntil = until
    this.isProbing = true
    return true
  }

  /** One message probes the site now. If it fails, back-offs continue to grow. */
  resetBackoff(): void {
    this.backoffUntil = -Infinity
  }

  reserve(count: number, isLarge = false): void {
    const now = this.clock.monotonic()
    this.movedAt = now
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

  release(count: number, isLarge = false): void {
    this.active -= count
    if (!isLarge) this.activeSmall -= count
    if (this.limits.messagesPerMinute > 0) this.tokens += count
  }

  /** @param durationMs how long the delivery took, if known */
  end(signal: PaceSignal, durationMs?: number, isLarge = false): void {
    this.active -= 1
    this.movedAt = this.clock.monotonic()
    if (!isLarge) this.activeSmall -= 1
    if (signal.kind === 'success' && durationMs !== undefined)
      this.averageDurationMs =
        AVERAGE_WEIGHT * durationMs + (1 - AVERAGE_WEIGHT) * (this.averageDurationMs ?? durationMs)
    if (signal.kind !== 'unreachable' && signal.kind !== 'none') this.noteAnswer()
    switch (signal.kind) {
      case 'none':
        break
      case 'success':
        this.grow()
        break
      case 'neutral':
        // It answered, which is no reason to go faster.
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

  /** Large messages take long anyway, so they do not count. */
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

  /** Sessions that were open when the back-off began report the same failure, so only a requested delay extends it. */
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
  | { readonly kind: 'asked'; readonly waitMs: number | undefined }

/** Failures of our own: they say nothing about the site. */
const OWN_FAILURES: ReadonlySet<string> = new Set([
  'shutdown',
  'internal_error',
  'worker_lost',
  'signing_key',
])

/**
 * Failures of one message or recipient domain at a site that may serve thousands of others: extensions the message
 * needs, or what the domain's own records forbid.
 */
const MESSAGE_FAILURES: ReadonlySet<string> = new Set([
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
      if (MESSAGE_FAILURES.has(outcome.subtype)) return { kind: 'neutral' }
      if (outcome.reply === undefined) return { kind: 'unreachable' }
      if (isRateLimit(outcome)) return { kind: 'asked', waitMs: outcome.retryAfterMs }
      return { kind: outcome.reply.code === 421 || BUSY.has(outcome.subtype) ? 'busy' : 'neutral' }
  }
}

/** Greylisting also names a delay, but for one recipient only: its scope is the address. */
function isRateLimit({ cause, scope }: Classification): boolean {
  return scope === 'source' && cause !== 'config'
}
