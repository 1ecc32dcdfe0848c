/**
 * The schedule: which lanes have due mail, which site each belongs to, and which is served next. In memory only; its
 * size depends on the number of lanes and sites, never of messages.
 *
 * A lane waits for its due time, its site is located (`site-directory.ts`), it queues at the site, and a claim reads
 * its rows (`lane-register.ts`); the result, and every settled message, makes it wait again. Sites that can start a
 * delivery queue by standing (`site.ts`), and each standing has a share of the connections (`connection-shares.ts`).
 */
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { ConnectionShares, STANDINGS, type Standing } from './connection-shares.js'
import type { LocateSite, SiteFacts } from '../delivery-agent.js'
import { LaneRegister } from './lane-register.js'
import { isBulk, type Lane } from '../lane.js'
import type { PaceSignal, BackoffLimits, SiteLimits } from './site-pace.js'
import { SiteDirectory } from './site-directory.js'
import { SiteQueues, SiteRegister, type SiteState, type Site, type Turn } from './site.js'

export interface ScheduleParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  readonly backoff: BackoffLimits
  readonly connections: number
  /** Whether a large message to this site may get memory. */
  readonly hasMemoryFor?: (site: Site) => boolean
  readonly isHeld?: (lane: Lane) => boolean
  /** This node's share of a site; undefined if there are no other nodes. */
  readonly shareOf?: ((facts: SiteFacts) => SiteLimits | undefined) | undefined
  readonly onChange: () => void
}

/** Lanes processed before yielding to the event loop: 1-2 ms. */
const LANES_IN_A_ROW = 1_000

export class Schedule {
  private readonly parts: ScheduleParts
  private readonly lanes: LaneRegister
  private readonly siteOf = new WeakMap<Lane, Site>()
  private readonly directory: SiteDirectory
  private readonly sites: SiteRegister
  private readonly queues: SiteQueues
  private readonly shares: ConnectionShares

  constructor(parts: ScheduleParts) {
    this.parts = parts
    this.lanes = new LaneRegister(parts.isHeld)
    this.shares = new ConnectionShares(parts.connections)
    this.sites = new SiteRegister(parts)
    this.queues = new SiteQueues(site => this.hasMemoryFor(site))
    this.directory = new SiteDirectory({
      ...parts,
      onLocated: (destination, facts) => this.located(destination, facts),
    })
  }

  get size(): { lanes: number; sites: number; dueTimes: number } {
    return { lanes: this.lanes.size, sites: this.sites.size, dueTimes: this.lanes.dueTimes }
  }

  /** Ms until the next due time or end of a back-off; undefined if nothing waits. */
  get idleMs(): number | undefined {
    const { clock } = this.parts
    const dueMs = (this.lanes.nextDueAt ?? Infinity) - clock.now()
    const restMs = (this.queues.nextBackoffEnd ?? Infinity) - clock.monotonic()
    const idleMs = Math.min(dueMs, restMs)
    return idleMs === Infinity ? undefined : Math.max(0, idleMs)
  }

  /** A committed message of this lane falls due at `dueAt`. */
  note(key: string, dueAt: number): void {
    this.lanes.note(key, dueAt)
  }

  /** Removes lanes of held campaigns from their sites. The caller releases what is being claimed meanwhile. */
  async holdLanes(): Promise<void> {
    let seen = 0
    for (const lane of this.lanes.heldLanes()) {
      if (lane) this.holdLane(lane)
      seen += 1
      if (seen % LANES_IN_A_ROW === 0) await nextTurn()
    }
  }

  private holdLane(lane: Lane): void {
    const site = lane.state === 'queued' ? this.siteOf.get(lane) : undefined
    this.lanes.hold(lane)
    if (!site) return
    site.remove(lane)
    this.requeue(site)
  }

  /** Whether any site has due mail, a free slot and a connection in its share. */
  get hasTurn(): boolean {
    this.enqueueDue()
    return STANDINGS.some(standing => this.canServe(standing))
  }

  /** Standings whose share of the connections is exhausted while sites wait for it, and how many wait. */
  get shortages(): { standing: Standing; waiting: number }[] {
    return STANDINGS.flatMap(standing => {
      const waiting = this.queues.waiting(standing)
      return waiting > 0 && !this.canServe(standing) ? [{ standing, waiting }] : []
    })
  }

