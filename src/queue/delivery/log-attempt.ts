/**
 * The line of the log that an attempt leaves behind: delivered, deferred, bounced or failed, with host, status and delays.
 *
 * Called by `record-outcomes.ts` once what came of the attempt is on disk, so that the log never tells what the database does not
 * know. Never decides anything. Fails: never.
 */
import { isoTime } from '../../core/moments.js'
import { addressDomain } from '../../mail/address.js'
import type { Bounced, Outcome } from '../../mail/outcome.js'
import { delays, logMessage } from '../../messages/log/mail-log.js'
import type { Log } from '../../world/log.js'
import type { DeliveryJob } from '../delivery-agent.js'

/** What the message is now, after this attempt. */
export type Verdict =
  | { readonly kind: 'delivered'; readonly remoteMta: string }
  | { readonly kind: 'deferred'; readonly nextAttemptAt: number }
  | { readonly kind: 'bounced'; readonly bounce: Omit<Bounced, 'kind' | 'tried' | 'summary'> }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Put off, and not queued any more. */
  | { readonly kind: 'over' }

export interface LoggedAttempt {
  readonly job: DeliveryJob
  readonly startedAt: number
  readonly finishedAt: number
  readonly outcome: Outcome
  readonly verdict: Verdict
}

/** Told of each attempt once what came of it is on disk. */
export type OnAttempt = (attempt: LoggedAttempt) => void

const WORDS = {
  delivered: 'delivered',
  deferred: 'deferred',
  bounced: 'bounced',
  failed: 'failed',
  over: 'not delivered',
} as const satisfies Record<Verdict['kind'], string>

export function logAttempt(log: Log, { job, startedAt, finishedAt, outcome, verdict }: LoggedAttempt): void {
  const { messageId, recipient, acceptedAt, dueAt, submission = UNKNOWN } = job
  const last = outcome.tried.at(-1)
  logMessage(log, WORDS[verdict.kind], messageId, submission, recipient, {
    attempt: job.attempt,
    destination: addressDomain(recipient),
    host: outcome.remoteMta ?? last?.host,
    address: last?.address,
    status: statusOf(outcome, verdict),
    ...delays({
      ...{ acceptedAt, startedAt, finishedAt },
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(last?.transmissionMs === undefined ? {} : { transmissionMs: last.transmissionMs }),
    }),
    ...(verdict.kind === 'deferred' ? { nextAttemptAt: isoTime(verdict.nextAttemptAt) } : {}),
    ...('cause' in outcome ? { cause: outcome.cause, subtype: outcome.subtype } : {}),
    summary: verdict.kind === 'failed' ? verdict.reason : outcome.summary,
  })
}

/** The mail that was accepted by an earlier version says no more. */
const UNKNOWN = {}

/** As in Postfix's `dsn=`: the enhanced code, else the reply's. */
function statusOf({ reply }: Outcome, verdict: Verdict): string | undefined {
  if (verdict.kind === 'bounced') return verdict.bounce.status
  return reply?.enhanced ?? (reply === undefined ? undefined : String(reply.code))
}
