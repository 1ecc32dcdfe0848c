/**
 * SQL for templates and their versions. The newest version holds the current content; the template's own row holds what lists show and
 * search.
 *
 * Deleted templates and their versions are kept, since mail refers to them.
 */
import { sql, type Insertable } from 'kysely'
import { fold, searchWords } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import { keysetPageOf, newestFirst } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import { foldedHasWords, likeText } from '../../db/folded-words.js'
import type { Listing, Page } from '../../http/pagination.js'

interface TemplateRow {
  id: string
  workspace_id: string
  name: string
  name_folded: string
  description: string | null
  version: number
  created_at: number
  updated_at: number
  deleted_at: number | null
}

interface TemplateVersionRow {
  template_id: string
  version: number
  name: string
  description: string | null
  html: string
  /** JSON. */
  json_structure: string | null
  created_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    templates: TemplateRow
    template_versions: TemplateVersionRow
  }
}

export interface TemplateHead {
  readonly id: string
  readonly workspaceId: string
  readonly name: string
  readonly description: string | null
  /** From 1. */
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
}

/** Fields that an update changes and a version keeps. */
export interface TemplateContent {
  readonly name: string
  readonly description: string | null
  readonly html: string
  /** As submitted, JSON. */
  readonly structure: string | null
}

export interface Template extends TemplateHead, TemplateContent {}

export interface TemplateVersion extends TemplateContent {
  readonly version: number
  readonly createdAt: number
}

export type VersionHead = Omit<TemplateVersion, 'html' | 'structure'>

/** Also inserts its first version. */
export async function insertTemplate(db: Queries, template: Template): Promise<void> {
  await db
    .insertInto('templates')
    .values({
      id: template.id,
      workspace_id: template.workspaceId,
      ...headToRow(template),
      version: template.version,
      created_at: template.createdAt,
      updated_at: template.updatedAt,
      deleted_at: null,
    })
    .execute()
  await db.insertInto('template_versions').values(versionToRow(template)).execute()
}

export async function updateTemplate(db: Queries, template: Template): Promise<void> {
  await db
    .updateTable('templates')
    .set({ ...headToRow(template), version: template.version, updated_at: template.updatedAt })
    .where('id', '=', template.id)
    .execute()
  await db.insertInto('template_versions').values(versionToRow(template)).execute()
}

/** @returns undefined for an unknown or deleted one, or another workspace's */
export async function findTemplate(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Template | undefined> {
  const row = await live(db, workspaceId)
    .innerJoin('template_versions', join =>
      join
        .onRef('template_versions.template_id', '=', 'templates.id')
        .onRef('template_versions.version', '=', 'templates.version'),
    )
    .selectAll('templates')
    .select(['html', 'json_structure'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { ...headFromRow(row), html: row.html, structure: row.json_structure }
}

const selectHtml = statement((db, { workspaceId, id }: { workspaceId: string; id: string }) =>
  db
    .selectFrom('templates')
    .innerJoin('template_versions', join =>
      join
        .onRef('template_versions.template_id', '=', 'templates.id')
        .onRef('template_versions.version', '=', 'templates.version'),
    )
    .select('html')
    .where('templates.id', '=', id)
    .where('templates.workspace_id', '=', workspaceId)
    .where('templates.deleted_at', 'is', null),
)

/** Used when sending. @returns undefined for an unknown or deleted template, or another workspace's */
export async function findTemplateHtml(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<string | undefined> {
  const [row] = (await selectHtml(db, { workspaceId, id })).rows
  return row?.html
}

/** Templates whose current html contains one of the texts, at most `limit`. Reads the html of all. */
export async function findTemplatesWith(
  db: Queries,
  workspaceId: string,
  texts: readonly string[],
  limit: number,
): Promise<Pick<TemplateHead, 'id' | 'name'>[]> {
  return live(db, workspaceId)
    .innerJoin('template_versions', join =>
      join
        .onRef('template_versions.template_id', '=', 'templates.id')
        .onRef('template_versions.version', '=', 'templates.version'),
    )
    .select(['templates.id', 'templates.name'])
    .where(e =>
      e.or(texts.map(text => sql<boolean>`template_versions.html like ${`%${likeText(text)}%`} escape '!'`)),
    )
    .orderBy('templates.id')
    .limit(limit)
    .execute()
}

/** Newest first; every word of the search must occur in the name. */
export async function listTemplates(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<TemplateHead>> {
  const query = live(db, workspaceId).where(foldedHasWords(searchWords(search ?? '')))
  return newestFirst(query, page, headFromRow, 'id')
}

export async function markTemplateDeleted(
  db: Queries,
  workspaceId: string,
  id: string,
  now: number,
): Promise<boolean> {
  const result = await db
    .updateTable('templates')
    .set({ deleted_at: now })
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** @returns whether it was deleted */
export async function markTemplateLive(db: Queries, workspaceId: string, id: string): Promise<boolean> {
  const result = await db
    .updateTable('templates')
    .set({ deleted_at: null })
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is not', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function listVersions(
  db: Queries,
  templateId: string,
  page: Page,
): Promise<Listing<VersionHead>> {
  const query = db.selectFrom('template_versions').where('template_id', '=', templateId)
  const heads = query.select(['version', 'name', 'description', 'created_at'])
  const order = { columns: ['version'], kinds: ['number'], direction: 'desc' } as const
  return keysetPageOf(query, heads, order, page, ({ created_at: createdAt, ...row }) => ({
    ...row,
    createdAt,
  }))
}

export async function findVersion(
  db: Queries,
  templateId: string,
  version: number,
): Promise<TemplateVersion | undefined> {
  const row = await db
    .selectFrom('template_versions')
    .selectAll()
    .where('template_id', '=', templateId)
    .where('version', '=', version)
    .executeTakeFirst()
  if (!row) return undefined
  const { name, description, html, json_structure: structure, created_at: createdAt } = row
  return { name, description, html, structure, version, createdAt }
}

function live(db: Queries, workspaceId: string) {
  return db
    .selectFrom('templates')
    .where('templates.workspace_id', '=', workspaceId)
    .where('templates.deleted_at', 'is', null)
}

function headToRow({ name, description }: TemplateContent) {
  return { name, name_folded: fold(name), description }
}

function headFromRow(row: TemplateRow): TemplateHead {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    description: row.description,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

function versionToRow(template: Template): Insertable<TemplateVersionRow> {
  const { id, version, name, description, html, structure, updatedAt } = template
  return {
    template_id: id,
    version,
    name,
    description,
    html,
    json_structure: structure,
    created_at: updatedAt,
  }
}
