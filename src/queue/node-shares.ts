/**
 * This node's share of the deliveries, as one of several nodes: its destinations, its share of each site, its part of destinations that are split.
 *
 * A destination belongs to one node (`cluster/lane-shares.ts`). If so much mail waits for it that one node is not enough, that node splits it:
 * a row, which all nodes read before it takes effect, says into how many parts, and messages belong to parts by their id. A split ends when
 * it is no longer prolonged.
 *
 * Several destinations may share a site, and all parts of one do. Nodes tell each other once a second which sites they deliver to, and each
 * takes its share of the site's connections and rate, so that pacing stays in memory. A back-off of one holds for all.
 * While there is one node, nothing is read or written.
 */
import { describeError } from '../core/errors.js'
import type { Membership } from '../cluster/membership.js'
import type { Queries } from '../db/database.js'
import type { Services } from '../db/services.js'
import type { Timer } from '../world/time/clock.js'
import type { SiteFacts } from './delivery-agent.js'
import type { Schedule } from './pacing/schedule.js'
import type { SiteLimits } from './pacing/site-pace.js'
import { firstShare, shareOfSite } from './pacing/site-share.js'
import type { LanePart } from './due-store.js'
import { countDue, findSiteUses, findSplits, putSplit, writeSiteUses } from './site-share-store.js'

export interface NodeSharesParts extends Pick<Services, 'clock' | 'log'> {
  /** `Database.shared`. */
  readonly database: Queries
  readonly membership: Pick<Membership, 'nodeId' | 'deliveringCount' | 'owns' | 'partsOf'>
}

const LOOK_MS = 1_000
/** A site counts as in use for this long after it was. */
const LINGER_MS = 10_000
const MAX_SITES = 2_000
/** How long a node has a connection of a site that allows fewer than there are nodes. */
const TURN_MS = 10_000

/** Interval in which destinations are looked at for splitting, and how many of the busiest. */
const SPLIT_LOOK_MS = 5_000
const MAX_SPLITS = 10
/** Due messages above which a destination is split, and above which it stays so. */
const SPLIT_ABOVE = 1_000
const KEEP_ABOVE = 200
/** A site with a lower limit, per minute, needs no second node. */
const MIN_RATE = 600
const MAX_PARTS = 16
/** All nodes have read of a split when it begins. */
const BEGIN_MS = 4_000
const LAST_MS = 30_000

type Paced = Pick<Schedule, 'sitesInUse' | 'reshare' | 'busiest'>

export class NodeShares {
  private readonly parts: NodeSharesParts
  /** When each site that others know of was last in use here (monotonic, ms), and its back-off as told. */
  private readonly told = new Map<string, { usedAt: number; backoffUntil: number }>()
  /** Among the nodes that deliver to a site. */
  private places = new Map<string, { nodes: number; rank: number }>()
  /** Back-offs of others that were applied, by site and node. */
  private applied = new Map<string, number>()
  /** In effect: parts of each destination. */
  private splits = new Map<string, LanePart>()
  private splitLookAt = -Infinity
  private turn = 0
  private timer: Timer | undefined
  private isStopped = false

  constructor(parts: NodeSharesParts) {
    this.parts = parts
  }

  /** Whether this node delivers mail to the destination. */
  owns(destination: string): boolean {
    const part = this.partOf(destination)
    return part ? part.parts.length > 0 : this.parts.membership.owns(destination)
  }

  /** Of a destination that is split. */
  partOf(destination: string): LanePart | undefined {
    return this.splits.size === 0 ? undefined : this.splits.get(destination)
  }

  /** @returns undefined if there are no other nodes */
  shareOf(facts: SiteFacts): SiteLimits | undefined {
    const { deliveringCount } = this.parts.membership
    if (deliveringCount < 2) return undefined
    const place = this.places.get(facts.name)
    return place ? shareOfSite(facts, { ...place, turn: this.turn }) : firstShare(facts, deliveringCount)
  }

  /** @param onChanged called when other destinations, or parts of them, are this node's */
  start(schedule: Paced, onChanged: () => void): void {
    const { clock, log } = this.parts
    this.timer = clock.after(LOOK_MS, () => {
      this.look(schedule, onChanged)
        .catch((error: unknown) => log.debug('sites not shared', { error: describeError(error) }))
        .finally(() => {
          if (!this.isStopped) this.start(schedule, onChanged)
        })
    })
  }

  stop(): void {
    this.isStopped = true
    this.timer?.cancel()
  }

