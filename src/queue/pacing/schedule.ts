/**
 * The schedule: which lanes have mail due, which sites they belong to, and whose turn it is now. In memory; its size is
 * that of the lanes and sites with mail, and of those remembered for a while, never of the messages.
 *
 * A lane waits for its due time, is located (`site-directory.ts`), stands in its site's line, and is taken out of it for a look
 * into the database (`lane-register.ts`); what that look says, and every settled message, makes it wait again. Sites with mail
 * that can begin stand in one of three lines by what is known of them (`site-lines.ts`), each line with its share of the
 * connections (`connection-shares.ts`).
 */
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { ConnectionShares, STANDINGS, type Standing } from './connection-shares.js'
import type { LocateSite, SiteFacts } from '../delivery-agent.js'
import { LaneRegister } from './lane-register.js'
import { isBulk, type Lane } from '../lane.js'
import type { PaceSignal, BackoffLimits } from './site-pace.js'
import { SiteDirectory } from './site-directory.js'
import { SiteQueues, SiteRegister, type SiteState, type Site, type Turn } from './site.js'

export interface ScheduleParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  readonly backoff: BackoffLimits
  /** Deliveries at a time, over all sites. */
  readonly connections: number
  /** Whether there may be memory for a large message to this site. */
  readonly hasMemoryFor?: (site: Site) => boolean
  /** Whether the lane's campaign is held. */
  readonly isHeld?: (lane: Lane) => boolean
  /** A lane has been located: there may be something to start. */
  readonly onChange: () => void
}

/** Lanes gone through before others have the event loop: a millisecond or two. */
const LANES_IN_A_ROW = 1_000

export class Schedule {
  private readonly parts: ScheduleParts
  private readonly lanes: LaneRegister
  /** Of lanes in line, whose line it is. */
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

  /** Lanes and sites known now, and due times kept for them. */
  get size(): { lanes: number; sites: number; dueTimes: number } {
    return { lanes: this.lanes.size, sites: this.sites.size, dueTimes: this.lanes.dueTimes }
  }

  /** How long there is nothing to do, should nothing happen before, ms; undefined when nothing waits. */
  get idleMs(): number | undefined {
    const { clock } = this.parts
    const dueMs = (this.lanes.nextDueAt ?? Infinity) - clock.now()
    const restMs = (this.queues.nextBackoffEnd ?? Infinity) - clock.monotonic()
    const idleMs = Math.min(dueMs, restMs)
    return idleMs === Infinity ? undefined : Math.max(0, idleMs)
  }

  /** Something in this lane falls due then; it has been committed. */
  note(key: string, dueAt: number): void {
    this.lanes.note(key, dueAt)
  }

  /** Campaigns were held: their lanes leave the lines. What is claimed meanwhile the caller hands back. */
  async holdLanes(): Promise<void> {
    let seen = 0
    for (const lane of this.lanes.heldLanes()) {
      if (lane) this.holdLane(lane)
      seen += 1
      if (seen % LANES_IN_A_ROW === 0) await nextTurn()
    }
  }

  private holdLane(lane: Lane): void {
    const site = lane.state === 'in line' ? this.siteOf.get(lane) : undefined
    this.lanes.hold(lane)
    if (!site) return
    site.remove(lane)
    this.requeue(site)
  }

  /** Whether some site has mail due, a slot for it, and a connection of its share. */
  get hasTurn(): boolean {
    this.enqueueDue()
    return STANDINGS.some(standing => this.canServe(standing))
  }

  /** The shares of the connections that are used up while sites wait for them, and how many wait. */
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
   * Gives out turns, site after site. Who takes one looks into the database and says what was there; what others note
   * meanwhile still counts.
   *
   * @param slots deliveries that may begin, over all sites
   * @param lanes lanes at most
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

  /** Nothing, when it stands in the wrong line by now. */
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
   * After the look into the database.
   *
   * @param claimed how many messages were due and are now in hand
   * @param nextDueAt when the lane's next message falls due, if one waits
   */
  claimEnded(turn: Turn, claimed: number, nextDueAt: number | undefined): void {
    const { lane, site, slots } = turn
    this.releaseSlots(turn, slots - claimed)
    this.lanes.endClaim(lane, claimed, nextDueAt)
    this.requeue(site)
  }

  /** A claimed message is not delivered after all: its row is gone, or was handed back to be due then. */
  released(turn: Turn, dueAt?: number): void {
    this.releaseSlots(turn, 1)
    this.requeue(turn.site)
    this.lanes.settle(turn.lane, dueAt)
  }

  /**
   * A delivery has ended: its site has a free slot. The message stays in hand until its outcome is on disk.
   *
   * @param isAside whether it had been set aside
   */
  deliveryEnded(
    { site, lane, standing }: Turn,
    signal: PaceSignal,
    durationMs: number,
    isAside = false,
  ): void {
    if (isAside) this.shares.endDetached()
    else this.shares.release(standing, isBulk(lane))
    site.pace.end(signal, durationMs, lane.isLarge)
    this.requeue(site)
  }

  /** It was told to end and may not; it shall not keep others of its share waiting. @returns whether there is room for that */
  detach({ lane, standing }: Turn): boolean {
    return this.shares.detach(standing, isBulk(lane))
  }

  /** The outcome is on disk. @param nextAttemptAt when its row falls due again, if it stays */
  settled({ lane }: Turn, nextAttemptAt: number | undefined): void {
    this.lanes.settle(lane, nextAttemptAt)
  }

  /** There is memory again. */
  onMemoryFreed(): void {
    for (const site of this.queues.takeWaitingForMemory()) this.requeue(site)
  }

  /** For the operator. */
  listSites(): SiteState[] {
    return this.sites.list()
  }

  /** When the mail fell due that has waited longest for a turn of a site that does not rest; ms since epoch UTC. */
  get oldestDueAt(): number | undefined {
    return this.sites.oldestDueAt
  }

  /** Sites are found otherwise from now on. Mail that stands in line of one already goes by what was known. */
  invalidateSites(): void {
    this.directory.forgetAll()
  }

  /** Ends the rests of sites, of those that serve these destinations where some are named. */
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

  /** To be called whenever its mail, its pace or its memory has changed. */
  private requeue(site: Site): void {
    this.sites.update(site)
    this.queues.place(site)
  }
}
