/**
 * A fair queue by priority and workspace.
 *
 * Transactional mail goes first, but every fourth turn is for campaigns. Within a priority, workspaces take turns, so
 * one that mails a thousand domains does not delay one that mails a single domain. Used for sites that wait for
 * connections and for destinations that wait for DNS. Pure. An item may wait for several workspaces and is removed for
 * all of them at once.
 */

/** The workspace and kind of mail an item waits for. */
export interface Claimant {
  readonly isBulk: boolean
  readonly workspaceId: string
}

const BULK_TURN_EVERY = 4

/**
 * Order within a workspace. `oldest`: first in, first out. `both ends`: alternates oldest and newest, so that where
 * each item can take long a new one is not behind a thousand that will fail.
 */
export type Order = 'oldest' | 'both ends'

/** Items by workspace; the workspace served last is at the end. */
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

  /** Removes and returns the next item. @param mayBulk whether campaigns may have the turn */
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

class Waiting<T> {
  private readonly items = new Set<T>()
  /** The same as a stack; may contain items that were removed. */
  private stack: T[] = []
  private turns = 0

  get size(): number {
    return this.items.size
  }

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
