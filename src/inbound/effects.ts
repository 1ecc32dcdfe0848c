/**
 * What returned mail brings about: the message's status and an event. What follows from the event (the bounce record, the
 * suppression, webhooks) is its consumers' work, and the same as after a refusal on the spot.
 *
 * Called by the processor inside its transaction. A mail gathers effects here one after the other; `write` writes them in
 * few statements. Told twice, a bounce or complaint has no second effect. Fails: as the database does.
 */
import type { Tx } from '../db/database.js'
import { findSuppression } from '../deliverability/suppression-store.js'
import type { EmailBounced, Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { normalizedAddress } from '../mail/address.js'
import type { Permanence } from '../mail/outcome.js'
import type { ReturnedRecipient } from '../mail/returned/returned-mail.js'
import type { Message } from '../queue/message-store.js'
import { markBounced, markComplained } from '../queue/message-status-store.js'
import type { ReturnedFinding } from './parser-protocol.js'
import type { InboundResult } from './results.js'

export interface Effect {
  readonly result: InboundResult
  readonly detail?: string
}

export class Effects {
  /** Ms since epoch UTC. */
  private readonly now: number
  private readonly events: Event[] = []
  private readonly bounced = new Map<Permanence, string[]>()
  private readonly complained: string[] = []
  /** Told of already within this batch; what was told before stands in the message. */
  private readonly told = new Set<string>()

  constructor(now: number) {
    this.now = now
  }

  /** Any events to be dispatched. */
  get areAny(): boolean {
    return this.events.length > 0
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

  /** Marketing only: who unsubscribes still wants to hear of an order. */
  async takeUnsubscribe(tx: Tx, message: Message): Promise<Effect> {
    const email = normalizedAddress(message.recipient)
    const isKnown = await findSuppression(tx.db, message.workspaceId, email)
    if (isKnown || !this.isNew('unsubscribe', `${message.workspaceId} ${email}`))
      return { result: 'unsubscribe_known' }
    this.events.push({
      ...this.headOf(message),
      kind: 'email.unsubscribed',
      payload: { to: message.recipient, source: 'one_click' },
    })
    return { result: 'unsubscribe' }
  }

  async write(tx: Tx): Promise<void> {
    for (const [permanence, ids] of this.bounced) await markBounced(tx.db, ids, permanence, this.now)
    await markComplained(tx.db, this.complained, this.now)
    await appendEvents(tx, this.events)
  }

  private takeBounce(message: Message, returned: ReturnedFinding): Effect {
    const failed = failedRecipient(message, returned.recipients)
    if (!failed) return { result: 'other' }
    const payload = bouncePayload(message, failed)
    const detail = `${payload.smtpStatus} ${payload.subtype}: ${payload.diagnosticCode}`
    if (message.bouncedAt !== null || !this.isNew('bounce', message.id))
      return { result: 'bounce_known', detail }
    const ids = this.bounced.get(payload.bounceType) ?? []
    this.bounced.set(payload.bounceType, [...ids, message.id])
    this.events.push({ ...this.headOf(message), kind: 'email.bounced', payload })
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
    if (message.complainedAt !== null || !this.isNew('complaint', message.id))
      return { result: 'complaint_known', detail: feedbackType }
    this.complained.push(message.id)
    this.events.push({
      ...this.headOf(message),
      kind: 'email.complained',
      payload: { to: message.recipient, feedbackType: feedbackType.slice(0, 64) },
    })
    return { result: 'complaint', detail: feedbackType }
  }

  private headOf({ id, workspaceId, isSandbox }: Message) {
    return { workspaceId, messageId: id, isSandbox, occurredAt: this.now }
  }

  private isNew(what: string, of: string): boolean {
    const key = `${what} ${of}`
    const isNew = !this.told.has(key)
    this.told.add(key)
    return isNew
  }
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

function bouncePayload({ recipient }: Message, failed: ReturnedRecipient): EmailBounced['payload'] {
  const { type = 'undetermined', cause = 'policy', scope = 'source', subtype = 'unclassified' } = failed
  return {
    to: recipient,
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
