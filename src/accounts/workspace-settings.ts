/**
 * Settings of workspaces as the API and the command line show them, and what is done with workspaces: create, change, remove, restore.
 *
 * Called by the routes of `workspace-routes.ts`. Every change is recorded in the activity log of the workspace.
 */
import Type, { type Static } from 'typebox'
import type { Actor } from '../core/actor.js'
import { AppError } from '../core/errors.js'
import { readName, readOptionalName } from '../core/names.js'
import { isUuid } from '../core/ids.js'
import { isoTime } from '../core/moments.js'
import type { Queries, Tx } from '../db/database.js'
import type { Services } from '../db/services.js'
import { recordActivity, type Changes } from '../events/activity-store.js'
import { settingsChanges } from '../events/settings-changes.js'
import { etagOf, type Precondition } from '../http/preconditions.js'
import { validator } from '../http/validate.js'
import { parseAddress, trimAddress } from '../mail/address.js'
import { hasHeaderBreak } from '../mail/mime/write-header-field.js'
import {
  findWorkspace,
  findWorkspaceByName,
  insertWorkspace,
  listRemovedWorkspaces,
  NEW_WORKSPACE,
  removeWorkspace as markRemoved,
  restoreWorkspace as markRestored,
  updateWorkspace,
  type RemovedBy,
  type Workspace,
} from './workspace-store.js'

const nullableText = (maxLength: number, description: string) =>
  Type.Union([Type.String({ maxLength }), Type.Null()], { description })
const limit = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000_000, description })

/** `workspace show` prints the descriptions. */
export const Settings = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'Unique, ignoring case. Commands accept it instead of the id.',
    }),
    default_from_email: nullableText(254, 'From address if a request gives none.'),
    default_from_name: nullableText(100, 'Display name of that address.'),
    company_name: nullableText(200, 'Company name in the footer; {{company_name}}.'),
    company_address: nullableText(500, 'Postal address in the footer; {{company_address}}.'),
    currency: Type.String({
      pattern: '^[A-Z]{3}$',
      description: 'ISO 4217 code of conversions that give none.',
    }),
    timezone: Type.String({
      minLength: 1,
      maxLength: 64,
      description:
        'IANA time zone of dates in mail, and of days in segments, automations and the daily limit.',
    }),
    attribution: Type.Boolean({ description: 'Mention Postroad in the footer.' }),
    hourly_limit: limit('Recipients per clock hour, 0 = unlimited.'),
    daily_limit: limit("Recipients per day of the workspace's time zone, 0 = unlimited."),
    allow_private_webhooks: Type.Boolean({
      description: 'Webhooks may call addresses in webhooks.allow_networks.',
    }),
    marketing: Type.Boolean({ description: 'Unsubscribing stops all mail, including single sends.' }),
    brand_color: Type.Union([Type.String({ pattern: '^#[0-9a-fA-F]{6}$' }), Type.Null()], {
      description: 'Color of public pages, e.g. #1d5fa8.',
    }),
    track_opens: Type.Boolean({ description: 'Track opens by default.' }),
    track_clicks: Type.Boolean({ description: 'Track clicks by default.' }),
    utm_source: nullableText(100, 'utm_source added to tracked links.'),
    utm_medium: nullableText(100, 'utm_medium added to tracked links.'),
    utm_campaign: nullableText(100, 'utm_campaign added to tracked links.'),
  },
  { additionalProperties: false },
)
export type Settings = Static<typeof Settings>
const checkSettings = validator(Settings, 'settings')

const { name: _, ...DEFAULT_SETTINGS } = toSettings({ ...NEW_WORKSPACE, name: '' })

export interface WorkspaceParts extends Pick<Services, 'database' | 'clock' | 'newId'> {
  /** Holds all queued mail of the workspace. @param by who may release it @returns messages held */
  readonly holdWorkspaceMail: (workspaceId: string, by: RemovedBy) => Promise<number>
}

/** @param settings those not given have defaults @throws AppError duplicate, validation_error */
export async function createWorkspace(
  { database, clock, newId }: Omit<WorkspaceParts, 'holdWorkspaceMail'>,
  settings: Partial<Settings> & Pick<Settings, 'name'>,
  actor: Actor,
): Promise<Workspace> {
  const workspace = fromSettings(
    { id: newId(), createdAt: clock.now() },
    checkChange(DEFAULT_SETTINGS, settings),
  )
  await database.write(async tx => {
    await requireFreeName(tx.db, workspace)
    await insertWorkspace(tx.db, workspace)
    await record(tx, actor, workspace.createdAt, workspace, 'created')
  })
  return workspace
}

