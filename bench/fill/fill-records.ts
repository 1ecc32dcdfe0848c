/**
 * The rest of ninety days of mail, written through the program's own stores: the other workspaces, counters, bounces,
 * the queue, suppressions, conversions, the activity log, and how far the consumers of the event log have come.
 *
 * Called by `fill-history.ts`, after the messages.
 */
import { join } from 'node:path'
import { insertConversion } from '../../src/analytics/conversions/conversion-store.js'
import { addToCounters, type DailyCount } from '../../src/analytics/statistics/counter-store.js'
import { NEW_WORKSPACE, insertWorkspace } from '../../src/accounts/workspace-store.js'
import type { Database, Tx } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { insertBounces } from '../../src/deliverability/bounces/bounce-store.js'
import {
  suppressAll,
  type SuppressionReason,
} from '../../src/deliverability/suppressions/suppression-store.js'
import { SHELL } from '../../src/core/actor.js'
import { recordActivity } from '../../src/events/activity-store.js'
import { moveCursor, newestSeq } from '../../src/events/store.js'
import type { TotalsChange } from '../../src/messages/mail-totals-store.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { insertQueueEntries } from '../../src/queue/queue-store.js'
import { systemClock } from '../../src/world/time/clock.js'
import { DAY_MS, HISTORY_DAYS, newId, scattered, workspaceOf, type History } from '../scenarios/history.js'
import type { Installation } from '../server/server-process.js'

interface Mailed {
  readonly id: string
  readonly workspaceId: string
  readonly contentId: string
  readonly campaignId: string | null
  readonly recipient: string
}

export interface Bounced extends Mailed {
  readonly bouncedAt: number
}

export interface Queued extends Mailed {
  readonly createdAt: number
  readonly dueAt: number
}

interface Gathered {
  readonly counts: ReadonlyMap<string, DailyCount>
  readonly bounced: readonly Bounced[]
  readonly queued: readonly Queued[]
  readonly totals: TotalsChange
}

/** Those that begin with the oldest event of the log; the scenario fails where one is missing here. */
const CONSUMERS = ['analytics', 'bounces', 'relay-reports', 'contacts', 'campaigns']
/** Messages for each one, and most there are of it: as many as a workspace of this size may have. */
const PER_SUPPRESSION = 10
const PER_CONVERSION = 20
const PER_ACTIVITY = 50
const PER_TRANSACTION = 1_000

export async function fillRecords(
  { dataDir, workspaceId }: Installation,
  history: History,
  others: readonly string[],
  { counts, bounced, queued, totals }: Gathered,
): Promise<void> {
  const database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  const workspaceIds = [workspaceId, ...others]
  const ownerOf = (n: number) => workspaceIds[workspaceOf(n, workspaceIds.length)]!
  try {
    await database.write(async tx => {
      for (const id of others)
        await insertWorkspace(tx.db, { ...NEW_WORKSPACE, id, name: id, createdAt: history.until })
      await addToCounters(tx.db, [...counts.values()])
      await totals.write(tx.db)
      const newest = await newestSeq(tx.db)
      for (const consumer of CONSUMERS) await moveCursor(tx, consumer, newest)
    })
    await inTransactions(database, bounced, (tx, some) => insertBounces(tx.db, some.map(toBounce)))
    await inTransactions(database, queued, (tx, some) => insertQueueEntries(tx.db, some.map(toQueueEntry)))
    const moments = (many: number) =>
      Array.from({ length: Math.floor(many) }, (_, n) => ({
        n,
        workspaceId: ownerOf(n),
        createdAt: Math.floor(history.until - ((many - n) * HISTORY_DAYS * DAY_MS) / many),
      }))
    await inTransactions(database, moments(history.messages / PER_SUPPRESSION), (tx, some) =>
      suppressAll(tx.db, some.map(toSuppression)),
    )
    await inTransactions(database, moments(history.messages / PER_CONVERSION), async (tx, some) => {
      for (const one of some) await insertConversion(tx.db, toConversion(one))
    })
    await inTransactions(database, moments(history.messages / PER_ACTIVITY), async (tx, some) => {
      for (const { n, workspaceId, createdAt } of some)
        await recordActivity(tx, { workspaceId, actor: SHELL }, createdAt, {
          action: n % 100 === 0 ? 'domain.added' : 'suppression.added',
          subject: `gone${n}@d${n % 1_000}.example`,
          details: { reason: 'manual', scope: 'all' },
        })
    })
  } finally {
    await database[Symbol.asyncDispose]()
  }
}

async function inTransactions<T>(
  database: Database,
  all: readonly T[],
  insert: (tx: Tx, some: readonly T[]) => Promise<void>,
): Promise<void> {
  for (let first = 0; first < all.length; first += PER_TRANSACTION)
    await database.write(tx => insert(tx, all.slice(first, first + PER_TRANSACTION)))
}

function toBounce({ id, workspaceId, campaignId, recipient, bouncedAt }: Bounced) {
  return {
    id: newId(bouncedAt),
    workspaceId,
    messageId: id,
    email: recipient,
    contactId: null,
    campaignId,
    type: scattered(bouncedAt) % 5 === 0 ? ('transient' as const) : ('permanent' as const),
    subtype: scattered(bouncedAt) % 3 === 0 ? 'mailbox_full' : 'no_such_mailbox',
    cause: 'recipient' as const,
    scope: 'address' as const,
    smtpStatus: '5.1.1',
    diagnosticCode: `550 5.1.1 <${recipient}>: Recipient address rejected: User unknown in virtual mailbox table`,
    ispName: null,
    remoteMta: 'mx1.example.net',
    isSandbox: false,
    createdAt: bouncedAt,
  }
}

function toQueueEntry({ id, workspaceId, contentId, recipient, createdAt, dueAt }: Queued) {
  return {
    messageId: id,
    workspaceId,
    destination: recipient.slice(recipient.indexOf('@') + 1),
    priority: PRIORITIES.transactional,
    nextAttemptAt: dueAt,
    expiresAt: dueAt + 2 * DAY_MS,
    enqueuedAt: createdAt,
    contentId,
    recipient,
  }
}

/** In its order and workspace. */
interface Numbered {
  readonly n: number
  readonly workspaceId: string
  readonly createdAt: number
}

function toSuppression({ n, workspaceId, createdAt }: Numbered) {
  const lot = scattered(n + 1) % 1_000
  const reason: SuppressionReason =
    lot < 600 ? 'unsubscribe' : lot < 950 ? 'hard_bounce' : lot < 998 ? 'manual' : 'complaint'
  return {
    workspaceId,
    email: `gone${n}@d${n % 1_000}.example`,
    reason,
    scope: reason === 'unsubscribe' ? ('marketing' as const) : ('all' as const),
    sourceMessageId: null,
    createdAt,
  }
}

function toConversion({ n, workspaceId, createdAt }: Numbered) {
  return {
    id: newId(createdAt),
    workspaceId,
    contactId: newId(createdAt),
    value: 10 + (n % 90),
    currency: 'EUR',
    metadata: { order: `R-${n}`, items: 1 + (n % 4) },
    messageId: null,
    campaignId: null,
    variant: null,
    isSandbox: false,
    createdAt,
  }
}
