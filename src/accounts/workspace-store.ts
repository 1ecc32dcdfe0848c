/**
 * SQL of workspaces: the tenants of a server, with their settings and sandboxes.
 *
 * Each workspace has a sandbox with its own id, which owns the data of sandbox keys as if it were another workspace. The sandbox shares
 * the live workspace's settings, is removed and restored with it, and is never listed.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import { uuidOf } from '../core/ids.js'
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'
import { keysetPage, type Listed, type PageOf } from '../db/listing.js'
import { statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { Sender } from '../http/public/public-route.js'

interface WorkspaceRow {
  id: string
  name: string
  default_from_email: string | null
  default_from_name: string | null
  company_name: string | null
  company_address: string | null
  currency: string
  timezone: string
  attribution: Flag
  hourly_limit: number
  daily_limit: number
  allow_private_webhooks: Flag
  is_marketing: Flag
  brand_color: string | null
  track_opens: Flag
  track_clicks: Flag
  utm_source: string | null
  utm_medium: string | null
  utm_campaign: string | null
  created_at: number
  deleted_at: number | null
  removed_by: RemovedBy | null
  /** Of the setup checklist (`appliance/system/setup-store.ts`). */
  setup_dismissed_at: Generated<number | null>
}

interface SandboxRow {
  /** Owner id of the sandbox's data. */
  id: string
  workspace_id: string
}

declare module '../db/tables.js' {
  interface Tables {
    workspaces: WorkspaceRow
    sandboxes: SandboxRow
  }
}

/** Which operators: of all workspaces, or only of this one. */
export const REMOVED_BY = ['appliance', 'workspace'] as const
export type RemovedBy = (typeof REMOVED_BY)[number]

export interface WorkspaceSettings {
  readonly name: string
  /** From address of mail that gives none. */
  readonly defaultFromEmail: string | null
  readonly defaultFromName: string | null
  /** Shown in the compliance footer. */
  readonly companyName: string | null
  readonly companyAddress: string | null
  /** ISO 4217. */
  readonly currency: string
  /** IANA name. */
  readonly timezone: string
  /** Whether the footer includes the attribution line. */
  readonly attribution: boolean
  /** Recipients per clock hour, and per day of the time zone; 0 = unlimited. */
  readonly hourlyLimit: number
  readonly dailyLimit: number
  readonly allowPrivateWebhooks: boolean
  /** Treats all its mail as marketing, including single sends and relayed mail. */
  readonly isMarketing: boolean
  /** Colour of its public pages, `#rrggbb` in lower case; null: the default. */
  readonly brandColor: string | null
  /** Default for mail that does not say. */
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  /** Added to tracked links; null: not added. */
  readonly utmSource: string | null
  readonly utmMedium: string | null
  readonly utmCampaign: string | null
}

export interface Workspace extends WorkspaceSettings {
  readonly id: string
  readonly createdAt: number
}

/** The workspace a key acts in: a live one, or a sandbox with the live one's settings. */
export interface ActingWorkspace extends Workspace {
  /** Equals `id` for a live workspace. */
  readonly liveId: string
}

/** Sandbox id of a new workspace; for existing ones read it from the database. */
export function sandboxIdOf(workspaceId: string): string {
  return uuidOf(`sandbox of ${workspaceId}`)
}

export const NEW_WORKSPACE: Omit<WorkspaceSettings, 'name'> = {
  defaultFromEmail: null,
  defaultFromName: null,
  companyName: null,
  companyAddress: null,
  currency: 'USD',
  timezone: 'UTC',
  attribution: true,
  hourlyLimit: 1_000,
  dailyLimit: 10_000,
  allowPrivateWebhooks: false,
  isMarketing: false,
  brandColor: null,
  trackOpens: true,
  trackClicks: true,
  utmSource: null,
  utmMedium: null,
  utmCampaign: null,
}

export async function insertWorkspace(db: Queries, workspace: Workspace): Promise<void> {
  await db
    .insertInto('workspaces')
    .values({
      id: workspace.id,
      ...settingsToRow(workspace),
      created_at: workspace.createdAt,
      deleted_at: null,
      removed_by: null,
    })
    .execute()
  await db
    .insertInto('sandboxes')
    .values({ id: sandboxIdOf(workspace.id), workspace_id: workspace.id })
    .execute()
}

const selectById = statement((db, { id }: { id: string }) =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).where('deleted_at', 'is', null),
)

