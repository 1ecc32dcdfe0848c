/**
 * Writes down what became of attempts: attempt log, queue row, and what happened to the message, all in one transaction per
 * batch.
 *
 * Called by the outcome batches with whatever outcomes have come in since the last commit. Decides only what an attempt means for its
 * message; what that changes and who is told is the state machine's. A message may have lost its queue row meanwhile, since a
 * bounce of an earlier attempt came back: the attempt is logged, and the message learns of its end as far as it still can.
 * Batches share one moment for the status, the attempt log and the events have each one's own.
 */
import { given } from '../../core/given.js'
import type { Tx } from '../../db/database.js'
import { MAX_SECTION, readMessageHeader } from '../../mail/mime/header-fields.js'
import type { Bounced, Classification, Deferred, Outcome, Stage } from '../../mail/outcome.js'
import { insertAttempts, type Attempt } from '../../messages/attempt-store.js'
import { insertCapturedMails } from '../../messages/capture-store.js'
import type { DeliveryJob } from '../delivery-agent.js'
import type { MailOrigin } from '../../messages/mail-origin.js'
import { recordTransitions, type FactsOf, type Transition } from '../../messages/message-history.js'
import { findHeads } from '../../messages/message-status-store.js'
import { findHeldMs } from '../claiming/campaign-hold-store.js'
import { deferEntry, findEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import { DELETED_BY_OPERATOR } from '../claiming/claim.js'
import type { Log } from '../../world/log.js'
import { isoTime } from '../../core/moments.js'
import { addressDomain } from '../../mail/address.js'
import { delays, logMessage } from '../../messages/mail-log.js'

/** One finished attempt. */
export interface FinishedAttempt {
  readonly job: DeliveryJob
  readonly startedAt: number
  readonly finishedAt: number
  readonly outcome: Outcome
  /** When to try again, should it have been deferred; ms since epoch UTC. */
  readonly retryAt: number
  /** How far the clock was set forward since the message was accepted, ms: it is so much younger than it looks. */
  readonly clockAheadMs?: number
}

interface JudgedAttempt extends FinishedAttempt {
  readonly entry: QueueEntry | undefined
  readonly verdict: Verdict
}

/** How long the mail of these campaigns was held: it expires so much later. Asked for where it could matter. */
async function heldMsOf(
  tx: Tx,
  batch: readonly FinishedAttempt[],
  entries: ReadonlyMap<string, QueueEntry>,
): Promise<(finished: FinishedAttempt) => number> {
  const campaigns = new Set<string>()
  let now = 0
  for (const { job, outcome, finishedAt, retryAt } of batch) {
    const campaignId = job.origin?.campaignId
    const expiresAt = entries.get(job.messageId)?.expiresAt ?? Infinity
    if (campaignId === undefined || outcome.kind !== 'deferred' || Math.max(finishedAt, retryAt) < expiresAt)
      continue
    campaigns.add(campaignId)
    now = Math.max(now, finishedAt)
  }
  const held = campaigns.size === 0 ? undefined : await findHeldMs(tx.db, [...campaigns], now)
  return ({ job, finishedAt }) => {
    const heldMs = held?.get(job.origin?.campaignId ?? '') ?? 0
    const enqueuedAt = entries.get(job.messageId)?.enqueuedAt ?? finishedAt
    return Math.min(heldMs, Math.max(0, finishedAt - enqueuedAt))
  }
}

/** @returns when each message that stays queued falls due again, by message id */
export async function recordOutcomes(
  tx: Tx,
  batch: readonly FinishedAttempt[],
  log?: Log,
  onAttempt?: OnAttempt,
): Promise<ReadonlyMap<string, number>> {
  const settled = await withoutDeleted(tx, await judgeAll(tx, batch))
  await insertAttempts(tx.db, settled.map(toAttempt))
  await insertCapturedMails(tx.db, settled.flatMap(toCapturedMail))
  return applyVerdicts(tx, settled, log, onAttempt)
}

/**
 * For an outcome that `recordOutcomes` cannot write: the message gets its status and event, without the attempt log and the texts of
 * other hosts.
 */
export async function recordVerdict(
  tx: Tx,
  { outcome, ...finished }: FinishedAttempt,
  log?: Log,
  onAttempt?: OnAttempt,
): Promise<ReadonlyMap<string, number>> {
  const { reply: _, ...rest } = outcome
  const plain = { ...finished, outcome: { ...rest, summary: 'details could not be recorded' } }
  return applyVerdicts(tx, await withoutDeleted(tx, await judgeAll(tx, [plain])), log, onAttempt)
}

/**
 * For a message whose status cannot be written either: its queue row alone is removed or deferred, so that it is neither delivered twice nor
 * lost while it can still be retried.
 */
export async function moveQueueRow(tx: Tx, finished: FinishedAttempt): Promise<ReadonlyMap<string, number>> {
  const [settled] = await judgeAll(tx, [finished])
  return settled ? deferAgain(tx, [settled]) : new Map()
}

async function judgeAll(tx: Tx, batch: readonly FinishedAttempt[]): Promise<readonly JudgedAttempt[]> {
  const entries = await takeEntries(tx, batch)
  const heldMs = await heldMsOf(tx, batch, entries)
  return batch.map(finished => {
    const entry = entries.get(finished.job.messageId)
    return { ...finished, entry, verdict: judge(finished, entry, heldMs(finished)) }
  })
}

async function applyVerdicts(
  tx: Tx,
  settled: readonly JudgedAttempt[],
  log: Log | undefined,
  onAttempt: OnAttempt | undefined,
): Promise<ReadonlyMap<string, number>> {
  await recordTransitions(tx, settled.flatMap(toTransitions), originsOf(settled))
  const dueAgain = await deferAgain(tx, settled)
  tx.onCommit(() => {
    for (const one of settled) {
      if (log) logAttempt(log, one)
      onAttempt?.(one)
    }
  })
  return dueAgain
}

async function deferAgain(tx: Tx, settled: readonly JudgedAttempt[]): Promise<ReadonlyMap<string, number>> {
  const dueAgain = new Map<string, number>()
  for (const { job, verdict, outcome } of settled) {
    if (verdict.kind !== 'deferred') continue
    await deferEntry(tx.db, job.messageId, verdict.nextAttemptAt, isOffered(outcome))
    dueAgain.set(job.messageId, verdict.nextAttemptAt)
  }
  return dueAgain
}

/** A message without a queue row may be none any more, and the attempt log is about messages. */
async function withoutDeleted(tx: Tx, settled: readonly JudgedAttempt[]): Promise<readonly JudgedAttempt[]> {
  const unqueued = settled.filter(({ entry }) => entry === undefined).map(({ job }) => job.messageId)
  if (unqueued.length === 0) return settled
  const known = new Set((await findHeads(tx.db, unqueued)).map(({ id }) => id))
  return settled.filter(({ entry, job }) => entry !== undefined || known.has(job.messageId))
}

/** Contents were read for the jobs, so nobody need look them up again. */
function originsOf(settled: readonly JudgedAttempt[]): Map<string, MailOrigin> {
  return new Map(settled.flatMap(({ entry, job }) => (entry ? [[entry.contentId, job.origin ?? {}]] : [])))
}

/** Those of deferred messages stay until it is clear that they are not to be tried again. */
async function takeEntries(
  tx: Tx,
  batch: readonly FinishedAttempt[],
): Promise<ReadonlyMap<string, QueueEntry>> {
  const idsWhere = (isDeferred: boolean) =>
    batch
      .filter(({ outcome }) => (outcome.kind === 'deferred') === isDeferred)
      .map(({ job }) => job.messageId)
  const entries = [
    ...(await removeEntries(tx.db, idsWhere(false))),
    ...(await findEntries(tx.db, idsWhere(true))),
  ]
  return new Map(entries.map(entry => [entry.messageId, entry]))
}

/**
 * A deferral past the message's expiry is final. It is reported as what it was, transient: nothing was learnt about
 * the mailbox (RFC 3463 §3.5, 4.4.7 "delivery time expired").
 */
function judge(
  { outcome, finishedAt, retryAt, clockAheadMs = 0 }: FinishedAttempt,
  entry: QueueEntry | undefined,
  heldMs: number,
): Verdict {
  const expiresAt = (entry?.expiresAt ?? 0) + clockAheadMs + heldMs
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'delivered', remoteMta: outcome.remoteMta }
    case 'bounced':
      return { kind: 'bounced', bounce: outcome }
    case 'unsendable':
      return { kind: 'failed', reason: outcome.summary }
    case 'deferred':
      if (!entry) return { kind: 'over' }
      if (entry.isWithdrawn) return { kind: 'failed', reason: DELETED_BY_OPERATOR }
      return finishedAt >= expiresAt
        ? { kind: 'bounced', bounce: { ...outcome, permanence: 'transient', status: '4.4.7' } }
        : // The last try comes at the expiry itself, not before it.
          { kind: 'deferred', nextAttemptAt: Math.min(retryAt, expiresAt) }
  }
}

