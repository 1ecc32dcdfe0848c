/**
 * Sends delivery status notifications to SMTP submitters, based on the event log.
 *
 * A consumer of the event dispatcher. Reports are mail of the submitter's workspace: they pass intake, count against its limits and
 * stand in its message log. They have the null return path, so that a report never causes another. The submitter is free to give any
 * envelope sender, so only addresses at the workspace's verified domains get reports: nobody else asked for mail from here. With the
 * limits used up a report waits for the next window.
 *
 *   event                      reported                          action   how many
 *   email.bounced              unless NOTIFY omits FAILURE       failed   one per recipient, even if a bounce is repeated
 *   email.failed               unless NOTIFY omits FAILURE       failed   one per recipient
 *   email.suppressed           only if NOTIFY has FAILURE        failed   one per mail for those suppressed at acceptance; headers only
 *   email.delivered            only if NOTIFY has SUCCESS        relayed  one per recipient: the last status known here
 *
 * A suppressed recipient's original failure was already reported, so repeats are sent only on explicit request.
 * Delays are not reported.
 *
 * Standards: RFC 3461 §4.1 (NOTIFY), §4.3 (RET), §5.2, RFC 3464, RFC 5321 §6.1 (null return path).
 * Fails: on database errors. A report that cannot be composed is logged and skipped, so that it does not block others.
 */
import { countWithinLimits } from '../../accounts/sending-limit-store.js'
import { findActingWorkspace, type ActingWorkspace } from '../../accounts/workspace-store.js'
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import { inLists } from '../../db/statement.js'
import type { Tx } from '../../db/database.js'
import { findApplianceDomain, findSendingDomain } from '../../deliverability/domains/domain-store.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { EmailBounced, EmailDelivered, EmailFailed, EmailSuppressed } from '../../events/event.js'
import type { StoredEvent } from '../../events/store.js'
import { parseAddress } from '../../mail/address.js'
import { writeDsn, type DsnRecipient } from '../../mail/compose/dsn-write.js'
import { findMessages, type Message } from '../../messages/message-store.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import { submitAll, type IntakeParts } from '../submit.js'
import {
  findSubmittedMail,
  hasContent,
  listSuppressedRecipients,
  type SubmittedMail,
  type ReportedRecipient,
} from './delivery-notification-store.js'

export interface NotificationParts extends IntakeParts {
  readonly clock: Clock
  readonly log: Log
  /** This server's name. */
  readonly hostname: string
}

type Reported = Extract<StoredEvent, EmailBounced | EmailDelivered | EmailFailed | EmailSuppressed>
type Verdict = Pick<DsnRecipient, 'action' | 'status' | 'diagnostic' | 'remoteMta'>

/** A report takes up to a millisecond: it reads and includes the original. */
const REPORTS_PER_TURN = 10

const KINDS: readonly Reported['kind'][] = [
  'email.bounced',
  'email.failed',
  'email.suppressed',
  'email.delivered',
]
/** One octet more than is ever returned whole, so that a longer original is recognized. */
const READ_OCTETS = 65_537
/** In one report, so that it fits into one part. */
const MAX_RECIPIENTS = 200

export function deliveryNotifications(parts: NotificationParts): EventConsumer {
  return {
    // Names the consumer's cursor in the database; must not change.
    name: 'relay-reports',
    // On first start, old failures are not reported.
    startsAt: 'newest',
    kinds: KINDS,
    eventsPerTurn: REPORTS_PER_TURN,
    // Skips most deliveries, which nobody asked to hear about.
    concerns: event => event.kind !== 'email.delivered' || event.payload.notify !== undefined,
    async react(tx, events) {
      const reported = events.filter(isReported)
      const messages = await messagesOf(tx, reported)
      // Recipients suppressed at acceptance share a report, so one of them is enough.
      const ids = new Set<string>()
      for (const event of reported) {
        const message = messages.get(event.messageId)
        if (!message || !isWanted(event, message.notify)) continue
        const contentId = reportId(event, message)
        if (!ids.has(contentId)) await report(tx, parts, event, message, contentId)
        ids.add(contentId)
      }
    },
  }
}

async function messagesOf(tx: Tx, events: readonly Reported[]): Promise<Map<string, Message>> {
  const messages = new Map<string, Message>()
  for (const ids of inLists([...new Set(events.map(event => event.messageId))]))
    for (const message of await findMessages(tx.db, ids)) messages.set(message.id, message)
  return messages
}

function isReported(event: StoredEvent): event is Reported {
  return KINDS.some(kind => kind === event.kind) && !event.isSandbox
}

function isWanted({ kind }: Reported, notify: string | undefined): boolean {
  const wishes = notify?.split(',')
  switch (kind) {
    case 'email.bounced':
    case 'email.failed':
      return wishes?.includes('FAILURE') ?? true
    case 'email.suppressed':
      return wishes?.includes('FAILURE') ?? false
    case 'email.delivered':
      return wishes?.includes('SUCCESS') ?? false
  }
}

/** Suppressed at acceptance, with any number of others of the same mail. */
function isRefused({ kind, occurredAt }: Reported, { createdAt }: Message): boolean {
  return kind === 'email.suppressed' && occurredAt === createdAt
}

