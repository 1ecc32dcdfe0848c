/**
 * Counts what becomes of mail as it happens, by day, and by day and campaign, tag or sender domain: the consumer `analytics` of the event log.
 *
 * Counts and cursor move in one transaction, so that nothing is counted twice. A sandbox has counters of its own, and what the
 * appliance itself writes (reports to submitters, forwarded mail) is counted apart, as nobody's. Left out: opens and clicks by
 * machines.
 */
import { APPLIANCE } from '../../core/owner.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { AboutMessage } from '../../events/event.js'
import type { StoredEvent } from '../../events/store.js'
import { addToCounters, type CounterName, type DailyCount } from './daily-counter-store.js'
import { addToGroups, keyOf, type Dimension, type GroupCount } from './group-counter-store.js'
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
    react: async (tx, events) => {
      const counted = events.flatMap(event => {
        const name = counterOf(event)
        return name === undefined ? [] : [{ event, name }]
      })
      await addToCounters(tx.db, countsOf(counted))
      await addToGroups(tx.db, groupsOf(counted))
    },
  }
}

interface Counted {
  readonly event: StoredEvent
  readonly name: CounterName
}

function countsOf(counted: readonly Counted[]): DailyCount[] {
  const counts = new Map<string, DailyCount>()
  for (const { event, name } of counted) {
    const { workspaceId } = event
    const day = dayOf(event.occurredAt)
    const key = `${workspaceId} ${day} ${name}`
    counts.set(key, { workspaceId, day, name, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()]
}

type Group = GroupCount & { readonly counts: Partial<Record<CounterName, number>> }

/** A mail counts for each of its tags. */
function groupsOf(counted: readonly Counted[]): GroupCount[] {
  const groups = new Map<string, Group>()
  for (const { event, name } of counted) {
    const { workspaceId } = event
    // What the appliance itself writes is in nobody's report.
    if (workspaceId === APPLIANCE) continue
    const day = dayOf(event.occurredAt)
    for (const [dimension, value] of valuesOf(event)) {
      const key = keyOf({ workspaceId, dimension, day, value })
      const group: Group = groups.get(key) ?? { workspaceId, dimension, day, value, counts: {} }
      group.counts[name] = (group.counts[name] ?? 0) + 1
      groups.set(key, group)
    }
  }
  return [...groups.values()]
}

function valuesOf({ payload }: StoredEvent): [Dimension, string][] {
  const { campaignId, tags = [], senderDomain } = payload as Partial<AboutMessage>
  return [
    ...(campaignId === undefined ? [] : [['campaign', campaignId] as [Dimension, string]]),
    ...asKept(tags).map((tag): [Dimension, string] => ['tag', tag]),
    ...(senderDomain === undefined || senderDomain === ''
      ? []
      : [['domain', senderDomain] as [Dimension, string]]),
  ]
}

/** A lone surrogate is another character to a database. */
function asKept(tags: readonly string[]): string[] {
  return [...new Set(tags.map(tag => Buffer.from(tag).toString()))]
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