/** Live workspaces only. @returns undefined if it is unknown, removed or a sandbox */
export async function findWorkspace(db: Queries, id: string): Promise<Workspace | undefined> {
  const [row] = (await selectById(db, { id })).rows
  return row && fromRow(row)
}

/** Live workspaces only; compares case-insensitively. */
export async function findWorkspaceByName(db: Queries, name: string): Promise<Workspace | undefined> {
  const row = await db
    .selectFrom('workspaces')
    .selectAll()
    .where(sql<boolean>`lower(name) = lower(${name})`)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && fromRow(row)
}

const selectOwner = statement((db, { id }: { id: string }) => ownerOf(db, id))

const selectActing = statement((db, { id }: { id: string }) =>
  ownerOf(db, id).where('deleted_at', 'is', null),
)

/** The workspace, or that of the sandbox. */
function ownerOf(db: Queries, id: string) {
  return db
    .selectFrom('workspaces')
    .selectAll()
    .where('id', '=', query =>
      query.fn.coalesce(
        query.selectFrom('sandboxes').select('workspace_id').where('sandboxes.id', '=', id),
        query.val(id),
      ),
    )
}

/** @param id `workspaceId` of a principal @returns undefined if the workspace was removed */
export async function findActingWorkspace(db: Queries, id: string): Promise<ActingWorkspace | undefined> {
  const [row] = (await selectActing(db, { id })).rows
  return row && actingFromRow(row, id)
}

export async function listWorkspaces(db: Queries): Promise<Workspace[]> {
  const rows = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .execute()
  return rows.map(fromRow)
}

export interface WorkspaceFilter {
  /** Undefined: all. */
  readonly ids: readonly string[] | undefined
  /** Removed workspaces that can be restored at `now`, instead of live ones. */
  readonly isRemoved: boolean
  readonly now: number
}

/** Oldest first. */
export async function listWorkspacePage(
  db: Queries,
  { ids, isRemoved, now }: WorkspaceFilter,
  page: PageOf,
): Promise<Listed<Workspace & { readonly removedAt: number | null; readonly removedBy: RemovedBy }>> {
  const matching = db
    .selectFrom('workspaces')
    .$if(ids !== undefined, query => query.where('id', 'in', ids ?? []))
    .$if(isRemoved, query => query.where('deleted_at', '>', now - RESTORABLE_MS))
    .$if(!isRemoved, query => query.where('deleted_at', 'is', null))
  const order = { columns: ['id'], kinds: ['text'], direction: 'asc' } as const
  return keysetPage(matching, order, page, row => ({
    ...fromRow(row),
    removedAt: row.deleted_at,
    removedBy: removedByOf(row),
  }))
}

/** Owners of data: live and removed workspaces, and their sandboxes. */
export async function listWorkspaceIds(db: Queries): Promise<string[]> {
  const workspaces = await db.selectFrom('workspaces').select('id').execute()
  const sandboxes = await db.selectFrom('sandboxes').select('id').execute()
  return [...workspaces, ...sandboxes].map(({ id }) => id)
}

/** @returns workspace ids by the id of their sandbox, of those among the given ids */
export async function listSandboxes(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('sandboxes').selectAll().where('id', 'in', ids).execute()
  return new Map(rows.map(row => [row.id, row.workspace_id]))
}

export async function updateWorkspace(db: Queries, workspace: Workspace): Promise<void> {
  await db.updateTable('workspaces').set(settingsToRow(workspace)).where('id', '=', workspace.id).execute()
}

