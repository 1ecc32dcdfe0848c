/**
 * Retention of mail in steps: first the contents of finished mail, later the messages themselves.
 *
 * Run by the scheduler. Each step continues where the last one ended, oldest first, and skips what is still queued.
 */
import type { Queries } from '../db/database.js'
import type { RemoveSome, Write } from '../db/retention.js'
import { nextTurn, type Clock } from '../world/time/clock.js'
import {
  clearMergeData,
  deleteMessages,
  deletePartsOf,
  clearContents,
  listOldMessages,
  listUnprunedContents,
  checkMessagesOf,
  type ContentPlace,
  type OldContent,
} from './retention-store.js'

/** One query each. */
const CONTENTS_AT_ONCE = 64
/** Messages of one content checked before yielding. */
const MESSAGES_AT_ONCE = 500
/** 256 KB each. */
const PARTS_AT_ONCE = 16

/** @param before prunes contents accepted, and whose last message ended, before this moment */
export function contentPruning(reader: Queries, clock: Clock, before: number): RemoveSome {
  let place: ContentPlace = { createdAt: 0, id: '' }
  return async (limit, write) => {
    const contents = await listUnprunedContents(reader, before, place, Math.min(limit, CONTENTS_AT_ONCE))
    place = contents.at(-1) ?? place
    const done: OldContent[] = []
    for (const content of contents) if (await isDone(reader, content.id, before)) done.push(content)
    for (const { id, mayHaveParts, mayHaveData } of done) {
      if (mayHaveParts) await deleteParts(write, id)
      if (mayHaveData) await clearData(write, id)
    }
    const ids = done.map(({ id }) => id)
    const removed = ids.length === 0 ? 0 : await write(tx => clearContents(tx.db, ids, clock.now()))
    return { hasMore: contents.length > 0, removed }
  }
}

/** A content without messages may be about to get them, so it is not done. */
async function isDone(reader: Queries, contentId: string, before: number): Promise<boolean> {
  let after = ''
  for (;;) {
    const seen = await checkMessagesOf(reader, contentId, before, after, MESSAGES_AT_ONCE)
    if (!seen.areDone || (seen.count === 0 && after === '')) return false
    if (seen.count < MESSAGES_AT_ONCE) return true
    after = seen.last
    await nextTurn()
  }
}

/** Runs before the content is marked pruned, so the rest is found again after a crash. */
async function deleteParts(write: Write, contentId: string): Promise<void> {
  while ((await write(tx => deletePartsOf(tx.db, contentId, PARTS_AT_ONCE))) === PARTS_AT_ONCE)
    await nextTurn()
}

/** Runs before the content is marked pruned, like `deleteParts`. */
async function clearData(write: Write, contentId: string): Promise<void> {
  let after = ''
  for (;;) {
    const seen = await write(tx => clearMergeData(tx.db, contentId, after, MESSAGES_AT_ONCE))
    if (seen.length < MESSAGES_AT_ONCE) return
    after = seen.at(-1) ?? after
    await nextTurn()
  }
}

/** @param before deletes messages accepted, and with no event since, before this moment */
export function messagePruning(reader: Queries, before: number): RemoveSome {
  let after = ''
  return async (limit, write) => {
    const messages = await listOldMessages(reader, before, after, limit)
    after = messages.at(-1)?.id ?? after
    const done = messages.filter(({ isBusy }) => !isBusy)
    const removed = done.length === 0 ? 0 : await write(tx => deleteMessages(tx.db, done))
    return { hasMore: messages.length > 0, removed }
  }
}
