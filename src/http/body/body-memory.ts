/**
 * The memory that request bodies in hand may take: small ones from one share, large ones from another, so that uploads never
 * keep a mail of a few lines out.
 *
 * Used by `body.ts`. A body keeps what it took until its request is answered. Fails: AppError unavailable where there is no
 * room, with a time after which it may be tried again.
 */
import { AppError } from '../../core/errors.js'
import { SMALL_BODY } from './json-whole.js'
import { OctetShares, type OctetHold } from './octet-shares.js'

/** Octets of small bodies in all. A key with two thousand of them under way is not in want of more. */
const SMALL_TOTAL = 128 * 1_024 * 1_024
/** Octets of large bodies in all, where no single body may be so large that two do not fit. */
const LARGE_TOTAL = 256 * 1_024 * 1_024
const COME_AGAIN_MS = 5_000

export class BodyMemory {
  private readonly small = new OctetShares({ total: SMALL_TOTAL, perHolder: SMALL_TOTAL / 4 })
  private readonly large: OctetShares

  /** @param largest octets of the largest body of any route */
  constructor(largest: number) {
    const total = Math.max(LARGE_TOTAL, 2 * largest)
    this.large = new OctetShares({ total, perHolder: total / 2 })
  }

  hold(holder: string): BodyHold {
    return new BodyHold(this.small.hold(holder), this.large.hold(holder))
  }
}

/** What one body takes; it moves to the share of large ones when it grows. */
export class BodyHold {
  private readonly small: OctetHold
  private readonly large: OctetHold
  private taken = 0
  private isLarge = false
  private isOver = false

  constructor(small: OctetHold, large: OctetHold) {
    this.small = small
    this.large = large
  }

  /** Takes so many octets in all, where it has not as many already. @throws AppError unavailable */
  reach(octets: number): void {
    if (octets <= this.taken || this.isOver) return
    const wasSmall = !this.isLarge
    this.isLarge ||= octets > SMALL_BODY
    const share = this.isLarge ? this.large : this.small
    if (!share.take(octets - (this.isLarge && wasSmall ? 0 : this.taken)))
      throw new AppError(
        'unavailable',
        'too much is being uploaded at the moment; try again in a few seconds',
        {
          retryAfterMs: COME_AGAIN_MS,
        },
      )
    if (this.isLarge && wasSmall) this.small.release()
    this.taken = octets
  }

  release(): void {
    this.isOver = true
    this.small.release()
    this.large.release()
  }
}