function toAttempt({ job, startedAt, finishedAt, outcome }: JudgedAttempt): Attempt {
  return {
    messageId: job.messageId,
    number: job.attempt,
    startedAt,
    finishedAt,
    kind: outcome.kind,
    summary: outcome.summary,
    replyCode: outcome.reply?.code ?? null,
    status: outcome.reply?.enhanced ?? (outcome.kind === 'bounced' ? outcome.status : null),
    classification:
      outcome.kind === 'deferred' || outcome.kind === 'bounced' ? classificationOf(outcome) : null,
    tried: outcome.tried,
  }
}

function classificationOf({ cause, scope, permanence, subtype }: Deferred | Bounced): Classification {
  return { cause, scope, permanence, subtype }
}

function toCapturedMail({ job, outcome, finishedAt }: JudgedAttempt) {
  if (outcome.kind !== 'delivered' || outcome.captured === undefined) return []
  return [
    {
      messageId: job.messageId,
      capturedAt: finishedAt,
      envelopeSender: job.envelopeSender,
      recipient: job.recipient,
      // As its reader sees it, filled in.
      subject: readMessageHeader(outcome.captured.toString('latin1', 0, MAX_SECTION)).text('subject'),
      raw: outcome.captured,
    },
  ]
}

function toTransitions({ job, entry, outcome, verdict, finishedAt }: JudgedAttempt): Transition[] {
  const head = { messageId: job.messageId, at: finishedAt }
  const transitions: Transition[] = []
  if (entry && !entry.wasOffered && isOffered(outcome)) transitions.push({ ...head, kind: 'offered' })
  switch (verdict.kind) {
    case 'delivered': {
      const { remoteMta } = verdict
      const notify = entry?.notify
      const facts = { remoteMta, ...given({ notify }) }
      transitions.push({ ...head, kind: 'delivered', facts })
      break
    }
    case 'bounced':
      transitions.push({ ...head, kind: 'bounced', facts: bounceFacts(verdict.bounce, outcome) })
      break
    case 'failed':
      transitions.push({ ...head, kind: 'failed', facts: { reason: verdict.reason } })
      break
    case 'deferred':
    case 'over':
      break
  }
  return transitions
}

function bounceFacts(
  { permanence, cause, scope, subtype, status, reply }: Omit<Bounced, 'kind' | 'tried' | 'summary'>,
  { summary, remoteMta }: Outcome,
): FactsOf<'email.bounced'> {
  return {
    bounceType: permanence,
    cause,
    scope,
    subtype,
    smtpStatus: status,
    diagnosticCode: reply
      ? `smtp; ${reply.code} ${reply.enhanced ?? ''} ${reply.text}`.replace(/ +/g, ' ')
      : summary,
    ...given({ remoteMta }),
  }
}

const TRANSACTION_STAGES: readonly Stage[] = ['mail', 'rcpt', 'data', 'final_dot']

/** Whether any server was offered the message: from MAIL on it knows of it (RFC 5321 §3.3). */
function isOffered(outcome: Outcome): boolean {
  return outcome.kind === 'delivered' || outcome.tried.some(host => TRANSACTION_STAGES.includes(host.stage))
}

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
