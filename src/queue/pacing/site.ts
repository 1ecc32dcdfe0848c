/**
 * A site: the MX hosts that several domains may share, with its pace and the lanes that have mail due for it.
 *
 * Decides whose turn it is within the site. Mail of people waiting for it (a password reset) goes before campaigns, but every
 * fourth turn is the campaigns', so that neither starves the other; small messages go before large ones, but every fourth turn
 * is the large ones'. Within each kind workspaces take turns, and within a workspace its domains.
 */
import type { Clock } from '../../world/time/clock.js'
import { KeyedHeap } from '../../core/keyed-heap.js'
import { STANDINGS, type Standing } from './connection-shares.js'
import type { SiteFacts } from '../delivery-agent.js'
import { FairQueue, type Claimant } from './fair-queue.js'
import { isBulk, type Lane } from '../lane.js'
import { SitePace, type BackoffLimits } from './site-pace.js'

/** Leave to claim messages of a lane and deliver them to its site. */
export interface Turn {
  readonly lane: Lane
  readonly site: Site
  /** How many messages it may claim. */
  readonly slots: number
  /** Whose share of the connections they are taken from. */
  readonly standing: Standing
}

/** What a turn may be given to. */
export interface Permits {
  readonly bulk: boolean
  readonly large: boolean
}

export interface SiteTurns {
  readonly slots: number
  /** Lanes at most. */
  readonly lanes: number
  readonly permits: Permits
  /** Of `slots`, those that campaigns may have. */
  readonly bulkSlots: number
}

type Kind = 'single' | 'bulk' | 'large single' | 'large bulk'

/** Who is asked first, by turn. */
const ORDERS: readonly (readonly Kind[])[] = [
  ['single', 'large single', 'bulk', 'large bulk'],
  ['large single', 'single', 'bulk', 'large bulk'],
  ['single', 'large single', 'bulk', 'large bulk'],
  ['bulk', 'large bulk', 'single', 'large single'],
]

/** Lanes by workspace, both in order of turns: who was served goes to the end. */
type LaneQueue = Map<string, Set<Lane>>

export class Site {
  readonly name: string
  readonly pace: SitePace
  private readonly queues: Readonly<Record<Kind, LaneQueue>> = {
    single: new Map(),
    bulk: new Map(),
    'large single': new Map(),
    'large bulk': new Map(),
  }
  private turns = 0

  constructor(clock: Clock, facts: SiteFacts, rests: BackoffLimits) {
    this.name = facts.name
    this.pace = new SitePace(clock, facts, rests)
  }

  get hasDue(): boolean {
    return Object.values(this.queues).some(line => line.size > 0)
  }

  /** When what stands in its lines longest fell due, ms since epoch UTC; undefined where nothing does. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const line of Object.values(this.queues))
      for (const lanes of line.values()) for (const { dueAt } of lanes) oldest = Math.min(oldest, dueAt)
    return oldest === Infinity ? undefined : oldest
  }

  get hasLargeDue(): boolean {
    return this.queues['large single'].size > 0 || this.queues['large bulk'].size > 0
  }

  /** On whose behalf it waits, as far as they may have a turn. */
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

  /** Nothing where it is not in line. */
  remove(lane: Lane): void {
    const line = this.queues[kindOf(lane)]
    const lanes = line.get(lane.workspaceId)
    lanes?.delete(lane)
    if (lanes?.size === 0) line.delete(lane.workspaceId)
  }

  /**
   * Gives out the slots one by one, to a lane of large messages only one. The lanes that got some are out of the line until
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
    return [...given].map(([lane, count]) => ({ lane, site: this, slots: count, standing }))
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

/** The lane whose turn it is; it and its workspace go to the end of the line. */
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

/** What the operator sees of a site. */
export interface SiteState {
  readonly name: string
  readonly active: number
  readonly window: number
  /** Ms since epoch UTC. */
  readonly backoffUntil: number | undefined
}

export interface RegisterParts {
  readonly clock: Clock
  readonly backoff: BackoffLimits
}

/** Longer than any rest and than an answer speaks for a site, so that what is forgotten would not count any more. */
const REMEMBERED_MS = 60 * 60_000
const MOST_IDLE = 20_000

export class SiteRegister {
  private readonly parts: RegisterParts
  private readonly sites = new Map<string, Site>()
  /** Since when (monotonic, ms) a site has been idle, longest first. */
  private readonly idle = new Map<Site, number>()

