/**
 * Counts mail about to be accepted against its workspace's limits and its key's rate.
 *
 * Called by `submit.ts` in the accepting transaction. Skipped recipients are not counted.
 * Fails: AppError limit_reached, rate_limited; validation_error if the request exceeds a whole minute's rate and could never succeed.
 */
import { countAgainstLimits, openUsage, type LimitedWorkspace } from '../accounts/sending-limit-store.js'
import { AppError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import type { Submission, SubmissionBatch, SubmitParts } from './mail-submission.js'

type CountParts = Pick<SubmitParts, 'emailWindows'>

/** All or nothing; the caller must roll back if this throws. @param mails recipients to be mailed, by submission */
export async function countAll(
  tx: Tx,
  parts: CountParts,
  { workspace, submissions }: SubmissionBatch,
  mails: readonly number[],
  now: number,
): Promise<void> {
  const all = mails.reduce((sum, one) => sum + one, 0)
  await countAgainstLimits(tx.db, workspace, all, now)
  // Checked last, so that a request refused for another reason uses none of the rate.
  for (const [at, one] of submissions.entries()) takeFromRate(tx, parts, one, mails[at] ?? 0)
}

/** Counts submissions one by one and writes the sum once. */
export interface MailCount {
  /** @throws AppError; then nothing was added */
  add(submission: Submission, mails: number): void
  write(): Promise<void>
}

export async function openCount(
  tx: Tx,
  parts: CountParts,
  workspace: LimitedWorkspace,
  now: number,
): Promise<MailCount> {
  const usage = await openUsage(tx.db, workspace, now)
  return {
    add(submission, mails) {
      usage.add(mails)
      try {
        takeFromRate(tx, parts, submission, mails)
      } catch (refusal) {
        usage.takeBack(mails)
        throw refusal
      }
    },
    write: () => usage.write(),
  }
}

function takeFromRate(tx: Tx, { emailWindows }: CountParts, { key }: Submission, mails: number): void {
  if (key === undefined) return
  const { keyId, emailRateLimit } = key
  if (emailRateLimit > 0 && mails > emailRateLimit)
    throw new AppError(
      'validation_error',
      `to, cc and bcc have ${mails} recipients, but this key may send ${emailRateLimit} mails per minute: ` +
        'send to fewer recipients, or use a batch, which is sent at that rate',
      { path: 'to' },
    )
  const state = emailWindows.take(keyId, mails, emailRateLimit)
  if (!state.isAllowed)
    throw new AppError(
      'rate_limited',
      `this key may send ${state.limit} mails per minute; ${state.remaining} are left in this one`,
      { retryAfterMs: state.retryAfterMs, window: state },
    )
  // A rollback returns them to the rate.
  if (emailRateLimit > 0) tx.onRollback?.(() => emailWindows.giveBack(keyId, mails))
}
