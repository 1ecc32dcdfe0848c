/**
 * Collects the effects of returned mail: message transitions and their events. Bounce records, suppressions and
 * webhooks follow from the events, as after an immediate rejection.
 *
 * One instance per batch, inside its transaction: `write` writes all effects in a few statements, `log` runs after the
 * commit. Repeated bounces and complaints have no effect.
 */
import type { Tx } from '../../db/database.js'
import { normalizedAddress } from '../../mail/address.js'
import type { ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import type { Log } from '../../world/log.js'
import { logMessage } from '../../messages/mail-log.js'
import { recordTransitions, type FactsOf, type Transition } from '../../messages/message-history.js'
import { stateAfter } from '../../messages/message-status.js'
import type { Message } from '../../messages/message-store.js'
import { unsubscribeRecipient } from '../../messages/unsubscribe.js'
import type { ReturnedFinding } from '../parser-protocol.js'
import type { InboundResult } from '../results.js'

export interface Effect {
  readonly result: InboundResult
  readonly detail?: string
}

type EffectEvent =
  | { readonly kind: 'bounced'; readonly facts: FactsOf<'email.bounced'> }
  | { readonly kind: 'complained'; readonly facts: FactsOf<'email.complained'> }

export class Effects {
  private readonly now: number
  private readonly transitions: Transition[] = []
  /** Written after the commit. */
  private readonly logLines: ((log: Log) => void)[] = []
  private unsubscribes = 0
  /** Effects already collected in this batch; earlier ones show in the message. */
  private readonly seen = new Set<string>()

  constructor(now: number) {
    this.now = now
  }

  get hasEvents(): boolean {
    return this.transitions.length > 0 || this.unsubscribes > 0
  }

  async apply(tx: Tx, message: Message, returned: ReturnedFinding): Promise<Effect> {
    switch (returned.kind) {
      case 'bounce':
        return this.applyBounce(message, returned)
      case 'feedback':
        return this.applyFeedback(tx, message, returned)
      case 'delay':
      case 'success':
      case 'auto_reply':
      case 'other':
        return { result: returned.kind }
    }
  }

  async applyUnsubscribe(tx: Tx, { id: messageId, ...message }: Message): Promise<Effect> {
    const isNew = await unsubscribeRecipient(tx, { ...message, messageId, source: 'one_click', at: this.now })
    if (!isNew) return { result: 'unsubscribe_known' }
    this.unsubscribes += 1
    return { result: 'unsubscribe' }
  }

  async write(tx: Tx): Promise<void> {
    await recordTransitions(tx, this.transitions)
  }

  /** Call it after the commit. */
  log(log: Log): void {
    for (const line of this.logLines) line(log)
  }

  private applyBounce(message: Message, returned: ReturnedFinding): Effect {
    const failed = failedRecipient(message, returned.recipients)
    if (!failed) return { result: 'other' }
    const facts = bounceFacts(failed)
    const detail = `${facts.smtpStatus} ${facts.subtype}: ${facts.diagnosticCode}`
    if (!stateAfter(message, 'bounced', this.now) || !this.isNew('bounce', message.id))
      return { result: 'bounce_known', detail }
    this.add(message, { kind: 'bounced', facts })
    return { result: 'bounce', detail }
  }

  private async applyFeedback(tx: Tx, message: Message, { recipients }: ReturnedFinding): Promise<Effect> {
    const feedbackType = (recipients[0]?.feedbackType ?? 'abuse').toLowerCase()
    switch (feedbackType) {
      // RFC 5965 §7.3: corrections and authentication failures are not complaints.
      case 'not-spam':
        return { result: 'not_spam' }
      case 'auth-failure':
      case 'dmarc':
        return { result: 'auth_failure' }
      case 'opt-out':
      case 'opt-out-list':
        return { detail: feedbackType, ...(await this.applyUnsubscribe(tx, message)) }
      default:
        return this.applyComplaint(message, feedbackType)
    }
  }

  private applyComplaint(message: Message, feedbackType: string): Effect {
    if (!stateAfter(message, 'complained', this.now) || !this.isNew('complaint', message.id))
      return { result: 'complaint_known', detail: feedbackType }
    this.add(message, { kind: 'complained', facts: { feedbackType: feedbackType.slice(0, 64) } })
    return { result: 'complaint', detail: feedbackType }
  }

  private add({ id: messageId, recipient, createdAt }: Message, effect: EffectEvent): void {
    this.transitions.push({ ...effect, messageId, at: this.now })
    this.logLines.push(log =>
      logMessage(log, effect.kind, messageId, {}, recipient, {
        isReturned: true,
        ...loggedFacts(effect),
        delay: Math.round((this.now - createdAt) / 1_000),
      }),
    )
  }

  private isNew(what: string, of: string): boolean {
    const key = `${what} ${of}`
    const isNew = !this.seen.has(key)
    this.seen.add(key)
    return isNew
  }
}

function loggedFacts(effect: EffectEvent) {
  if (effect.kind === 'complained') return { feedbackType: effect.facts.feedbackType }
  const { smtpStatus: status, remoteMta: host, cause, subtype, diagnosticCode: summary } = effect.facts
  return { host, status, cause, subtype, summary }
}

/** A report may name other addresses: aliases, or Bcc recipients elsewhere. Prefers the message's recipient. */
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
    diagnosticCode: sanitize(failed.diagnosticCode ?? ''),
    ...(failed.remoteMta === undefined ? {} : { remoteMta: sanitize(failed.remoteMta).slice(0, 255) }),
  }
}

/** PostgreSQL text cannot contain NUL. */
function sanitize(text: string): string {
  return text.replaceAll('\0', ' ').slice(0, 1_000)
}
