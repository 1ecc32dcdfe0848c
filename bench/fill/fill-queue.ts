/**
 * Fills the queue of an installation that no server runs on, through the program's own stores.
 *
 * Called by the scenarios that measure what a long queue does.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { uuidv7 } from '../../src/core/ids.js'
import type { Tx } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { insertContent, type MessageContent } from '../../src/messages/content-store.js'
import type { Priority } from '../../src/messages/mail-origin.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertQueueEntries } from '../../src/queue/queue-store.js'
import { systemClock } from '../../src/world/time/clock.js'
import { recipient } from './letters.js'
import { SENDER, type Installation } from '../server/server-process.js'

export interface Filling {
  readonly messages: number
  readonly domains: number
  readonly dueInMs: number
  readonly priority: Priority
}

/** Messages of one content, written in one transaction. */
const PER_CONTENT = 1_000
const LIFETIME_MS = 2 * 86_400_000

export async function fillQueue({ dataDir, workspaceId }: Installation, filling: Filling): Promise<void> {
  const database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  try {
    for (let first = 0; first < filling.messages; first += PER_CONTENT)
      await database.write(tx => fillOne(tx, workspaceId, first, filling))
  } finally {
    await database[Symbol.asyncDispose]()
  }
}

async function fillOne({ db }: Tx, workspaceId: string, first: number, filling: Filling): Promise<void> {
  const now = systemClock.now()
  const newId = () => uuidv7(now, randomBytes(10))
  const content: MessageContent = {
    id: newId(),
    workspaceId,
    from: { address: SENDER },
    subject: `Letter ${first}`,
    html: '<p>Waits for its turn.</p>',
    signingDomainId: null,
    trackOpens: false,
    trackClicks: false,
    createdAt: now,
  }
  const count = Math.min(PER_CONTENT, filling.messages - first)
  const rows = Array.from({ length: count }, (_, index) => ({
    id: newId(),
    recipient: recipient(first + index, filling.domains),
    status: 'sent' as const,
    reason: null,
  }))
  await insertContent(db, content)
  await insertMessages(db, content, false, rows)
  await insertQueueEntries(
    db,
    rows.map(row => ({
      messageId: row.id,
      workspaceId,
      destination: row.recipient.slice(row.recipient.indexOf('@') + 1),
      priority: filling.priority,
      nextAttemptAt: now + filling.dueInMs,
      expiresAt: now + LIFETIME_MS,
      enqueuedAt: now,
      contentId: content.id,
      recipient: row.recipient,
    })),
  )
}