  private canServe(standing: Standing): boolean {
    const { shares, queues } = this
    if (queues.waiting(standing) === 0 || shares.available(standing, false) === 0) return false
    return queues.hasWaiting(standing, shares.available(standing, true) > 0)
  }

  /**
   * Assigns turns, site by site. The caller claims each one and reports back with `claimEnded`.
   *
   * @param slots deliveries that may start over all sites
   * @param lanes at most this many lanes
   */
  takeTurns(slots: number, lanes: number): Turn[] {
    this.enqueueDue()
    const turns: Turn[] = []
    let free = slots
    for (const standing of STANDINGS)
      for (
        let left = this.queues.waiting(standing);
        left > 0 && free > 0 && turns.length < lanes;
        left -= 1
      ) {
        if (!this.canServe(standing)) break
        const site = this.queues.next(standing, this.shares.available(standing, true) > 0)
        if (!site) break
        const taken = this.takeTurnsOf(site, standing, free, lanes - turns.length)
        free -= taken.reduce((sum, turn) => sum + turn.slots, 0)
        turns.push(...taken)
        this.requeue(site)
      }
    return turns
  }

  /** None if the site's standing has changed since it was queued. */
  private takeTurnsOf(site: Site, standing: Standing, free: number, lanes: number): Turn[] {
    if (site.pace.standing !== standing) return []
    const { shares } = this
    const bulkSlots = shares.available(standing, true)
    const turns = site.takeTurns({
      slots: Math.min(site.pace.freeSlots, shares.available(standing, false), free),
      lanes,
      permits: { bulk: bulkSlots > 0, large: this.hasMemoryFor(site) },
      bulkSlots,
    })
    for (const { lane, slots } of turns) {
      this.lanes.beginClaim(lane)
      site.pace.reserve(slots, lane.isLarge)
      shares.take(standing, isBulk(lane), slots)
    }
    return turns
  }

  /**
   * A turn for one message that is being accepted, which is then stored already claimed. Only for small single mails that overtake no other:
   * no site has a turn, and nothing waits at theirs or in their lane. Reported back with `released`, or with `deliveryEnded` and `settled`.
   */
  takeTurnOfNew(like: Lane): Turn | undefined {
    if (isBulk(like) || like.isLarge || this.hasTurn) return undefined
    const facts = this.directory.find(like.destination)
    if (!facts) return undefined
    const site = this.sites.getOrCreate(facts)
    const { standing } = site.pace
    const isFree = !site.hasDue && site.pace.freeSlots > 0 && this.shares.available(standing, false) > 0
    const lane = isFree ? this.lanes.claimNew(like) : undefined
    if (lane) {
      site.pace.reserve(1)
      this.shares.take(standing, false, 1)
    }
    this.requeue(site)
    return lane && { lane, site, slots: 1, standing, dueAt: this.parts.clock.now() }
  }

  /**
   * Ends a turn.
   *
   * @param claimed how many messages were claimed
   * @param nextDueAt due time of the lane's next message, if one waits
   */
  claimEnded(turn: Turn, claimed: number, nextDueAt: number | undefined): void {
    const { lane, site, slots } = turn
    this.releaseSlots(turn, slots - claimed)
    this.lanes.endClaim(lane, claimed, nextDueAt)
    this.requeue(site)
  }

  /** A claimed message is not delivered: its row is gone, or its claim was released and it is due at `dueAt`. */
  released(turn: Turn, dueAt?: number): void {
    this.releaseSlots(turn, 1)
    this.requeue(turn.site)
    this.lanes.settle(turn.lane, dueAt)
  }

  /**
   * A delivery has ended and its slot is free. The message stays claimed until its outcome is committed.
   *
   * @param isDetached whether it had been detached
   */
  deliveryEnded(
    { site, lane, standing }: Turn,
    signal: PaceSignal,
    durationMs: number,
    isDetached = false,
  ): void {
    if (isDetached) this.shares.endDetached()
    else this.shares.release(standing, isBulk(lane))
    site.pace.end(signal, durationMs, lane.isLarge)
    this.requeue(site)
  }

