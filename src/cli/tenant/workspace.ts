/** `postroad workspace create|list|show|set|remove|restore`. */
import type { Command } from 'commander'
import Type, { type Static } from 'typebox'
import {
  findWorkspaceByName,
  insertWorkspace,
  listRemovedWorkspaces,
  listWorkspaces,
  NEW_WORKSPACE,
  removeWorkspace,
  restoreWorkspace,
  updateWorkspace,
  type Workspace,
} from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import { SHELL } from '../../core/actor.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { validator } from '../../http/validate.js'
import { parseAddress } from '../../mail/address.js'
import { hasHeaderBreak } from '../../mail/compose/header-field.js'
import { setHeld } from '../../queue/operator/queue-admin-store.js'
import { confirm, confirmable, type ConfirmOptions, command } from '../options.js'
import { changeInBatches } from '../mail/queue-selection.js'
import {
  didYouMean,
  getWorkspace,
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'

const nullableText = (maxLength: number, description: string) =>
  Type.Union([Type.String({ maxLength }), Type.Null()], { description })
const limit = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000_000, description })

/** The settings as the command line and the API use them. `workspace show` prints the descriptions. */
const Settings = Type.Object(
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
      description: 'IANA time zone for dates in mail and segments.',
    }),
    attribution: Type.Boolean({ description: 'Mention Postroad in the footer.' }),
    hourly_limit: limit('Recipients per clock hour, 0 = unlimited.'),
    daily_limit: limit('Recipients per UTC day, 0 = unlimited.'),
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
type Settings = Static<typeof Settings>
const checkSettings = validator(Settings, 'settings')

export function workspaceCommands(program: Command, context: CliContext): void {
  const group = program.command('workspace').description('tenants of this appliance')
  command(group, 'create <name>', 'create a workspace').action(
    async (name: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, newId, world }) => {
        const workspace: Workspace = fromSettings(
          { id: newId(), createdAt: world.clock.now() },
          checkSettings({ ...toSettings({ ...NEW_WORKSPACE, name }) }),
        )
        await database.write(async tx => {
          await requireFreeName(tx.db, workspace)
          await insertWorkspace(tx.db, workspace)
          await record(tx, 'created', workspace, workspace.createdAt)
        })
        printResult(context, options, toJson(workspace), () => workspace.id)
      })
    },
  )
  const list = command(group, 'list', 'list all workspaces').option(
    '--removed',
    'list removed workspaces that can be restored',
  )
  list.action(async (options: CommonOptions & { removed?: boolean }) => {
    await withAppliance(context, options, async ({ database, world }) => {
      if (options.removed === true) {
        const removed = await listRemovedWorkspaces(database.reader, world.clock.now())
        const json = removed.map(one => ({ ...toJson(one), removed_at: isoTime(one.removedAt) }))
        printResult(context, options, json, () =>
          table(
            ['ID', 'NAME', 'REMOVED'],
            removed.map(one => [one.id, one.name, isoTime(one.removedAt)]),
          ),
        )
        return
      }
      const all = await listWorkspaces(database.reader)
      printResult(context, options, all.map(toJson), () =>
        table(
          ['ID', 'NAME', 'DEFAULT FROM', 'HOURLY', 'DAILY'],
          all.map(one => [one.id, one.name, one.defaultFromEmail, one.hourlyLimit, one.dailyLimit]),
        ),
      )
    })
  })
  command(group, 'show <workspace>', 'show a workspace and its settings').action(
    async (named: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const workspace = await getWorkspace(database.reader, named)
        const settings = describeSettings(workspace)
        printResult(context, options, { ...toJson(workspace), settings }, () =>
          [
            `id       ${workspace.id}`,
            `created  ${isoTime(workspace.createdAt)}`,
            '',
            table(
              ['SETTING', 'VALUE', 'TYPE', 'DEFAULT', 'MEANING'],
              settings.map(one => [
                one.name,
                String(one.value ?? '(none)'),
                one.type,
                String(one.default ?? '(none)'),
                one.description,
              ]),
            ),
            '',
            `to change one: postroad workspace set ${workspace.id} SETTING=VALUE`,
          ].join('\n'),
        )
      })
    },
  )
  command(
    group,
    'set <workspace> <settings...>',
    'change settings, as key=value (an empty value clears it)',
  ).action(async (named: string, pairs: string[], options: CommonOptions) => {
    const changes = readPairs(pairs)
    await withAppliance(context, options, async ({ database, world }) => {
      const changed = await database.write(async tx => {
        const workspace = await getWorkspace(tx.db, named)
        const next = fromSettings(workspace, checkChange({ ...toSettings(workspace), ...changes }))
        await requireFreeName(tx.db, next)
        await updateWorkspace(tx.db, next)
        const details = changesBetween(toSettings(workspace), toSettings(next))
        await record(tx, 'changed', next, world.clock.now(), details)
        return next
      })
      printResult(context, options, toJson(changed), () => JSON.stringify(toJson(changed), null, 2))
    })
  })
  const remove = command(
    group,
    'remove <workspace>',
    'remove a workspace: disables its keys and holds its queue; can be restored for 30 days',
  )
  confirmable(remove).action(async (named: string, options: ConfirmOptions) => {
    await withAppliance(context, options, async appliance => {
      const { database, world } = appliance
      const workspace = await getWorkspace(database.reader, named)
      const { id } = workspace
      await confirm(context, options, `This removes the workspace ${workspace.name} and everything in it.`)
      await database.write(async tx => {
        const now = world.clock.now()
        if (!(await removeWorkspace(tx.db, id, now))) throw new AppError('not_found', `no workspace ${id}`)
        await record(tx, 'removed', workspace, now)
      })
      const held = await changeInBatches(appliance, { workspaceId: id }, (tx, selection) =>
        setHeld(tx.db, selection, true),
      )
      printResult(context, options, { success: true, held }, () =>
        [
          `removed; ${held} queued messages are held`,
          `to restore it within 30 days: postroad workspace restore ${id}`,
        ].join('\n'),
      )
    })
  })
  command(group, 'restore <workspace>', 'restore a workspace removed in the last 30 days').action(
    async (named: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const id = await database.write(async tx => {
          const now = world.clock.now()
          const removed = await getRemoved(tx.db, named, now)
          const { id } = removed
          await requireFreeName(tx.db, removed)
          if (!(await restoreWorkspace(tx.db, id, now))) throw new AppError('not_found', noneRemoved(named))
          await record(tx, 'restored', removed, now)
          return id
        })
        printResult(context, options, { success: true }, () =>
          [
            'restored; its keys work again',
            `its queue is still held; to release it: postroad queue release --workspace ${id}`,
          ].join('\n'),
        )
      })
    },
  )
}

