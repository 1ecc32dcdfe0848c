/** `postroad erase ADDRESS`: erases a person for good. `postroad activity list|export`: who changed what. */
import type { Command } from 'commander'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { checkEmail } from '../../audience/checks.js'
import { withApi } from '../api.js'
import { printPieces } from '../audience/contacts.js'
import { printResult, table, type CliContext, type CommonOptions, type ListOptions } from '../context.js'
import { apiCommand, confirm, confirmable, limited, type ConfirmOptions } from '../options.js'

export function eraseCommand(program: Command, context: CliContext): void {
  confirmable(
    apiCommand(program, 'erase <address>', 'permanently erase all data about a person').option(
      '--workspace <name|id>',
      'only in this workspace',
    ),
  ).action(async (address: string, options: ConfirmOptions & { readonly workspace?: string }) => {
    const email = checkEmail(address)
    await withApi(context, options, async api => {
      const { workspace } = options
      const where = workspace === undefined ? 'all workspaces' : `workspace ${workspace}`
      // Refused now rather than after the confirmation.
      if (workspace !== undefined) await api.admin.get(`/workspaces/${workspace}`)
      await confirm(context, options, `This permanently erases all data about ${email} in ${where}.`)
      const client = workspace === undefined ? api.admin : api.inWorkspace(workspace)
      const { erased } = await client.send<{ erased: Record<string, number> }>('POST', '/contacts/erase', {
        email,
      })
      printResult(context, options, { erased }, () =>
        table(
          ['ERASED', 'COUNT'],
          Object.entries(erased).map(([name, count]) => [name, count]),
        ),
      )
    })
  })
}

interface ActivityOptions extends CommonOptions {
  readonly workspace?: string
  readonly action?: string
  readonly actor?: string
  readonly subject?: string
  readonly since?: string
  readonly until?: string
}

/** As the API returns it. */
interface Activity {
  readonly actor: { readonly type: string; readonly name?: string }
  readonly action: string
  readonly subject: string
  readonly details: Readonly<Record<string, unknown>>
  readonly changes: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>
  readonly created_at: string
}

export function activityCommands(program: Command, context: CliContext): void {
  const group = program.command('activity').description('activity log: who changed what')
  limited(filtered(apiCommand(group, 'list', 'list changes, newest first')), 100).action(
    async (options: ActivityOptions & ListOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const found = await admin.list<Activity>('/activity', queryOf(options), options.limit)
        printResult(context, options, found, () =>
          table(
            ['TIME', 'ACTOR', 'ACTION', 'SUBJECT', 'CHANGES'],
            found.map(one => [
              one.created_at,
              one.actor.name ?? one.actor.type,
              one.action,
              one.subject,
              changesText(one),
            ]),
          ),
        )
      })
    },
  )
  filtered(
    apiCommand(
      group,
      'export [file]',
      'export changes as CSV, or with --json as JSON lines; default: standard output',
    ),
  ).action(async (file: string | undefined, options: ActivityOptions) => {
    await withApi(context, options, async ({ admin }) => {
      const format = options.json ? 'jsonl' : 'csv'
      const pieces = await admin.download('/activity/export', { ...queryOf(options), format })
      if (file === undefined || file === '-') await printPieces(context, pieces)
      else {
        await pipeline(pieces, createWriteStream(file))
        context.complain(`written to ${file}`)
      }
    })
  })
}

function filtered(command: Command): Command {
  return command
    .option('--workspace <name|id>', 'only this workspace (default: all, and the appliance itself)')
    .option('--action <action>', 'only this action, e.g. domain.added')
    .option('--actor <actor>', 'only by this actor: name, id, or a type such as shell')
    .option('--subject <text>', 'only subjects that contain this text')
    .option('--since <time>', 'from this time on, ISO 8601')
    .option('--until <time>', 'before this time; a date includes that day')
}

function queryOf({ workspace, action, actor, subject, since, until }: ActivityOptions) {
  return { workspace_id: workspace, action, actor, subject, since, until }
}

/** `hourly_limit: 1000 -> 500`, then the details as JSON. */
function changesText({ changes, details }: Activity): string {
  const parts = Object.entries(changes).map(
    ([name, { before, after }]) => `${name}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`,
  )
  if (Object.keys(details).length > 0) parts.push(JSON.stringify(details))
  return parts.join(', ')
}
