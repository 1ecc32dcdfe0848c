/**
 * The scheduled mail of an API key: how much still waits, and its cancellation when the key is revoked.
 *
 * Cancels in pieces of one transaction each; mail that becomes due meanwhile is sent.
 */
import type { Database, Tx } from '../db/database.js'
import { findMessages } from '../messages/message-store.js'
import { cancelScheduled } from './rest/email-routes.js'
import { countScheduledOfKey, listScheduledOfKey, type KeyOfMail } from './scheduled-of-key-store.js'

export interface ScheduledOfKey {
  count(key: KeyOfMail): Promise<number>
  /** @returns how many messages were cancelled */
  cancel(key: KeyOfMail): Promise<number>
}

const AT_ONCE = 200

export function scheduledOfKey(database: Database): ScheduledOfKey {
  return {
    count: key => countScheduledOfKey(database.slowReader, key),
    async cancel(key) {
      let cancelled = 0
      for (;;) {
        const piece = await database.write(tx => cancelSome(tx, key), { isLong: true })
        if (piece === 0) return cancelled
        cancelled += piece
      }
    },
  }
}

async function cancelSome(tx: Tx, key: KeyOfMail): Promise<number> {
  const found = await listScheduledOfKey(tx.db, key, AT_ONCE)
  const messages = await findMessages(
    tx.db,
    found.map(({ id }) => id),
  )
  for (const [contentId, scheduledAt] of new Map(found.map(one => [one.contentId, one.scheduledAt])))
    await cancelScheduled(
      tx,
      messages.filter(message => message.contentId === contentId),
      scheduledAt,
    )
  return messages.length
}