  /**
   * Keeps an aborted delivery that is past the final dot from blocking its share. @returns false if too many are
   * detached
   */
  detach({ lane, standing }: Turn): boolean {
    return this.shares.detach(standing, isBulk(lane))
  }

  /** The outcome is committed. @param nextAttemptAt next attempt, if it stays queued */
  settled({ lane }: Turn, nextAttemptAt: number | undefined): void {
    this.lanes.settle(lane, nextAttemptAt)
  }

  onMemoryFreed(): void {
    for (const site of this.queues.takeWaitingForMemory()) this.requeue(site)
  }

  /** Sites whose connections or rate may matter to other nodes. */
  sitesInUse(most: number) {
    return this.sites.inUse(most)
  }

  /** Call it after this node's shares changed. @param backoffs of other nodes: time left by site, ms */
  reshare(backoffs: ReadonlyMap<string, number>): void {
    for (const site of this.sites.reshare(backoffs)) this.requeue(site)
    this.parts.onChange()
  }

  /** Destinations with most messages in progress, with their lanes and the whole of their site. */
  busiest(most: number): { destination: string; lanes: string[]; facts: SiteFacts }[] {
    return this.lanes.busiest(most).flatMap(({ destination, lanes }) => {
      const facts = this.directory.find(destination)
      return facts ? [{ destination, lanes, facts }] : []
    })
  }

  listSites(): SiteState[] {
    return this.sites.list()
  }

  /** @returns undefined if the destination's site is not known, or has no mail here */
  siteServing(destination: string): SiteState | undefined {
    const name = this.directory.nameOf(destination)
    return name === undefined ? undefined : this.sites.find(name)
  }

  /** When the mail fell due that has waited longest at a site without back-off; ms since epoch UTC. */
  get oldestDueAt(): number | undefined {
    return this.sites.oldestDueAt
  }

  /** How long the site has stood still that has stood longest with due mail, ms. */
  get stuckMs(): number {
    return this.sites.stuckMs
  }

  siteNameOf(destination: string): string | undefined {
    return this.directory.nameOf(destination)
  }

  /** Forgets which site each destination belongs to. Queued lanes stay at their site. */
  invalidateSites(): void {
    this.directory.forgetAll()
  }

  /** Ends the back-off of all sites, or of those that serve these destinations. */
  resetBackoff(destinations?: ReadonlySet<string>): void {
    for (const site of this.sites.findServing(destinations, name => this.directory.find(name))) {
      if (!site.pace.isBackingOff) continue
      site.pace.resetBackoff()
      this.requeue(site)
    }
  }

  private releaseSlots({ site, lane, standing }: Turn, slots: number): void {
    site.pace.release(slots, lane.isLarge)
    this.shares.release(standing, isBulk(lane), slots)
  }

  private enqueueDue(): void {
    const { clock } = this.parts
    for (let lane; (lane = this.lanes.takeDue(clock.now()));) this.enqueueLane(lane)
    for (let site; (site = this.queues.takeBackoffEnded(clock.monotonic()));) this.requeue(site)
  }

  private enqueueLane(lane: Lane): void {
    const facts = this.directory.find(lane.destination)
    if (facts) {
      this.addToSite(lane, facts)
      return
    }
    this.lanes.locate(lane)
    this.directory.lookUp(lane.destination, { isBulk: isBulk(lane), workspaceId: lane.workspaceId })
  }

  private located(destination: string, facts: SiteFacts): void {
    for (const lane of this.lanes.takeLocated(destination)) this.addToSite(lane, facts)
    this.parts.onChange()
  }

  private addToSite(lane: Lane, facts: SiteFacts): void {
    const site = this.sites.getOrCreate(facts)
    this.lanes.enqueue(lane)
    site.add(lane)
    this.siteOf.set(lane, site)
    this.requeue(site)
  }

  private hasMemoryFor(site: Site): boolean {
    return this.parts.hasMemoryFor?.(site) ?? true
  }

  /** Call it whenever a site's mail, pace or memory has changed. */
  private requeue(site: Site): void {
    this.sites.update(site)
    this.queues.place(site)
  }
}
