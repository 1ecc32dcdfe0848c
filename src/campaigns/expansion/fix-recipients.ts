/**
 * Creates a campaign's recipient rows: the mailable contacts of its list or segment at the time it started.
 *
 * Called by the runner, a piece at a time. Contacts are read by number, some thousand of them, in a thread; their rows are
 * written in transactions of some milliseconds, which also say how far it has come, so that it goes on there after a crash. A contact
 * that was made later, or changed in the meantime, is looked at as it is when its turn comes; each is looked at once. Where the list itself
 * is deleted meanwhile, the campaign fails before anybody is mailed: it shall not go to those of its members who were found in time.
 * One that was cancelled goes on to the last of them as well, so that its rows and counts say whom it would have gone to.
 * Fails: as the database does; AppError unavailable where too many read.
 */
import { isListThere } from '../../audience/lists/list-store.js'
import { AppError } from '../../core/errors.js'
import { contactsMeant, type Fate, type MeantContact } from '../../audience/segments/audience-query-store.js'
import type { Database, Tx } from '../../db/database.js'
import type { PieceSize } from '../../db/piece-size.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'
import type { Campaign, Excluded, SentTo } from '../records/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../records/campaign-store.js'
import { contactsAsOf, whoOf, whomItMeans } from '../sending/whom.js'
import { fail } from './end-campaign.js'
import { countRows, insertRecipients } from './recipient-store.js'

/** Numbers of contacts that one look goes over. */
const SPAN = 8_192
/** Between two transactions: nobody waits for it more than for whoever else writes. */
const REST_MS = 1

export interface FixParts {
  readonly database: Database
  readonly clock: Clock
}

/** Evaluates the list or segment of a scheduled campaign at its start. */
export async function evaluateAudience(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (campaign?.status !== 'scheduled' || campaign.who !== null) return
  let who: SentTo
  try {
    who = await whomItMeans(tx.db, campaign)
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
    // Who was left out was estimated when it was scheduled; now they are counted with the rows.
    { unsubscribed: -unsubscribed, bounced: -bounced, suppressed: -suppressed },
  )
}

/** The next some thousand contacts. @param size of its transactions, which learns */
export async function fixSome(parts: FixParts, campaign: Campaign, size: PieceSize): Promise<void> {
  const { database, clock } = parts
  const { seq, workspaceId, who, fixedBefore: first, fixedThrough, requestedAt: now } = campaign
  if (first === null || fixedThrough === null || !who || first > fixedThrough) {
    await database.write(tx => finish(tx, seq, clock.now()))
    return
  }
  const last = Math.min(first + SPAN - 1, fixedThrough)
  const contacts = await contactsMeant(
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
    // Its list is gone, or somebody else goes over the same.
    if (!isTaken) return
    from = next
    await pauseFor(REST_MS)
  }
}

/** @returns false where this has been done, or is not to be done any more */
async function write(
  tx: Tx,
  { seq, who }: Campaign,
  from: number,
  next: number,
  contacts: readonly MeantContact[],
  now: number,
): Promise<boolean> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (!campaign || campaign.fixedBefore !== from || campaign.fixedAt !== null) return false
  // They were read before this transaction: where it is there now, it was there then.
  if (who && 'list' in who && !(await isListThere(tx.db, who.list))) {
    await fail(tx, seq, 'its list was deleted before all who were in it had been found', now)
    await finish(tx, seq, now)
    return false
  }
  const mailable = contacts.filter(({ fate }) => fate === 'mailable').map(one => one.seq)
  await insertRecipients(tx.db, seq, mailable)
  const excluded = campaign.scheduledAt === null ? {} : excludedIn(contacts)
  await changeCampaign(tx.db, seq, { fixedBefore: next }, { pending: mailable.length, ...excluded })
  return true
}

function excludedIn(contacts: readonly MeantContact[]): Excluded {
  const count = (fate: Fate) => contacts.filter(one => one.fate === fate).length
  return { unsubscribed: count('unsubscribed'), bounced: count('bounced'), suppressed: count('suppressed') }
}

/** What was counted when it was sent gives way to what there is. */
async function finish(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (!campaign || campaign.fixedAt !== null) return
  const { status, scheduledAt, recipients } = campaign
  const nextAt = status === 'paused' ? null : status === 'scheduled' ? scheduledAt : now
  await changeCampaign(tx.db, seq, { fixedAt: now, nextAt }, { recipients: countRows(campaign) - recipients })
}
