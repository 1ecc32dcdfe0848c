/**
 * Creates a campaign's recipient rows: the mailable contacts of its audience at the time it started.
 *
 * Called by the runner for one batch at a time. Contacts are read in a thread, in order of their numbers; rows and progress are written in
 * short transactions, so a crash loses no progress. Each contact is evaluated once, as it is at that moment.
 * If the list is deleted meanwhile, the campaign fails before anything is sent, rather than go to some of its members.
 * A cancelled campaign gets all its rows too, so that they show the intended recipients.
 * Fails: AppError unavailable if too many slow reads are running.
 */
import { findUsualHours } from '../../audience/contacts/contact-hours-store.js'
import { isListThere } from '../../audience/lists/list-store.js'
import { AppError } from '../../core/errors.js'
import {
  listMailability,
  type Mailability,
  type ContactMailability,
} from '../../audience/segments/audience-query-store.js'
import type { Tx } from '../../db/database.js'
import type { PieceSize } from '../../db/piece-size.js'
import type { Services } from '../../db/services.js'
import { pauseFor } from '../../world/time/clock.js'
import type { Campaign, Excluded, SentTo } from '../model/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../model/campaign-store.js'
import { contactsAsOf, findCampaignAudience, listsIn, whoOf } from '../model/campaign-audience.js'
import { dueAtHour } from './usual-hour.js'
import { fail } from './end-campaign.js'
import { countRows, insertDueRecipients, insertRecipients } from '../model/recipient-store.js'

const SPAN = 8_192
/** Pause between transactions, to let other writers in. */
const REST_MS = 1

export type FixParts = Pick<Services, 'database' | 'clock'>

/** Evaluates the list or segment of a scheduled campaign at its start. */
export async function evaluateAudience(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (campaign?.status !== 'scheduled' || campaign.who !== null) return
  let who: SentTo
  try {
    who = await findCampaignAudience(tx.db, campaign)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    await fail(tx, seq, `${error.message}: it was deleted before the campaign started`, now)
    return
  }
  const { unsubscribed, bounced, suppressed } = campaign
  await changeCampaign(
    tx.db,
    seq,
    { who, nextAt: now, ...(await contactsAsOf(tx.db, campaign.workspaceId, now)) },
    // The estimate made when it was scheduled is replaced by counts of the rows.
    { unsubscribed: -unsubscribed, bounced: -bounced, suppressed: -suppressed },
  )
}

/** Processes the next contacts. @param size adaptive size of the transactions */
export async function fixSome(parts: FixParts, campaign: Campaign, size: PieceSize): Promise<void> {
  const { database, clock } = parts
  const { seq, workspaceId, who, fixedBefore: first, fixedThrough, requestedAt: now } = campaign
  if (first === null || fixedThrough === null || !who || first > fixedThrough) {
    await database.write(tx => finish(tx, seq, clock.now()))
    return
  }
  const last = Math.min(first + SPAN - 1, fixedThrough)
  const contacts = await listMailability(
    database.slowReader,
    whoOf(who),
    { workspaceId, now: now ?? clock.now() },
    { first, last },
  )
  for (let at = 0, from = first; from <= last;) {
    const piece = contacts.slice(at, at + size.rows)
    at += piece.length
    const next = at < contacts.length ? (piece.at(-1)?.seq ?? last) + 1 : last + 1
    const isTaken = await size.measured(piece.length, measure =>
      database.write(tx => measure(() => write(tx, campaign, from, next, piece, clock.now())), {
        isLong: true,
      }),
    )
    // The list was deleted, or another process works on the same campaign.
    if (!isTaken) return
    from = next
    await pauseFor(REST_MS)
  }
}

/** @returns false if this batch was already written or is obsolete */
async function write(
  tx: Tx,
  { seq, who }: Campaign,
  from: number,
  next: number,
  contacts: readonly ContactMailability[],
  now: number,
): Promise<boolean> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (!campaign || campaign.fixedBefore !== from || campaign.fixedAt !== null) return false
  // Read before this transaction; a list that exists now existed then.
  for (const list of who ? listsIn(who) : [])
    if (!(await isListThere(tx.db, list))) {
      await fail(tx, seq, 'its list was deleted before all recipients were determined', now)
      await finish(tx, seq, now)
      return false
    }
  const mailable = contacts.filter(({ mailability }) => mailability === 'mailable').map(one => one.seq)
  if (campaign.sendTime === 'usual_hour') {
    const hours = await findUsualHours(tx.db, mailable)
    const startsAt = campaign.requestedAt ?? now
    await insertDueRecipients(
      tx.db,
      seq,
      mailable.map(contact => [contact, dueAtHour(startsAt, hours.get(contact))]),
    )
  } else await insertRecipients(tx.db, seq, mailable)
  const excluded = campaign.scheduledAt === null ? {} : excludedIn(contacts)
  await changeCampaign(tx.db, seq, { fixedBefore: next }, { pending: mailable.length, ...excluded })
  return true
}

function excludedIn(contacts: readonly ContactMailability[]): Excluded {
  const count = (mailability: Mailability) => contacts.filter(one => one.mailability === mailability).length
  return { unsubscribed: count('unsubscribed'), bounced: count('bounced'), suppressed: count('suppressed') }
}

/** Replaces the estimated totals by the counted ones. */
async function finish(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (!campaign || campaign.fixedAt !== null) return
  const { status, scheduledAt, recipients } = campaign
  const nextAt = status === 'paused' ? null : status === 'scheduled' ? scheduledAt : now
  await changeCampaign(tx.db, seq, { fixedAt: now, nextAt }, { recipients: countRows(campaign) - recipients })
}
