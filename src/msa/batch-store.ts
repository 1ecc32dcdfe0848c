/** SQL for batches. Message contents carry the batch's id and their index in it. */
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'
import { deleteOldest } from '../db/retention.js'
import { flag, type Flag } from '../db/tables.js'
import type { ErrorCode } from '../core/errors.js'
import type { Page } from '../http/pagination.js'

interface EmailBatchRow {
  id: string
  workspace_id: string
  key_id: string
  is_sandbox: Flag
  total: number
  sent: number
  skipped: number
  failed: number
  /** JSON `BatchError[]`. */
  errors: string
  created_at: number
  released_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    email_batches: EmailBatchRow
  }
}

/** Why a message of a batch was not accepted. */
export interface BatchError {
  /** From 0. */
  readonly index: number
  readonly to: string
  readonly code: ErrorCode
  readonly message: string
}

export interface Batch {
  readonly id: string
  readonly workspaceId: string
  readonly keyId: string
  readonly isSandbox: boolean
  readonly total: number
  /** Of the messages asked for, not of copies. */
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  readonly errors: readonly BatchError[]
  readonly createdAt: number
  /** When its last message falls due, ms since epoch UTC. */
  readonly releasedAt: number
}

export async function insertBatch(db: Queries, batch: Batch): Promise<void> {
  await db
    .insertInto('email_batches')
    .values({
      id: batch.id,
      workspace_id: batch.workspaceId,
      key_id: batch.keyId,
      is_sandbox: flag(batch.isSandbox),
      total: batch.total,
      sent: batch.sent,
      skipped: batch.skipped,
      failed: batch.failed,
      errors: JSON.stringify(batch.errors),
      created_at: batch.createdAt,
      released_at: batch.releasedAt,
    })
    .execute()
}

export async function findBatch(db: Queries, workspaceId: string, id: string): Promise<Batch | undefined> {
  const row = await db
    .selectFrom('email_batches')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return (
    row && {
      id: row.id,
      workspaceId: row.workspace_id,
      keyId: row.key_id,
      isSandbox: row.is_sandbox === 1,
      total: row.total,
      sent: row.sent,
      skipped: row.skipped,
      failed: row.failed,
      errors: JSON.parse(row.errors) as BatchError[],
      createdAt: row.created_at,
      releasedAt: row.released_at,
    }
  )
}

/** When the last message of this key's live batches is due; undefined if it has none. */
export async function findLastRelease(db: Queries, keyId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('email_batches')
    .select('released_at')
    .where('key_id', '=', keyId)
    .where('is_sandbox', '=', 0)
    .orderBy('released_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.released_at
}

export interface BatchResult {
  readonly index: number
  readonly to: string
  readonly messageId: string
  readonly reason: string | null
}

/** Accepted messages with an index within the page. The message to `to` has its content's id, so the join leaves out copies. */
export async function listResults(db: Queries, batchId: string, page: Page): Promise<BatchResult[]> {
  const rows = await db
    .selectFrom('message_contents as c')
    .innerJoin('messages as m', 'm.id', 'c.id')
    .select(['c.batch_index', 'm.recipient', 'm.id', 'm.reason'])
    .where('c.batch_id', '=', batchId)
    .where('c.batch_index', '>=', page.offset)
    .where('c.batch_index', '<', page.offset + page.limit)
    .orderBy('c.batch_index')
    .execute()
  return rows.map(row => ({
    index: must(row.batch_index, 'batch_index'),
    to: row.recipient,
    messageId: row.id,
    reason: row.reason,
  }))
}

/** Deletes batches whose last message was due before this time. @returns how many, at most `limit` */
export function deleteBatchesBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'email_batches', key: 'id', time: 'released_at' }, before, limit)
}
