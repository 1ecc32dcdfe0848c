/** `postroad suppress add|remove|list|import|export`: addresses, or domains as @example.com, that a workspace no longer mails. */
import type { Command } from 'commander'
import { findWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { readSuppressionEntry } from '../../deliverability/suppressions/suppression-entry.js'
import { suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import { listSuppressions, type Suppression } from '../../deliverability/suppressions/suppression-store.js'
import { addSuppression, removeSuppression } from '../../deliverability/suppressions/suppressions.js'
import {
  command,
  printResult,
  table,
  wholeNumber,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'
import { suppressTransferCommands } from './suppress-transfer.js'

interface OwnedOptions extends CommonOptions {
  readonly workspace: string
}

export function suppressCommands(program: Command, context: CliContext): void {
  const group = program.command('suppress').description('who is not mailed any more')
  const owned = (nameAndArgs: string, description: string) =>
    command(group, nameAndArgs, description).requiredOption('--workspace <id>', 'the workspace concerned')
  owned('add <email>', 'suppress an address, or a domain as @example.com').action(
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
          if (!(await findWorkspace(tx.db, options.workspace)))
            throw new AppError('not_found', `no workspace ${options.workspace}`)
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
  owned('remove <email>', 'let an address be mailed again').action(
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
  owned('list', 'suppressed addresses, newest first')
    .option('--limit <n>', 'at most so many (default: 100)', wholeNumber)
    .action(async (options: OwnedOptions & { limit?: number }) => {
      await withAppliance(context, options, async ({ database }) => {
        const page = { limit: options.limit ?? 100, offset: 0 }
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
    })
  suppressTransferCommands(group, context)
}
