/**
 * Updates contacts from message events: the event consumer `contacts`.
 *
 * | event                            | contact            |
 * |----------------------------------|--------------------|
 * | open or click by a person        | `last_..._at`, and how often it visits in this hour of the day |
 * | complaint, in a sandbox          | `subscribed` false |
 * | hard bounce, in a sandbox        | `bounced`          |
 *
 * Outside a sandbox, bounces, complaints and unsubscribes cause suppressions, which contacts follow in the same transaction
 * (`follow-suppressions.ts`). An event applies to the contact that has the address now, if any.
 */
import { suppressionsBy } from '../../deliverability/bounces/bounce-consumer.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { StoredEvent } from '../../events/store.js'
import type { Tx } from '../../db/database.js'
import { normalizedAddress } from '../../mail/address.js'
import type { AudienceParts } from '../audience-parts.js'
import { findAudience } from '../audience-store.js'
import { addContactHours, hourOf, type HourCount } from './contact-hours-store.js'
import { findContactsByEmail, noteVisit } from './contact-store.js'
import { followSuppressions } from './follow-suppressions.js'

const KINDS = ['email.complained', 'email.bounced', 'email.opened', 'email.clicked'] as const

type Told = StoredEvent<(typeof KINDS)[number]>

export function contactConsumer({
  onEvents,
}: Pick<AudienceParts, 'onEvents'>): EventConsumer<(typeof KINDS)[number]> {
  const contacts = followSuppressions(onEvents)
  return {
    name: 'contacts',
    startsAt: 'oldest',
    kinds: KINDS,
    concerns: event => (isVisit(event) ? !event.payload.isBot : event.isSandbox),
    async react(tx, events) {
      await noteVisits(tx, events.filter(isVisit))
      const entries = events.filter(event => !isVisit(event)).flatMap(suppressionsBy)
      await contacts.suppressed(tx, entries, { isSandbox: true, source: 'system' })
    },
  }
}

type Visit = Extract<Told, { kind: 'email.opened' | 'email.clicked' }>

function isVisit(event: Told): event is Visit {
  return event.kind === 'email.opened' || event.kind === 'email.clicked'
}

const VISIT_COLUMNS = { 'email.opened': 'last_opened_at', 'email.clicked': 'last_clicked_at' } as const

/** Called for thousands of events per second: looks contacts up in one batch and keeps the latest visit of each. */
async function noteVisits(tx: Tx, visits: readonly Visit[]): Promise<void> {
  for (const workspaceId of new Set(visits.map(visit => visit.workspaceId))) {
    const audience = await findAudience(tx.db, workspaceId)
    if (!audience || audience.contacts === 0) continue
    const own = visits.filter(visit => visit.workspaceId === workspaceId)
    const seqs = new Map<string, number>()
    for (const [kind, column] of Object.entries(VISIT_COLUMNS)) {
      const last = lastByAddress(own.filter(visit => visit.kind === kind))
      for (const { seq, email } of await findContactsByEmail(tx.db, audience.number, [...last.keys()])) {
        seqs.set(email, seq)
        await noteVisit(tx.db, seq, column, last.get(email) ?? 0)
      }
    }
    await addContactHours(tx.db, hoursOf(own, seqs))
  }
}

/** An open that follows from a click is the same visit. */
function hoursOf(visits: readonly Visit[], seqs: ReadonlyMap<string, number>): HourCount[] {
  const counts = new Map<string, HourCount>()
  for (const { kind, payload, occurredAt } of visits) {
    const contact = seqs.get(normalizedAddress(payload.to))
    if (contact === undefined || (kind === 'email.opened' && payload.isInferred === true)) continue
    const hour = hourOf(occurredAt)
    const key = `${contact} ${hour}`
    counts.set(key, { contact, hour, visits: (counts.get(key)?.visits ?? 0) + 1 })
  }
  return [...counts.values()]
}

function lastByAddress(visits: readonly Visit[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>()
  for (const { payload, occurredAt } of visits) {
    const email = normalizedAddress(payload.to)
    last.set(email, Math.max(occurredAt, last.get(email) ?? 0))
  }
  return last
}
