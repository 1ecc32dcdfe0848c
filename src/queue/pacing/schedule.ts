/**
 * The schedule: which lanes have mail due, which sites they belong to, and whose turn it is now. In memory; its size is
 * that of the lanes and sites with mail, and of those remembered for a while, never of the messages.
 *
 * A lane waits for its due time, is located (`site-directory.ts`), stands in its site's line, and is taken out of it for a look
 * into the database (the states stand in `lane.ts`); what that look says, and every settled message, makes it wait again. A
 * site with nothing due, nothing free or no leave to hold memory is in no line until something changes; the others stand in
 * one of three lines by what is known of them, each with its share of the connections (`connection-shares.ts`).
 */
import { KeyedHeap } from '../../core/keyed-heap.js'
import type { Clock } from '../../world/time/clock.js'
import { ConnectionShares, STANDINGS, type Standing } from './connection-shares.js'
import type { LocateSite, SiteFacts } from '../delivery-agent.js'
import { FairLine } from './fair-line.js'
import { isBulk, laneFromKey, type Lane } from '../lane.js'
import type { PaceSignal } from './pace-signal.js'
import { SiteDirectory } from './site-directory.js'
import type { RestLengths } from './site-pace.js'
import { SiteRegister, type SiteState } from './site-register.js'
import type { Site, Turn } from './site.js'

export interface ScheduleParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  readonly rests: RestLengths
  /** Deliveries at a time, over all sites. */
  readonly connections: number
  /** Whether there may be memory for a large message to this site. */
  readonly hasMemoryFor?: (site: Site) => boolean
  /** A lane has been located: there may be something to start. */
  readonly onChange: () => void
}

export class Schedule {
  private readonly parts: ScheduleParts
  private readonly lanes = new Map<string, Lane>()
  /** Lanes that wait, by due time. */
  private readonly waiting = new KeyedHeap<Lane>()
  private readonly directory: SiteDirectory
  /** Lanes that are being located, by destination. */
  private readonly unlocated = new Map<string, Set<Lane>>()
  private readonly sites: SiteRegister
  /** Sites that rest or have used up their minute, by the moment on the monotonic clock when they may go on. */
  private readonly resting = new KeyedHeap<Site>()
  /** Sites with something due and a free slot. */
  private readonly lines: Readonly<Record<Standing, FairLine<Site>>> = {
    new: new FairLine('both ends'),
    proven: new FairLine('oldest'),
    doubtful: new FairLine('oldest'),
  }
  /** Sites whose large messages wait for memory. */
  private readonly lackingMemory = new Set<Site>()
  private readonly shares: ConnectionShares

  constructor(parts: ScheduleParts) {
    this.parts = parts
    this.shares = new ConnectionShares(parts.connections)
    this.sites = new SiteRegister(parts)
    this.directory = new SiteDirectory({
      ...parts,
      onLocated: (destination, facts) => this.located(destination, facts),
    })
  }

  /** Lanes and sites known now, and due times kept for them. */
  get size(): { lanes: number; sites: number; dueTimes: number } {
    return { lanes: this.lanes.size, sites: this.sites.size, dueTimes: this.waiting.size }
  }

  /** How long there is nothing to do, should nothing happen before, ms; undefined when nothing waits. */
  get idleMs(): number | undefined {
    const { clock } = this.parts
    const dueMs = (this.waiting.nextKey ?? Infinity) - clock.now()
    const restMs = (this.resting.nextKey ?? Infinity) - clock.monotonic()
    const idleMs = Math.min(dueMs, restMs)
    return idleMs === Infinity ? undefined : Math.max(0, idleMs)
  }

  /** Something in this lane falls due then. */
  note(key: string, dueAt: number): void {
    const lane = this.lanes.get(key) ?? laneFromKey(key)
    this.lanes.set(key, lane)
    // In a line already, it will be looked at: whoever notes something has committed it before.
    if (lane.state === 'locating' || lane.state === 'in line') return
    lane.dueAt = Math.min(lane.dueAt, dueAt)
    if (lane.state === 'waiting') this.waiting.set(lane, lane.dueAt)
  }

  /** Whether some site has mail due, a slot for it, and a connection of its share. */
  get hasTurn(): boolean {
    this.wakeDue()
    return STANDINGS.some(standing => this.canServe(standing))
  }

  /** The shares of the connections that are used up while sites wait for them, and how many wait. */
  get shortages(): { standing: Standing; waiting: number }[] {
    return STANDINGS.flatMap(standing => {
      const waiting = this.lines[standing].size
      return waiting > 0 && !this.canServe(standing) ? [{ standing, waiting }] : []
    })
  }

  private canServe(standing: Standing): boolean {
    const { shares, lines } = this
    if (lines[standing].size === 0 || shares.room(standing, false) === 0) return false
    return lines[standing].hasWaiting(shares.room(standing, true) > 0)
  }

  /**
   * Gives out turns, site after site. Who takes one looks into the database and says what was there; what others note
   * meanwhile still counts.
   *
   * @param slots deliveries that may begin, over all sites
   * @param lanes lanes at most
   */
  takeTurns(slots: number, lanes: number): Turn[] {
    this.wakeDue()
    const turns: Turn[] = []
    let free = slots
    for (const standing of STANDINGS)
      for (let left = this.lines[standing].size; left > 0 && free > 0 && turns.length < lanes; left -= 1) {
        if (!this.canServe(standing)) break
        const site = this.lines[standing].next(this.shares.room(standing, true) > 0)?.item
        if (!site) break
        const taken = this.takeTurnsOf(site, standing, free, lanes - turns.length)
        free -= taken.reduce((sum, turn) => sum + turn.slots, 0)
        turns.push(...taken)
        this.enrol(site)
      }
    return turns
  }