/** @throws AppError duplicate, validation_error */
async function requireFreeName(db: Queries, { id, name }: Pick<Workspace, 'id' | 'name'>): Promise<void> {
  if (isUuid(name))
    throw new AppError('validation_error', `${name} looks like an id; choose another name`, { path: 'name' })
  const other = await findWorkspaceByName(db, name)
  if (other && other.id !== id)
    throw new AppError(
      'duplicate',
      `the name ${other.name} is taken by workspace ${other.id}; names are unique: rename one of them first`,
      { path: 'name' },
    )
}

function noneRemoved(named: string): string {
  return `no workspace ${named} was removed in the last 30 days`
}

/** @throws AppError not_found, conflict (several of that name) */
async function getRemoved(db: Queries, named: string, now: number): Promise<Workspace> {
  const removed = await listRemovedWorkspaces(db, now)
  const found = removed.filter(({ id, name }) => id === named || name.toLowerCase() === named.toLowerCase())
  const [first] = found
  if (!first) throw new AppError('not_found', noneRemoved(named))
  if (found.length > 1)
    throw new AppError('conflict', `${found.length} removed workspaces are named ${named}; use an id`)
  return first
}

interface DescribedSetting {
  readonly name: string
  readonly value: string | number | boolean | null
  readonly type: string
  readonly default: string | number | boolean | null
  readonly description: string
}

function describeSettings(workspace: Workspace): DescribedSetting[] {
  const values: Record<string, DescribedSetting['value']> = toSettings(workspace)
  const defaults: Record<string, DescribedSetting['value']> = toSettings({ ...NEW_WORKSPACE, name: '' })
  return Object.entries(settingSchemas()).map(([name, { type = 'text', description = '' }]) => ({
    name,
    value: values[name] ?? null,
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

function settingSchemas(): Readonly<
  Record<string, { readonly type?: string; readonly description?: string }>
> {
  return Settings.properties as unknown as Record<string, { type?: string; description?: string }>
}

async function record(
  tx: Tx,
  what: 'created' | 'changed' | 'removed' | 'restored',
  { id, name }: Pick<Workspace, 'id' | 'name'>,
  createdAt: number,
  details: Activity['details'] = {},
): Promise<void> {
  tx.changed('workspaces')
  const activity = { workspaceId: id, actor: SHELL, action: `workspace.${what}` as const }
  await recordActivity(tx, { ...activity, subject: name, details, createdAt })
}

/** `hourly_limit: 500` and `hourly_limit_before: 1000` for each setting that changes. */
function changesBetween(before: Settings, after: Settings): Record<string, string | number | boolean | null> {
  const changed = Object.entries(after).filter(([name, value]) => before[name as keyof Settings] !== value)
  return Object.fromEntries(
    changed.flatMap(([name, value]) => [
      [name, value],
      [`${name}_before`, before[name as keyof Settings]],
    ]),
  )
}

/** Values are text on the command line; the setting's type decides which become numbers, booleans or null. */
function readPairs(pairs: readonly string[]): Record<string, unknown> {
  const kinds = settingSchemas()
  return Object.fromEntries(
    pairs.map((pair): [string, unknown] => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new UsageError(`${pair} is not key=value`)
      const key = pair.slice(0, equals)
      const text = pair.slice(equals + 1)
      if (!Object.hasOwn(kinds, key))
        throw new UsageError(`unknown setting ${key}${didYouMean(key, Object.keys(kinds))}`)
      const type = kinds[key]?.type
      if (type === 'integer' && /^\d{1,10}$/.test(text)) return [key, Number(text)]
      if (type === 'boolean' && (text === 'true' || text === 'false')) return [key, text === 'true']
      return [key, text === '' && type === undefined ? null : text]
    }),
  )
}

function checkChange(settings: unknown): Settings {
  const checked = checkSettings(settings)
  const { default_from_email: fromEmail, default_from_name: fromName } = checked
  const from = fromEmail === null ? undefined : parseAddress(fromEmail)
  const fault = (path: keyof Settings, what: string) =>
    new AppError('validation_error', `${path} ${what}`, { path })
  if (fromEmail !== null && (!from || from.needsSmtpUtf8))
    throw fault('default_from_email', 'is not an email address with an ASCII local part')
  if (fromName !== null && hasHeaderBreak(fromName))
    throw fault('default_from_name', 'contains control characters')
  if (!isTimezone(checked.timezone)) throw fault('timezone', 'is not an IANA time zone name')
  return checked
}

function isTimezone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

function toSettings(workspace: Omit<Workspace, 'id' | 'createdAt'>): Settings {
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

function toJson(workspace: Workspace) {
  return { id: workspace.id, ...toSettings(workspace), created_at: isoTime(workspace.createdAt) }
}
