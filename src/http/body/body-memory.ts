/**
 * Memory budget of request bodies. Small and large bodies have separate shares, so that uploads never block a short message.
 *
 * Used by `body.ts`. A body holds its memory until its request is answered. Fails: AppError unavailable with a retry time if the
 * share is used up.
 */
import { AppError } from '../../core/errors.js'
import { SMALL_BODY } from './json-whole.js'
import { OctetShares, type OctetHold } from './octet-shares.js'

/** Octets of all small bodies; enough for two thousand of them. */
const SMALL_TOTAL = 128 * 1_024 * 1_024
/** Octets of all large bodies; raised if two of the largest would not fit. */
const LARGE_TOTAL = 256 * 1_024 * 1_024
const RETRY_AFTER_MS = 5_000

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

/** Memory held by one body; it moves to the large share when the body grows. */
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

  /** Raises the total held to `octets`. @throws AppError unavailable */
  reach(octets: number): void {
    if (octets <= this.taken || this.isOver) return
    const wasSmall = !this.isLarge
    this.isLarge ||= octets > SMALL_BODY
    const share = this.isLarge ? this.large : this.small
    if (!share.take(octets - (this.isLarge && wasSmall ? 0 : this.taken)))
      throw new AppError('unavailable', 'too many uploads are in progress; try again in a few seconds', {
        retryAfterMs: RETRY_AFTER_MS,
      })
    if (this.isLarge && wasSmall) this.small.release()
    this.taken = octets
  }

  release(): void {
    this.isOver = true
    this.small.release()
    this.large.release()
  }
}