function reportId(event: Reported, message: Message): string {
  return isRefused(event, message)
    ? `${message.contentId}-suppressed`
    : `${message.id}-${verdictOf(event).action}`
}

async function report(
  tx: Tx,
  parts: NotificationParts,
  event: Reported,
  message: Message,
  contentId: string,
): Promise<void> {
  const verdict = verdictOf(event)
  const mail = await findSubmittedMail(tx.db, message.contentId, READ_OCTETS)
  if (!mail || (await hasContent(tx.db, contentId))) return
  const logSkipped = (reason: string) => {
    tx.onCommit(() => parts.log.info('delivery notification skipped', { messageId: message.id, reason }))
  }
  const workspace = await findActingWorkspace(tx.db, message.workspaceId)
  if (!workspace) return
  if (!(await isOwnAddress(tx, workspace, mail.submitter))) {
    logSkipped('unverified_domain')
    return
  }
  const recipients = isRefused(event, message)
    ? await listSuppressedRecipients(tx.db, message.contentId, MAX_RECIPIENTS)
    : [{ recipient: message.recipient, ...given({ originalRecipient: message.originalRecipient }) }]
  const now = parts.clock.now()
  const facts = { event, message, mail, verdict, contentId, recipients, now }
  let dsn: Buffer
  try {
    dsn = compose(parts, facts)
  } catch (error) {
    parts.log.warn('delivery notification failed', { messageId: message.id, error: describeError(error) })
    return
  }
  const dueAt = await countWithinLimits(tx.db, workspace, now, now + parts.expireMs)
  if (dueAt === undefined) {
    logSkipped('limit_reached')
    return
  }
  await submit(tx, parts, workspace, facts, dsn, dueAt)
}

/** Senders such as `root@web1` or `app@[192.0.2.1]` are accepted but cannot receive mail from here. */
async function isOwnAddress(tx: Tx, workspace: ActingWorkspace, text: string): Promise<boolean> {
  const address = parseAddress(text)
  const domain = address && (await findSendingDomain(tx.db, workspace.id, address.domain))
  return domain !== undefined && domain.verifiedAt !== null
}

async function submit(
  tx: Tx,
  parts: NotificationParts,
  workspace: ActingWorkspace,
  { contentId, mail, verdict, now }: ReportFacts,
  dsn: Buffer,
  dueAt: number,
): Promise<void> {
  const domain = await findApplianceDomain(tx.db, parts.hostname)
  const content = {
    id: contentId,
    from: { address: `mailer-daemon@${parts.hostname}` },
    subject: verdict.action === 'failed' ? 'Undelivered mail' : 'Mail relayed',
    signingDomainId: domain?.id ?? null,
    trackOpens: false,
    trackClicks: false,
    // Without a submitter, so that the return path is null.
    relayed: { firstPart: dsn, size: dsn.length },
  }
  const batch = {
    workspace: { ...workspace, isMarketing: false },
    isSandbox: false,
    // Counted already.
    isOutsideLimits: true,
    submissions: [{ content, to: [mail.submitter] }],
    pace: { next: () => dueAt },
  }
  await submitAll(tx, parts, batch, now)
}

function verdictOf(event: Reported): Verdict {
  switch (event.kind) {
    case 'email.bounced': {
      const { smtpStatus, diagnosticCode, remoteMta } = event.payload
      const diagnostic = diagnosticCode.replace(/^smtp; ?/i, '')
      return {
        action: 'failed',
        status: smtpStatus,
        ...(diagnostic === '' ? {} : { diagnostic }),
        ...given({ remoteMta }),
      }
    }
    case 'email.failed':
      return { action: 'failed', status: '5.6.0', diagnostic: event.payload.reason }
    case 'email.suppressed':
      return { action: 'failed', status: '5.7.1', diagnostic: 'the recipient is on the suppression list' }
    case 'email.delivered':
      // The next host was not asked for confirmations, since they would come to our return path (RFC 3461 §5.2.2).
      return { action: 'relayed', status: '2.0.0', remoteMta: event.payload.remoteMta }
  }
}

interface ReportFacts {
  readonly event: Reported
  readonly message: Message
  readonly mail: SubmittedMail
  readonly verdict: Verdict
  readonly contentId: string
  /** At least one; all have the verdict. */
  readonly recipients: readonly ReportedRecipient[]
  readonly now: number
}

function compose({ hostname }: NotificationParts, facts: ReportFacts): Buffer {
  const { event, message, mail, verdict, contentId, now } = facts
  const recipients = facts.recipients.map(({ recipient, originalRecipient }): DsnRecipient => ({
    finalRecipient: recipient,
    ...given({ originalRecipient }),
    ...verdict,
    lastAttemptAt: event.occurredAt,
  }))
  return writeDsn({
    hostname,
    to: mail.submitter,
    messageId: `${contentId}@${hostname}`,
    date: now,
    arrivedAt: message.createdAt,
    ...given({ envelopeId: mail.envid }),
    recipients,
    original: mail.beginning,
    // RFC 3461 §4.3: RET applies to failures; a success report returns headers only. So does one on suppressed recipients, which
    // costs its cause nothing: nothing was mailed, and nothing counted.
    returns: verdict.action === 'failed' && event.kind !== 'email.suppressed' ? (mail.ret ?? 'FULL') : 'HDRS',
  })
}
