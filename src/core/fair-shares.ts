/**
 * Fair division of bounded resources: memory, places, queues and threads that several workspaces or clients share.
 *
 * An owner may hold as much as it leaves free: half of the total if it is alone, a third if there are two, and so on. A part is thus always
 * left for an owner that holds nothing yet, which may take all of it. The keys of an owner divide its share by the same rule. Work that has
 * to wait is served in turns: owners first, then the keys of an owner. `fair-shares.md` lists the resources.
 *
 * Pure; memory is proportional to what is held or waiting.
 */
import type { Holder } from './holder.js'

/** Whose share is used up. */
export type Shortage = 'key' | 'owner' | 'all'

/** Fixed limits besides the total. One per key takes the place of the division among keys. */
export interface ShareLimits {
  readonly perOwner?: number
  readonly perKey?: number
}

interface Held {
  amount: number
  readonly byKey: Map<string, number>
}

export class FairShares {
  private readonly total: number
  private readonly limits: ShareLimits
  private readonly owners = new Map<string, Held>()
  private taken = 0

  constructor(total: number, limits: ShareLimits = {}) {
    this.total = total
    this.limits = limits
  }

  get held(): number {
    return this.taken
  }

  /** @returns why nothing was taken */
  take(holder: Holder, amount = 1): Shortage | undefined {
    const { owner, key } = holder
    const known = this.owners.get(owner)
    const shortage = this.shortageOf(known, key, amount)
    if (shortage !== undefined) return shortage
    const held = known ?? { amount: 0, byKey: new Map<string, number>() }
    this.owners.set(owner, held)
    held.amount += amount
    if (key !== undefined) held.byKey.set(key, (held.byKey.get(key) ?? 0) + amount)
    this.taken += amount
    return undefined
  }

  canTake({ owner, key }: Holder, amount = 1): boolean {
    return this.shortageOf(this.owners.get(owner), key, amount) === undefined
  }

  release({ owner, key }: Holder, amount = 1): void {
    const held = this.owners.get(owner)
    if (!held) return
    this.taken -= amount
    held.amount -= amount
    if (held.amount <= 0) this.owners.delete(owner)
    if (key === undefined) return
    const left = (held.byKey.get(key) ?? 0) - amount
    if (left > 0) held.byKey.set(key, left)
    else held.byKey.delete(key)
  }

  private shortageOf(held: Held | undefined, key: string | undefined, amount: number): Shortage | undefined {
    const { perOwner = Infinity, perKey } = this.limits
    const free = this.total - this.taken - amount
    const ofOwner = (held?.amount ?? 0) + amount
    const ofKey = key === undefined ? 0 : (held?.byKey.get(key) ?? 0)
    if (perKey !== undefined && ofKey + amount > perKey) return 'key'
    if (free < 0) return 'all'
    if (ofOwner > perOwner || (held && ofOwner > free)) return 'owner'
    // Half of what the owner could still take, since taking it also makes less free.
    if (perKey === undefined && ofKey > 0 && ofKey + amount > (free - ofOwner) / 2) return 'key'
    return undefined
  }
}

/** Items that wait for a turn. Within a key the oldest is first. */
export class FairTurns<T> {
  private readonly shares: FairShares
  /** By owner and key; those served last are at the end. */
  private readonly owners = new Map<string, Map<string, { readonly holder: Holder; readonly items: T[] }>>()

  /** @param limit items in total */
  constructor(limit = Infinity) {
    this.shares = new FairShares(limit)
  }

  /** @returns why it was not added */
  add(holder: Holder, item: T): Shortage | undefined {
    const shortage = this.shares.take(holder)
    if (shortage !== undefined) return shortage
    const { owner, key = '' } = holder
    const keys = this.owners.get(owner)
    const line = keys?.get(key)
    if (line) line.items.push(item)
    else if (keys) keys.set(key, { holder, items: [item] })
    else this.owners.set(owner, new Map([[key, { holder, items: [item] }]]))
    return undefined
  }

  /** Removes and returns the next item. @param may whether an item can be served now */
  next(may: (item: T) => boolean = () => true): T | undefined {
    for (const [owner, keys] of this.owners)
      for (const [key, line] of keys) {
        const at = line.items.findIndex(may)
        if (at < 0) continue
        const [item] = line.items.splice(at, 1)
        this.shares.release(line.holder)
        keys.delete(key)
        if (line.items.length > 0) keys.set(key, line)
        this.owners.delete(owner)
        if (keys.size > 0) this.owners.set(owner, keys)
        return item
      }
    return undefined
  }

  /** Removes and returns all. */
  clear(): T[] {
    const all: T[] = []
    for (let item = this.next(); item !== undefined; item = this.next()) all.push(item)
    return all
  }
}

/** Runs a bounded number of tasks at a time, divided among owners like any resource; others wait. */
export class FairGate {
  private readonly running: FairShares
  private readonly waiting: FairTurns<{ readonly owner: string; readonly enter: () => void }>
  private readonly refuse: () => Error

  /** @param limit tasks waiting @param refuse makes the error of a task that may not wait */
  constructor(
    concurrent: number,
    limit = Infinity,
    refuse: () => Error = () => new Error('too many are waiting'),
  ) {
    this.running = new FairShares(concurrent)
    this.waiting = new FairTurns(limit)
    this.refuse = refuse
  }

  async run<T>(holder: Holder, task: () => Promise<T>): Promise<T> {
    const leave = await this.enter(holder)
    try {
      return await task()
    } finally {
      leave()
    }
  }

  /** @returns leaves; call once */
  async enter(holder: Holder): Promise<() => void> {
    const { owner } = holder
    if (this.running.take({ owner }) !== undefined)
      await new Promise<void>((enter, reject) => {
        if (this.waiting.add(holder, { owner, enter }) !== undefined) reject(this.refuse())
      })
    return () => {
      this.running.release({ owner })
      this.admit()
    }
  }

  private admit(): void {
    const canRun = ({ owner }: { readonly owner: string }) => this.running.take({ owner }) === undefined
    for (let next = this.waiting.next(canRun); next; next = this.waiting.next(canRun)) next.enter()
  }
}
