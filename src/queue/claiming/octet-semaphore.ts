/**
 * Bounds the memory of large messages in progress, with fair shares.
 *
 * A denied holder (a site) does not wait here; `onFreed` says when to ask again. A holder gets at most a quarter, all
 * unproven sites together at most half; a holder with nothing may always take one message, even a larger one. A request
 * denied only because of the total is next in line, so that smaller ones do not starve it.
 */
import type { Clock } from '../../world/time/clock.js'

interface Denied {
  readonly octets: number
  readonly isProven: boolean
  /** Until this moment (monotonic, ms) others are denied. -Infinity if only the holder's own share was exhausted. */
  readonly priorityUntil: number
}

/** Limits how long a site that starts to back off blocks the others. */
const PRIORITY_MS = 30_000

export class OctetSemaphore<Holder extends object> {
  private readonly clock: Clock
  private readonly total: number
  private readonly onFreed: () => void
  private held = 0
  private heldByUnproven = 0
  private readonly holders = new Map<Holder, number>()
  private readonly denied = new Map<Holder, Denied>()

  /** @param onFreed called when memory was freed and `mayTake` may have changed */
  constructor(clock: Clock, total: number, onRoom: () => void) {
    this.clock = clock
    this.total = total
    this.onFreed = onRoom
  }

  get heldOctets(): number {
    return this.held
  }

  mayTake(holder: Holder): boolean {
    const own = this.denied.get(holder)
    if (own && !this.fits(holder, own.octets, own.isProven)) return false
    return this.prioritized(holder) === undefined
  }

  /** @returns a function that frees the memory, or undefined if denied */
  take(holder: Holder, octets: number, isProven: boolean): (() => void) | undefined {
    const wanted = Math.min(octets, this.total)
    if (this.prioritized(holder) !== undefined || !this.fits(holder, wanted, isProven)) {
      this.noteDenied(holder, wanted, isProven)
      return undefined
    }
    this.denied.delete(holder)
    this.add(holder, wanted, isProven)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.add(holder, -wanted, isProven)
      this.onFreed()
    }
  }

  private fits(holder: Holder, octets: number, isProven: boolean): boolean {
    if (this.held > 0 && this.held + octets > this.total) return false
    return this.isWithinShares(holder, octets, isProven)
  }

  private isWithinShares(holder: Holder, octets: number, isProven: boolean): boolean {
    const own = this.holders.get(holder) ?? 0
    if (own > 0 && own + octets > this.total / 4) return false
    return isProven || this.heldByUnproven === 0 || this.heldByUnproven + octets <= this.total / 2
  }

  /** The denied holder that must be served before this one. */
  private prioritized(holder: Holder): Holder | undefined {
    const now = this.clock.monotonic()
    for (const [other, { priorityUntil: goesFirstUntil }] of this.denied) {
      if (other === holder) return undefined
      if (goesFirstUntil > now) return other
    }
    return undefined
  }

  private noteDenied(holder: Holder, octets: number, isProven: boolean): void {
    const lacksRoomOfAll = this.isWithinShares(holder, octets, isProven)
    const known = this.denied.get(holder)
    const goesFirstUntil =
      known?.priorityUntil ?? (lacksRoomOfAll ? this.clock.monotonic() + PRIORITY_MS : -Infinity)
    this.denied.set(holder, { octets, isProven, priorityUntil: goesFirstUntil })
  }

  private add(holder: Holder, octets: number, isProven: boolean): void {
    this.held += octets
    if (!isProven) this.heldByUnproven += octets
    const own = (this.holders.get(holder) ?? 0) + octets
    if (own > 0) this.holders.set(holder, own)
    else this.holders.delete(holder)
    // Entries of holders that never ask again would otherwise stay for ever.
    if (this.held === 0) this.denied.clear()
  }
}
