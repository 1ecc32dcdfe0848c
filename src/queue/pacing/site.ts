/**
 * Sites: the MX hosts that several domains may share, with their pace and the lanes that have mail due for them.
 *
 * `Site` decides which lane is served next. Transactional mail goes before campaigns and small messages before large
 * ones, but every fourth turn is for campaigns and every fourth for large messages, so nothing starves. Within each
 * kind workspaces take turns, and within a workspace its lanes. `SiteRegister` holds all known sites, `SiteQueues`
 * those that wait for a connection, the end of a back-off, or memory.
 */
import type { Clock } from '../../world/time/clock.js'
import { KeyedHeap } from '../../core/keyed-heap.js'
import { STANDINGS, type Standing } from './connection-shares.js'
import type { SiteFacts } from '../delivery-agent.js'
import { FairQueue, type Claimant } from './fair-queue.js'
import { isBulk, type Lane } from '../lane.js'
import { SitePace, type BackoffLimits, type SiteLimits } from './site-pace.js'

/** Permission to claim messages of a lane for its site. */
export interface Turn {
  readonly lane: Lane
  readonly site: Site
  /** At most this many messages. */
  readonly slots: number
  readonly standing: Standing
  /** No unclaimed message of the lane falls due earlier, of those noted until the turn began; ms since epoch UTC. */
  readonly dueAt: number
}

export interface Permits {
  readonly bulk: boolean
  readonly large: boolean
}

export interface SiteTurns {
  readonly slots: number
  /** At most this many lanes. */
  readonly lanes: number
  readonly permits: Permits
  readonly bulkSlots: number
}

type Kind = 'single' | 'bulk' | 'large single' | 'large bulk'

/** Order of kinds, by turn. */
const ORDERS: readonly (readonly Kind[])[] = [
  ['single', 'large single', 'bulk', 'large bulk'],
  ['large single', 'single', 'bulk', 'large bulk'],
  ['single', 'large single', 'bulk', 'large bulk'],
  ['bulk', 'large bulk', 'single', 'large single'],
]

/** Lanes by workspace; what was served last is at the end, for both. */
type LaneQueue = Map<string, Set<Lane>>

export class Site {
  readonly name: string
  readonly pace: SitePace
  /** Of the whole site; its pace has this node's share. */
  facts: SiteFacts
  private readonly queues: Readonly<Record<Kind, LaneQueue>> = {
    single: new Map(),
    bulk: new Map(),
    'large single': new Map(),
    'large bulk': new Map(),
  }
  private turns = 0

  /** @param share this node's, if it is one of several */
  constructor(clock: Clock, facts: SiteFacts, rests: BackoffLimits, share?: SiteLimits) {
    this.name = facts.name
    this.facts = facts
    this.pace = new SitePace(clock, share ?? facts, rests, share !== undefined)
  }

  get hasDue(): boolean {
    return Object.values(this.queues).some(line => line.size > 0)
  }

  /** Due time of the lane that has waited longest, ms since epoch UTC. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const line of Object.values(this.queues))
      for (const lanes of line.values()) for (const { dueAt } of lanes) oldest = Math.min(oldest, dueAt)
    return oldest === Infinity ? undefined : oldest
  }

  get hasLargeDue(): boolean {
    return this.queues['large single'].size > 0 || this.queues['large bulk'].size > 0
  }

  *claimants(permits: Permits): Generator<Claimant> {
    for (const kind of ORDERS[0] ?? [])
      if (isPermitted(kind, { ...permits, bulk: true }))
        for (const workspaceId of this.queues[kind].keys()) yield { isBulk: isBulkKind(kind), workspaceId }
  }

  add(lane: Lane): void {
    const line = this.queues[kindOf(lane)]
    const lanes = line.get(lane.workspaceId)
    if (lanes) lanes.add(lane)
    else line.set(lane.workspaceId, new Set([lane]))
  }

  remove(lane: Lane): void {
    const line = this.queues[kindOf(lane)]
    const lanes = line.get(lane.workspaceId)
    lanes?.delete(lane)
    if (lanes?.size === 0) line.delete(lane.workspaceId)
  }

  /**
   * Assigns the slots one by one; a lane of large messages gets only one. Lanes that got some leave the queue until
   * they are added again.
   */
  takeTurns({ slots, lanes, permits, bulkSlots }: SiteTurns): Turn[] {
    const { standing } = this.pace
    const given = new Map<Lane, number>()
    let bulkLeft = permits.bulk ? bulkSlots : 0
    for (let slot = 0; slot < slots; slot += 1) {
      const lane = this.nextLane({ bulk: bulkLeft > 0, large: permits.large }, given)
      if (!lane || (given.size >= lanes && !given.has(lane))) break
      given.set(lane, (given.get(lane) ?? 0) + 1)
      if (isBulk(lane)) bulkLeft -= 1
    }
    for (const lane of given.keys()) this.remove(lane)
    return [...given].map(([lane, count]) => ({
      lane,
      site: this,
      slots: count,
      standing,
      dueAt: lane.dueAt,
    }))
  }

