/**
 * Event consumer `analytics`: counts mail events by day, by day and campaign, tag, sender domain or mail client, by quarter hour, and by the last
 * minutes and hours.
 *
 * Counts and cursor change in one transaction, so nothing is counted twice. Sandboxes have separate counters; mail written by the server
 * itself (forwarded mail) belongs to no workspace. Ignored: opens and clicks by bots.
 */
import { clientOf } from '../../content/clients/mail-clients.js'
import { APPLIANCE } from '../../core/owner.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { AboutMessage } from '../../events/event.js'
import type { StoredEvent } from '../../events/store.js'
import { addRecent, type RecentName } from '../../messages/recent-counter-store.js'
import {
  addToCounters,
  type CounterName,
  type DailyCount,
  addToGroups,
  keyOf,
  type Dimension,
  type GroupCount,
  dayOf,
  OTHER_VALUES,
} from './counter-store.js'
import { addToQuarters, EVERYTHING, QUARTER_MS, type QuarterCount } from './quarter-store.js'

export function countingConsumer(): EventConsumer {
  return {
    name: 'analytics',
    startsAt: 'oldest',
    includesOwnMail: true,
    // A batch of events collapses into few counters.
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
      const others = await addToGroups(tx.db, groupsOf(counted))
      await addToQuarters(tx.db, quartersOf(counted, others))
      await addRecent(
        tx.db,
        counted.map(({ event, name }) => ({
          workspaceId: event.workspaceId,
          isSandbox: event.isSandbox,
          name: RECENT[name],
          at: event.occurredAt,
        })),
      )
    },
  }
}

/** Names of the recent counters. */
const RECENT: Readonly<Record<CounterName, RecentName>> = {
  accepted: 'accepted',
  campaign_sends: 'sent',
  api_sends: 'sent',
  delivered: 'delivered',
  opens: 'opened',
  clicks: 'clicked',
  bounces: 'bounced',
  complaints: 'complained',
}

type ReportDimension = Exclude<Dimension, 'client'>

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

/** A message counts for each of its tags. */
function groupsOf(counted: readonly Counted[]): GroupCount[] {
  const groups = new Map<string, Group>()
  for (const { event, name } of counted) {
    const { workspaceId } = event
    // Mail written by the server itself appears in no workspace's report.
    if (workspaceId === APPLIANCE) continue
    const day = dayOf(event.occurredAt)
    for (const [dimension, value] of [...valuesOf(event), ...clientsOf(event)]) {
      const key = keyOf({ workspaceId, dimension, day, value })
      const group: Group = groups.get(key) ?? { workspaceId, dimension, day, value, counts: {} }
      group.counts[name] = (group.counts[name] ?? 0) + 1
      groups.set(key, group)
    }
  }
  return [...groups.values()]
}

type Quarter = QuarterCount & { readonly counts: Partial<Record<CounterName, number>> }

/**
 * Of all mail of the workspace, and as its groups but for clients, which reports do not group by.
 *
 * @param others keys of the groups that were counted as others on their day
 */
function quartersOf(counted: readonly Counted[], others: ReadonlySet<string>): QuarterCount[] {
  const quarters = new Map<string, Quarter>()
  for (const { event, name } of counted) {
    const { workspaceId, occurredAt } = event
    if (workspaceId === APPLIANCE) continue
    const startsAt = Math.floor(occurredAt / QUARTER_MS) * QUARTER_MS
    const day = dayOf(occurredAt)
    const ofGroups = valuesOf(event).map(([dimension, value]) => {
      const isOther = others.has(keyOf({ workspaceId, dimension, day, value }))
      return [dimension, isOther ? OTHER_VALUES : value] as const
    })
    for (const [dimension, value] of [['all', EVERYTHING] as const, ...ofGroups]) {
      const key = `${workspaceId} ${dimension} ${startsAt} ${value}`
      const quarter: Quarter = quarters.get(key) ?? { workspaceId, dimension, startsAt, value, counts: {} }
      quarter.counts[name] = (quarter.counts[name] ?? 0) + 1
      quarters.set(key, quarter)
    }
  }
  return [...quarters.values()]
}

function valuesOf({ payload }: StoredEvent): [ReportDimension, string][] {
  const { campaignId, tags = [], senderDomain } = payload as Partial<AboutMessage>
  return [
    ...(campaignId === undefined ? [] : [['campaign', campaignId] as [ReportDimension, string]]),
    ...asKept(tags).map((tag): [ReportDimension, string] => ['tag', tag]),
    ...(senderDomain === undefined || senderDomain === ''
      ? []
      : [['domain', senderDomain] as [ReportDimension, string]]),
  ]
}

/** Of opens. An open inferred from a click has the browser's User-Agent. */
function clientsOf(event: StoredEvent): [Dimension, string][] {
  if (event.kind !== 'email.opened' || event.payload.isInferred === true) return []
  return [['client', clientOf(event.payload.userAgent)]]
}

/** Replaces lone surrogates, which databases cannot store. */
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
