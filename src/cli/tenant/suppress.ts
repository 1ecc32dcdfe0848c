/** `postroad suppress add|remove|list|import|export`: addresses, or domains as @example.com, that a workspace no longer mails. */
import type { Command } from 'commander'
import { isoTime } from '../../core/moments.js'
import { readSuppressionEntry } from '../../deliverability/suppressions/suppression-entry.js'
import { suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import { listSuppressions, type Suppression } from '../../deliverability/suppressions/suppression-store.js'
import { addSuppression, removeSuppression } from '../../deliverability/suppressions/suppressions.js'
import {
  command,
  limited,
  mustFindWorkspace,
  owned,
  printResult,
  table,
  withAppliance,
  type CliContext,
  type ListOptions,
  type OwnedOptions,
} from '../context.js'
import { suppressTransferCommands } from './suppress-transfer.js'

export function suppressCommands(program: Command, context: CliContext): void {
  const group = program.command('suppress').description('who is not mailed any more')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'the workspace concerned')
  inWorkspace('add <email>', 'suppress an address, or a domain as @example.com').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const suppression: Suppression = {
          workspaceId: options.workspace,
          email: readSuppressionEntry(email),
          reason: 'manual',
          scope: 'all',
          sourceMessageId: null,
          createdAt: world.clock.now(),
        }
        const result = await database.write(async tx => {
          await mustFindWorkspace(tx.db, options.workspace)
          return addSuppression(tx, suppression)
        })
        printResult(context, options, suppressionToApi(suppression, false), () =>
          result === 'added'
            ? `${suppression.email} suppressed`
            : `${suppression.email} is suppressed for all mail now, no longer for marketing only`,
        )
      })
    },
  )
  inWorkspace('remove <email>', 'let an address be mailed again').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const removal = {
          workspaceId: options.workspace,
          email: readSuppressionEntry(email),
          createdAt: world.clock.now(),
        }
        await database.write(tx => removeSuppression(tx, removal))
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  limited(inWorkspace('list', 'suppressed addresses, newest first'), 100).action(
    async (options: OwnedOptions & ListOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const page = { limit: options.limit, offset: 0 }
        const all = await listSuppressions(database.reader, options.workspace, page)
        printResult(
          context,
          options,
          all.map(one => suppressionToApi(one, false)),
          () =>
            table(
              ['EMAIL', 'REASON', 'SCOPE', 'SINCE'],
              all.map(one => [one.email, one.reason, one.scope, isoTime(one.createdAt)]),
            ),
        )
      })
    },
  )
  suppressTransferCommands(group, context)
}