  private nextLane(permits: Permits, given: ReadonlyMap<Lane, number>): Lane | undefined {
    const order = ORDERS[this.turns % ORDERS.length] ?? []
    this.turns += 1
    for (const kind of order) {
      const lane = isPermitted(kind, permits) ? rotate(this.queues[kind]) : undefined
      if (lane && !(lane.isLarge && given.has(lane))) return lane
    }
    return undefined
  }
}

function kindOf(lane: Lane): Kind {
  if (lane.isLarge) return isBulk(lane) ? 'large bulk' : 'large single'
  return isBulk(lane) ? 'bulk' : 'single'
}

function isBulkKind(kind: Kind): boolean {
  return kind === 'bulk' || kind === 'large bulk'
}

function isPermitted(kind: Kind, { bulk, large }: Permits): boolean {
  if (!bulk && isBulkKind(kind)) return false
  return large || (kind !== 'large single' && kind !== 'large bulk')
}

/** Returns the next lane and moves it and its workspace to the end. */
function rotate(line: LaneQueue): Lane | undefined {
  for (const [workspaceId, lanes] of line) {
    line.delete(workspaceId)
    line.set(workspaceId, lanes)
    for (const lane of lanes) {
      lanes.delete(lane)
      lanes.add(lane)
      return lane
    }
  }
  return undefined
}

export interface SiteState {
  readonly name: string
  readonly active: number
  readonly window: number
  /** Ms since epoch UTC. */
  readonly backoffUntil: number | undefined
  /** When its rate allows another message, if mail waits for that; ms since epoch UTC. */
  readonly rateUntil: number | undefined
  /** Messages per minute that the whole site allows; 0: unlimited. */
  readonly messagesPerMinute: number
}

export interface RegisterParts {
  readonly clock: Clock
  readonly backoff: BackoffLimits
  /** This node's share of a site; undefined if there are no other nodes. */
  readonly shareOf?: ((facts: SiteFacts) => SiteLimits | undefined) | undefined
}

/** Longer than any back-off and than an answer counts, so forgetting a site changes nothing. */
const REMEMBERED_MS = 60 * 60_000
const MAX_IDLE = 20_000

export class SiteRegister {
  private readonly parts: RegisterParts
  private readonly sites = new Map<string, Site>()
  /** Since when a site has been idle (monotonic, ms), longest first. */
  private readonly idle = new Map<Site, number>()

  constructor(parts: RegisterParts) {
    this.parts = parts
  }

  get size(): number {
    return this.sites.size
  }

  getOrCreate(facts: SiteFacts): Site {
    const known = this.sites.get(facts.name)
    const share = this.parts.shareOf?.(facts)
    if (known) {
      known.facts = facts
      known.pace.setLimits(share ?? facts, share !== undefined)
      return known
    }
    const site = new Site(this.parts.clock, facts, this.parts.backoff, share)
    this.sites.set(site.name, site)
    return site
  }

  /**
   * Call it whenever a site's mail or pace has changed. Forgets idle sites about which nothing was learnt; others after
   * an hour, or when there are too many.
   */
  update(site: Site): void {
    const isIdle = !site.hasDue && site.pace.isIdle
    if (!isIdle) this.idle.delete(site)
    else if (site.pace.isForgettable) this.forget(site)
    else if (!this.idle.has(site)) this.idle.set(site, this.parts.clock.monotonic())
    this.forgetOldest()
  }

  list(): SiteState[] {
    return [...this.sites.values()].flatMap(site => {
      const state = this.stateOf(site)
      const isOfInterest = site.hasDue || !site.pace.isIdle || state.backoffUntil !== undefined
      return isOfInterest ? [state] : []
    })
  }

  /** @returns undefined for a site that is not known */
  find(name: string): SiteState | undefined {
    const site = this.sites.get(name)
    return site && this.stateOf(site)
  }

  private stateOf({ name, pace, facts, hasDue }: Site): SiteState {
    const now = this.parts.clock.now()
    const { active, window, backoffLeftMs, rateLeftMs } = pace.state
    return {
      name,
      active,
      window,
      backoffUntil: backoffLeftMs === undefined ? undefined : now + backoffLeftMs,
      rateUntil: rateLeftMs === undefined || !hasDue ? undefined : now + rateLeftMs,
      messagesPerMinute: facts.messagesPerMinute,
    }
  }

  /** Sites whose connections or rate may matter to other nodes, at most `most`. */
  inUse(most: number): { site: string; backoffLeftMs: number | undefined }[] {
    const found: { site: string; backoffLeftMs: number | undefined }[] = []
    for (const { name, pace, facts, hasDue } of this.sites.values()) {
      const { active, backoffLeftMs } = pace.state
      const isBusy = active > 1 || ((active > 0 || hasDue) && isScarce(facts))
      if (isBusy || backoffLeftMs !== undefined) found.push({ site: name, backoffLeftMs })
      if (found.length === most) break
    }
    return found
  }

