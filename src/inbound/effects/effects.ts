/**
 * What returned mail brings about: the message's status and an event. What follows from the event (the bounce record, the
 * suppression, webhooks) is its consumers' work, and the same as after a refusal on the spot.
 *
 * Called by the processor inside its transaction. A mail gathers effects here one after the other; `write` writes them in
 * few statements. Told twice, a bounce or complaint has no second effect. Fails: as the database does.
 */
import type { Tx } from '../../db/database.js'
import { normalizedAddress } from '../../mail/address.js'
import type { ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import type { Log } from '../../world/log.js'
import { logMessage } from '../../messages/log/mail-log.js'
import { recordHappenings, type FactsOf, type Happening } from '../../messages/message-history.js'
import { stateAfter } from '../../messages/message-status.js'
import type { Message } from '../../messages/message-store.js'
import { takeUnsubscribe } from '../../messages/unsubscribe.js'
import type { ReturnedFinding } from '../reading/parser-protocol.js'
import type { InboundResult } from '../results.js'

export interface Effect {
  readonly result: InboundResult
  readonly detail?: string
}

type Told =
  | { readonly what: 'bounced'; readonly facts: FactsOf<'email.bounced'> }
  | { readonly what: 'complained'; readonly facts: FactsOf<'email.complained'> }

export class Effects {
  /** Ms since epoch UTC. */
  private readonly now: number
  private readonly happenings: Happening[] = []
  /** What the log is told once it is on disk. */
  private readonly lines: ((log: Log) => void)[] = []
  private unsubscribes = 0
  /** Told of already within this batch; what was told before stands in the message. */
  private readonly told = new Set<string>()

  constructor(now: number) {
    this.now = now
  }

  /** Any events to be dispatched. */
  get areAny(): boolean {
    return this.happenings.length > 0 || this.unsubscribes > 0
  }

  async take(tx: Tx, message: Message, returned: ReturnedFinding): Promise<Effect> {
    switch (returned.kind) {
      case 'bounce':
        return this.takeBounce(message, returned)
      case 'feedback':
        return this.takeFeedback(tx, message, returned)
      case 'delay':
      case 'success':
      case 'auto_reply':
      case 'other':
        return { result: returned.kind }
    }
  }

  async takeUnsubscribe(tx: Tx, { id: messageId, ...message }: Message): Promise<Effect> {
    const isNew = await takeUnsubscribe(tx, { ...message, messageId, source: 'one_click', at: this.now })
    if (!isNew) return { result: 'unsubscribe_known' }
    this.unsubscribes += 1
    return { result: 'unsubscribe' }
  }

  async write(tx: Tx): Promise<void> {
    await recordHappenings(tx, this.happenings)
  }

  /** Call it after the commit. */
  tell(log: Log): void {
    for (const line of this.lines) line(log)
  }

  private takeBounce(message: Message, returned: ReturnedFinding): Effect {
    const failed = failedRecipient(message, returned.recipients)
    if (!failed) return { result: 'other' }
    const facts = bounceFacts(failed)
    const detail = `${facts.smtpStatus} ${facts.subtype}: ${facts.diagnosticCode}`
    if (!stateAfter(message, 'bounced', this.now) || !this.isNew('bounce', message.id))
      return { result: 'bounce_known', detail }
    this.note(message, { what: 'bounced', facts })
    return { result: 'bounce', detail }
  }

  private async takeFeedback(tx: Tx, message: Message, { recipients }: ReturnedFinding): Promise<Effect> {
    const feedbackType = (recipients[0]?.feedbackType ?? 'abuse').toLowerCase()
    switch (feedbackType) {
      // RFC 5965 §7.3: not spam after all, and failures of authentication, are nobody's complaint.
      case 'not-spam':
        return { result: 'not_spam' }
      case 'auth-failure':
      case 'dmarc':
        return { result: 'auth_failure' }
      case 'opt-out':
      case 'opt-out-list':
        return { detail: feedbackType, ...(await this.takeUnsubscribe(tx, message)) }
      default:
        return this.takeComplaint(message, feedbackType)
    }
  }

  private takeComplaint(message: Message, feedbackType: string): Effect {
    if (!stateAfter(message, 'complained', this.now) || !this.isNew('complaint', message.id))
      return { result: 'complaint_known', detail: feedbackType }
    this.note(message, { what: 'complained', facts: { feedbackType: feedbackType.slice(0, 64) } })
    return { result: 'complaint', detail: feedbackType }
  }

  private note({ id: messageId, recipient, createdAt }: Message, told: Told): void {
    this.happenings.push({ ...told, messageId, at: this.now })
    this.lines.push(log =>
      logMessage(log, told.what, messageId, {}, recipient, {
        isReturned: true,
        ...loggedFacts(told),
        delay: Math.round((this.now - createdAt) / 1_000),
      }),
    )
  }

  private isNew(what: string, of: string): boolean {
    const key = `${what} ${of}`
    const isNew = !this.told.has(key)
    this.told.add(key)
    return isNew
  }
}

function loggedFacts(told: Told) {
  if (told.what === 'complained') return { feedbackType: told.facts.feedbackType }
  const { smtpStatus: status, remoteMta: host, cause, subtype, diagnosticCode: summary } = told.facts
  return { host, status, cause, subtype, summary }
}

/** A message has one recipient; a report may name others, to whom that one was an alias, or who were in Bcc elsewhere. */
function failedRecipient(
  { recipient }: Message,
  recipients: readonly ReturnedRecipient[],
): ReturnedRecipient | undefined {
  const failed = recipients.filter(({ action = 'failed' }) => action === 'failed')
  const wanted = normalizedAddress(recipient)
  return (
    failed.find(one =>
      [one.recipient, one.originalRecipient].some(
        address => address !== undefined && normalizedAddress(address) === wanted,
      ),
    ) ?? failed[0]
  )
}

function bounceFacts(failed: ReturnedRecipient): FactsOf<'email.bounced'> {
  const { type = 'undetermined', cause = 'policy', scope = 'source', subtype = 'unclassified' } = failed
  return {
    bounceType: type,
    cause,
    scope,
    subtype,
    smtpStatus: failed.status ?? (type === 'transient' ? '4.0.0' : '5.0.0'),
    diagnosticCode: storable(failed.diagnosticCode ?? ''),
    ...(failed.remoteMta === undefined ? {} : { remoteMta: storable(failed.remoteMta).slice(0, 255) }),
  }
}

/** PostgreSQL keeps no NUL in text. */
function storable(text: string): string {
  return text.replaceAll('\0', ' ').slice(0, 1_000)
}