/** Its keys then get workspace_not_found. @returns whether it existed */
export async function removeWorkspace(
  db: Queries,
  id: string,
  now: number,
  removedBy: RemovedBy,
): Promise<boolean> {
  const result = await db
    .updateTable('workspaces')
    .set({ deleted_at: now, removed_by: removedBy })
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** How long a removed workspace can be restored. */
export const RESTORABLE_MS = 30 * 86_400_000

export interface RemovedWorkspace extends Workspace {
  readonly removedAt: number
  /** Of a workspace removed before that was noted, the appliance. */
  readonly removedBy: RemovedBy
}

/** Workspaces that can be restored, most recently removed first. */
export async function listRemovedWorkspaces(db: Queries, now: number): Promise<RemovedWorkspace[]> {
  const rows = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('deleted_at', '>', now - RESTORABLE_MS)
    .orderBy('deleted_at', 'desc')
    .execute()
  return rows.map(row => ({
    ...fromRow(row),
    removedAt: must(row.deleted_at, 'deleted_at'),
    removedBy: removedByOf(row),
  }))
}

/** Its keys work again. Its name must be free. @returns whether it could be restored */
export async function restoreWorkspace(db: Queries, id: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('workspaces')
    .set({ deleted_at: null, removed_by: null })
    .where('id', '=', id)
    .where('deleted_at', '>', now - RESTORABLE_MS)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

function removedByOf({ removed_by: removedBy }: Pick<WorkspaceRow, 'removed_by'>): RemovedBy {
  return removedBy ?? 'appliance'
}

function settingsToRow(
  settings: WorkspaceSettings,
): Omit<Selectable<WorkspaceRow>, 'id' | 'created_at' | 'deleted_at' | 'removed_by' | 'setup_dismissed_at'> {
  return {
    name: settings.name,
    default_from_email: settings.defaultFromEmail,
    default_from_name: settings.defaultFromName,
    company_name: settings.companyName,
    company_address: settings.companyAddress,
    currency: settings.currency,
    timezone: settings.timezone,
    attribution: flag(settings.attribution),
    hourly_limit: settings.hourlyLimit,
    daily_limit: settings.dailyLimit,
    allow_private_webhooks: flag(settings.allowPrivateWebhooks),
    is_marketing: flag(settings.isMarketing),
    brand_color: settings.brandColor,
    track_opens: flag(settings.trackOpens),
    track_clicks: flag(settings.trackClicks),
    utm_source: settings.utmSource,
    utm_medium: settings.utmMedium,
    utm_campaign: settings.utmCampaign,
  }
}

function fromRow(row: Selectable<WorkspaceRow>): Workspace {
  const { liveId: _, ...workspace } = actingFromRow(row, row.id)
  return workspace
}

/**
 * A literal rather than a spread: every object then has the same hidden class, which keeps the functions that read them on the send
 * path optimised.
 */
function actingFromRow(row: Selectable<WorkspaceRow>, id: string): ActingWorkspace {
  return {
    id,
    liveId: row.id,
    name: row.name,
    defaultFromEmail: row.default_from_email,
    defaultFromName: row.default_from_name,
    companyName: row.company_name,
    companyAddress: row.company_address,
    currency: row.currency,
    timezone: row.timezone,
    attribution: row.attribution === 1,
    hourlyLimit: row.hourly_limit,
    dailyLimit: row.daily_limit,
    allowPrivateWebhooks: row.allow_private_webhooks === 1,
    isMarketing: row.is_marketing === 1,
    brandColor: row.brand_color,
    trackOpens: row.track_opens === 1,
    trackClicks: row.track_clicks === 1,
    utmSource: row.utm_source,
    utmMedium: row.utm_medium,
    utmCampaign: row.utm_campaign,
    createdAt: row.created_at,
  }
}

/** A workspace as its public pages show it. */
export interface PublicSender {
  readonly sender: Sender
  readonly isSandbox: boolean
  /** Not shown. */
  readonly hourlyLimit: number
  readonly dailyLimit: number
}

/** @param workspaceId a sandbox's id for a sandbox @returns undefined if the workspace was removed */
export async function findPublicSender(db: Queries, workspaceId: string): Promise<PublicSender | undefined> {
  const workspace = await findActingWorkspace(db, workspaceId)
  return workspace && publicSenderOf(workspace)
}

export interface FormerSender extends PublicSender {
  readonly isRemoved: boolean
}

/**
 * Also of a removed workspace as long as it can be restored, since it could mail again: for wishes of recipients.
 *
 * @param now ms since epoch UTC
 */
export async function findFormerSender(
  db: Queries,
  workspaceId: string,
  now: number,
): Promise<FormerSender | undefined> {
  const [row] = (await selectOwner(db, { id: workspaceId })).rows
  if (!row || (row.deleted_at !== null && row.deleted_at <= now - RESTORABLE_MS)) return undefined
  return { ...publicSenderOf(actingFromRow(row, workspaceId)), isRemoved: row.deleted_at !== null }
}

function publicSenderOf(workspace: ActingWorkspace): PublicSender {
  const { id, liveId, name, companyName, companyAddress, brandColor } = workspace
  const { hourlyLimit, dailyLimit } = workspace
  const sender = { name: companyName ?? name, address: companyAddress ?? '', color: brandColor }
  return { sender, isSandbox: id !== liveId, hourlyLimit, dailyLimit }
}
