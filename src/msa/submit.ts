/**
 * Message intake: the only way mail enters the system.
 *
 * Classifies recipients, enforces sending limits and stores the messages (`store-submissions.ts`) inside the caller's transaction.
 * Callers report success only after that transaction commits, so accepted mail is never lost; whatever must commit with it, such as
 * an idempotent answer, they write in the same transaction. Input is always a batch; a single send is a batch of one.
 *
 *   POST /email/send     one submission                           `submitAll`
 *   POST /email/batch    up to a thousand, paced                  `submitAll`
 *   SMTP                 messages sharing a commit, judged one by one   `submitEach`
 *
 * A campaign's content is stored once for many transactions: the first submits it with the first recipients, later ones submit the
 * same content id with `isContentStored` and the next recipients. The caller records its progress in each transaction and must not
 * repeat a recipient, since duplicates are only found within a submission.
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
  StoreParts,
  SubmitParts,
} from './mail-submission.js'
import { sortRecipients, withContacts, type Recipient } from './recipients.js'
import { storeSubmissions } from './store-submissions.js'

export type IntakeParts = StoreParts & Pick<SubmitParts, 'newId' | 'emailWindows'>

/**
 * All or nothing; if it throws, the caller must roll back.
 *
 * @param now when they arrived, ms since epoch UTC; read before their ids were generated
 * @returns by submission: each recipient in the order of `to`
 * @throws AppError rate_limited, limit_reached, validation_error
 */
export async function submitAll(
  tx: Tx,
  parts: IntakeParts,
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

/** Result of one submission of several. */
export type SubmissionResult =
  | { readonly recipients: readonly SubmittedRecipient[] }
  /** An AppError rate_limited, limit_reached or validation_error. */
  | { readonly refusal: unknown }

/** Accepts or refuses each submission on its own, in order. @returns by submission */
export async function submitEach(
  tx: Tx,
  parts: IntakeParts,
  batch: SubmissionBatch,
  now: number,
): Promise<SubmissionResult[]> {
  const sorted = await sortBatch(tx, batch)
  const count = batch.isSandbox ? undefined : await openCount(tx, parts, batch.workspace, now)
  const accepted: AcceptedSubmission[] = []
  const results = batch.submissions.map((submission, at): SubmissionResult => {
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
  if (accepted.length === 0) return results
  await count?.write()
  await storeSubmissions(tx, parts, accepted, batch.isSandbox, now)
  return results
}

/** An unsubscribe only suppresses marketing mail, so marketing and other submissions are classified separately. */
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

/** The stored form of a submission's content. */
export function toContent(submitted: SubmittedContent, workspace: Workspace, now: number): MessageContent {
  // Added fields come first: an object literal that starts with a spread gets its own hidden class and stays slow.
  const content = { workspaceId: workspace.id, createdAt: now, ...submitted }
  return workspace.isMarketing ? { isMarketing: true, ...content } : content
}

/**
 * A batch finds its results by ids: the first message of each content shares the content's id. So does a scheduled send's only
 * recipient; with several, the content's id stands for all of them.
 */
function hasIdOfContent({ batch, scheduledAt }: SubmittedContent, at: number, recipients: number): boolean {
  return batch === undefined ? scheduledAt !== undefined && recipients === 1 : at === 0
}
