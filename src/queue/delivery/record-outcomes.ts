/**
 * Records attempts: attempt log, queue row and message status, in one transaction per batch.
 *
 * Decides only what an attempt means for its message; `message-status.ts` decides what changes and which events follow.
 * If a bounce of an earlier attempt has already ended the message, its queue row is gone: the attempt is still logged.
 * A batch shares one moment for message status; the attempt log and the events have their own. Log lines are written
 * after the commit.
 */
import { given } from '../../core/given.js'
import { isAppliance } from '../../core/owner.js'
import type { Tx } from '../../db/database.js'
import { MAX_SECTION, readMessageHeader } from '../../mail/mime/header-fields.js'
import type { Bounced, Classification, Deferred, Outcome, Stage } from '../../mail/outcome.js'
import { findRecorded, insertAttempts, type Attempt } from '../../messages/attempt-store.js'
import { insertCapturedMails } from '../../messages/capture-store.js'
import type { DeliveryJob } from '../delivery-agent.js'
import type { MailOrigin } from '../../messages/mail-origin.js'
import { TotalsChange } from '../../messages/mail-totals-store.js'
import { addRecent, type RecentCount } from '../../messages/recent-counter-store.js'
import { recordTransitions, type FactsOf, type Transition } from '../../messages/message-history.js'
import { findHeads } from '../../messages/message-status-store.js'
import { clearContents } from '../../messages/retention-store.js'
import { findHeldMs } from '../claiming/campaign-hold-store.js'
import { deferEntry, findEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import { DELETED_BY_OPERATOR } from '../claiming/claim.js'
import type { Log } from '../../world/log.js'
import { isoTime } from '../../core/moments.js'
import { addressDomain } from '../../mail/address.js'
import { delays, logMessage } from '../../messages/mail-log.js'

export interface FinishedAttempt {
  readonly job: DeliveryJob
  readonly startedAt: number
  readonly finishedAt: number
  readonly outcome: Outcome
  /** Next attempt if it was deferred, ms since epoch UTC. */
  readonly retryAt: number
  /** How far the clock was set forward since acceptance, ms: the message is that much younger than it looks. */
  readonly clockAheadMs?: number
}

interface JudgedAttempt extends FinishedAttempt {
  readonly entry: QueueEntry | undefined
  readonly verdict: Verdict
}

/** How long each message's campaign was held, which delays its expiry. Read only for deferrals that could expire. */
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

/**
 * For outcomes that may be recorded already, because the answer to their commit was lost.
 *
 * @returns as `recordOutcomes`
 */
export async function recordRest(
  tx: Tx,
  batch: readonly FinishedAttempt[],
  log?: Log,
  onAttempt?: OnAttempt,
): Promise<ReadonlyMap<string, number>> {
  const attemptOf = ({ job }: FinishedAttempt) => ({ messageId: job.messageId, number: job.attempt })
  const isRecorded = await findRecorded(tx.db, batch.map(attemptOf))
  const [recorded, rest] = [true, false].map(wanted =>
    batch.filter(one => isRecorded(attemptOf(one)) === wanted),
  )
  const dueAgain = new Map(await recordOutcomes(tx, rest ?? [], log, onAttempt))
  const entries = await findEntries(
    tx.db,
    (recorded ?? []).map(({ job }) => job.messageId),
  )
  for (const { messageId, nextAttemptAt } of entries) dueAgain.set(messageId, nextAttemptAt)
  return dueAgain
}

/** @returns next attempt of each message that stays queued, by message id */
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
 * Fallback for an outcome that `recordOutcomes` cannot write: sets status and event, without the attempt log and the
 * texts of other hosts.
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
 * Fallback for a message whose status cannot be written either: only its queue row is removed or deferred, so it is
 * neither delivered twice nor lost.
 */
export async function moveQueueRow(tx: Tx, finished: FinishedAttempt): Promise<ReadonlyMap<string, number>> {
  const [settled] = await judgeAll(tx, [finished])
  if (!settled) return new Map()
  const { entry, verdict } = settled
  if (entry && verdict.kind !== 'deferred' && verdict.kind !== 'gone') {
    const totals = new TotalsChange()
    totals.ended(entry.workspaceId, verdict.kind)
    await totals.write(tx.db)
  }
  return deferAgain(tx, [settled])
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
  await forgetOwnContents(tx, settled)
  await addRecent(tx.db, settled.flatMap(toDeferral))
  tx.onCommit(() => {
    for (const one of settled) {
      if (log) logAttempt(log, one)
      onAttempt?.(one)
    }
  })
  return dueAgain
}

/** Nobody reads the appliance's own mail here, so its text is not kept once it has ended. */
async function forgetOwnContents(tx: Tx, settled: readonly JudgedAttempt[]): Promise<void> {
  const ended = settled.filter(
    ({ job, verdict }) => isAppliance(job.workspaceId) && verdict.kind !== 'deferred',
  )
  const ids = ended.flatMap(({ entry }) => entry?.contentId ?? [])
  if (ids.length > 0) await clearContents(tx.db, ids, ended[0]?.finishedAt ?? 0)
}

function toDeferral({ job, verdict, finishedAt }: JudgedAttempt): RecentCount[] {
  if (verdict.kind !== 'deferred') return []
  return [{ workspaceId: job.workspaceId, isSandbox: false, name: 'deferred', at: finishedAt }]
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

/** A message without a queue row may have been deleted; the attempt log references messages. */
async function withoutDeleted(tx: Tx, settled: readonly JudgedAttempt[]): Promise<readonly JudgedAttempt[]> {
  const unqueued = settled.filter(({ entry }) => entry === undefined).map(({ job }) => job.messageId)
  if (unqueued.length === 0) return settled
  const known = new Set((await findHeads(tx.db, unqueued)).map(({ id }) => id))
  return settled.filter(({ entry, job }) => entry !== undefined || known.has(job.messageId))
}

/** Known from the jobs, which saves reading the contents again. */
function originsOf(settled: readonly JudgedAttempt[]): Map<string, MailOrigin> {
  return new Map(settled.flatMap(({ entry, job }) => (entry ? [[entry.contentId, job.origin ?? {}]] : [])))
}

/** Rows of deferred messages are kept until it is clear that they expire. */
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
 * A deferral past the expiry is final. It is reported as transient: nothing was learnt about the mailbox (RFC 3463
 * §3.5, 4.4.7 "delivery time expired").
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
      if (!entry) return { kind: 'gone' }
      if (entry.isWithdrawn) return { kind: 'failed', reason: DELETED_BY_OPERATOR }
      return finishedAt >= expiresAt
        ? { kind: 'bounced', bounce: { ...outcome, permanence: 'transient', status: '4.4.7' } }
        : // The last attempt is made at the expiry, not before.
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
      // The header field, with merge tags filled in.
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
    case 'gone':
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

/** From MAIL on, a server knows of the message (RFC 5321 §3.3). */
function isOffered(outcome: Outcome): boolean {
  return outcome.kind === 'delivered' || outcome.tried.some(host => TRANSACTION_STAGES.includes(host.stage))
}

export type Verdict =
  | { readonly kind: 'delivered'; readonly remoteMta: string }
  | { readonly kind: 'deferred'; readonly nextAttemptAt: number }
  | { readonly kind: 'bounced'; readonly bounce: Omit<Bounced, 'kind' | 'tried' | 'summary'> }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Deferred, but no longer queued. */
  | { readonly kind: 'gone' }

export interface LoggedAttempt {
  readonly job: DeliveryJob
  readonly startedAt: number
  readonly finishedAt: number
  readonly outcome: Outcome
  readonly verdict: Verdict
}

/** Called for each attempt after its outcome is committed. */
export type OnAttempt = (attempt: LoggedAttempt) => void

const WORDS = {
  delivered: 'delivered',
  deferred: 'deferred',
  bounced: 'bounced',
  failed: 'failed',
  gone: 'not delivered',
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
      acceptedAt,
      startedAt,
      finishedAt,
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(last?.transmissionMs === undefined ? {} : { transmissionMs: last.transmissionMs }),
    }),
    ...(verdict.kind === 'deferred' ? { nextAttemptAt: isoTime(verdict.nextAttemptAt) } : {}),
    ...('cause' in outcome ? { cause: outcome.cause, subtype: outcome.subtype } : {}),
    summary: verdict.kind === 'failed' ? verdict.reason : outcome.summary,
  })
}

const UNKNOWN = {}

/** As in Postfix's `dsn=`: the enhanced status code, or else the reply code. */
function statusOf({ reply }: Outcome, verdict: Verdict): string | undefined {
  if (verdict.kind === 'bounced') return verdict.bounce.status
  return reply?.enhanced ?? (reply === undefined ? undefined : String(reply.code))
}