export function workspaceEtag(workspace: Workspace): string {
  return etagOf(workspaceToApi(workspace))
}

/** @throws AppError not_found, duplicate, validation_error, precondition_failed */
export async function changeWorkspace(
  { database, clock }: Pick<WorkspaceParts, 'database' | 'clock'>,
  id: string,
  changes: Partial<Settings>,
  actor: Actor,
  precondition?: Precondition,
): Promise<Workspace> {
  return database.write(async tx => {
    const workspace = await getWorkspace(tx.db, id)
    precondition?.check(workspaceEtag(workspace))
    const next = fromSettings(workspace, checkChange(toSettings(workspace), changes))
    await requireFreeName(tx.db, next)
    const changed = settingsChanges(toSettings(workspace), toSettings(next))
    if (Object.keys(changed).length === 0) return workspace
    await updateWorkspace(tx.db, next)
    await record(tx, actor, clock.now(), next, 'changed', changed)
    return next
  })
}

/**
 * Disables its keys, then holds its queued mail, which stays held after a restore.
 *
 * @param by who may undo both
 * @returns messages held @throws AppError not_found, precondition_failed
 */
export async function removeWorkspace(
  { database, clock, holdWorkspaceMail }: Omit<WorkspaceParts, 'newId'>,
  id: string,
  by: RemovedBy,
  actor: Actor,
  precondition?: Precondition,
): Promise<number> {
  await database.write(async tx => {
    const now = clock.now()
    const workspace = await getWorkspace(tx.db, id)
    precondition?.check(workspaceEtag(workspace))
    await markRemoved(tx.db, id, now, by)
    await record(tx, actor, now, workspace, 'removed')
  })
  return holdWorkspaceMail(id, by)
}

/**
 * @param by operators of a workspace restore only what operators of the workspace removed
 * @throws AppError not_found, forbidden, duplicate (its name was taken meanwhile)
 */
export async function restoreWorkspace(
  { database, clock }: Pick<WorkspaceParts, 'database' | 'clock'>,
  id: string,
  by: RemovedBy,
  actor: Actor,
): Promise<Workspace> {
  return database.write(async tx => {
    const now = clock.now()
    const removed = (await listRemovedWorkspaces(tx.db, now)).find(one => one.id === id)
    if (!removed) throw notRemoved(id)
    if (by !== 'appliance' && removed.removedBy === 'appliance')
      throw new AppError(
        'forbidden',
        'this workspace was removed by operators of the appliance; only they can restore it',
      )
    await requireFreeName(tx.db, removed)
    if (!(await markRestored(tx.db, id, now))) throw notRemoved(id)
    await record(tx, actor, now, removed, 'restored')
    return getWorkspace(tx.db, id)
  })
}

/** @throws AppError not_found */
export async function getWorkspace(db: Queries, id: string): Promise<Workspace> {
  const workspace = await findWorkspace(db, id)
  if (!workspace) throw new AppError('not_found', `no workspace ${id}`)
  return workspace
}

export function notRemoved(named: string): AppError {
  return new AppError('not_found', `no workspace ${named} was removed in the last 30 days`)
}

/** @throws AppError duplicate, validation_error */
async function requireFreeName(db: Queries, { id, name }: Pick<Workspace, 'id' | 'name'>): Promise<void> {
  if (isUuid(name))
    throw new AppError('validation_error', `${name} looks like an id; choose another name`, { path: 'name' })
  const other = await findWorkspaceByName(db, name)
  if (other && other.id !== id)
    throw new AppError('duplicate', `the name ${other.name} is taken; names are unique: choose another one`, {
      path: 'name',
    })
}

async function record(
  tx: Tx,
  actor: Actor,
  now: number,
  { id, name }: Pick<Workspace, 'id' | 'name'>,
  what: 'created' | 'changed' | 'removed' | 'restored',
  changes: Changes = {},
): Promise<void> {
  tx.changed('workspaces')
  await recordActivity(tx, { workspaceId: id, actor }, now, {
    action: `workspace.${what}`,
    subject: name,
    changes,
  })
}

