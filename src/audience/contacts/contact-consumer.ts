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
import { findContactsByEmail, noteVisit } from './contact-store.js'
import { updateContact } from './contact-write-store.js'

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
      await noteVisits(tx, events.filter(isVisit))
      for (const event of events) if (!isVisit(event)) await follow(tx, event, onEvents)
    },
  }
}

type Visit = Extract<Told, { kind: 'email.opened' | 'email.clicked' }>

function isVisit(event: Told): event is Visit {
  return event.kind === 'email.opened' || event.kind === 'email.clicked'
}

function isByMachine(event: Told): boolean {
  return isVisit(event) && event.payload.isBot
}

const VISIT_COLUMNS = { 'email.opened': 'last_opened_at', 'email.clicked': 'last_clicked_at' } as const

/** Thousands come each second: who they were is asked for together, and of each reader the last visit counts. */
async function noteVisits(tx: Tx, visits: readonly Visit[]): Promise<void> {
  for (const workspaceId of new Set(visits.map(visit => visit.workspaceId))) {
    const audience = await findAudience(tx.db, workspaceId)
    if (!audience || audience.contacts === 0) continue
    const own = visits.filter(visit => visit.workspaceId === workspaceId)
    for (const [kind, column] of Object.entries(VISIT_COLUMNS)) {
      const last = lastByAddress(own.filter(visit => visit.kind === kind))
      for (const { seq, email } of await findContactsByEmail(tx.db, audience.number, [...last.keys()]))
        await noteVisit(tx.db, seq, column, last.get(email) ?? 0)
    }
  }
}

function lastByAddress(visits: readonly Visit[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>()
  for (const { payload, occurredAt } of visits) {
    const email = normalizedAddress(payload.to)
    last.set(email, Math.max(occurredAt, last.get(email) ?? 0))
  }
  return last
}

async function follow(tx: Tx, event: Exclude<Told, Visit>, onEvents: () => void): Promise<void> {
  const { workspaceId, isSandbox, occurredAt } = event
  const audience = await findAudience(tx.db, workspaceId)
  if (!audience) return
  const email = normalizedAddress('to' in event.payload ? event.payload.to : event.payload.email)
  const [contact] = await findContactsByEmail(tx.db, audience.number, [email])
  if (!contact) return
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
