/**
 * How much mail without a token of ours is taken: from one client, and from all together; and how much about one message.
 *
 * Asked by the receiver while mail arrives. Anybody may write to postmaster@ or send a report, and none of it is worth more
 * than a bound; whoever is refused is told to come later, and honest servers do. Mail to signed addresses is held only to
 * what one message can bring back, which its own token keeps apart from all others. Allowances refill evenly over an hour
 * (a day for a message) by the monotonic clock. Memory: a fixed number of clients and messages, the oldest forgotten first.
 * Fails: with SmtpRefusal (RFC 5321 §4.2.1: 4yz, try again).
 */
import { addressKey } from '../../world/net/ip-address.js'
import { SmtpRefusal } from '../../smtp/receiver.js'
import type { Clock } from '../../world/time/clock.js'

/** Of mail without a token; 0 = no limit. */
export interface IntakeLimits {
  /** Mails in a minute from one client. */
  readonly mailsPerMinute: number
  /** Octets in an hour from one client, and from all together. */
  readonly octetsPerHour: number
  readonly octetsPerHourInAll: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A message to a list may bring a hundred absence notices back; nothing brings more. */
const MAILS_PER_MESSAGE = 100
const OCTETS_PER_MESSAGE = 20_000_000
const MAX_BUCKETS = 65_536

export class IntakeLimiter {
  private readonly mails: TokenBuckets
  private readonly octets: TokenBuckets
  private readonly all: TokenBuckets
  private readonly messageMails: TokenBuckets
  private readonly messageOctets: TokenBuckets

  constructor(limits: IntakeLimits, clock: Clock) {
    const allowances = (amount: number, periodMs: number) => new TokenBuckets(amount, periodMs, clock)
    this.mails = allowances(limits.mailsPerMinute, MINUTE_MS)
    this.octets = allowances(limits.octetsPerHour, HOUR_MS)
    this.all = allowances(limits.octetsPerHourInAll, HOUR_MS)
    this.messageMails = allowances(MAILS_PER_MESSAGE, DAY_MS)
    this.messageOctets = allowances(OCTETS_PER_MESSAGE, DAY_MS)
  }

  /** A mail without a token begins. @throws SmtpRefusal */
  beginUnsigned(peerAddress: string): void {
    const key = addressKey(peerAddress)
    if (!this.mails.take(key, 1))
      throw new SmtpRefusal(421, '4.7.0', 'too many mails from your address, try again later', true)
    if (!this.octets.hasAny(key) || !this.all.hasAny(ALL)) throw tooMuch()
  }

  /** Octets of it have come; what came of a mail that is refused is not given back. @throws SmtpRefusal */
  takeUnsigned(peerAddress: string, octets: number): void {
    if (!this.octets.take(addressKey(peerAddress), octets) || !this.all.take(ALL, octets)) throw tooMuch()
  }

  /** A mail about this message begins. @throws SmtpRefusal */
  beginSigned(messageId: string): void {
    if (!this.messageMails.take(messageId, 1)) throw tooMuchForMessage()
  }

  /** @throws SmtpRefusal */
  takeSigned(messageId: string, octets: number): void {
    if (!this.messageOctets.take(messageId, octets)) throw tooMuchForMessage()
  }
}

const ALL = ''

/** So much of something for each name, refilled evenly over a period. */
class TokenBuckets {
  private readonly amount: number
  private readonly periodMs: number
  private readonly clock: Clock
  /** What is used up, at a moment of the monotonic clock; in the order in which they came. */
  private readonly used = new Map<string, { amount: number; at: number }>()

  /** @param amount 0 = no limit */
  constructor(amount: number, periodMs: number, clock: Clock) {
    this.amount = amount
    this.periodMs = periodMs
    this.clock = clock
  }

  hasAny(name: string): boolean {
    return this.amount === 0 || this.usedBy(name) < this.amount
  }

  /** @returns false where there is not so much left; nothing is taken then */
  take(name: string, amount: number): boolean {
    if (this.amount === 0) return true
    const total = this.usedBy(name) + amount
    if (total > this.amount) return false
    // Whoever is counted anew is the newest.
    this.used.delete(name)
    if (this.used.size >= MAX_BUCKETS)
      for (const oldest of this.used.keys()) {
        this.used.delete(oldest)
        break
      }
    this.used.set(name, { amount: total, at: this.clock.monotonic() })
    return true
  }

  private usedBy(name: string): number {
    const one = this.used.get(name)
    if (!one) return 0
    const refilled = ((this.clock.monotonic() - one.at) * this.amount) / this.periodMs
    return Math.max(0, one.amount - refilled)
  }
}

function tooMuch(): SmtpRefusal {
  return new SmtpRefusal(452, '4.3.1', 'too much mail without a return path of ours, try again later')
}

function tooMuchForMessage(): SmtpRefusal {
  return new SmtpRefusal(452, '4.3.1', 'too much mail about this message, try again later')
}
