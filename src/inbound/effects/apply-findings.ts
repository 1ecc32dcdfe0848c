/**
 * Applies the findings of a batch of inbound mails and marks them processed in the same transaction, so a crash leaves
 * both done or neither.
 */
import { given } from '../../core/given.js'
import type { Database, Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { inLists } from '../../db/statement.js'
import { findReportedDomains, insertReport } from '../../deliverability/reports/report-store.js'
import { findCopies, findMessages, type Message } from '../../messages/message-store.js'
import type { Resolver } from '../../world/dns/dns.js'
import { authenticateReporter } from './authenticate-reporter.js'
import { Effects, type Effect } from './effects.js'
import type { ForwardedMail, Forwarder } from './forward.js'
import { isOwnDomain, type InboundDomains } from '../inbound-address.js'
import {
  markProcessed,
  readInboundOctets,
  type InboundFinding,
  type InboundMail,
  type InboundRecipient,
} from '../inbound-mail-store.js'
import { matchMessage, possibleMessages, type Messages, type MessageTokens } from './match-message.js'
import type { MailFinding, ReturnedFinding, SerializedReport } from '../parser-protocol.js'
import type { InboundResult } from '../results.js'

export interface ApplyParts extends Pick<Services, 'log' | 'newId'> {
  readonly names: InboundDomains
  readonly tokens: MessageTokens
  readonly forwarder: Forwarder
  readonly resolver: Resolver
}

export interface ReadMail {
  readonly mail: InboundMail
  readonly finding: MailFinding
}

export interface Applied {
  readonly results: readonly InboundResult[]
  readonly hasEvents: boolean
}

const MAX_DETAIL = 300

export async function applyFindings(
  database: Database,
  parts: ApplyParts,
  batch: readonly ReadMail[],
  now: number,
): Promise<Applied> {
  const forwards = await composeForwards(database.reader, parts, batch, now)
  const reporters = await authenticateReporters(parts, batch)
  return database.write(async tx => {
    const messages = await findMessagesFor(tx, parts, batch)
    const effects = new Effects(now)
    const results: InboundResult[] = []
    for (const read of batch) {
      const prepared = { forward: forwards.get(read), reporter: reporters.get(read) }
      const application = new RecipientEffects(tx, parts, messages, effects, read, prepared, now)
      const findings: InboundFinding[] = []
      for (const recipient of distinct(read.mail.recipients)) {
        for (const { message, isConfirmed, result, detail } of await application.applyTo(recipient)) {
          results.push(result)
          findings.push({
            recipient: recipient.address,
            result,
            ...(message === undefined ? {} : { messageId: message.id }),
            ...given({ isConfirmed }),
            ...(detail === undefined ? {} : { detail: detail.slice(0, MAX_DETAIL) }),
          })
        }
      }
      await markProcessed(tx.db, read.mail.seq, now, findings)
    }
    await effects.write(tx)
    tx.changed('inbound')
    tx.onCommit(() => effects.log(parts.log))
    return { results, hasEvents: effects.hasEvents }
  })
}

/** For mail to a person; composing must not hold up the transaction. */
async function composeForwards(
  db: Queries,
  { forwarder }: ApplyParts,
  batch: readonly ReadMail[],
  now: number,
): Promise<ReadonlyMap<ReadMail, ForwardedMail | Effect>> {
  const composed = new Map<ReadMail, ForwardedMail | Effect>()
  for (const read of batch) {
    const { mail, finding } = read
    if (mail.recipients.some(({ purpose }) => purpose === 'contact'))
      composed.set(
        read,
        await forwarder.compose(mail, finding.head, now, most => readInboundOctets(db, mail, most)),
      )
  }
  return composed
}

/** Asks DNS, which must not hold up the transaction either. */
async function authenticateReporters(
  { resolver }: ApplyParts,
  batch: readonly ReadMail[],
): Promise<ReadonlyMap<ReadMail, string | undefined>> {
  const withReports = batch.filter(({ finding: { reports = [] } }) => reports.length > 0)
  return new Map(
    await Promise.all(
      withReports.map(async read => [read, await authenticateReporter(read.mail, resolver)] as const),
    ),
  )
}

async function findMessagesFor(tx: Tx, { names }: ApplyParts, batch: readonly ReadMail[]): Promise<Messages> {
  const ids = batch.flatMap(({ mail, finding }) => [
    ...mail.recipients.flatMap(({ messageId }) => messageId ?? []),
    ...(finding.returned ? possibleMessages(finding.returned, names.hostname) : []),
  ])
  const messages = new Map<string, Message>()
  for (const list of inLists([...new Set(ids)]))
    for (const message of [...(await findMessages(tx.db, list)), ...(await findCopies(tx.db, list))])
      messages.set(message.id, message)
  return messages
}

/** For the operator: what the mail would have caused. */
function unconfirmedDetail({ kind, form, recipients: [first] }: ReturnedFinding): string {
  const said = kind === 'feedback' ? first?.feedbackType : first?.status
  return `${kind === 'feedback' ? 'complaint' : 'bounce'} without a token of ours (${form}${said === undefined ? '' : `, ${said}`})`
}

/** Duplicate recipients count once, as do postmaster and abuse. */
function distinct(recipients: readonly InboundRecipient[]): InboundRecipient[] {
  const found = new Map<string, InboundRecipient>()
  for (const recipient of recipients) {
    const key = `${recipient.purpose} ${recipient.messageId ?? ''}`
    if (!found.has(key)) found.set(key, recipient)
  }
  return [...found.values()]
}

interface Outcome extends Effect {
  readonly message?: Message
  /** A valid token proves that it is about this message. */
  readonly isConfirmed?: boolean
}

/** Found out before the transaction. */
interface Prepared {
  readonly forward: ForwardedMail | Effect | undefined
  /** The domain that vouches for its reports. */
  readonly reporter: string | undefined
}

class RecipientEffects {
  private readonly tx: Tx
  private readonly parts: ApplyParts
  private readonly messages: Messages
  private readonly effects: Effects
  private readonly read: ReadMail
  private readonly prepared: Prepared
  private readonly now: number

  constructor(
    tx: Tx,
    parts: ApplyParts,
    messages: Messages,
    effects: Effects,
    read: ReadMail,
    prepared: Prepared,
    now: number,
  ) {
    this.tx = tx
    this.parts = parts
    this.messages = messages
    this.effects = effects
    this.read = read
    this.prepared = prepared
    this.now = now
  }

  async applyTo(recipient: InboundRecipient): Promise<Outcome[]> {
    switch (recipient.purpose) {
      case 'return_path':
      case 'feedback':
        return [await this.toReturned(recipient)]
      case 'unsubscribe':
        return [await this.toUnsubscribe(recipient)]
      case 'reports':
        return this.toReports()
      case 'contact':
        return [await this.toContact()]
    }
  }

  private async toReturned({ messageId }: InboundRecipient): Promise<Outcome> {
    const { returned } = this.read.finding
    if (!returned) return this.failed()
    const { tokens, names } = this.parts
    const matching = { messages: this.messages, tokens, hostname: names.hostname }
    const match = matchMessage(matching, returned, messageId)
    // Mail that has no effect needs no message and no proof.
    const isMeant = returned.kind === 'bounce' || returned.kind === 'feedback'
    if (typeof match === 'string') return { result: isMeant ? match : returned.kind, detail: returned.form }
    const { message, isConfirmed } = match
    if (isConfirmed || !isMeant)
      return { message, isConfirmed, ...(await this.effects.apply(this.tx, message, returned)) }
    return { message, isConfirmed, result: 'unconfirmed', detail: unconfirmedDetail(returned) }
  }

  private async toUnsubscribe({ messageId = '' }: InboundRecipient): Promise<Outcome> {
    const message = this.messages.get(messageId)
    return message
      ? { message, isConfirmed: true, ...(await this.effects.applyUnsubscribe(this.tx, message)) }
      : { result: 'unmatched' }
  }

  private async toReports(): Promise<Outcome[]> {
    const { reports = [], fault } = this.read.finding
    if (reports.length === 0) return [fault === undefined ? { result: 'other' } : this.failed()]
    const owners = await findReportedDomains(this.tx.db, [...new Set(reports.map(({ domain }) => domain))])
    const outcomes: Outcome[] = []
    for (const report of reports) {
      const isOwn = isOwnDomain(report.domain, this.parts.names)
      const domain = isOwn ? report.domain : owners.get(report.domain)
      outcomes.push(
        domain === undefined
          ? { result: 'foreign_report', detail: report.domain }
          : await this.keep({ ...report, domain }),
      )
    }
    return outcomes
  }

  private async keep(report: SerializedReport): Promise<Outcome> {
    const verdict = await insertReport(this.tx.db, {
      id: this.parts.newId(),
      receivedAt: this.read.mail.receivedAt,
      authenticatedAs: this.prepared.reporter ?? null,
      ...report,
    })
    const detail = `${report.kind} of ${report.orgName} about ${report.domain}`
    if (verdict === 'too_many') return { result: 'failed', detail: `too many reports today: ${detail}` }
    return { result: verdict === 'stored' ? 'report' : 'report_known', detail }
  }

  private async toContact(): Promise<Outcome> {
    const { forward } = this.prepared
    if (!forward) return this.failed()
    return 'message' in forward ? this.parts.forwarder.forward(this.tx, forward, this.now) : forward
  }

  private failed(): Outcome {
    return { result: 'failed', detail: this.read.finding.fault ?? 'unreadable' }
  }
}
