/**
 * SQL of set-aside events: events that a consumer repeatedly failed to process, kept in full until an operator retries or drops them.
 *
 * Setting one aside lets its consumer and retention move on. Managed with `postroad event`.
 */
import type { Queries } from '../db/database.js'
import { countRows, keysetPage, type Listed, type PageOf } from '../db/listing.js'
import { flag, type Flag } from '../db/tables.js'
import type { EventKind } from './event.js'
import type { StoredEvent } from './store.js'

interface SetAsideEventRow {
  consumer: string
  seq: number
  /** JSON. */
  event: string
  error: string
  set_aside_at: number
  is_retry_wanted: Flag
}

declare module '../db/tables.js' {
  interface Tables {
    set_aside_events: SetAsideEventRow
  }
}

export interface SetAsideEvent {
  readonly consumer: string
  readonly event: StoredEvent<EventKind>
  /** The consumer's last error. */
  readonly error: string
  /** Ms since epoch UTC. */
  readonly setAsideAt: number
}

export type SetAsideSelection = { readonly consumer: string; readonly seq: number } | { readonly isAll: true }

const RETRY_BATCH_SIZE = 100
/** Errors may quote a whole message. */
const MAX_ERROR_LENGTH = 2_000

/** Updates an existing entry and clears its retry request. */
export async function setAside(db: Queries, one: SetAsideEvent): Promise<void> {
  const values = {
    error: one.error.slice(0, MAX_ERROR_LENGTH),
    set_aside_at: one.setAsideAt,
    is_retry_wanted: flag(false),
  }
  await db
    .insertInto('set_aside_events')
    .values({
      consumer: one.consumer,
      seq: one.event.seq,
      event: textOf(one.event),
      ...values,
    })
    .onConflict(conflict => conflict.columns(['consumer', 'seq']).doUpdateSet(values))
    .execute()
}

/** Oldest first. */
export function listSetAside(db: Queries, page: PageOf): Promise<Listed<SetAsideEvent>> {
  const order = { columns: ['seq', 'consumer'], kinds: ['number', 'text'], direction: 'asc' } as const
  return keysetPage(db.selectFrom('set_aside_events'), order, page, fromRow)
}

export function countSetAside(db: Queries): Promise<number> {
  return countRows(db.selectFrom('set_aside_events'))
}

export async function listRetryRequested(db: Queries): Promise<SetAsideEvent[]> {
  const rows = await db
    .selectFrom('set_aside_events')
    .selectAll()
    .where('is_retry_wanted', '=', 1)
    .orderBy('seq')
    .limit(RETRY_BATCH_SIZE)
    .execute()
  return rows.map(fromRow)
}

/** @returns how many */
export async function requestRetry(db: Queries, selection: SetAsideSelection): Promise<number> {
  let update = db.updateTable('set_aside_events').set({ is_retry_wanted: flag(true) })
  if ('seq' in selection)
    update = update.where('consumer', '=', selection.consumer).where('seq', '=', selection.seq)
  return Number((await update.executeTakeFirst()).numUpdatedRows)
}

/** @returns how many */
export async function dropSetAside(db: Queries, selection: SetAsideSelection): Promise<number> {
  let deletion = db.deleteFrom('set_aside_events')
  if ('seq' in selection)
    deletion = deletion.where('consumer', '=', selection.consumer).where('seq', '=', selection.seq)
  return Number((await deletion.executeTakeFirst()).numDeletedRows)
}

/** A damaged payload cannot be kept; everything else is. */
function textOf(event: StoredEvent<EventKind>): string {
  try {
    return JSON.stringify(event)
  } catch {
    const { seq, kind, workspaceId, messageId, isSandbox, occurredAt } = event
    return JSON.stringify({ seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload: null })
  }
}

function fromRow(row: SetAsideEventRow): SetAsideEvent {
  return {
    consumer: row.consumer,
    event: JSON.parse(row.event) as StoredEvent<EventKind>,
    error: row.error,
    setAsideAt: row.set_aside_at,
  }
}
