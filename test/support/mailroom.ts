/**
 * Rows that queue and account tests start from: a workspace, a content, messages in the queue.
 *
 * Written through the real stores, so that a test can only start from what the program itself would have written.
 */
import { laneKey } from '../../src/queue/lane.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { insertWorkspace, NEW_WORKSPACE, type Workspace } from '../../src/accounts/workspace-store.js'
import type { Database, Tx } from '../../src/db/database.js'
import { insertContent, type MessageContent } from '../../src/messages/content-store.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertQueueEntries, type NewQueueEntry } from '../../src/queue/queue-store.js'

/** 2026-01-05T10:00:00Z, where a FakeClock starts. */
export const NOW = Date.UTC(2026, 0, 5, 10)

export const DAY_MS = 86_400_000

export async function addWorkspace(
  database: Database,
  id = 'w1',
  settings: Partial<Workspace> = {},
): Promise<Workspace> {
  const workspace = { ...NEW_WORKSPACE, id, name: `Workspace ${id}`, createdAt: NOW, ...settings }
  await database.write(tx => insertWorkspace(tx.db, workspace))
  return workspace
}

export interface Letter {
  readonly id: string
  readonly to: string
  /** Default now. */
  readonly dueAt?: number
  /** Default in three days. */
  readonly expiresAt?: number
}

/** `m1@x.example`, `m2@x.example`, ... with their local parts as message ids. */
export function letters(destination: string, count: number, prefix = 'm'): Letter[] {
  return Array.from({ length: count }, (_, n) => ({
    id: `${prefix}${n + 1}`,
    to: `${prefix}${n + 1}@${destination}`,
  }))
}

export const CONTENT: MessageContent = {
  id: 'c1',
  workspaceId: 'w1',
  from: { name: 'Shop', address: 'shop@example.com' },
  subject: 'Your order',
  html: '<p>Thanks</p>',
  text: 'Thanks',
  signingDomainId: null,
  trackOpens: true,
  trackClicks: false,
  createdAt: NOW,
}

/** The lane of such a letter to this domain. */
export function laneTo(destination: string): string {
  return laneKey(destination, PRIORITIES.transactional, CONTENT.workspaceId)
}

/** As the queue of a server claims mail that it accepts. */
export type ClaimAccepted = (tx: Tx, entries: readonly NewQueueEntry[]) => readonly NewQueueEntry[]

/**
 * Stores and enqueues, in one transaction, one message per letter; all of them share a content.
 *
 * @returns the entries as they were stored
 */
export async function enqueue(
  database: Database,
  letters: readonly Letter[],
  content: Partial<MessageContent> = {},
  claimAccepted: ClaimAccepted = (_, entries) => entries,
): Promise<readonly NewQueueEntry[]> {
  const shared = { ...CONTENT, id: `content of ${letters[0]?.id ?? 'nothing'}`, ...content }
  return database.write(async tx => {
    await insertContent(tx.db, shared)
    await insertMessages(
      tx.db,
      shared,
      false,
      letters.map(({ id, to }) => ({ id, recipient: to, status: 'sent', reason: null })),
    )
    const entries = claimAccepted(
      tx,
      letters.map(({ id, to, dueAt = NOW, expiresAt = NOW + 3 * DAY_MS }) => ({
        messageId: id,
        workspaceId: shared.workspaceId,
        destination: to.slice(to.indexOf('@') + 1),
        priority: PRIORITIES.transactional,
        nextAttemptAt: dueAt,
        expiresAt,
        enqueuedAt: NOW,
        contentId: shared.id,
        recipient: to,
        campaignId: shared.campaignId,
      })),
    )
    await insertQueueEntries(tx.db, entries)
    return entries
  })
}
