/**
 * Hands the next recipients of a campaign to the door: their messages, and the marks on their rows, are one transaction.
 *
 * Called by the runner. Whoever unsubscribed, bounced or was deleted since the recipients were fixed is skipped here, whoever is suppressed
 * by the door. The hourly and daily limits of the workspace are asked first, so that the door never refuses.
 * Fails: as the door and the database do, and then nobody was handed over.
 */
import { roomWithinLimits } from '../../accounts/sending-limit-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import type { Tx } from '../../db/database.js'
import { findMessages } from '../../messages/message-store.js'
import type { SubmittedContent, SubmittedRecipient } from '../../msa/mail-submission.js'
import { submitAll, type DoorParts } from '../../msa/submit.js'
import type { Campaign } from '../records/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../records/campaign-store.js'
import {
  markHanded,
  markSkipped,
  nextPending,
  type LeftOut,
  type LeftOutReason,
  type WaitingRecipient,
} from './recipient-store.js'

export interface HandOver {
  readonly workspace: ActingWorkspace
  readonly content: SubmittedContent
  /** Recipients at most. */
  readonly limit: number
}

const HOUR_MS = 3_600_000
/** A limit may be raised. */
const LIMIT_LOOK_MS = 30_000

/** @returns how many recipients had their turn */
export async function handOver(
  tx: Tx,
  parts: DoorParts,
  seq: number,
  { workspace, content, limit }: HandOver,
  now: number,
): Promise<number> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (campaign?.status !== 'sending') return 0
  const { isSandbox } = campaign
  const room = isSandbox ? undefined : await roomWithinLimits(tx.db, workspace, now)
  if (room?.mails === 0) {
    await changeCampaign(tx.db, seq, { nextAt: Math.min(room.moreAt, now + LIMIT_LOOK_MS) })
    return 0
  }
  const waiting = await nextPending(tx.db, seq, Math.min(limit, room?.mails ?? limit))
  const mailed = waiting.flatMap(one => (reasonAgainst(one) === undefined ? [one] : []))
  const isContentStored = campaign.contentId === content.id
  const contacts = new Map(mailed.map(({ email, id }) => [email ?? '', id ?? '']))
  const submission = { content, to: mailed.map(({ email }) => email ?? ''), contacts, isContentStored }
  const [taken = []] =
    mailed.length === 0
      ? []
      : await submitAll(
          tx,
          // The queue has had the content, if it wants it.
          isContentStored ? { ...parts, onStored: () => {} } : parts,
          { workspace, isSandbox, submissions: [submission] },
          now,
        )
  const [handed, skipped] = sorted(mailed, taken)
  await markHanded(tx.db, seq, handed)
  const leftOut = [...waiting.flatMap(leftOutNow), ...skipped]
  await markSkipped(tx.db, seq, leftOut)
  const done = isSandbox ? await countSilent(tx, handed) : 0
  await changeCampaign(
    tx.db,
    seq,
    {
      nextAt: nextTurn(campaign, handed.length, now),
      ...(mailed.length === 0 || isContentStored ? {} : { contentId: content.id, contentAt: now }),
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

function reasonAgainst({
  email,
  isSubscribed,
  isSuspended,
  isBounced,
}: WaitingRecipient): LeftOutReason | undefined {
  if (email === null) return 'deleted'
  if (isSuspended) return 'suppressed'
  if (!isSubscribed) return 'unsubscribed'
  return isBounced ? 'bounced' : undefined
}

function leftOutNow(one: WaitingRecipient): LeftOut[] {
  const reason = reasonAgainst(one)
  return reason === undefined ? [] : [{ contact: one.contact, reason, messageId: null }]
}

function sorted(
  mailed: readonly WaitingRecipient[],
  taken: readonly SubmittedRecipient[],
): [handed: [number, string][], skipped: LeftOut[]] {
  const handed: [number, string][] = []
  const skipped: LeftOut[] = []
  taken.forEach(({ messageId, skip }, at) => {
    const contact = mailed[at]?.contact ?? 0
    if (skip === null) handed.push([contact, messageId])
    else skipped.push({ contact, reason: skip, messageId })
  })
  return [handed, skipped]
}

/** Of a sandbox's mails those of which nothing more is heard: no outcome was played. */
async function countSilent(tx: Tx, handed: readonly (readonly [number, string])[]): Promise<number> {
  const messages = await findMessages(
    tx.db,
    handed.map(([, messageId]) => messageId),
  )
  return messages.filter(({ status }) => status === 'sent').length
}

/** At a rate, evenly: each mail has its share of the hour. Others have their turn first. */
function nextTurn({ ratePerHour }: Campaign, mails: number, now: number): number {
  return ratePerHour === null ? now : now + Math.ceil((mails * HOUR_MS) / ratePerHour)
}
