/**
 * Counts mails that are about to be accepted: against the limits of their workspace, and the rate of their key.
 *
 * Called by `submit.ts` in the transaction that accepts them. Only recipients that are mailed count; who is skipped costs nothing.
 * Fails: AppError limit_reached, rate_limited; validation_error where no minute ever has room for so many, so that nobody tries for
 * ever.
 */
import { countAgainstLimits, openUsage, type LimitedWorkspace } from '../accounts/sending-limit-store.js'
import { AppError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import type { Submission, SubmissionBatch } from './mail-submission.js'
import type { SubmitParts } from './submit-parts.js'

type CountParts = Pick<SubmitParts, 'emailWindows'>

/** All of them or none, in a transaction that comes to nothing where this throws. @param mails by submission */
export async function countAll(
  tx: Tx,
  parts: CountParts,
  { workspace, submissions }: SubmissionBatch,
  mails: readonly number[],
  now: number,
): Promise<void> {
  const all = mails.reduce((sum, one) => sum + one, 0)
  await countAgainstLimits(tx.db, workspace, all, now)
  // Last of all refusals, so that a request refused for another reason uses nothing up.
  for (const [at, one] of submissions.entries()) takeFromRate(tx, parts, one, mails[at] ?? 0)
}

/** For submissions that are counted one after the other and written down together. */
export interface MailCount {
  /** @throws AppError, and then nothing was added */
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
      `to, cc and bcc have ${mails} recipients, and this key may send ${emailRateLimit} mails per minute: ` +
        'send to fewer at once, or as a batch, whose messages leave at that rate',
      { path: 'to' },
    )
  const state = emailWindows.take(keyId, mails, emailRateLimit)
  if (!state.isAllowed)
    throw new AppError(
      'rate_limited',
      `this key may send ${state.limit} mails per minute; ${state.remaining} are left in this one`,
      { retryAfterMs: state.retryAfterMs, window: state },
    )
  // Mail that is not accepted after all uses nothing up.
  if (emailRateLimit > 0) tx.onRollback?.(() => emailWindows.giveBack(keyId, mails))
}
