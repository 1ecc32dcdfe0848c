/**
 * How long the server takes from the start of its process until it serves, with nothing and with much in the queue.
 *
 * Called by `main.ts`. The full queue is due only in the future: what is measured is finding out about it, not sending.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { uuidv7 } from '../src/core/ids.js'
import type { Tx } from '../src/db/database.js'
import { openSqlite } from '../src/db/open-sqlite.js'
import { insertContent, insertMessages, type MessageContent } from '../src/queue/message-store.js'
import { insertQueueEntries } from '../src/queue/queue-store.js'
import { systemClock } from '../src/world/clock.js'
import { recipient } from './letters.js'
import { median, short } from './numbers.js'
import { copyInstallation, SENDER, serve, type Installation } from './server-process.js'
import { printTable } from './table.js'

export interface StartOptions {
  readonly messages: number
}

const DOMAINS = 1_000
const ROUNDS = 3
/** Messages of one content, written in one transaction. */
const PER_CONTENT = 1_000
const DUE_IN_MS = 86_400_000

export async function measureStart(original: Installation, { messages }: StartOptions): Promise<void> {
  const empty = await copyInstallation(original, 'start-empty')
  const full = await copyInstallation(original, 'start-full')
  await fill(full, messages)
  printTable(
    'Start: from the spawn of the process to its log line "postroad serves"',
    [
      ['queue', 'median ms', 'all ms'],
      await measureRow('empty', empty),
      await measureRow(`${messages}`, full),
    ],
    [`Of ${ROUNDS} starts. The full queue is ${messages} messages to ${DOMAINS} domains, due tomorrow.`],
  )
}

async function measureRow(name: string, installation: Installation): Promise<string[]> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await serve(installation)
    times.push(server.startMs)
    await server.stop()
  }
  return [name, short(median(times)), times.map(short).join(' ')]
}

async function fill({ dataDir, workspaceId }: Installation, messages: number): Promise<void> {
  const database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  try {
    for (let first = 0; first < messages; first += PER_CONTENT)
      await database.write(tx => fillOne(tx, workspaceId, first, Math.min(PER_CONTENT, messages - first)))
  } finally {
    await database[Symbol.asyncDispose]()
  }
}

async function fillOne({ db }: Tx, workspaceId: string, first: number, count: number): Promise<void> {
  const now = systemClock.now()
  const newId = () => uuidv7(now, randomBytes(10))
  const content: MessageContent = {
    id: newId(),
    workspaceId,
    from: { address: SENDER },
    subject: `Letter ${first}`,
    html: '<p>Waits for tomorrow.</p>',
    signingDomainId: null,
    trackOpens: false,
    trackClicks: false,
    createdAt: now,
  }
  const rows = Array.from({ length: count }, (_, index) => ({
    id: newId(),
    recipient: recipient(first + index, DOMAINS),
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

      priority: 0 as const,
      nextAttemptAt: now + DUE_IN_MS,
      expiresAt: now + 2 * DUE_IN_MS,
      enqueuedAt: now,
    })),
  )
}
