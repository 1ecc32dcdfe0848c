/**
 * Rate limits of inbound mail: unsigned mail per client and in total, signed mail per message.
 *
 * Unsigned mail (postmaster@, reports, ...) can come from anyone, so it is limited; honest servers retry. Signed mail
 * is limited only by what a single message can bring back. Limits refill evenly over their period, on the monotonic
 * clock. The number of buckets is bounded, the oldest is forgotten first. Rejects with a temporary SmtpRefusal (RFC
 * 5321 §4.2.1).
 */
import { addressKey } from '../../world/net/ip-address.js'
import { SmtpRefusal } from '../../smtp/receiver.js'
import type { Clock } from '../../world/time/clock.js'

/** Limits of unsigned mail; 0 = unlimited. */
export interface IntakeLimits {
  readonly mailsPerMinute: number
  /** Bytes an hour from one client, and from all clients. */
  readonly octetsPerHour: number
  readonly octetsPerHourInAll: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A message to a mailing list may cause a hundred absence notices. */
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

  /** Admits an unsigned mail. @throws SmtpRefusal */
  beginUnsigned(peerAddress: string): void {
    const key = addressKey(peerAddress)
    if (!this.mails.take(key, 1))
      throw new SmtpRefusal(421, '4.7.0', 'too many mails from your address, try again later', true)
    if (!this.octets.isAvailable(key) || !this.all.isAvailable(ALL)) throw tooMuch()
  }

  /** Counts bytes received, also those of mail that is rejected later. @throws SmtpRefusal */
  takeUnsigned(peerAddress: string, octets: number): void {
    if (!this.octets.take(addressKey(peerAddress), octets) || !this.all.take(ALL, octets)) throw tooMuch()
  }

  /** Admits a mail about this message. @throws SmtpRefusal */
  beginSigned(messageId: string): void {
    if (!this.messageMails.take(messageId, 1)) throw tooMuchForMessage()
  }

  /** @throws SmtpRefusal */
  takeSigned(messageId: string, octets: number): void {
    if (!this.messageOctets.take(messageId, octets)) throw tooMuchForMessage()
  }
}

const ALL = ''

class TokenBuckets {
  private readonly amount: number
  private readonly periodMs: number
  private readonly clock: Clock
  /** Amount used, as of a monotonic time; least recently updated first. */
  private readonly used = new Map<string, { amount: number; at: number }>()

  /** @param amount 0 = unlimited */
  constructor(amount: number, periodMs: number, clock: Clock) {
    this.amount = amount
    this.periodMs = periodMs
    this.clock = clock
  }

  isAvailable(name: string): boolean {
    return this.amount === 0 || this.usedBy(name) < this.amount
  }

  /** @returns false, and takes nothing, if not enough is left */
  take(name: string, amount: number): boolean {
    if (this.amount === 0) return true
    const total = this.usedBy(name) + amount
    if (total > this.amount) return false
    // Moves it to the end.
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
  return new SmtpRefusal(452, '4.3.1', 'too much mail without a signed return path, try again later')
}

function tooMuchForMessage(): SmtpRefusal {
  return new SmtpRefusal(452, '4.3.1', 'too much mail about this message, try again later')
}
