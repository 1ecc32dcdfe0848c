/**
 * Which destinations have something due, and how busy each one is. In memory; one small entry per destination that
 * has mail, whatever the number of messages.
 *
 * Due times are hints, at worst too early: what is really due only the database says. A destination rests in `later`
 * until its time, stands in `due` for its turn, or, all its slots taken, is out of both until one is freed.
 */
import { MinHeap } from '../core/heap.js'

export interface Destination {
  readonly name: string
  /** Earliest known due time, ms since epoch UTC; Infinity when nothing is known to wait. */
  dueAt: number
  /** Messages claimed and not yet settled, each with the time at which its row falls due again. */
  readonly inHand: Map<string, number>
}

export class Destinations {
  private readonly byName = new Map<string, Destination>()
  /** In order of turns: who was served goes to the end. */
  private readonly due = new Set<Destination>()
  private readonly later = new MinHeap<{ readonly destination: Destination; readonly dueAt: number }>()

  get size(): number {
    return this.byName.size
  }

  /** When the next one falls due, or undefined when nothing waits; at worst too early. */
  get nextDueAt(): number | undefined {
    return this.later.nextKey
  }

  /** Something at this destination falls due then. */
  note(name: string, dueAt: number): void {
    let destination = this.byName.get(name)
    if (!destination) {
      destination = { name, dueAt: Infinity, inHand: new Map() }
      this.byName.set(name, destination)
    }
    if (dueAt >= destination.dueAt) return
    destination.dueAt = dueAt
    this.later.push(dueAt, { destination, dueAt })
  }

  /**
   * Takes the destinations whose turn it is out of the line. Their due times are forgotten: whoever takes them looks
   * into the database, and notes what it says; what is noted meanwhile by others still counts.
   *
   * @param isFree whether the destination has a slot; one that has none steps aside until `freed`
   */
  takeTurns(now: number, limit: number, isFree: (destination: Destination) => boolean): Destination[] {
    while ((this.later.nextKey ?? Infinity) <= now) {
      const entry = this.later.pop()
      // An entry that an earlier note overtook is stale.
      if (entry && entry.destination.dueAt === entry.dueAt) this.due.add(entry.destination)
    }
    const turn: Destination[] = []
    for (const destination of this.due) {
      if (turn.length >= limit) break
      this.due.delete(destination)
      if (!isFree(destination)) continue
      destination.dueAt = Infinity
      turn.push(destination)
    }
    return turn
  }

  /** A message of this destination was settled: its slot is free. */
  freed(destination: Destination, messageId: string): void {
    destination.inHand.delete(messageId)
    if (destination.dueAt < Infinity) this.due.add(destination)
    this.forgetIfIdle(destination)
  }

  forgetIfIdle(destination: Destination): void {
    if (destination.dueAt === Infinity && destination.inHand.size === 0) this.byName.delete(destination.name)
  }
}
