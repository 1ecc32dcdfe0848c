/**
 * Enqueues the next batch of a campaign's recipients.
 *
 * Creates their messages and marks their rows in one transaction, so nobody is mailed twice or missed after a crash. Recipients who
 * unsubscribed, left the list, bounced or were deleted since the audience was fixed are skipped here; `submit` skips suppressed ones.
 * Checks the workspace's hourly and daily limits first, so `submit` never rejects the batch.
 */
import { allowanceWithinLimits } from '../../accounts/sending-limit-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { findLeavers } from '../../audience/contacts/consent-store.js'
import { reasonAgainst } from '../../audience/contacts/consent.js'
import { must } from '../../core/must.js'
import type { Tx } from '../../db/database.js'
import { hasContent } from '../../messages/content-store.js'
import { findMessages } from '../../messages/message-store.js'
import type { SubmittedContent, SubmittedRecipient } from '../../msa/mail-submission.js'
import { submitAll, type IntakeParts } from '../../msa/submit.js'
import type { Campaign } from '../model/campaign.js'
import { changeVariant, findTest } from '../model/variant-store.js'
import { changeCampaign, findCampaignBySeq } from '../model/campaign-store.js'
import {
  markHanded,
  markSkipped,
  nextDueAt,
  nextDuePending,
  nextPending,
  type LeftOut,
  type LeftOutReason,
  type WaitingRecipient,
} from '../model/recipient-store.js'

export interface HandOver {
  readonly workspace: ActingWorkspace
  readonly content: SubmittedContent
  readonly limit: number
  /** Of an A/B test; undefined: everybody outside its sample. */
  readonly variant?: number
}

const HOUR_MS = 3_600_000
/** A full window is rechecked this often, since the limit may be raised. */
const LIMIT_RECHECK_MS = 30_000

/** @returns how many recipients were processed */
export async function handOver(
  tx: Tx,
  parts: IntakeParts,
  seq: number,
  { workspace, content, limit, variant: number }: HandOver,
  now: number,
): Promise<number> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (campaign?.status !== 'sending') return 0
  const { isSandbox } = campaign
  const variant = number === undefined ? undefined : (await findTest(tx.db, seq))?.variants[number]
  const room = isSandbox ? undefined : await allowanceWithinLimits(tx.db, workspace, now)
  if (room?.mails === 0) {
    await changeCampaign(tx.db, seq, { nextAt: Math.min(room.moreAt, now + LIMIT_RECHECK_MS) })
    return 0
  }
  const most = Math.min(limit, room?.mails ?? limit)
  // The sample of an A/B test is mailed at once.
  const isByHour = campaign.sendTime === 'usual_hour' && number === undefined
  const waiting = isByHour
    ? await nextDuePending(tx.db, seq, most, now)
    : await nextPending(tx.db, seq, most, number)
  if (isByHour && waiting.length === 0) {
    await changeCampaign(tx.db, seq, { nextAt: (await nextDueAt(tx.db, seq)) ?? now + LIMIT_RECHECK_MS })
    return 0
  }
  const { listId, audience } = campaign
  const leavers = await findLeavers(
    tx.db,
    audience?.include ?? (listId === null ? [] : [{ listId }]),
    waiting.map(({ contact }) => contact),
  )
  const reasonFor = (one: WaitingRecipient) =>
    reasonAgainst(one) ?? (leavers.has(one.contact) ? 'left_list' : undefined)
  const mailed = waiting.filter(one => reasonFor(one) === undefined)
  // Erasure deletes a content with the last message that had it.
  const isContentStored =
    (variant ?? campaign).contentId === content.id && (await hasContent(tx.db, content.id))
  const to = mailed.map(({ email }) => must(email, 'the address of a recipient'))
  const contacts = new Map(mailed.map(({ id }, at) => [must(to[at], 'an address'), must(id, 'a contact')]))
  const submission = { content, to, contacts, isContentStored }
  const [taken = []] =
    mailed.length === 0
      ? []
      : await submitAll(
          tx,
          // The queue has the content already if it is stored.
          isContentStored ? { ...parts, onStored: () => {} } : parts,
          { workspace, isSandbox, submissions: [submission] },
          now,
        )
  const [handed, skipped] = sorted(mailed, taken)
  await markHanded(tx.db, seq, handed)
  const leftOut = [...waiting.flatMap(one => leftOutFor(one, reasonFor(one))), ...skipped]
  await markSkipped(tx.db, seq, leftOut)
  const done = isSandbox ? await countSilent(tx, handed) : 0
  const stored = mailed.length === 0 || isContentStored ? {} : { contentId: content.id, contentAt: now }
  if (variant) {
    // If there are none, then whatever the count says.
    const left = waiting.length === 0 ? variant.pending : waiting.length
    await changeVariant(tx.db, seq, variant.variant, stored, { pending: -left })
  }
  await changeCampaign(
    tx.db,
    seq,
    {
      nextAt: nextTurn(campaign, handed.length, now),
      ...(variant ? {} : stored),
      // Between two mails of a limited rate it goes on waiting.
      ...(campaign.waitingSince === null || campaign.ratePerHour !== null
        ? {}
        : { waitingSince: null, waitingAnnounced: null }),
    },
    {
      pending: -waiting.length,
      queued: handed.length - done,
      done,
      skipped: leftOut.length,
    },
  )
  return waiting.length
}

function leftOutFor({ contact }: WaitingRecipient, reason: LeftOutReason | undefined): LeftOut[] {
  return reason === undefined ? [] : [{ contact, reason, messageId: null }]
}

function sorted(
  mailed: readonly WaitingRecipient[],
  taken: readonly SubmittedRecipient[],
): [handed: [number, string][], skipped: LeftOut[]] {
  const handed: [number, string][] = []
  const skipped: LeftOut[] = []
  taken.forEach(({ messageId, skip }, at) => {
    const { contact } = must(mailed[at], 'the recipient of a message')
    if (skip === null) handed.push([contact, messageId])
    else skipped.push({ contact, reason: skip, messageId })
  })
  return [handed, skipped]
}

/** Sandbox messages without a simulated outcome: no event about them will follow. */
async function countSilent(tx: Tx, handed: readonly (readonly [number, string])[]): Promise<number> {
  const messages = await findMessages(
    tx.db,
    handed.map(([, messageId]) => messageId),
  )
  return messages.filter(({ status }) => status === 'sent').length
}

/** Spreads a limited rate evenly over the hour; later than now, since the runner looks for what falls due after its round began. */
function nextTurn({ ratePerHour }: Campaign, mails: number, now: number): number {
  return ratePerHour === null ? now : now + Math.max(1, Math.ceil((mails * HOUR_MS) / ratePerHour))
}
