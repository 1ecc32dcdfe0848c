/**
 * A line in which those who wait take turns: mail that people wait for goes before campaigns, but every fourth turn is the
 * campaigns'; within a priority workspaces take turns, so that one that mails a thousand domains does not stand before
 * another that mails one.
 *
 * Used for destinations whose site is to be found and for sites that wait for a connection. Pure; an item may stand in it for
 * several workspaces and leaves it as one.
 */

/** On whose behalf an item waits. */
export interface Claimant {
  readonly isBulk: boolean
  readonly workspaceId: string
}

const BULK_TURN_EVERY = 4

/**
 * Who is next within a workspace. `oldest`: first come, first served. `both ends`: by turns who has waited longest and who
 * came last; where each turn can take long, what has just come is then not behind a thousand that will fail.
 */
export type Order = 'oldest' | 'both ends'

/** By workspace, both in order of turns: who was served goes to the end. */
type Half<T> = Map<string, Waiting<T>>

export class FairQueue<T> {
  private readonly order: Order
  private readonly transactional: Half<T> = new Map()
  private readonly bulk: Half<T> = new Map()
  private readonly claimants = new Map<T, Claimant[]>()
  private turns = 0

  constructor(order: Order) {
    this.order = order
  }

  get size(): number {
    return this.claimants.size
  }

  /** Whether somebody waits, for campaigns alone or not. */
  hasWaiting(mayBulk: boolean): boolean {
    return this.transactional.size > 0 || (mayBulk && this.bulk.size > 0)
  }

  add(item: T, claimant: Claimant): void {
    const half = this.halfOf(claimant)
    const waiting = half.get(claimant.workspaceId) ?? new Waiting<T>()
    half.set(claimant.workspaceId, waiting)
    if (!waiting.add(item)) return
    const known = this.claimants.get(item)
    if (known) known.push(claimant)
    else this.claimants.set(item, [claimant])
  }

  delete(item: T): void {
    for (const claimant of this.claimants.get(item) ?? []) {
      const half = this.halfOf(claimant)
      const waiting = half.get(claimant.workspaceId)
      waiting?.delete(item)
      if (waiting?.size === 0) half.delete(claimant.workspaceId)
    }
    this.claimants.delete(item)
  }

  /** Takes out who is next. @param mayBulk whether campaigns have a turn at all @returns also on whose behalf */
  next(mayBulk: boolean): { readonly item: T; readonly isBulk: boolean } | undefined {
    this.turns += 1
    const isBulkTurn = this.turns % BULK_TURN_EVERY === 0
    const halves = isBulkTurn ? [this.bulk, this.transactional] : [this.transactional, this.bulk]
    const half = halves.find(one => one.size > 0 && (mayBulk || one !== this.bulk))
    const item = half && this.nextOf(half)
    if (item === undefined) return undefined
    this.delete(item)
    return { item, isBulk: half === this.bulk }
  }

  private nextOf(half: Half<T>): T | undefined {
    for (const [workspaceId, waiting] of half) {
      half.delete(workspaceId)
      half.set(workspaceId, waiting)
      return waiting.next(this.order)
    }
    return undefined
  }

  private halfOf({ isBulk }: Claimant): Half<T> {
    return isBulk ? this.bulk : this.transactional
  }
}

/** Those of one workspace, in the order in which they came. */
class Waiting<T> {
  private readonly items = new Set<T>()
  /** The same, to be taken from the end; those that left are still in it. */
  private stack: T[] = []
  private turns = 0

  get size(): number {
    return this.items.size
  }

  /** @returns whether it is new */
  add(item: T): boolean {
    if (this.items.has(item)) return false
    this.items.add(item)
    this.stack.push(item)
    if (this.stack.length > 2 * this.items.size + 100) this.stack = [...this.items]
    return true
  }

  delete(item: T): void {
    this.items.delete(item)
  }

  next(order: Order): T | undefined {
    this.turns += 1
    if (order === 'both ends' && this.turns % 2 === 1) return this.newest()
    const [oldest] = this.items
    return oldest
  }

  private newest(): T | undefined {
    for (;;) {
      const item = this.stack.pop()
      if (item === undefined || this.items.has(item)) return item
    }
  }
}