export interface DescribedSetting {
  readonly name: string
  readonly value: string | number | boolean | null
  readonly type: string
  readonly default: string | number | boolean | null
  readonly description: string
}

/** @param values as the API returns them */
export function describeSettings(values: Readonly<Record<string, unknown>>): DescribedSetting[] {
  const defaults: Record<string, DescribedSetting['value']> = DEFAULT_SETTINGS
  return Object.entries(settingSchemas()).map(([name, { type = 'text', description = '' }]) => ({
    name,
    value: (values[name] ?? null) as DescribedSetting['value'],
    type: TYPE_NAMES[type] ?? type,
    default: name === 'name' ? null : (defaults[name] ?? null),
    description,
  }))
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  text: 'text or none',
  integer: 'whole number',
  boolean: 'true or false',
}

export function settingSchemas(): Readonly<
  Record<string, { readonly type?: string; readonly description?: string }>
> {
  return Settings.properties as unknown as Record<string, { type?: string; description?: string }>
}

function checkChange(before: object, changes: Partial<Settings>): Settings {
  const checked = checkSettings({ ...before, ...changes })
  const { default_from_email: fromEmail, default_from_name: fromName } = checked
  const from = fromEmail === null ? undefined : parseAddress(fromEmail)
  const fault = (path: keyof Settings, what: string) =>
    new AppError('validation_error', `${path} ${what}`, { path })
  if (fromEmail !== null && (!from || from.needsSmtpUtf8))
    throw fault(
      'default_from_email',
      'is not an email address, or has characters other than ASCII before the @',
    )
  if (fromName !== null && hasHeaderBreak(fromName))
    throw fault('default_from_name', 'contains control characters')
  if (!isTimezone(checked.timezone)) throw fault('timezone', 'is not an IANA time zone name')
  // Only what is given: names that were stored before this check stay as they are.
  if (typeof changes.company_name === 'string') readOptionalName(changes.company_name, 'company_name')
  const settings = { ...checked, default_from_email: fromEmail === null ? null : trimAddress(fromEmail) }
  return changes.name === undefined ? settings : { ...settings, name: readName(checked.name) }
}

export function isTimezone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

export function toSettings(workspace: Omit<Workspace, 'id' | 'createdAt'>): Settings {
  return {
    name: workspace.name,
    default_from_email: workspace.defaultFromEmail,
    default_from_name: workspace.defaultFromName,
    company_name: workspace.companyName,
    company_address: workspace.companyAddress,
    currency: workspace.currency,
    timezone: workspace.timezone,
    attribution: workspace.attribution,
    hourly_limit: workspace.hourlyLimit,
    daily_limit: workspace.dailyLimit,
    allow_private_webhooks: workspace.allowPrivateWebhooks,
    marketing: workspace.isMarketing,
    brand_color: workspace.brandColor,
    track_opens: workspace.trackOpens,
    track_clicks: workspace.trackClicks,
    utm_source: workspace.utmSource,
    utm_medium: workspace.utmMedium,
    utm_campaign: workspace.utmCampaign,
  }
}

function fromSettings({ id, createdAt }: Pick<Workspace, 'id' | 'createdAt'>, settings: Settings): Workspace {
  return {
    id,
    createdAt,
    name: settings.name,
    defaultFromEmail: settings.default_from_email,
    defaultFromName: settings.default_from_name,
    companyName: settings.company_name,
    companyAddress: settings.company_address,
    currency: settings.currency,
    timezone: settings.timezone,
    attribution: settings.attribution,
    hourlyLimit: settings.hourly_limit,
    dailyLimit: settings.daily_limit,
    allowPrivateWebhooks: settings.allow_private_webhooks,
    isMarketing: settings.marketing,
    brandColor: settings.brand_color?.toLowerCase() ?? null,
    trackOpens: settings.track_opens,
    trackClicks: settings.track_clicks,
    utmSource: settings.utm_source,
    utmMedium: settings.utm_medium,
    utmCampaign: settings.utm_campaign,
  }
}

export function workspaceToApi(workspace: Workspace) {
  return { id: workspace.id, ...toSettings(workspace), created_at: isoTime(workspace.createdAt) }
}
