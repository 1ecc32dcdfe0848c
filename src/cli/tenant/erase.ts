/** `postroad erase ADDRESS`: erases a person for good. `postroad activity list`: who changed what. */
import type { Command } from 'commander'
import { activityToApi } from '../../accounts/resource.js'
import { erasePerson } from '../../appliance/erasure/erase.js'
import { checkEmail } from '../../audience/checks.js'
import { isoTime } from '../../core/moments.js'
import { SHELL } from '../../core/actor.js'
import { listActivities } from '../../events/activity-store.js'
import { confirm, confirmable, type ConfirmOptions, ownedGroup, printsList, command } from '../options.js'
import { getWorkspace, printResult, table, withAppliance, type CliContext } from '../context.js'

export function eraseCommand(program: Command, context: CliContext): void {
  confirmable(
    command(program, 'erase <address>', 'permanently erase all data about a person').option(
      '--workspace <name|id>',
      'only in this workspace',
    ),
  ).action(async (address: string, options: ConfirmOptions & { readonly workspace?: string }) => {
    const email = checkEmail(address)
    await withAppliance(context, options, async ({ database, world, config }) => {
      const { workspace } = options
      if (workspace !== undefined) await getWorkspace(database.reader, workspace)
      const where = workspace === undefined ? 'all workspaces' : `workspace ${workspace}`
      await confirm(context, options, `This permanently erases all data about ${email} in ${where}.`)
      const parts = { database, clock: world.clock, dataDir: config.dataDir }
      const erased = await erasePerson(parts, email, SHELL, workspace)
      printResult(context, options, { erased }, () =>
        table(
          ['ERASED', 'COUNT'],
          Object.entries(erased).map(([name, count]) => [name, count]),
        ),
      )
    })
  })
}

export function activityCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(program, 'activity', 'activity log of a workspace')
  printsList<{ readonly action?: string }>(
    context,
    inWorkspace('list', 'list changes, newest first').option(
      '--action <action>',
      'only this action, e.g. domain.added',
    ),
    ['TIME', 'ACTOR', 'ACTION', 'SUBJECT', 'DETAILS'],
    async ({ database }, { workspaceId, page, options }) => {
      const { items } = await listActivities(database.slowReader, workspaceId, options.action, page)
      return items.map(one => ({
        shown: activityToApi(one, false),
        cells: [
          ...[isoTime(one.createdAt), one.actor.name ?? one.actor.type],
          ...[one.action, one.subject, JSON.stringify(one.details)],
        ],
      }))
    },
  )
}
