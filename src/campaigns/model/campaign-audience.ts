/**
 * A campaign's audience: its list or segment at a point in time, or recipients of an earlier campaign, and how many can be mailed.
 *
 * A static list is stored by its number, a dynamic list or segment by its conditions, several by all of these. Fails: AppError not_found, naming the field;
 * unavailable if counting takes too long.
 */
import { contactsOf, findAudience } from '../../audience/audience-store.js'
import { estimate, type Selection } from '../../audience/segments/audience-query-store.js'
import { findList } from '../../audience/lists/list-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { patience } from '../../audience/scan-store.js'
import { AppError } from '../../core/errors.js'
import type { Database, Queries } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import { isRecipient, type RecipientStatus } from './recipient-store.js'
import type { Campaign, Excluded, NamedAudience, ResendTo, SentTo } from './campaign.js'
import { findCampaign } from './campaign-store.js'

/** @throws AppError not_found if the list, segment or earlier campaign no longer exists */
export async function findCampaignAudience(
  db: Queries,
  campaign: Pick<Campaign, 'workspaceId' | 'listId' | 'segmentId' | 'audience' | 'resendOf' | 'resendTo'>,
): Promise<SentTo> {
  const { workspaceId, listId, segmentId, audience, resendOf, resendTo } = campaign
  if (resendOf !== null && resendTo !== null) {
    const earlier = await findCampaign(db, workspaceId, resendOf)
    if (!earlier || earlier.recipientsPrunedAt !== null)
      throw new AppError('not_found', 'the recipients of the earlier campaign are no longer kept', {
        path: 'resend_of',
      })
    return { recipientsOf: earlier.seq, who: resendTo }
  }
  if (audience !== null) {
    const parts: { include: SentTo[]; exclude: SentTo[] } = { include: [], exclude: [] }
    for (const part of ['include', 'exclude'] as const)
      for (const one of audience[part]) parts[part].push(await sentToOf(db, workspaceId, one, 'audience'))
    return parts
  }
  if (segmentId !== null) return sentToOf(db, workspaceId, { segmentId }, 'segment_id')
  if (listId === null) throw new AppError('not_found', 'the campaign has no audience', { path: 'list_id' })
  return sentToOf(db, workspaceId, { listId }, 'list_id')
}

async function sentToOf(db: Queries, workspaceId: string, one: NamedAudience, path: string): Promise<SentTo> {
  if ('segmentId' in one) {
    const segment = await findSegment(db, workspaceId, one.segmentId)
    if (!segment) throw new AppError('not_found', 'the segment no longer exists', { path })
    return { conditions: segment.conditions }
  }
  const list = await findList(db, workspaceId, one.listId)
  if (!list) throw new AppError('not_found', 'the list no longer exists', { path })
  return list.conditions ? { conditions: list.conditions } : { list: list.seq }
}

/** Numbers of the static lists that it was made from. */
export function listsIn(who: SentTo): number[] {
  if ('include' in who) return [...who.include, ...who.exclude].flatMap(listsIn)
  return 'list' in who ? [who.list] : []
}

/** Limits the audience to contacts that exist now. A workspace without contacts has no rows to create and is marked fixed. */
export async function contactsAsOf(
  db: Queries,
  workspaceId: string,
  now: number,
): Promise<Pick<Campaign, 'requestedAt' | 'fixedBefore' | 'fixedThrough' | 'fixedAt'>> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return { requestedAt: now, fixedBefore: null, fixedThrough: null, fixedAt: now }
  const { first } = contactsOf(audience.number)
  return { requestedAt: now, fixedBefore: first, fixedThrough: first + audience.lastContact, fixedAt: null }
}

/** Statuses of recipients whose mail was delivered but not opened, or not clicked. */
const UNTOUCHED: Readonly<Record<ResendTo, readonly RecipientStatus[]>> = {
  not_opened: ['delivered'],
  not_clicked: ['delivered', 'opened'],
}

export function whoOf(sentTo: SentTo): Selection {
  if ('recipientsOf' in sentTo) return { isMeant: isRecipient(sentTo.recipientsOf, UNTOUCHED[sentTo.who]) }
  if ('include' in sentTo) return { include: sentTo.include.map(whoOf), exclude: sentTo.exclude.map(whoOf) }
  return 'list' in sentTo ? sentTo : readConditions(sentTo.conditions)
}

export interface CountedAudience extends Excluded {
  readonly mailable: number
}

/** @throws AppError unavailable */
export async function countAudience(
  { slowReader }: Database,
  clock: Clock,
  workspaceId: string,
  who: SentTo,
): Promise<CountedAudience> {
  const asking = { workspaceId, now: clock.now() }
  const found = await estimate(slowReader, whoOf(who), asking, patience(clock))
  const { count, mailable, unsubscribed, bounced } = found
  // A contact that changes between two batches may be counted twice.
  const suppressed = Math.max(0, count - mailable - unsubscribed - bounced)
  return { mailable, unsubscribed, bounced, suppressed }
}
