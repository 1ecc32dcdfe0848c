/** SQL of lists: static ones with explicit members, and dynamic ones defined by conditions. */
import { fold } from '../../core/fold.js'
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { countRows, newestFirst } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { NamedSeq } from '../pair-store.js'
import type { Conditions } from '../segments/conditions.js'

export type ListType = 'static' | 'dynamic'

interface ListRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  name: string
  description: string | null
  type: ListType
  conditions: string | null
  is_public: Flag
  double_opt_in: Flag
  member_count: number
  created_at: number
  updated_at: number
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    lists: ListRow
  }
}

export interface List {
  readonly seq: number
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly description: string | null
  readonly type: ListType
  /** Null for a static list. */
  readonly conditions: Conditions | null
  /** Shown on the preferences page. */
  readonly isPublic: boolean
  /** Subscriptions through forms must be confirmed by email. */
  readonly doubleOptIn: boolean
  /** Static lists only. */
  readonly memberCount: number
  readonly createdAt: number
  readonly updatedAt: number
}

export async function insertList(db: Queries, list: Omit<List, 'seq' | 'memberCount'>): Promise<void> {
  await db
    .insertInto('lists')
    .values({
      id: list.id,
      workspace_id: list.workspaceId,
      type: list.type,
      member_count: 0,
      created_at: list.createdAt,
      deleted_at: null,
      ...changingFields(list),
    })
    .execute()
}

function changingFields(list: Omit<List, 'seq' | 'memberCount'>) {
  return {
    name: list.name,
    description: list.description,
    conditions: list.conditions && JSON.stringify(list.conditions),
    is_public: flag(list.isPublic),
    double_opt_in: flag(list.doubleOptIn),
    updated_at: list.updatedAt,
  }
}

export async function updateList(db: Queries, list: List): Promise<void> {
  await db.updateTable('lists').set(changingFields(list)).where('seq', '=', list.seq).execute()
}

const selectList = statement((db, { workspaceId, id }: { workspaceId: string; id: string }) =>
  db
    .selectFrom('lists')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null),
)

export async function findList(db: Queries, workspaceId: string, id: string): Promise<List | undefined> {
  const [row] = (await selectList(db, { workspaceId, id })).rows
  return row && fromRow(row)
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('lists').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null)
}

export async function countLists(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

/** Newest first. */
export async function listLists(
  db: Queries,
  workspaceId: string,
  filter: { readonly type?: ListType },
  page: Page,
): Promise<Listing<List>> {
  let matching = ofWorkspace(db, workspaceId)
  if (filter.type !== undefined) matching = matching.where('type', '=', filter.type)
  return newestFirst(matching, page, fromRow)
}

/** Maximum number shown on a preferences page. */
const MAX_PUBLIC = 100

/** Lists shown on preferences pages, by name. */
export async function listPublicLists(db: Queries, workspaceId: string): Promise<List[]> {
  const rows = await db
    .selectFrom('lists')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('is_public', '=', 1)
    .where('type', '=', 'static')
    .where('deleted_at', 'is', null)
    .orderBy('name')
    .orderBy('seq')
    .limit(MAX_PUBLIC)
    .execute()
  return rows.map(fromRow)
}

/** For resolving names in rules. */
export async function findNamedLists(db: Queries, workspaceId: string): Promise<NamedSeq[]> {
  const rows = await db
    .selectFrom('lists')
    .select(['seq', 'id', 'name', 'member_count', 'conditions'])
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .execute()
  return rows.map(({ seq, id, name, member_count: contacts, conditions }) => ({
    seq,
    id,
    folded: fold(name),
    contacts,
    ...(conditions === null ? {} : { conditions: JSON.parse(conditions) as Conditions }),
  }))
}

export async function findDynamicLists(db: Queries, workspaceId: string): Promise<List[]> {
  const rows = await ofWorkspace(db, workspaceId).selectAll().where('type', '=', 'dynamic').execute()
  return rows.map(fromRow)
}

/** Whether another list has the same name. */
export async function isNameShared(db: Queries, { workspaceId, seq, name }: List): Promise<boolean> {
  const lists = await findNamedLists(db, workspaceId)
  return lists.some(one => one.seq !== seq && one.folded === fold(name))
}

export type NamedList = Pick<List, 'seq' | 'id' | 'name'>

/** Oldest first. */
export async function findStaticLists(db: Queries, workspaceId: string): Promise<NamedList[]> {
  return ofWorkspace(db, workspaceId)
    .select(['seq', 'id', 'name'])
    .where('type', '=', 'static')
    .orderBy('seq')
    .execute()
}

/** Hides the list at once; it keeps its members while it can be restored. */
export async function markListDeleted(db: Queries, seq: number, at: number): Promise<void> {
  await db.updateTable('lists').set({ deleted_at: at }).where('seq', '=', seq).execute()
}

/** Checked by writes that change members. @returns false if the list was deleted */
export async function isListThere(db: Queries, seq: number): Promise<boolean> {
  const { rows } = await sql`select 1 from lists where seq = ${seq} and deleted_at is null`.execute(db)
  return rows.length > 0
}

function fromRow(row: Selectable<ListRow>): List {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    description: row.description,
    type: row.type,
    conditions: row.conditions === null ? null : (JSON.parse(row.conditions) as Conditions),
    isPublic: row.is_public === 1,
    doubleOptIn: row.double_opt_in === 1,
    memberCount: row.member_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