  /** Nothing, when it stands in the wrong line by now. */
  private takeTurnsOf(site: Site, standing: Standing, free: number, lanes: number): Turn[] {
    if (site.pace.standing !== standing) return []
    const { shares } = this
    const bulkSlots = shares.room(standing, true)
    const turns = site.takeTurns({
      slots: Math.min(site.pace.freeSlots, shares.room(standing, false), free),
      lanes,
      permits: { bulk: bulkSlots > 0, large: this.hasMemoryFor(site) },
      bulkSlots,
    })
    for (const { lane, slots } of turns) {
      lane.state = 'looked at'
      lane.dueAt = Infinity
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
  looked(turn: Turn, claimed: number, nextDueAt: number | undefined): void {
    const { lane, site, slots } = turn
    this.giveBack(turn, slots - claimed)
    lane.inHand += claimed
    lane.state = 'waiting'
    const dueAt = Math.min(lane.dueAt, nextDueAt ?? Infinity)
    if (dueAt < Infinity) this.note(lane.key, dueAt)
    this.enrol(site)
    this.forgetIfIdle(lane)
  }

  /** A claimed message is not delivered after all: its row is gone, or was handed back to be due then. */
  dropped(turn: Turn, dueAt?: number): void {
    this.giveBack(turn, 1)
    this.enrol(turn.site)
    this.freed(turn.lane, dueAt)
  }

  /**
   * A delivery has ended: its site has a free slot. The message stays in hand until its outcome is on disk.
   *
   * @param isAside whether it had been set aside
   */
  ended({ site, lane, standing }: Turn, signal: PaceSignal, durationMs: number, isAside = false): void {
    if (isAside) this.shares.endAside()
    else this.shares.giveBack(standing, isBulk(lane))
    site.pace.end(signal, durationMs, lane.isLarge)
    this.enrol(site)
  }

  /** It was told to end and may not; it shall not keep others of its share waiting. @returns whether there is room for that */
  setAside({ lane, standing }: Turn): boolean {
    return this.shares.setAside(standing, isBulk(lane))
  }

  /** The outcome is on disk. @param nextAttemptAt when its row falls due again, if it stays */
  settled({ lane }: Turn, nextAttemptAt: number | undefined): void {
    this.freed(lane, nextAttemptAt)
  }

  /** There is memory again. */
  memoryFreed(): void {
    const sites = [...this.lackingMemory]
    this.lackingMemory.clear()
    for (const site of sites) this.enrol(site)
  }

  /** For the operator. */
  listSites(): SiteState[] {
    return this.sites.list()
  }

  /** Ends the rests of sites, of those that serve these destinations where some are named. */
  endRests(destinations?: ReadonlySet<string>): void {
    for (const site of this.sites.serving(destinations, name => this.directory.find(name))) {
      if (!site.pace.isResting) continue
      site.pace.endRest()
      this.enrol(site)
    }
  }

  private giveBack({ site, lane, standing }: Turn, slots: number): void {
    site.pace.release(slots, lane.isLarge)
    this.shares.giveBack(standing, isBulk(lane), slots)
  }

  private freed(lane: Lane, dueAt: number | undefined): void {
    lane.inHand -= 1
    if (dueAt !== undefined) this.note(lane.key, dueAt)
    this.forgetIfIdle(lane)
  }

  private wakeDue(): void {
    const { clock } = this.parts
    for (let lane; (lane = this.waiting.popUpTo(clock.now()));) this.standInLine(lane)
    for (let site; (site = this.resting.popUpTo(clock.monotonic()));) this.enrol(site)
  }

  private standInLine(lane: Lane): void {
    const facts = this.directory.find(lane.destination)
    if (facts) {
      this.joinSite(lane, facts)
      return
    }
    lane.state = 'locating'
    const others = this.unlocated.get(lane.destination)
    if (others) others.add(lane)
    else this.unlocated.set(lane.destination, new Set([lane]))
    this.directory.ask(lane.destination, { isBulk: isBulk(lane), workspaceId: lane.workspaceId })
  }

  private located(destination: string, facts: SiteFacts): void {
    for (const lane of this.unlocated.get(destination) ?? []) this.joinSite(lane, facts)
    this.unlocated.delete(destination)
    this.parts.onChange()
  }

  private joinSite(lane: Lane, facts: SiteFacts): void {
    const site = this.sites.open(facts)
    lane.state = 'in line'
    site.add(lane)
    this.enrol(site)
  }

  private hasMemoryFor(site: Site): boolean {
    return this.parts.hasMemoryFor?.(site) ?? true
  }

  /** Where it belongs now: into the line of its standing, among those that rest, or to wait until something changes. */
  private enrol(site: Site): void {
    for (const standing of STANDINGS) this.lines[standing].delete(site)
    this.resting.delete(site)
    this.sites.noteUse(site)
    if (!site.hasDue) return
    if (site.pace.freeSlots === 0) {
      const { retryAt } = site.pace
      if (retryAt !== undefined) this.resting.set(site, retryAt)
      return
    }
    const large = site.hasLargeDue && this.hasMemoryFor(site)
    if (site.hasLargeDue && !large) this.lackingMemory.add(site)
    const line = this.lines[site.pace.standing]
    for (const claimant of site.claimants({ bulk: true, large })) line.add(site, claimant)
  }

  private forgetIfIdle(lane: Lane): void {
    if (lane.state !== 'waiting' || lane.dueAt < Infinity || lane.inHand > 0) return
    this.waiting.delete(lane)
    this.lanes.delete(lane.key)
  }
}
