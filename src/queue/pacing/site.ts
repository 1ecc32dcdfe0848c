/**
 * A site: the MX hosts that several domains may share, with its pace and the lanes that have mail due for it.
 *
 * Decides whose turn it is within the site. Mail of people waiting for it (a password reset) goes before campaigns, but every
 * fourth turn is the campaigns', so that neither starves the other; small messages go before large ones, but every fourth turn
 * is the large ones'. Within each kind workspaces take turns, and within a workspace its domains.
 */
import type { Clock } from '../../world/time/clock.js'
import type { Standing } from './connection-shares.js'
import type { SiteFacts } from '../delivery-agent.js'
import type { Claimant } from './fair-line.js'
import { isBulk, type Lane } from '../lane.js'
import { SitePace, type RestLengths } from './site-pace.js'

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
type Line = Map<string, Set<Lane>>

export class Site {
  readonly name: string
  readonly pace: SitePace
  private readonly lines: Readonly<Record<Kind, Line>> = {
    single: new Map(),
    bulk: new Map(),
    'large single': new Map(),
    'large bulk': new Map(),
  }
  private turns = 0

  constructor(clock: Clock, facts: SiteFacts, rests: RestLengths) {
    this.name = facts.name
    this.pace = new SitePace(clock, facts, rests)
  }

  get hasDue(): boolean {
    return Object.values(this.lines).some(line => line.size > 0)
  }

  /** When what stands in its lines longest fell due, ms since epoch UTC; undefined where nothing does. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const line of Object.values(this.lines))
      for (const lanes of line.values()) for (const { dueAt } of lanes) oldest = Math.min(oldest, dueAt)
    return oldest === Infinity ? undefined : oldest
  }

  get hasLargeDue(): boolean {
    return this.lines['large single'].size > 0 || this.lines['large bulk'].size > 0
  }

  /** On whose behalf it waits, as far as they may have a turn. */
  *claimants(permits: Permits): Generator<Claimant> {
    for (const kind of ORDERS[0] ?? [])
      if (isPermitted(kind, { ...permits, bulk: true }))
        for (const workspaceId of this.lines[kind].keys()) yield { isBulk: isBulkKind(kind), workspaceId }
  }

  add(lane: Lane): void {
    const line = this.lines[kindOf(lane)]
    const lanes = line.get(lane.workspaceId)
    if (lanes) lanes.add(lane)
    else line.set(lane.workspaceId, new Set([lane]))
  }

  /** Nothing where it is not in line. */
  remove(lane: Lane): void {
    const line = this.lines[kindOf(lane)]
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
      const lane = isPermitted(kind, permits) ? rotate(this.lines[kind]) : undefined
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
function rotate(line: Line): Lane | undefined {
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
