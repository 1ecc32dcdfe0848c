/** SQL of segments: named conditions. */
import type { Generated, Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { countRows, newestFirst } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'
import { fold, searchWords } from '../../core/fold.js'
import { foldedHasWords } from '../../db/folded-words.js'
import type { Conditions } from './conditions.js'

interface SegmentRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  name: string
  name_folded: string
  conditions: string
  created_at: number
  updated_at: number
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    segments: SegmentRow
  }
}

export interface Segment {
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly conditions: Conditions
  readonly createdAt: number
  readonly updatedAt: number
}

export async function insertSegment(db: Queries, segment: Segment): Promise<void> {
  await db
    .insertInto('segments')
    .values({
      id: segment.id,
      workspace_id: segment.workspaceId,
      created_at: segment.createdAt,
      deleted_at: null,
      ...changingFields(segment),
    })
    .execute()
}

function changingFields(segment: Segment) {
  return {
    name: segment.name,
    name_folded: fold(segment.name),
    conditions: JSON.stringify(segment.conditions),
    updated_at: segment.updatedAt,
  }
}

export async function updateSegment(db: Queries, segment: Segment): Promise<void> {
  await db.updateTable('segments').set(changingFields(segment)).where('id', '=', segment.id).execute()
}

export async function findSegment(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Segment | undefined> {
  const row = await ofWorkspace(db, workspaceId).selectAll().where('id', '=', id).executeTakeFirst()
  return row && fromRow(row)
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('segments').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null)
}

/** All of a workspace; their number is limited. */
export async function findAllSegments(db: Queries, workspaceId: string): Promise<Segment[]> {
  const rows = await ofWorkspace(db, workspaceId).selectAll().orderBy('seq').execute()
  return rows.map(fromRow)
}

export async function countSegments(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

/** Newest first. */
export async function listSegments(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<Segment>> {
  const words = searchWords(search ?? '')
  return newestFirst(ofWorkspace(db, workspaceId).where(foldedHasWords(words)), page, fromRow)
}

/** It can be restored until `purgeSegments` deletes it. */
export async function markSegmentDeleted(db: Queries, id: string, at: number): Promise<void> {
  await db.updateTable('segments').set({ deleted_at: at }).where('id', '=', id).execute()
}

/** Permanently. @returns rows deleted, at most `limit` */
export async function purgeSegments(db: Queries, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('segments')
    .where('seq', 'in', query =>
      query
        .selectFrom('segments')
        .select('seq')
        .where('deleted_at', '<', before)
        .orderBy('deleted_at')
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

function fromRow(row: Selectable<SegmentRow>): Segment {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    conditions: JSON.parse(row.conditions) as Conditions,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
