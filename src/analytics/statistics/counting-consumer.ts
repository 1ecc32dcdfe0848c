/**
 * Counts what becomes of mail, day by day, as it happens: the consumer `analytics` of the event log.
 *
 * Counts and cursor move in one transaction, so that nothing is counted twice. A sandbox has counters of its own, and what the
 * appliance itself writes (reports to submitters, forwarded mail) is counted apart, as nobody's. Left out: opens and clicks by
 * machines.
 */
import type { EventConsumer } from '../../events/consumer.js'
import type { StoredEvent } from '../../events/store.js'
import { addToCounters, type CounterName, type DailyCount } from './daily-counter-store.js'
import { dayOf } from '../day.js'

export function countingConsumer(): EventConsumer {
  return {
    name: 'analytics',
    startsAt: 'oldest',
    includesOwnMail: true,
    // A batch is a thousand events, and comes to a few counters.
    eventsPerTurn: 500,
    kinds: [
      'email.accepted',
      'email.sent',
      'email.delivered',
      'email.opened',
      'email.clicked',
      'email.bounced',
      'email.complained',
    ],
    react: (tx, events) => addToCounters(tx.db, countsOf(events)),
  }
}

function countsOf(events: readonly StoredEvent[]): DailyCount[] {
  const counts = new Map<string, DailyCount>()
  for (const event of events) {
    const name = counterOf(event)
    const { workspaceId } = event
    if (name === undefined) continue
    const day = dayOf(event.occurredAt)
    const key = `${workspaceId} ${day} ${name}`
    counts.set(key, { workspaceId, day, name, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()]
}

function counterOf(event: StoredEvent): CounterName | undefined {
  switch (event.kind) {
    case 'email.accepted':
      return 'accepted'
    case 'email.sent':
      return event.payload.campaignId === undefined ? 'api_sends' : 'campaign_sends'
    case 'email.delivered':
      return 'delivered'
    case 'email.opened':
      return event.payload.isBot ? undefined : 'opens'
    case 'email.clicked':
      return event.payload.isBot ? undefined : 'clicks'
    case 'email.bounced':
      return 'bounces'
    case 'email.complained':
      return 'complaints'
    default:
      return undefined
  }
}