  /**
   * Applies this node's shares.
   *
   * @param backoffs of other nodes: time left by site, ms
   * @returns sites with mail, whose turn may have come
   */
  reshare(backoffs: ReadonlyMap<string, number>): Site[] {
    const busy = [...this.sites.values()].filter(site => site.hasDue || !site.pace.isIdle)
    for (const { name, pace, facts } of busy) {
      pace.setLimits(this.parts.shareOf?.(facts) ?? facts, true)
      const leftMs = backoffs.get(name)
      if (leftMs !== undefined) pace.joinBackoff(leftMs)
    }
    return busy
  }

  /** Due time of the mail that has waited longest at a site without back-off. Visits every lane with due mail. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const site of this.sites.values())
      if (site.hasDue && !site.pace.isBackingOff) oldest = Math.min(oldest, site.oldestDueAt ?? Infinity)
    return oldest === Infinity ? undefined : oldest
  }

  /** How long the site has stood still that has stood longest with due mail, ms. Visits every lane with due mail. */
  get stuckMs(): number {
    const now = this.parts.clock.now()
    let longest = 0
    for (const site of this.sites.values())
      if (site.hasDue && site.pace.stuckMs > longest)
        longest = Math.max(longest, Math.min(site.pace.stuckMs, now - (site.oldestDueAt ?? now)))
    return longest
  }

  findServing(
    destinations: ReadonlySet<string> | undefined,
    find: (destination: string) => SiteFacts | undefined,
  ): Set<Site> {
    if (!destinations) return new Set(this.sites.values())
    return new Set(
      [...destinations].flatMap(destination => this.sites.get(find(destination)?.name ?? '') ?? []),
    )
  }

  private forget(site: Site): void {
    this.idle.delete(site)
    if (this.sites.get(site.name) === site) this.sites.delete(site.name)
  }

  private forgetOldest(): void {
    const now = this.parts.clock.monotonic()
    for (const [site, since] of this.idle) {
      if (now - since < REMEMBERED_MS && this.idle.size <= MAX_IDLE) return
      this.forget(site)
    }
  }
}

/** Whether even one delivery at a time is much of what the site allows. */
function isScarce({ connections, messagesPerMinute }: SiteFacts): boolean {
  return messagesPerMinute > 0 || connections < 8
}

export class SiteQueues {
  private readonly hasMemoryFor: (site: Site) => boolean
  private readonly queues: Readonly<Record<Standing, FairQueue<Site>>> = {
    new: new FairQueue('both ends'),
    proven: new FairQueue('oldest'),
    doubtful: new FairQueue('oldest'),
  }
  /** By the end of the back-off (monotonic, ms). */
  private readonly backingOff = new KeyedHeap<Site>()
  private readonly waitingForMemory = new Set<Site>()

  constructor(hasMemoryFor: (site: Site) => boolean) {
    this.hasMemoryFor = hasMemoryFor
  }

  /** Earliest end of a back-off (monotonic, ms). */
  get nextBackoffEnd(): number | undefined {
    return this.backingOff.nextKey
  }

  waiting(standing: Standing): number {
    return this.queues[standing].size
  }

  /** @param mayBulk whether sites that wait for campaigns only count */
  hasWaiting(standing: Standing, mayBulk: boolean): boolean {
    return this.queues[standing].hasWaiting(mayBulk)
  }

  /** Removes the next site; the caller places it again. */
  next(standing: Standing, mayBulk: boolean): Site | undefined {
    return this.queues[standing].next(mayBulk)?.item
  }

  /** Removes a site whose back-off has ended; the caller places it again. */
  takeBackoffEnded(now: number): Site | undefined {
    return this.backingOff.popUpTo(now)
  }

  /** Removes all sites that wait for memory; the caller places them again. */
  takeWaitingForMemory(): readonly Site[] {
    const sites = [...this.waitingForMemory]
    this.waitingForMemory.clear()
    return sites
  }

  /**
   * Queues a site where it belongs now, and nowhere else:
   *
   *   nothing due                       nowhere
   *   due, no free slot                 by the end of the back-off or next token; nowhere if only an ended delivery frees a slot
   *   due, a free slot                  in the queue of its standing, for each workspace with mail that may start
   *   large mail due, no memory for it  also among those waiting for memory
   */
  place(site: Site): void {
    for (const standing of STANDINGS) this.queues[standing].delete(site)
    this.backingOff.delete(site)
    this.waitingForMemory.delete(site)
    if (!site.hasDue) return
    if (site.pace.freeSlots === 0) {
      const { nextSlotAt: retryAt } = site.pace
      if (retryAt !== undefined) this.backingOff.set(site, retryAt)
      return
    }
    const large = site.hasLargeDue && this.hasMemoryFor(site)
    if (site.hasLargeDue && !large) this.waitingForMemory.add(site)
    const line = this.queues[site.pace.standing]
    for (const claimant of site.claimants({ bulk: true, large })) line.add(site, claimant)
  }
}
