/**
 * SQL of staged contents: stored before their messages because they are too long for one transaction.
 *
 * A row in `contents_ahead` marks content that is not accepted yet. The accepting transaction deletes the row; the next
 * start deletes what a crash left. Written by `msa/store-long-content.ts`.
 */
import type { Queries } from '../db/database.js'
import { inLists, inPieces } from '../db/statement.js'
import { insertContents, type MessageContent } from './content-store.js'

interface ContentAheadRow {
  content_id: string
}

declare module '../db/tables.js' {
  interface Tables {
    contents_ahead: ContentAheadRow
  }
}

export async function insertStagedContents(db: Queries, contents: readonly MessageContent[]): Promise<void> {
  await insertContents(db, contents)
  for (const piece of inPieces(contents))
    await db
      .insertInto('contents_ahead')
      .values(piece.map(({ id }) => ({ content_id: id })))
      .execute()
}

/** Call it in the transaction that stores their messages. */
export async function acceptStagedContents(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids))
    await db.deleteFrom('contents_ahead').where('content_id', 'in', list).execute()
}

/** Deletes rejected contents; accepted and unknown ids are ignored. */
export async function discardStagedContents(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids)) {
    const ahead = db.selectFrom('contents_ahead').select('content_id').where('content_id', 'in', list)
    await db.deleteFrom('message_parts').where('content_id', 'in', ahead).execute()
    await db.deleteFrom('message_contents').where('id', 'in', ahead).execute()
    await acceptStagedContents(db, list)
  }
}

/** Contents a crash has left. @param before ids from this one on stay @returns oldest first */
export async function listStagedContents(db: Queries, before: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('contents_ahead')
    .select('content_id')
    .where('content_id', '<', before)
    .orderBy('content_id')
    .limit(limit)
    .execute()
  return rows.map(row => row.content_id)
}
