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
  const row = await db
    .selectFrom('segments')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && fromRow(row)
}

/** All of a workspace; their number is limited. */
export async function findAllSegments(db: Queries, workspaceId: string): Promise<Segment[]> {
  const rows = await db
    .selectFrom('segments')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('seq')
    .execute()
  return rows.map(fromRow)
}

export async function countSegments(db: Queries, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('segments').where('workspace_id', '=', workspaceId))
}

/** Newest first. */
export async function listSegments(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<Segment>> {
  const words = searchWords(search ?? '')
  const matching = db
    .selectFrom('segments')
    .where('workspace_id', '=', workspaceId)
    .where(foldedHasWords(words))
  return newestFirst(matching, page, fromRow)
}

export async function deleteSegment(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('segments').where('id', '=', id).execute()
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
