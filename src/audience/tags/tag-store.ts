/** SQL of tags. Names are unique in a workspace, ignoring case. */
import type { Generated, Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { fold, searchWords } from '../../core/fold.js'
import { foldedHasWords } from '../../db/folded-words.js'
import { countRows, keysetPage } from '../../db/listing.js'
import type { NamedSeq } from '../pair-store.js'
import { inLists, statement } from '../../db/statement.js'

interface TagRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  name: string
  name_folded: string
  color: string | null
  description: string | null
  contact_count: number
  created_at: number
  updated_at: number
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    tags: TagRow
  }
}

export interface Tag {
  readonly seq: number
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly color: string | null
  readonly description: string | null
  readonly contactCount: number
  readonly createdAt: number
  readonly updatedAt: number
}

type NewTag = Omit<Tag, 'seq' | 'contactCount'>

/** @returns false if the name is taken */
export async function insertTag(db: Queries, tag: NewTag): Promise<boolean> {
  const result = await db
    .insertInto('tags')
    .values({
      id: tag.id,
      workspace_id: tag.workspaceId,
      contact_count: 0,
      created_at: tag.createdAt,
      deleted_at: null,
      ...changingFields(tag),
    })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

function changingFields(tag: NewTag) {
  return {
    name: tag.name,
    name_folded: fold(tag.name),
    color: tag.color,
    description: tag.description,
    updated_at: tag.updatedAt,
  }
}

export async function updateTag(db: Queries, tag: Tag): Promise<void> {
  await db.updateTable('tags').set(changingFields(tag)).where('seq', '=', tag.seq).execute()
}

export async function findTag(
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly name: string },
): Promise<Tag | undefined> {
  const row = await db
    .selectFrom('tags')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where(e => ('id' in by ? e('id', '=', by.id) : e('name_folded', '=', fold(by.name))))
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && fromRow(row)
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('tags').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null)
}

export async function countTags(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

const selectByNames = statement(
  (db, { workspaceId, folded }: { workspaceId: string; folded: readonly string[] }) =>
    db
      .selectFrom('tags')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('name_folded', 'in', folded)
      .where('deleted_at', 'is', null),
)

/** @param folded names as `fold` returns them */
export async function findTagsByName(
  db: Queries,
  workspaceId: string,
  folded: readonly string[],
): Promise<Tag[]> {
  const found: Tag[] = []
  for (const list of inLists(folded))
    found.push(...(await selectByNames(db, { workspaceId, folded: list })).rows.map(fromRow))
  return found
}

export async function listTags(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<Tag>> {
  const words = searchWords(search ?? '')
  const matching = ofWorkspace(db, workspaceId).where(foldedHasWords(words))
  const order = { columns: ['name_folded', 'seq'], kinds: ['text', 'number'], direction: 'asc' } as const
  return keysetPage(matching, order, page, fromRow)
}

/** For resolving names in rules. */
export async function findNamedTags(db: Queries, workspaceId: string): Promise<NamedSeq[]> {
  const rows = await db
    .selectFrom('tags')
    .select(['seq', 'id', 'name_folded', 'contact_count'])
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .execute()
  return rows.map(({ seq, id, name_folded: folded, contact_count: contacts }) => ({
    seq,
    id,
    folded,
    contacts,
  }))
}

/** Hides the tag at once; contacts keep it while it can be restored. */
export async function markTagDeleted(db: Queries, seq: number, at: number): Promise<void> {
  await db.updateTable('tags').set({ deleted_at: at }).where('seq', '=', seq).execute()
}

/** @param since tags deleted earlier are not found */
export async function findDeletedTag(
  db: Queries,
  workspaceId: string,
  id: string,
  since: number,
): Promise<Tag | undefined> {
  const row = await db
    .selectFrom('tags')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', '>', since)
    .executeTakeFirst()
  return row && fromRow(row)
}

/** Its name must be free. */
export async function restoreTag(db: Queries, seq: number): Promise<void> {
  await db.updateTable('tags').set({ deleted_at: null }).where('seq', '=', seq).execute()
}

function fromRow(row: Selectable<TagRow>): Tag {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    color: row.color,
    description: row.description,
    contactCount: row.contact_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
