/**
 * Keeps contacts true to what happens to their mail: the consumer `contacts` of the event log.
 *
 * | happens                                                     | contact             |
 * |-------------------------------------------------------------|---------------------|
 * | unsubscribed by link, mail or page; complained              | `subscribed` false  |
 * | suppressed by hand, whatever the scope                      | `subscribed` false  |
 * | hard bounce, or suppressed by hand as one                   | `bounced`           |
 * | suppression taken off by hand                               | no longer `bounced` |
 * | opened or clicked, by no machine                            | `last_..._at`       |
 *
 * An event is about an address, and so about the contact that has it now, if any. What is so already stays and is told to nobody, so that
 * the same event may come again.
 */
import { isDeadAddress } from '../../deliverability/bounces/bounce-consumer.js'
import type { EventConsumer } from '../../events/consumer.js'
import { appendEvents, type StoredEvent } from '../../events/store.js'
import type { Tx } from '../../db/database.js'
import { normalizedAddress } from '../../mail/address.js'
import type { AudienceSource } from '../audience-events.js'
import type { AudienceParts } from '../audience-parts.js'
import { findAudience } from '../audience-store.js'
import type { Contact } from './contact.js'
import { changedFields, toldChanged } from './contact-events.js'
import { findContactsByEmail, noteVisit, updateContact } from './contact-store.js'

const KINDS = [
  'email.unsubscribed',
  'email.complained',
  'email.bounced',
  'email.opened',
  'email.clicked',
  'suppression.added',
  'suppression.removed',
] as const

type Told = StoredEvent<(typeof KINDS)[number]>

export function contactConsumer({
  onEvents,
}: Pick<AudienceParts, 'onEvents'>): EventConsumer<(typeof KINDS)[number]> {
  return {
    name: 'contacts',
    startsAt: 'oldest',
    kinds: KINDS,
    concerns: event => !isByMachine(event),
    async react(tx, events) {
      for (const event of events) await follow(tx, event, onEvents)
    },
  }
}

function isByMachine(event: Told): boolean {
  return (event.kind === 'email.opened' || event.kind === 'email.clicked') && event.payload.isBot
}

async function follow(tx: Tx, event: Told, onEvents: () => void): Promise<void> {
  const { workspaceId, isSandbox, occurredAt } = event
  const audience = await findAudience(tx.db, workspaceId)
  if (!audience) return
  const email = normalizedAddress('to' in event.payload ? event.payload.to : event.payload.email)
  const [contact] = await findContactsByEmail(tx.db, audience.number, [email])
  if (!contact) return
  if (event.kind === 'email.opened' || event.kind === 'email.clicked') {
    const column = event.kind === 'email.opened' ? 'last_opened_at' : 'last_clicked_at'
    await noteVisit(tx.db, contact.seq, column, occurredAt)
    return
  }
  const after = { ...contact, ...changesBy(event), updatedAt: Math.max(occurredAt, contact.updatedAt) }
  if (changedFields(contact, after).length === 0) return
  await updateContact(tx.db, audience.number, contact, after)
  await appendEvents(tx, toldChanged({ workspaceId, isSandbox, source: sourceOf(event) }, contact, after))
  tx.onCommit(onEvents)
}

function changesBy(event: Told): Partial<Contact> {
  switch (event.kind) {
    case 'email.unsubscribed':
    case 'email.complained':
      return { subscribed: false }
    case 'email.bounced':
      return isDeadAddress(event) ? bounced(event.occurredAt) : {}
    case 'suppression.added':
      return event.payload.reason === 'hard_bounce' ? bounced(event.occurredAt) : { subscribed: false }
    case 'suppression.removed':
      return { bounced: false, bouncedAt: null, bounceType: null }
    default:
      return {}
  }
}

function bounced(at: number): Partial<Contact> {
  return { bounced: true, bouncedAt: at, bounceType: 'permanent' }
}

function sourceOf(event: Told): AudienceSource {
  if (event.kind === 'email.unsubscribed') return event.payload.source
  return event.kind === 'suppression.added' || event.kind === 'suppression.removed' ? 'api' : 'system'
}
