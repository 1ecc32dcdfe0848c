/**
 * Lanes: the queue's rows grouped by what decides their turn, which is destination, priority, workspace, whether they are
 * large, and the campaign they belong to, so that a paused campaign holds its lanes and no row has to change.
 *
 * The database is asked lane by lane; in memory a lane is a few hundred bytes, whatever the number of its messages.
 * The key is one text, so that one index gives both the lanes there are and what is due in each.
 *
 *   waiting ──due, site unknown──> locating ──> in line ──turn──> looked at ──> waiting
 *      └────────due, site known────────────────────^
 */
import { PRIORITIES, type Priority } from '../messages/mail-origin.js'

const LARGE_MARK = 'large'

/**
 * `waiting`: nothing due that is known of. `locating`: due, its site is being found. `in line`: due, it waits for a turn of
 * its site. `looked at`: out of the line, somebody looks into the database.
 */
export type LaneState = 'waiting' | 'locating' | 'in line' | 'looked at'

export interface Lane {
  readonly key: string
  /** Recipient domain, A-labels. */
  readonly destination: string
  readonly priority: Priority
  readonly workspaceId: string
  readonly isLarge: boolean
  /** Undefined for mail of no campaign. */
  readonly campaignId: string | undefined
  state: LaneState
  /** Earliest due time noted since the last look, ms since epoch UTC; Infinity when there is none. A hint, at worst too early. */
  dueAt: number
  /** Messages claimed and not yet settled. */
  claimedCount: number
}

export function laneKey(
  destination: string,
  priority: Priority,
  workspaceId: string,
  isLarge = false,
  campaignId?: string,
): string {
  const large = isLarge ? ` ${LARGE_MARK}` : ''
  const campaign = campaignId === undefined ? '' : ` ${campaignId}`
  return `${destination} ${priority} ${workspaceId}${large}${campaign}`
}

export function laneFromKey(key: string): Lane {
  const [destination = '', priority = '0', workspaceId = '', ...marks] = key.split(' ')
  return {
    key,
    destination,
    priority: priority === '1' ? PRIORITIES.campaign : PRIORITIES.transactional,
    workspaceId,
    isLarge: marks[0] === LARGE_MARK,
    campaignId: marks.find(mark => mark !== LARGE_MARK),
    state: 'waiting',
    dueAt: Infinity,
    claimedCount: 0,
  }
}

export function isBulk({ priority }: Pick<Lane, 'priority'>): boolean {
  return priority === PRIORITIES.campaign
}
