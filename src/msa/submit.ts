/**
 * The door: every message that enters, by whatever way, passes here.
 *
 * Recipients are sorted, limits counted, messages made and stored (`store-submissions.ts`), all in the transaction of the caller,
 * who answers only after that is on disk, so that nothing that was accepted can be lost. Whoever comes hands over a batch of
 * submissions; a single send is a batch of one. What belongs to the same decision, as the answer to be kept, the caller writes in
 * the same transaction.
 *
 *   POST /email/send     one submission         `submitAll`
 *   POST /email/batch    a thousand, at a pace  `submitAll`
 *   SMTP                 those that wait for the same commit, each with a fate of its own   `submitEach`
 *
 * One content for more recipients than a transaction should have, as that of a campaign, is stored once: the first transaction
 * submits it with the first recipients, each later one the same content, by the same id, with `isContentStored` and the next. Whoever
 * does so writes in each of them how far it has come, and names nobody twice: repeated recipients are found within a transaction.
 */
import type { Workspace } from '../accounts/workspace-store.js'
import type { NewId } from '../core/ids.js'
import type { Tx } from '../db/database.js'
import { isMarketingMail } from '../messages/mail-origin.js'
import type { MessageContent } from '../messages/content-store.js'
import { countAll, openCount } from './count-mails.js'
import type {
  AcceptedSubmission,
  Submission,
  SubmissionBatch,
  SubmittedContent,
  SubmittedRecipient,
} from './mail-submission.js'
import { sortRecipients, withContacts, type Recipient } from './recipients.js'
import { storeSubmissions } from './store-submissions.js'
import type { StoreParts, SubmitParts } from './submit-parts.js'

export type DoorParts = StoreParts & Pick<SubmitParts, 'newId' | 'emailWindows'>

/**
 * All or nothing: where it throws, the caller's work has to come to nothing as well.
 *
 * @param now when they came, ms since epoch UTC; read before ids for them were made
 * @returns by submission: each recipient in the order of `to`
 * @throws AppError rate_limited, limit_reached, validation_error
 */
export async function submitAll(
  tx: Tx,
  parts: DoorParts,
  batch: SubmissionBatch,
  now: number,
): Promise<(readonly SubmittedRecipient[])[]> {
  const sorted = await sortBatch(tx, batch)
  if (!batch.isSandbox && !batch.isOutsideLimits)
    await countAll(tx, parts, batch, sorted.map(countMailed), now)
  const accepted = batch.submissions.map((one, at) => accept(parts, batch, one, sorted[at] ?? [], now))
  await storeSubmissions(tx, parts, accepted, batch.isSandbox, now)
  return accepted.map(({ recipients }) => recipients)
}

/** How a submission among others ended. */
export type Fate =
  | { readonly recipients: readonly SubmittedRecipient[] }
  /** An AppError rate_limited, limit_reached or validation_error. */
  | { readonly refusal: unknown }

/** Each by itself, in order: a refusal of one leaves the others as they are. @returns by submission */
export async function submitEach(
  tx: Tx,
  parts: DoorParts,
  batch: SubmissionBatch,
  now: number,
): Promise<Fate[]> {
  const sorted = await sortBatch(tx, batch)
  const count = batch.isSandbox ? undefined : await openCount(tx, parts, batch.workspace, now)
  const accepted: AcceptedSubmission[] = []
  const fates = batch.submissions.map((submission, at): Fate => {
    const recipients = sorted[at] ?? []
    try {
      count?.add(submission, countMailed(recipients))
    } catch (refusal) {
      return { refusal }
    }
    const one = accept(parts, batch, submission, recipients, now)
    accepted.push(one)
    return { recipients: one.recipients }
  })
  if (accepted.length === 0) return fates
  await count?.write()
  await storeSubmissions(tx, parts, accepted, batch.isSandbox, now)
  return fates
}

/** Each by what it is itself: an unsubscribe stops the marketing of a batch, and nothing else that is in it. */
async function sortBatch(
  tx: Tx,
  { workspace, submissions }: SubmissionBatch,
): Promise<readonly (readonly Recipient[])[]> {
  const sorted = new Map<Submission, Recipient[]>()
  for (const isMarketing of [false, true]) {
    const alike = submissions.filter(
      ({ content }) => (workspace.isMarketing || isMarketingMail(content)) === isMarketing,
    )
    if (alike.length === 0) continue
    const lists = alike.map(({ to }) => to)
    const found = await sortRecipients(tx.db, workspace.id, lists, isMarketing)
    alike.forEach((submission, at) => sorted.set(submission, found[at] ?? []))
  }
  return withContacts(
    tx.db,
    workspace.id,
    submissions.map(submission => ({
      recipients: sorted.get(submission) ?? [],
      contacts: submission.contacts,
    })),
  )
}

function countMailed(recipients: readonly Recipient[]): number {
  return recipients.filter(({ skip }) => skip === null).length
}

function accept(
  { newId }: { readonly newId: NewId },
  { workspace, pace }: SubmissionBatch,
  submission: Submission,
  recipients: readonly Recipient[],
  now: number,
): AcceptedSubmission {
  const { attached, dsn, data, isContentStored } = submission
  const content = toContent(submission.content, workspace, now)
  return {
    content,
    recipients: recipients.map((one, at) => ({
      messageId: hasIdOfContent(content, at, recipients.length) ? content.id : newId(),
      ...one,
    })),
    dueAt: content.scheduledAt ?? pace?.next(countMailed(recipients)) ?? now,
    attached,
    dsn,
    data,
    isContentStored,
  }
}

/** What a submission's content is once it is in. */
export function toContent(submitted: SubmittedContent, workspace: Workspace, now: number): MessageContent {
  // What is added stands first: an object that begins with copied fields gets a shape of its own, and is slow from then on.
  const content = { workspaceId: workspace.id, createdAt: now, ...submitted }
  return workspace.isMarketing ? { isMarketing: true, ...content } : content
}

/**
 * The first message of a batch's content has the id of its content: that is how results find it. So has that of a scheduled send
 * to one recipient: the id of such a send is its content's, which stands for all recipients.
 */
function hasIdOfContent({ batch, scheduledAt }: SubmittedContent, at: number, recipients: number): boolean {
  return batch === undefined ? scheduledAt !== undefined && recipients === 1 : at === 0
}
