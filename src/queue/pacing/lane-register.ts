/**
 * The lanes with mail, and the state of each: the one place where a lane changes its state.
 *
 * Used by the schedule. A lane is in one state, and its state says where it is kept:
 *
 *   waiting     by its due time here; without one it is only known, until what it has in hand is settled
 *   locating    by its destination here, until its site is known
 *   in line     in its site's line (`site.ts`)
 *   looked at   with whoever took its turn and looks into the database
 *
 * Invariant: for every message of a lane that is on disk and in nobody's hand, the lane is locating or in line, or its due time
 * is no later than the message's, or somebody has yet to say so: a note of it, the end of a look, the end of an attempt. So no
 * mail is left lying. Why it holds in whatever order commits, looks and notes are heard of: who notes something has committed it
 * before, so that a look that begins after the note finds it, and lanes locating and in line need no note. A look that has begun
 * may have missed it: what is noted meanwhile stands beside what the look found, and the earlier of both counts.
 * Lanes of held campaigns are the exception: they have no due time, whatever is noted, until all lanes are noted anew after the release.
 */
import { KeyedHeap } from '../../core/keyed-heap.js'
import { laneFromKey, type Lane, type LaneState } from '../lane.js'

export class LaneRegister {
  private readonly isHeld: (lane: Lane) => boolean
  private readonly lanes = new Map<string, Lane>()
  private readonly waiting = new KeyedHeap<Lane>()
  private readonly locating = new Map<string, Set<Lane>>()

  constructor(isHeld: (lane: Lane) => boolean = () => false) {
    this.isHeld = isHeld
  }

  /** Lanes known. */
  get size(): number {
    return this.lanes.size
  }

  /** Due times kept; at most one for a lane. */
  get dueTimes(): number {
    return this.waiting.size
  }

  /** The earliest of them, ms since epoch UTC. */
  get nextDueAt(): number | undefined {
    return this.waiting.nextKey
  }

  /** Something in this lane falls due then. */
  note(key: string, dueAt: number): void {
    const lane = this.lanes.get(key) ?? laneFromKey(key)
    if (this.isHeld(lane)) return
    this.lanes.set(key, lane)
    if (lane.state === 'locating' || lane.state === 'in line') return
    lane.dueAt = Math.min(lane.dueAt, dueAt)
    if (lane.state === 'waiting') this.waiting.set(lane, lane.dueAt)
  }

  /** One that is due and waits no longer: the caller puts it into a line or has it located. */
  takeDue(now: number): Lane | undefined {
    return this.waiting.popUpTo(now)
  }

  /** Until `takeLocated`. */
  locate(lane: Lane): void {
    this.move(lane, 'locating')
  }

  /** Those that waited for the site of this destination, longest first; the caller puts them into its line. */
  takeLocated(destination: string): readonly Lane[] {
    return [...(this.locating.get(destination) ?? [])]
  }

  enqueue(lane: Lane): void {
    this.move(lane, 'in line')
  }

  /** Out of the line; the look finds all that was noted until now. */
  beginClaim(lane: Lane): void {
    this.move(lane, 'looked at')
    lane.dueAt = Infinity
  }

  /**
   * @param claimed how many messages are in hand since
   * @param nextDueAt when the next one falls due that the look has found
   */
  endClaim(lane: Lane, claimed: number, nextDueAt: number | undefined): void {
    lane.claimedCount += claimed
    lane.dueAt = this.isHeld(lane) ? Infinity : Math.min(lane.dueAt, nextDueAt ?? Infinity)
    this.move(lane, 'waiting')
    this.forgetIfIdle(lane)
  }

  /** Lanes that are held and not out for a look. Those that come or go while they are gone through may be missed. */
  *heldLanes(): Generator<Lane | undefined> {
    for (const lane of this.lanes.values())
      yield lane.state !== 'looked at' && this.isHeld(lane) ? lane : undefined
  }

  /** Its campaign is held: it waits for no moment. The caller takes it out of its line before. */
  hold(lane: Lane): void {
    lane.dueAt = Infinity
    this.move(lane, 'waiting')
    this.forgetIfIdle(lane)
  }

  /** A message is in hand no longer. @param dueAt when it falls due again, if it stays */
  settle(lane: Lane, dueAt: number | undefined): void {
    lane.claimedCount -= 1
    if (dueAt !== undefined) this.note(lane.key, dueAt)
    this.forgetIfIdle(lane)
  }

  private move(lane: Lane, state: LaneState): void {
    if (lane.state === 'waiting') this.waiting.delete(lane)
    if (lane.state === 'locating') this.stopLocating(lane)
    lane.state = state
    if (state === 'waiting' && lane.dueAt < Infinity) this.waiting.set(lane, lane.dueAt)
    if (state === 'locating') this.startLocating(lane)
  }

  private startLocating(lane: Lane): void {
    const others = this.locating.get(lane.destination)
    if (others) others.add(lane)
    else this.locating.set(lane.destination, new Set([lane]))
  }

  private stopLocating(lane: Lane): void {
    const others = this.locating.get(lane.destination)
    others?.delete(lane)
    if (others?.size === 0) this.locating.delete(lane.destination)
  }

  private forgetIfIdle(lane: Lane): void {
    if (lane.state === 'waiting' && lane.dueAt === Infinity && lane.claimedCount === 0)
      this.lanes.delete(lane.key)
  }
}
