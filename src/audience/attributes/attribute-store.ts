/** SQL of declared attributes. Names are unique in a workspace; case counts, as in contacts. */
import type { Selectable } from 'kysely'
import type { Actor } from '../../core/actor.js'
import { fold, searchWords } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import { foldedHasWords } from '../../db/folded-words.js'
import { countRows, keysetPage } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { AttributeType, DeclaredTypes } from './declared-values.js'

interface AttributeRow {
  id: string
  workspace_id: string
  name: string
  name_folded: string
  label: string | null
  type: AttributeType
  created_by: Actor['type']
  created_by_id: string | null
  created_at: number
  updated_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    attributes: AttributeRow
  }
}

/** A declared attribute. */
export interface Attribute {
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly label: string | null
  readonly type: AttributeType
  readonly createdBy: Pick<Actor, 'type' | 'id'>
  readonly createdAt: number
  readonly updatedAt: number
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('attributes').where('workspace_id', '=', workspaceId)
}

/** @returns false if the name is declared */
export async function insertAttribute(db: Queries, attribute: Attribute): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('attributes')
    .values({
      id: attribute.id,
      workspace_id: attribute.workspaceId,
      name: attribute.name,
      name_folded: fold(attribute.name),
      label: attribute.label,
      type: attribute.type,
      created_by: attribute.createdBy.type,
      created_by_id: attribute.createdBy.id ?? null,
      created_at: attribute.createdAt,
      updated_at: attribute.updatedAt,
    })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

export async function updateAttribute(
  db: Queries,
  { id, label, type, updatedAt }: Pick<Attribute, 'id' | 'label' | 'type' | 'updatedAt'>,
): Promise<void> {
  await db
    .updateTable('attributes')
    .set({ label, type, updated_at: updatedAt })
    .where('id', '=', id)
    .execute()
}

export async function deleteAttribute(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('attributes').where('id', '=', id).execute()
}

export async function findAttribute(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Attribute | undefined> {
  const row = await ofWorkspace(db, workspaceId).selectAll().where('id', '=', id).executeTakeFirst()
  return row && fromRow(row)
}

export function countAttributes(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

const IN_ORDER = { columns: ['name_folded', 'id'], kinds: ['text', 'text'], direction: 'asc' } as const

export function listAttributes(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<Attribute>> {
  const matching = ofWorkspace(db, workspaceId).where(foldedHasWords(searchWords(search ?? '')))
  return keysetPage(matching, IN_ORDER, page, fromRow)
}

const selectTypes = statement((db, { workspaceId }: { workspaceId: string }) =>
  db.selectFrom('attributes').select(['name', 'type']).where('workspace_id', '=', workspaceId),
)

/** All of a workspace; their number is limited. */
export async function findDeclaredTypes(db: Queries, workspaceId: string): Promise<DeclaredTypes> {
  const { rows } = await selectTypes(db, { workspaceId })
  return new Map(rows.map(({ name, type }) => [name, type]))
}

function fromRow(row: Selectable<AttributeRow>): Attribute {
  const { created_by: type, created_by_id: id } = row
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    label: row.label,
    type: row.type,
    createdBy: id === null ? { type } : { type, id },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