  constructor(parts: RegisterParts) {
    this.parts = parts
  }

  get size(): number {
    return this.sites.size
  }

  /** The site of this name, with what is known of it, or a new one. */
  getOrCreate(facts: SiteFacts): Site {
    const known = this.sites.get(facts.name)
    if (known) {
      known.pace.setLimits(facts)
      return known
    }
    const site = new Site(this.parts.clock, facts, this.parts.backoff)
    this.sites.set(site.name, site)
    return site
  }

  /** Call it whenever its mail or its pace has changed. */
  update(site: Site): void {
    const isIdle = !site.hasDue && site.pace.isIdle
    if (!isIdle) this.idle.delete(site)
    else if (site.pace.isForgettable) this.forget(site)
    else if (!this.idle.has(site)) this.idle.set(site, this.parts.clock.monotonic())
    this.forgetOldest()
  }

  list(): SiteState[] {
    const now = this.parts.clock.now()
    return [...this.sites.values()].flatMap(site => {
      const { backoffLeftMs, ...state } = site.pace.state
      const isOfInterest = site.hasDue || !site.pace.isIdle || backoffLeftMs !== undefined
      if (!isOfInterest) return []
      return [
        { name: site.name, ...state, backoffUntil: backoffLeftMs === undefined ? undefined : now + backoffLeftMs },
      ]
    })
  }

  /** When the mail fell due that has waited longest at a site that may be served now; it goes through all lanes with mail due. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const site of this.sites.values())
      if (site.hasDue && !site.pace.isBackingOff) oldest = Math.min(oldest, site.oldestDueAt ?? Infinity)
    return oldest === Infinity ? undefined : oldest
  }

  /** All sites, or those that serve these destinations. */
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
      if (now - since < REMEMBERED_MS && this.idle.size <= MOST_IDLE) return
      this.forget(site)
    }
  }
}

export class SiteQueues {
  private readonly hasMemoryFor: (site: Site) => boolean
  private readonly queues: Readonly<Record<Standing, FairQueue<Site>>> = {
    new: new FairQueue('both ends'),
    proven: new FairQueue('oldest'),
    doubtful: new FairQueue('oldest'),
  }
  /** By the moment on the monotonic clock when they may go on. */
  private readonly backingOff = new KeyedHeap<Site>()
  private readonly waitingForMemory = new Set<Site>()

  constructor(hasMemoryFor: (site: Site) => boolean) {
    this.hasMemoryFor = hasMemoryFor
  }

  /** The first moment on the monotonic clock when a rest ends. */
  get nextBackoffEnd(): number | undefined {
    return this.backingOff.nextKey
  }

  /** How many sites wait in this line. */
  waiting(standing: Standing): number {
    return this.queues[standing].size
  }

  /** Whether somebody waits in this line; for campaigns alone does not count where they may not. */
  hasWaiting(standing: Standing, mayBulk: boolean): boolean {
    return this.queues[standing].hasWaiting(mayBulk)
  }

  /** Takes out whose turn it is; to be placed again afterwards. */
  next(standing: Standing, mayBulk: boolean): Site | undefined {
    return this.queues[standing].next(mayBulk)?.item
  }

  /** Takes out one whose rest is over; to be placed again. */
  takeBackoffEnded(now: number): Site | undefined {
    return this.backingOff.popUpTo(now)
  }

  /** Takes out all that lack memory; to be placed again. */
  takeWaitingForMemory(): readonly Site[] {
    const sites = [...this.waitingForMemory]
    this.waitingForMemory.clear()
    return sites
  }

  /** Puts it where it belongs now, and out of everything else. */
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
