/**
 * A bound on memory that large messages under way hold at a time, shared out so that no site takes it from the others.
 *
 * Used by the claimer and the schedule. Who gets nothing does not wait here and holds nothing: it is told when to ask again.
 * One holder (a site) gets a quarter at most, all that have not answered lately half; whoever holds nothing may begin with a
 * message that is larger than that. Where what is left in all was too little for one, it is the next to be given any, so that
 * many smaller ones do not pass it for ever. Pure but for the clock. Fails: never.
 */
import type { Clock } from '../../world/time/clock.js'

/** Somebody who was given nothing. */
interface Denied {
  readonly octets: number
  readonly isProven: boolean
  /** While in the future (monotonic, ms) nobody else is given any; of those whose own share was used up in the past. */
  readonly priorityUntil: number
}

/** A site that rests meanwhile does not come back soon. */
const PRIORITY_MS = 30_000

export class OctetSemaphore<Holder extends object> {
  private readonly clock: Clock
  private readonly total: number
  private readonly onFreed: () => void
  private held = 0
  private heldByUnproven = 0
  private readonly holders = new Map<Holder, number>()
  private readonly denied = new Map<Holder, Denied>()

  /** @param onRoom something was given back: who `mayAsk` now could be given some */
  constructor(clock: Clock, total: number, onRoom: () => void) {
    this.clock = clock
    this.total = total
    this.onFreed = onRoom
  }

  /** Octets under way. */
  get heldOctets(): number {
    return this.held
  }

  /** Whether asking has any prospect. */
  mayTake(holder: Holder): boolean {
    const own = this.denied.get(holder)
    if (own && !this.fits(holder, own.octets, own.isProven)) return false
    return this.prioritized(holder) === undefined
  }

  /** @returns the function that gives it back, or undefined where there is no room */
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

  /** Who goes before this one. */
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
    // Who waits for nothing of its own and was not denied for its size would stay in the list for ever.
    if (this.held === 0) this.denied.clear()
  }
}
