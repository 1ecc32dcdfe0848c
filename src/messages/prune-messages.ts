/**
 * Retention of mail, step by step: first the text of what is done with, later the messages themselves.
 *
 * Run by the scheduler's jobs. Each step goes on where the one before it ended, oldest first; what is still to be sent is
 * passed by. Fails: as the database does.
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

/** Each is a query of its own. */
const CONTENTS_AT_ONCE = 64
/** Messages of one content looked at in one turn. */
const MESSAGES_AT_ONCE = 500
/** Of 256 KB. */
const PARTS_AT_ONCE = 16

/** @param before contents that were accepted, and whose last message ended, before this moment */
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

/** A content without messages is not: whoever stored it may be about to make them. */
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

/** Before the content is marked: after a crash in the middle the rest is found again. */
async function deleteParts(write: Write, contentId: string): Promise<void> {
  while ((await write(tx => deletePartsOf(tx.db, contentId, PARTS_AT_ONCE))) === PARTS_AT_ONCE)
    await nextTurn()
}

/** Before the content is marked, as its parts are. */
async function clearData(write: Write, contentId: string): Promise<void> {
  let after = ''
  for (;;) {
    const seen = await write(tx => clearMergeData(tx.db, contentId, after, MESSAGES_AT_ONCE))
    if (seen.length < MESSAGES_AT_ONCE) return
    after = seen.at(-1) ?? after
    await nextTurn()
  }
}

/** @param before messages that were accepted, and to which nothing happened since, before this moment */
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
