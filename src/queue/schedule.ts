/**
 * The schedule: which lanes have mail due, which sites they belong to, and whose turn it is now. In memory; its size is
 * that of the lanes and sites with mail, never of the messages.
 *
 * A lane rests until its due time, is then located (its site is found by DNS, remembered for a while), stands in its
 * site's line, and is taken out of it for a look into the database; what that look says, and every settled message,
 * puts it back. A site with nothing due or nothing free is out of the round until something changes.
 */
import { MinHeap } from '../core/heap.js'
import type { Clock } from '../world/clock.js'
import type { LocateSite } from './delivery-agent.js'
import { laneFromKey, type Lane } from './lane.js'
import type { PaceSignal } from './pace-signal.js'
import type { RestLengths } from './site-pace.js'
import { Site, type Turn } from './site.js'

/** How long a destination's site is believed. */
const SITE_KNOWN_MS = 10 * 60_000
/** Sites asked for at the same time; the rest waits its turn. */
const LOCATING_AT_ONCE = 100

export interface ScheduleParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  readonly rests: RestLengths
  /** A lane has been located: there may be something to start. */
  readonly onChange: () => void
}

export class Schedule {
  private readonly parts: ScheduleParts
  private readonly lanes = new Map<string, Lane>()
  private readonly sites = new Map<string, Site>()
  /** Where lanes belong, as far as that is known; a lane that is being located is kept out of the line meanwhile. */
  private readonly places = new Map<Lane, 'being located' | { readonly site: Site; readonly until: number }>()
  /** Lanes by due time; entries that an earlier note overtook are stale. */
  private readonly later = new MinHeap<{ readonly lane: Lane; readonly dueAt: number }>()
  /** Sites that rest or have used up their minute, by the time they may go on. */
  private readonly resting = new MinHeap<Site>()
  /** The one entry in `resting` that counts for each site. */
  private readonly restsUntil = new Map<Site, number>()
  /** Sites with something due, in order of turns. */
  private readonly round = new Set<Site>()
  private readonly unlocated: Lane[] = []
  private locating = 0

  constructor(parts: ScheduleParts) {
    this.parts = parts
  }

  /** Lanes known now, and due times kept for them, stale ones included. */
  get size(): { lanes: number; sites: number; dueTimes: number } {
    return { lanes: this.lanes.size, sites: this.sites.size, dueTimes: this.later.size }
  }