  private async look(schedule: Paced, onChanged: () => void): Promise<void> {
    const { membership, clock } = this.parts
    if (membership.deliveringCount < 2) {
      if (this.told.size + this.places.size + this.splits.size > 0) await this.end(schedule, onChanged)
      return
    }
    await this.tell(schedule)
    const backoffs = await this.learn()
    await this.learnSplits(onChanged)
    schedule.reshare(backoffs)
    if (clock.monotonic() - this.splitLookAt < SPLIT_LOOK_MS) return
    this.splitLookAt = clock.monotonic()
    await this.split(schedule)
  }

  /** This node is alone again. */
  private async end(schedule: Paced, onChanged: () => void): Promise<void> {
    const { database, membership } = this.parts
    await writeSiteUses(database, membership.nodeId, [], [...this.told.keys()])
    const hadSplits = this.splits.size > 0
    for (const one of [this.told, this.places, this.applied, this.splits]) one.clear()
    if (hadSplits) onChanged()
    schedule.reshare(new Map())
  }

  /** Stores which sites this node delivers to, for the other nodes to read. */
  private async tell(schedule: Paced): Promise<void> {
    const { database, clock, membership } = this.parts
    const now = clock.monotonic()
    const news = schedule.sitesInUse(MAX_SITES).filter(({ site, backoffLeftMs = 0 }) => {
      const before = this.told.get(site)
      const backoffUntil = backoffLeftMs > 0 ? now + backoffLeftMs : 0
      const isNew = !before || Math.abs(before.backoffUntil - backoffUntil) > LOOK_MS / 2
      this.told.set(site, { usedAt: now, backoffUntil: isNew ? backoffUntil : before.backoffUntil })
      return isNew
    })
    const ended = [...this.told].filter(([, { usedAt }]) => now - usedAt >= LINGER_MS).map(([site]) => site)
    for (const site of ended) this.told.delete(site)
    if (news.length + ended.length > 0) await writeSiteUses(database, membership.nodeId, news, ended)
  }

  /** @returns back-offs of other nodes that were not applied yet: time left by site, ms */
  private async learn(): Promise<Map<string, number>> {
    const { database, membership } = this.parts
    const found = this.told.size > 0 ? await findSiteUses(database, membership.nodeId) : []
    const places = new Map<string, { nodes: number; rank: number }>()
    const backoffs = new Map<string, number>()
    const applied = new Map<string, number>()
    for (const { site, nodeId, backoffUntil, backoffLeftMs } of found) {
      const place = places.get(site) ?? { nodes: 0, rank: 0 }
      if (nodeId === membership.nodeId) place.rank = place.nodes
      place.nodes += 1
      places.set(site, place)
      if (nodeId === membership.nodeId || backoffUntil === null || backoffLeftMs === undefined) continue
      const key = `${nodeId} ${site}`
      applied.set(key, backoffUntil)
      if (this.applied.get(key) !== backoffUntil)
        backoffs.set(site, Math.max(backoffs.get(site) ?? 0, backoffLeftMs))
    }
    this.places = places
    this.applied = applied
    return backoffs
  }

  private async learnSplits(onChanged: () => void): Promise<void> {
    const { database, membership } = this.parts
    const { now, splits } = await findSplits(database)
    this.turn = Math.floor(now / TURN_MS)
    const before = JSON.stringify([...this.splits])
    this.splits = new Map(
      splits
        .filter(({ beginsInMs }) => beginsInMs <= 0)
        .map(({ destination, parts }) => [
          destination,
          { of: parts, parts: membership.partsOf(destination, parts) },
        ]),
    )
    if (JSON.stringify([...this.splits]) !== before) onChanged()
  }

  /** Splits destinations of this node with much due mail, and prolongs their splits. */
  private async split(schedule: Paced): Promise<void> {
    const { database, clock, log, membership } = this.parts
    for (const { destination, lanes, facts } of schedule.busiest(MAX_SPLITS)) {
      const { connections, messagesPerMinute } = facts
      const parts = Math.min(membership.deliveringCount, connections, MAX_PARTS)
      if (parts < 2 || !membership.owns(destination)) continue
      if (messagesPerMinute > 0 && messagesPerMinute < MIN_RATE) continue
      const isSplit = this.splits.has(destination)
      const enough = isSplit ? KEEP_ABOVE : SPLIT_ABOVE
      if ((await countDue(database, lanes, clock.now(), enough)) < enough) continue
      await putSplit(database, { destination, parts, beginsInMs: BEGIN_MS, endsInMs: LAST_MS })
      if (!isSplit) log.info('destination split', { destination, parts })
    }
  }
}
