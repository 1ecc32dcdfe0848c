/** SQL for saved blocks. */
import { fold, searchWords } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import { foldedHasWords } from '../../db/folded-words.js'
import { keysetPageOf } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'

interface SavedBlockRow {
  id: string
  workspace_id: string
  name: string
  name_folded: string
  /** JSON. */
  json_structure: string
  created_at: number
  updated_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    saved_blocks: SavedBlockRow
  }
}

export interface SavedBlockHead {
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly createdAt: number
  readonly updatedAt: number
}

export interface SavedBlock extends SavedBlockHead {
  /** As submitted, JSON. */
  readonly structure: string
}

export async function insertSavedBlock(db: Queries, block: SavedBlock): Promise<void> {
  await db
    .insertInto('saved_blocks')
    .values({
      id: block.id,
      workspace_id: block.workspaceId,
      ...contentToRow(block),
      created_at: block.createdAt,
      updated_at: block.updatedAt,
    })
    .execute()
}

export async function updateSavedBlock(db: Queries, block: SavedBlock): Promise<void> {
  await db
    .updateTable('saved_blocks')
    .set({ ...contentToRow(block), updated_at: block.updatedAt })
    .where('id', '=', block.id)
    .execute()
}

export async function removeSavedBlock(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('saved_blocks').where('id', '=', id).execute()
}

export async function countSavedBlocks(db: Queries, workspaceId: string): Promise<number> {
  const { count } = await of(db, workspaceId)
    .select(e => e.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}

/** @returns undefined for an unknown one, or another workspace's */
export async function findSavedBlock(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<SavedBlock | undefined> {
  const row = await of(db, workspaceId).selectAll().where('id', '=', id).executeTakeFirst()
  return row && { ...headFromRow(row), structure: row.json_structure }
}

/** Newest first; every word of the search must occur in the name. */
export function listSavedBlocks(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<SavedBlockHead>> {
  const query = of(db, workspaceId).where(foldedHasWords(searchWords(search ?? '')))
  const heads = query.select(['id', 'workspace_id', 'name', 'created_at', 'updated_at'])
  const order = { columns: ['id'], kinds: ['text'], direction: 'desc' } as const
  return keysetPageOf(query, heads, order, page, headFromRow)
}

function of(db: Queries, workspaceId: string) {
  return db.selectFrom('saved_blocks').where('workspace_id', '=', workspaceId)
}

function contentToRow({ name, structure }: SavedBlock) {
  return { name, name_folded: fold(name), json_structure: structure }
}

function headFromRow(row: Omit<SavedBlockRow, 'name_folded' | 'json_structure'>): SavedBlockHead {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
