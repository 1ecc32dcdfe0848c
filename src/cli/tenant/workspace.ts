/** `postroad workspace create|list|show|set|remove|restore`. */
import type { Command } from 'commander'
import {
  describeSettings,
  notRemoved,
  settingSchemas,
  type Settings,
} from '../../accounts/workspace-settings.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { withApi, type Api } from '../api.js'
import {
  didYouMean,
  printResult,
  table,
  UsageError,
  type CliContext,
  type CommonOptions,
} from '../context.js'
import { apiCommand, confirm, confirmable, type ConfirmOptions } from '../options.js'

/** As the API returns it. */
interface Workspace extends Settings {
  readonly id: string
  readonly created_at: string
  readonly removed_at?: string
  readonly removed_by?: string
}

const MAX_LISTED = 100_000

export function workspaceCommands(program: Command, context: CliContext): void {
  const group = program.command('workspace').description('tenants of this appliance')
  apiCommand(group, 'create <name>', 'create a workspace').action(
    async (name: string, options: CommonOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const workspace = await admin.send<Workspace>('POST', '/workspaces', { name })
        printResult(context, options, workspace, () => workspace.id)
      })
    },
  )
  const list = apiCommand(group, 'list', 'list all workspaces').option(
    '--removed',
    'list removed workspaces that can be restored',
  )
  list.action(async (options: CommonOptions & { removed?: boolean }) => {
    await withApi(context, options, async api => {
      if (options.removed === true) {
        const removed = await listRemoved(api)
        printResult(context, options, removed, () =>
          table(
            ['ID', 'NAME', 'REMOVED', 'BY'],
            removed.map(one => [one.id, one.name, one.removed_at ?? null, one.removed_by ?? null]),
          ),
        )
        return
      }
      const all = await api.admin.list<Workspace>('/workspaces', {}, MAX_LISTED)
      printResult(context, options, all, () =>
        table(
          ['ID', 'NAME', 'DEFAULT FROM', 'HOURLY', 'DAILY'],
          all.map(one => [one.id, one.name, one.default_from_email, one.hourly_limit, one.daily_limit]),
        ),
      )
    })
  })
  apiCommand(group, 'show <workspace>', 'show a workspace and its settings').action(
    async (named: string, options: CommonOptions) => {
      await withApi(context, options, async api => {
        const workspace = await api.admin.get<Workspace>(`/workspaces/${await api.findWorkspaceId(named)}`)
        const settings = describeSettings({ ...workspace })
        printResult(context, options, { ...workspace, settings }, () =>
          [
            `id       ${workspace.id}`,
            `created  ${workspace.created_at}`,
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
  apiCommand(
    group,
    'set <workspace> <settings...>',
    'change settings, as key=value (an empty value clears it)',
  ).action(async (named: string, pairs: string[], options: CommonOptions) => {
    const changes = readPairs(pairs)
    await withApi(context, options, async api => {
      const path = `/workspaces/${await api.findWorkspaceId(named)}`
      const changed = await api.admin.send<Workspace>('PATCH', path, changes)
      printResult(context, options, changed, () => JSON.stringify(changed, null, 2))
    })
  })
  const remove = apiCommand(
    group,
    'remove <workspace>',
    'remove a workspace: disables its keys and holds its queue; can be restored for 30 days',
  )
  confirmable(remove).action(async (named: string, options: ConfirmOptions) => {
    await withApi(context, options, async api => {
      const path = `/workspaces/${await api.findWorkspaceId(named)}`
      const { id, name } = await api.admin.get<Workspace>(path)
      await confirm(context, options, `This removes the workspace ${name} and everything in it.`)
      const removed = await api.admin.send<{ success: true; held: number }>('DELETE', path)
      printResult(context, options, removed, () =>
        [
          `removed; ${removed.held} queued messages are held`,
          `to restore it within 30 days: postroad workspace restore ${id}`,
        ].join('\n'),
      )
    })
  })
  apiCommand(group, 'restore <workspace>', 'restore a workspace removed in the last 30 days').action(
    async (named: string, options: CommonOptions) => {
      await withApi(context, options, async api => {
        const id = isUuid(named) ? named : (await getRemoved(api, named)).id
        await api.admin.send('POST', `/workspaces/${id}/restore`)
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

/** Most recently removed first. */
async function listRemoved({ admin }: Api): Promise<Workspace[]> {
  const removed = await admin.list<Workspace>('/workspaces', { removed: true }, MAX_LISTED)
  return removed.sort((a, b) => ((a.removed_at ?? '') < (b.removed_at ?? '') ? 1 : -1))
}

/** @throws AppError not_found, conflict (several of that name) */
async function getRemoved(api: Api, named: string): Promise<Workspace> {
  const found = (await listRemoved(api)).filter(({ name }) => name.toLowerCase() === named.toLowerCase())
  const [first] = found
  if (!first) throw notRemoved(named)
  if (found.length > 1)
    throw new AppError('conflict', `${found.length} removed workspaces are named ${named}; use an id`)
  return first
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
