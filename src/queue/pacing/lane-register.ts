/**
 * The lanes with mail and their state. Only this class changes a lane's state.
 *
 * A lane is in exactly one state, which says where it is kept:
 *
 *   waiting     in the heap of due times here; without a due time only registered, until its claimed messages are settled
 *   locating    by destination here, until its site is known
 *   queued      in the queue of its site (`site.ts`)
 *   claiming    with the claim that is reading its rows
 *
 * Invariant: for every unclaimed message of a lane on disk, the lane's due time is not later than the message's, or a call
 * that reports the message is still to come (`note`, `endClaim` or `settle`). So no message is forgotten, and a claim reads
 * from the lane's due time on. It holds in any order of commits, claims and notes: callers note a message after committing
 * it, so a claim that begins after the note reads it. A claim that has begun may have missed it, so a due time noted
 * meanwhile is kept and the earlier of both counts. Lanes of held campaigns are
 * the exception: they have no due time until all lanes are noted again after the release.
 */
import { KeyedHeap } from '../../core/keyed-heap.js'
import { laneFromKey, type Lane, type LaneState } from '../lane.js'

/** Of one destination, when its mail is counted. */
const MAX_LANES = 50

export class LaneRegister {
  private readonly isHeld: (lane: Lane) => boolean
  private readonly lanes = new Map<string, Lane>()
  private readonly waiting = new KeyedHeap<Lane>()
  private readonly locating = new Map<string, Set<Lane>>()

  constructor(isHeld: (lane: Lane) => boolean = () => false) {
    this.isHeld = isHeld
  }

  get size(): number {
    return this.lanes.size
  }

  get dueTimes(): number {
    return this.waiting.size
  }

  /** Earliest due time, ms since epoch UTC. */
  get nextDueAt(): number | undefined {
    return this.waiting.nextKey
  }

  /** A committed message of this lane falls due at `dueAt`. */
  note(key: string, dueAt: number): void {
    const lane = this.lanes.get(key) ?? laneFromKey(key)
    if (this.isHeld(lane)) return
    this.lanes.set(key, lane)
    lane.dueAt = Math.min(lane.dueAt, dueAt)
    if (lane.state === 'waiting') this.waiting.set(lane, lane.dueAt)
  }

  /**
   * Counts a message that is stored already claimed, and so gives its lane no due time.
   *
   * @param like the lane as its key says
   * @returns undefined if the lane is held, or has mail that goes first
   */
  claimNew(like: Lane): Lane | undefined {
    const lane = this.lanes.get(like.key) ?? like
    if (lane.state !== 'waiting' || this.isHeld(lane)) return undefined
    this.lanes.set(lane.key, lane)
    lane.claimedCount += 1
    return lane
  }

  /** Removes a due lane from the heap; the caller queues or locates it. */
  takeDue(now: number): Lane | undefined {
    return this.waiting.popUpTo(now)
  }

  locate(lane: Lane): void {
    this.move(lane, 'locating')
  }

  /** Lanes that waited for this destination's site, longest first; the caller queues them. */
  takeLocated(destination: string): readonly Lane[] {
    return [...(this.locating.get(destination) ?? [])]
  }

  enqueue(lane: Lane): void {
    this.move(lane, 'queued')
  }

  /** The claim reads every message noted until now. */
  beginClaim(lane: Lane): void {
    this.move(lane, 'claiming')
    lane.dueAt = Infinity
  }

  /**
   * @param claimed how many messages were claimed
   * @param nextDueAt due time of the next unclaimed message
   */
  endClaim(lane: Lane, claimed: number, nextDueAt: number | undefined): void {
    lane.claimedCount += claimed
    lane.dueAt = this.isHeld(lane) ? Infinity : Math.min(lane.dueAt, nextDueAt ?? Infinity)
    this.move(lane, 'waiting')
    this.forgetIfIdle(lane)
  }

  /**
   * Held lanes that are not claiming, undefined for others. Lanes added or removed during the iteration may be missed.
   */
  *heldLanes(): Generator<Lane | undefined> {
    for (const lane of this.lanes.values())
      yield lane.state !== 'claiming' && this.isHeld(lane) ? lane : undefined
  }

  /** Destinations with due mail, those with most claimed messages first. @param most how many */
  busiest(most: number): { destination: string; lanes: string[] }[] {
    const found = new Map<string, { destination: string; claimed: number; lanes: string[] }>()
    for (const { destination, claimedCount, state, key } of this.lanes.values()) {
      if (claimedCount === 0 && state === 'waiting') continue
      const one = found.get(destination) ?? { destination, claimed: 0, lanes: [] }
      found.set(destination, one)
      one.claimed += claimedCount
      if (one.lanes.length < MAX_LANES) one.lanes.push(key)
    }
    return [...found.values()].sort((a, b) => b.claimed - a.claimed).slice(0, most)
  }

  /** Clears the due time of a held lane. The caller removes it from its site's queue first. */
  hold(lane: Lane): void {
    lane.dueAt = Infinity
    this.move(lane, 'waiting')
    this.forgetIfIdle(lane)
  }

  /** A claimed message was settled or released. @param dueAt when it falls due again, if it stays queued */
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
