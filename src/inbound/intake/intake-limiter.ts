/**
 * Rate limits of inbound mail: unsigned mail per client and in total, signed mail per message.
 *
 * Unsigned mail (postmaster@, reports, ...) can come from anyone, so it is limited, over all nodes; honest servers retry. Signed mail
 * is limited only by what a single message can bring back, at each node. A tenth of what may come from all is kept for networks that have sent little. Those limits refill evenly over their period, on the monotonic
 * clock. The number of buckets is bounded, the oldest is forgotten first. Rejects with a temporary SmtpRefusal (RFC
 * 5321 §4.2.1).
 */
import { SlidingWindow, type OpenWindow } from '../../http/sliding-window.js'
import { addressHolder, addressKey } from '../../world/net/ip-address.js'
import { SmtpRefusal } from '../../smtp/receiver.js'
import type { Clock } from '../../world/time/clock.js'

/** Limits of unsigned mail; 0 = unlimited. */
export interface IntakeLimits {
  readonly mailsPerMinute: number
  /** Bytes an hour from one client, and from all clients. */
  readonly octetsPerHour: number
  readonly octetsPerHourInAll: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** A message to a mailing list may cause a hundred absence notices. */
const MAILS_PER_MESSAGE = 100
const OCTETS_PER_MESSAGE = 20_000_000
const MAX_BUCKETS = 65_536
/** KiB an hour up to which a network may use what is kept. */
const LITTLE_KIB = 1_024
/** Part of the total for networks that have sent more. */
const UNKEPT = 0.9

export class IntakeLimiter {
  private readonly limits: IntakeLimits
  private readonly mails: SlidingWindow
  /** In KiB, since a window counts up to 4 billion. */
  private readonly sizes: SlidingWindow
  private readonly messageMails: TokenBuckets
  private readonly messageOctets: TokenBuckets

  /** @param openWindow default: counts for this process alone */
  constructor(
    limits: IntakeLimits,
    clock: Clock,
    openWindow: OpenWindow = (_, windowMs) => new SlidingWindow(clock, windowMs),
  ) {
    this.limits = limits
    this.mails = openWindow('unsigned mails of an address')
    this.sizes = openWindow('size of unsigned mails', HOUR_MS)
    this.messageMails = new TokenBuckets(MAILS_PER_MESSAGE, DAY_MS, clock)
    this.messageOctets = new TokenBuckets(OCTETS_PER_MESSAGE, DAY_MS, clock)
  }

  /** Admits an unsigned mail. @throws SmtpRefusal */
  async beginUnsigned(peerAddress: string): Promise<void> {
    const { mailsPerMinute } = this.limits
    const key = addressKey(peerAddress)
    await this.mails.prepare(key, 1, mailsPerMinute)
    if (!this.mails.take(key, 1, mailsPerMinute).isAllowed)
      throw new SmtpRefusal(421, '4.7.0', 'too many mails from your address, try again later', true)
    for (const { name, limit } of this.sizeLimits(peerAddress, 1))
      if (limit > 0 && this.sizes.used(name) >= limit) throw tooMuch()
  }

  /**
   * Counts bytes received, also those of mail that is rejected later.
   *
   * @param before bytes of the mail that were counted already @param size of it with what has come now
   * @throws SmtpRefusal
   */
  async takeUnsigned(peerAddress: string, before: number, size: number): Promise<void> {
    const amount = inKib(size) - inKib(before)
    if (amount === 0) return
    for (const { name, limit } of this.sizeLimits(peerAddress, amount)) {
      await this.sizes.prepare(name, amount, limit)
      if (!this.sizes.take(name, amount, limit).isAllowed) throw tooMuch()
    }
  }

  /** In KiB an hour; 0 = unlimited. @param amount that is about to be counted, KiB */
  private sizeLimits(peerAddress: string, amount: number) {
    const { octetsPerHour, octetsPerHourInAll } = this.limits
    const { owner: network, key: address = '' } = addressHolder(peerAddress)
    const inAll = inKib(octetsPerHourInAll)
    const isLittle = this.sizes.used(network) + amount <= LITTLE_KIB
    return [
      { name: address, limit: inKib(octetsPerHour) },
      // Counted, never exceeded: one network may use all that is not kept.
      { name: network, limit: inAll },
      { name: 'all', limit: isLittle ? inAll : Math.ceil(inAll * UNKEPT) },
    ]
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

function inKib(octets: number): number {
  return Math.ceil(octets / 1_024)
}

class TokenBuckets {
  private readonly amount: number
  private readonly periodMs: number
  private readonly clock: Clock
  /** Amount used, as of a monotonic time; least recently updated first. */
  private readonly used = new Map<string, { amount: number; at: number }>()

  constructor(amount: number, periodMs: number, clock: Clock) {
    this.amount = amount
    this.periodMs = periodMs
    this.clock = clock
  }

  /** @returns false, and takes nothing, if not enough is left */
  take(name: string, amount: number): boolean {
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
