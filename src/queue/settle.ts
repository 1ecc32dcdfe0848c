/**
 * Writes down what became of attempts: status, attempt log, queue row, events, all in one transaction per batch.
 *
 * Called by the settler with whatever outcomes have come in since the last commit. What became of an entry that the operator
 * deleted meanwhile is only in the log; batches share one moment for the status, the attempt log has each one's own.
 */
import type { Tx } from '../db/database.js'
import type { Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import type { Bounced, Classification, Deferred, Outcome, Permanence, Stage } from '../mail/outcome.js'
import { insertAttempts, type Attempt } from './attempt-store.js'
import { insertCapturedMails } from './capture-store.js'
import type { DeliveryJob } from './delivery-agent.js'
import { markBounced, markDelivered, markFailed } from './message-status-store.js'
import { deferEntry, findEntries, removeEntries, type QueueEntry } from './queue-store.js'

/** One finished attempt. */
export interface Finished {
  readonly job: DeliveryJob
  readonly startedAt: number
  readonly finishedAt: number
  readonly outcome: Outcome
  /** When to try again, should it have been deferred; ms since epoch UTC. */
  readonly retryAt: number
  /** How far the clock was set forward since the message was accepted, ms: it is so much younger than it looks. */
  readonly clockAheadMs?: number
}

/** What the message is now, after this attempt. */
type Verdict =
  | { readonly kind: 'delivered'; readonly remoteMta: string }
  | { readonly kind: 'deferred'; readonly nextAttemptAt: number }
  | { readonly kind: 'bounced'; readonly bounce: Omit<Bounced, 'kind' | 'tried' | 'summary'> }
  | { readonly kind: 'failed' }

interface Settled extends Finished {
  readonly entry: QueueEntry
  readonly verdict: Verdict
}

/** @returns when each message that stays queued falls due again, by message id */
export async function settle(tx: Tx, batch: readonly Finished[]): Promise<ReadonlyMap<string, number>> {
  const entries = await takeEntries(tx, batch)
  const settled = batch.flatMap((finished): Settled[] => {
    const entry = entries.get(finished.job.messageId)
    return entry ? [{ ...finished, entry, verdict: judge(finished, entry) }] : []
  })
  await insertAttempts(tx.db, settled.map(toAttempt))
  await updateMessages(tx, settled)
  await updateQueue(tx, settled)
  await insertCapturedMails(tx.db, settled.flatMap(toCapturedMail))
  await appendEvents(tx, settled.flatMap(toEvents))
  return new Map(
    settled.flatMap(({ job, verdict }) =>
      verdict.kind === 'deferred' ? [[job.messageId, verdict.nextAttemptAt]] : [],
    ),
  )
}

/** Those of deferred messages stay until it is clear that they are not to be tried again. */
async function takeEntries(tx: Tx, batch: readonly Finished[]): Promise<ReadonlyMap<string, QueueEntry>> {
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
function judge({ outcome, finishedAt, retryAt, clockAheadMs = 0 }: Finished, entry: QueueEntry): Verdict {
  const expiresAt = entry.expiresAt + clockAheadMs
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'delivered', remoteMta: outcome.remoteMta }
    case 'bounced':
      return { kind: 'bounced', bounce: outcome }
    case 'unsendable':
      return { kind: 'failed' }
    case 'deferred':
      return finishedAt >= expiresAt
        ? { kind: 'bounced', bounce: { ...outcome, permanence: 'transient', status: '4.4.7' } }
        : // The last try comes at the expiry itself, not before it.
          { kind: 'deferred', nextAttemptAt: Math.min(retryAt, expiresAt) }
  }
}

async function updateMessages(tx: Tx, settled: readonly Settled[]): Promise<void> {
  const now = settled[0]?.finishedAt ?? 0
  await markDelivered(tx.db, idsOf(settled, 'delivered'), now)
  await markFailed(tx.db, idsOf(settled, 'failed'))
  const bounced = new Map<Permanence, string[]>()
  for (const { verdict, job } of settled)
    if (verdict.kind === 'bounced')
      bounced.set(verdict.bounce.permanence, [
        ...(bounced.get(verdict.bounce.permanence) ?? []),
        job.messageId,
      ])
  for (const [permanence, ids] of bounced) await markBounced(tx.db, ids, permanence, now)
}

async function updateQueue(tx: Tx, settled: readonly Settled[]): Promise<void> {
  await removeEntries(
    tx.db,
    settled.filter(isGivenUp).map(({ job }) => job.messageId),
  )
  for (const one of settled)
    if (one.verdict.kind === 'deferred')
      await deferEntry(tx.db, one.job.messageId, one.verdict.nextAttemptAt, isHandedOver(one.outcome))
}

/** Deferred, and too old to be tried again. */
function isGivenUp({ outcome, verdict }: Settled): boolean {
  return outcome.kind === 'deferred' && verdict.kind !== 'deferred'
}

function idsOf(settled: readonly Settled[], kind: Verdict['kind']): string[] {
  return settled.filter(({ verdict }) => verdict.kind === kind).map(({ job }) => job.messageId)
}

function toAttempt({ job, startedAt, finishedAt, outcome }: Settled): Attempt {
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

function toCapturedMail({ job, outcome, finishedAt }: Settled) {
  if (outcome.kind !== 'delivered' || outcome.captured === undefined) return []
  return [
    {
      messageId: job.messageId,
      capturedAt: finishedAt,
      envelopeSender: job.envelopeSender,
      recipient: job.recipient,
      subject: job.content.subject,
      raw: outcome.captured,
    },
  ]
}

function toEvents(settled: Settled): Event[] {
  const { job, entry, outcome, verdict, finishedAt } = settled
  const head = {
    workspaceId: job.workspaceId,
    messageId: job.messageId,
    isSandbox: false,
    occurredAt: finishedAt,
  }
  const to = job.recipient
  const events: Event[] = []
  if (!entry.wasHandedOver && isHandedOver(outcome))
    events.push({ ...head, kind: 'email.sent', payload: { to } })
  switch (verdict.kind) {
    case 'delivered': {
      const { remoteMta } = verdict
      const { notify } = entry
      const payload = { to, remoteMta, ...(notify === undefined ? {} : { notify }) }
      events.push({ ...head, kind: 'email.delivered', payload })
      break
    }
    case 'bounced': {
      const { permanence, cause, scope, subtype, status, reply } = verdict.bounce
      const { remoteMta } = outcome
      const payload = {
        to,
        bounceType: permanence,
        cause,
        scope,
        subtype,
        smtpStatus: status,
        diagnosticCode: reply
          ? `smtp; ${reply.code} ${reply.enhanced ?? ''} ${reply.text}`.replace(/ +/g, ' ')
          : outcome.summary,
        ...(remoteMta === undefined ? {} : { remoteMta }),
      }
      events.push({ ...head, kind: 'email.bounced', payload })
      break
    }
    case 'failed':
      events.push({ ...head, kind: 'email.failed', payload: { to, reason: outcome.summary } })
      break
    case 'deferred':
      break
  }
  return events
}

const STAGES_OF_A_TRANSACTION: readonly Stage[] = ['mail', 'rcpt', 'data', 'final_dot']

/** Whether any server was offered the message: from MAIL on it knows of it (RFC 5321 §3.3). */
function isHandedOver(outcome: Outcome): boolean {
  return (
    outcome.kind === 'delivered' || outcome.tried.some(host => STAGES_OF_A_TRANSACTION.includes(host.stage))
  )
}
