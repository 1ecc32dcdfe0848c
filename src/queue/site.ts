/**
 * A site: the MX hosts that several domains may share, with its pace and the lanes that have mail due for it.
 *
 * Decides whose turn it is. Mail of people waiting for it (a password reset) goes before campaigns, but every fourth
 * turn is the campaigns', so that neither starves the other; within a priority workspaces take turns, and within a
 * workspace its domains.
 */
import type { SiteFacts } from './delivery-agent.js'
import type { Lane } from './lane.js'
import { SitePace, type RestLengths } from './site-pace.js'
import type { Clock } from '../world/clock.js'

/** Leave to claim messages of a lane and deliver them to its site. */
export interface Turn {
  readonly lane: Lane
  readonly site: Site
  /** How many messages it may claim. */
  readonly slots: number
}

const CAMPAIGN_TURN_EVERY = 4

/** Lanes by workspace, both in order of turns: who was served goes to the end. */
type Line = Map<string, Set<Lane>>

export class Site {
  readonly name: string
  readonly pace: SitePace
  private readonly lines: readonly [Line, Line] = [new Map(), new Map()]
  private turns = 0

  constructor(clock: Clock, facts: SiteFacts, rests: RestLengths) {
    this.name = facts.name
    this.pace = new SitePace(clock, facts, rests)
  }

  get hasDue(): boolean {
    return this.lines.some(line => line.size > 0)
  }

  add(lane: Lane): void {
    const line = this.lines[lane.priority]
    const lanes = line.get(lane.workspaceId)
    if (lanes) lanes.add(lane)
    else line.set(lane.workspaceId, new Set([lane]))
  }

  private remove(lane: Lane): void {
    const line = this.lines[lane.priority]
    const lanes = line.get(lane.workspaceId)
    lanes?.delete(lane)
    if (lanes?.size === 0) line.delete(lane.workspaceId)
  }

  /** Gives out the slots one by one. The lanes that got some are out of the line until they are added again. */
  takeTurns(slots: number, lanes: number): Turn[] {
    const given = new Map<Lane, number>()
    for (let slot = 0; slot < slots; slot += 1) {
      const lane = this.nextLane()
      if (!lane || (given.size >= lanes && !given.has(lane))) break
      given.set(lane, (given.get(lane) ?? 0) + 1)
    }
    for (const lane of given.keys()) this.remove(lane)
    return [...given].map(([lane, count]) => ({ lane, site: this, slots: count }))
  }

  private nextLane(): Lane | undefined {
    const [transactional, campaigns] = this.lines
    this.turns += 1
    const isCampaignTurn = this.turns % CAMPAIGN_TURN_EVERY === 0
    return isCampaignTurn
      ? (rotate(campaigns) ?? rotate(transactional))
      : (rotate(transactional) ?? rotate(campaigns))
  }
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
