/**
 * Lanes: queue rows that are scheduled together.
 *
 * A lane is one combination of destination, priority, workspace, large or not, and campaign. Pausing a campaign
 * therefore holds lanes and updates no rows. Memory per lane is a few hundred bytes, however many messages it has. The
 * key is a single text so that one index lists the lanes and finds what is due in each.
 *
 *   waiting ──due, site unknown──> locating ──> queued ──turn──> claiming ──> waiting
 *      └────────due, site known────────────────────^
 */
import { PRIORITIES, type Priority } from '../messages/mail-origin.js'

const LARGE_MARK = 'large'

/**
 * `waiting`: for its due time. `locating`: for a DNS lookup of its site. `queued`: for a slot at its site.
 * `claiming`: a claim is reading its rows.
 */
export type LaneState = 'waiting' | 'locating' | 'queued' | 'claiming'

export interface Lane {
  readonly key: string
  /** Recipient domain, A-labels. */
  readonly destination: string
  readonly priority: Priority
  readonly workspaceId: string
  readonly isLarge: boolean
  readonly campaignId: string | undefined
  state: LaneState
  /** Earliest known due time, ms since epoch UTC; Infinity if none. May be too early, never too late. */
  dueAt: number
  /** Claimed messages whose outcome is not yet committed. */
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