  /** When there is something to do again, should nothing happen before; undefined when nothing waits. */
  get wakeAt(): number | undefined {
    const times = [this.later.nextKey, this.resting.nextKey].filter(time => time !== undefined)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Something in this lane falls due then. */
  note(key: string, dueAt: number): void {
    const lane = this.lanes.get(key) ?? laneFromKey(key)
    this.lanes.set(key, lane)
    if (dueAt >= lane.dueAt) return
    lane.dueAt = dueAt
    if (lane.planned.has(dueAt)) return
    lane.planned.add(dueAt)
    this.later.push(dueAt, { lane, dueAt })
  }

  /** Whether some site has mail due and a slot for it. */
  get hasTurn(): boolean {
    this.wakeDue()
    return this.round.size > 0
  }

  /**
   * Gives out turns, site after site. The lanes are out of the line and their due times forgotten: whoever takes them
   * looks into the database and notes what it says; what others note meanwhile still counts.
   *
   * @param slots deliveries that may begin, over all sites
   * @param lanes lanes at most
   */
  takeTurns(slots: number, lanes: number): Turn[] {
    this.wakeDue()
    const turns: Turn[] = []
    let free = slots
    for (let sites = this.round.size; sites > 0 && free > 0 && turns.length < lanes; sites -= 1) {
      const [site] = this.round
      if (!site) break
      this.round.delete(site)
      const taken = site.takeTurns(Math.min(site.pace.freeSlots, free), lanes - turns.length)
      for (const turn of taken) {
        turn.lane.dueAt = Infinity
        site.pace.reserve(turn.slots)
        free -= turn.slots
      }
      turns.push(...taken)
      this.enrol(site)
    }
    return turns
  }

  /**
   * After the look into the database.
   *
   * @param claimed messages that were due and are now in hand
   * @param nextDueAt when the lane's next message falls due, if one waits
   */
  looked({ lane, site, slots }: Turn, claimed: readonly string[], nextDueAt: number | undefined): void {
    site.pace.release(slots - claimed.length)
    for (const messageId of claimed) lane.inHand.add(messageId)
    if (nextDueAt !== undefined) this.note(lane.key, nextDueAt)
    this.enrol(site)
    this.forgetIfIdle(lane)
  }

  /** A claimed message is not delivered after all: its row is gone, or was handed back to be due then. */
  dropped({ lane, site }: Turn, messageId: string, dueAt?: number): void {
    site.pace.release(1)
    this.enrol(site)
    this.freed(lane, messageId, dueAt)
  }

  /** A delivery has ended: its site has a free slot. The message stays in hand until its outcome is on disk. */
  ended({ site }: Turn, signal: PaceSignal, durationMs: number): void {
    site.pace.end(signal, durationMs)
    this.enrol(site)
  }

  /** The outcome is on disk. @param nextAttemptAt when its row falls due again, if it stays */
  settled({ lane }: Turn, messageId: string, nextAttemptAt: number | undefined): void {
    this.freed(lane, messageId, nextAttemptAt)
  }

  /** For the operator. */
  listSites(): { name: string; active: number; window: number; restsUntil: number | undefined }[] {
    return [...this.sites.values()].map(site => ({ name: site.name, ...site.pace.state }))
  }

  /** Ends the rests of sites, of those that serve these destinations where some are named. */
  endRests(destinations?: ReadonlySet<string>): void {
    const sites = new Set<Site>()
    for (const [lane, place] of this.places)
      if (place !== 'being located' && (destinations?.has(lane.destination) ?? true)) sites.add(place.site)
    for (const site of sites) {
      if (!site.pace.isResting) continue
      site.pace.endRest()
      this.enrol(site)
    }
  }

  private freed(lane: Lane, messageId: string, dueAt: number | undefined): void {
    lane.inHand.delete(messageId)
    if (dueAt !== undefined) this.note(lane.key, dueAt)
    this.forgetIfIdle(lane)
  }

  private wakeDue(): void {
    const now = this.parts.clock.now()
    while ((this.later.nextKey ?? Infinity) <= now) {
      const entry = this.later.pop()
      if (!entry) break
      entry.lane.planned.delete(entry.dueAt)
      if (entry.lane.dueAt === entry.dueAt) this.standInLine(entry.lane, now)
    }
    while ((this.resting.nextKey ?? Infinity) <= now) {
      const time = this.resting.nextKey
      const site = this.resting.pop()
      if (!site || this.restsUntil.get(site) !== time) continue
      this.restsUntil.delete(site)
      this.enrol(site)
    }
  }

  private standInLine(lane: Lane, now: number): void {
    const place = this.places.get(lane)
    if (place === 'being located') return
    if (place && place.until > now) {
      this.joinSite(lane, place.site)
      return
    }
    this.places.set(lane, 'being located')
    this.unlocated.push(lane)
    this.locateNext()
  }

  private locateNext(): void {
    while (this.locating < LOCATING_AT_ONCE) {
      const lane = this.unlocated.shift()
      if (!lane) return
      this.locating += 1
      void this.locate(lane).finally(() => {
        this.locating -= 1
        this.locateNext()
        this.parts.onChange()
      })
    }
  }

  private async locate(lane: Lane): Promise<void> {
    const facts = await this.parts.locateSite(lane.destination)
    this.joinSite(
      lane,
      new Site(this.parts.clock, facts, this.parts.rests),
      this.parts.clock.now() + SITE_KNOWN_MS,
    )
  }

  /** @param asKnown used unless a site of this name is in the schedule already */
  private joinSite(lane: Lane, asKnown: Site, until?: number): void {
    const site = this.sites.get(asKnown.name) ?? asKnown
    this.sites.set(site.name, site)
    if (until !== undefined) this.places.set(lane, { site, until })
    site.add(lane)
    this.enrol(site)
  }

  /** Into the round if it has something due and a free slot; else it waits for what will change that. */
  private enrol(site: Site): void {
    if (!site.hasDue) {
      this.forgetSiteIfIdle(site)
      return
    }
    if (site.pace.freeSlots > 0) {
      this.round.add(site)
      return
    }
    const retryAt = site.pace.retryAt
    if (retryAt === undefined || this.restsUntil.get(site) === retryAt) return
    this.restsUntil.set(site, retryAt)
    this.resting.push(retryAt, site)
  }

  private forgetIfIdle(lane: Lane): void {
    const place = this.places.get(lane)
    if (lane.dueAt < Infinity || lane.inHand.size > 0 || place === 'being located') return
    this.lanes.delete(lane.key)
    this.places.delete(lane)
    if (place) this.forgetSiteIfIdle(place.site)
  }

  private forgetSiteIfIdle(site: Site): void {
    if (!site.hasDue && site.pace.isForgettable) this.sites.delete(site.name)
  }
}
