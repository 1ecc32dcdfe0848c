/** `postroad suppress add|remove|list|import|export`: addresses, or domains as @example.com, that a workspace must not mail. */
import type { Command } from 'commander'
import { followSuppressions } from '../../audience/contacts/follow-suppressions.js'
import { isoTime } from '../../core/moments.js'
import {
  readSuppressionEntry,
  addSuppression,
  removeSuppression,
} from '../../deliverability/suppressions/suppressions.js'
import { suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import { listSuppressions, type Suppression } from '../../deliverability/suppressions/suppression-store.js'
import {
  mustFindWorkspace,
  printResult,
  withAppliance,
  type CliContext,
  type OwnedOptions,
} from '../context.js'
import { ownedGroup, printsList } from './owned-group.js'
import { suppressTransferCommands } from './suppress-transfer.js'

export function suppressCommands(program: Command, context: CliContext): void {
  const { group, inWorkspace } = ownedGroup(
    program,
    'suppress',
    'suppressed addresses and domains',
    'workspace of the suppressions',
  )
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
          return addSuppression(tx, suppression, followSuppressions())
        })
        printResult(context, options, suppressionToApi(suppression, false), () =>
          result === 'added'
            ? `${suppression.email} suppressed`
            : `${suppression.email} is now suppressed for all mail, not just marketing`,
        )
      })
    },
  )
  inWorkspace('remove <email>', 'remove a suppression').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const removal = {
          workspaceId: options.workspace,
          email: readSuppressionEntry(email),
          createdAt: world.clock.now(),
        }
        await database.write(tx => removeSuppression(tx, removal, followSuppressions()))
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  printsList(
    context,
    inWorkspace('list', 'list suppressions, newest first'),
    ['EMAIL', 'REASON', 'SCOPE', 'SINCE'],
    async ({ database }, { workspaceId, page }) => {
      const all = await listSuppressions(database.reader, workspaceId, page)
      return all.map(one => ({
        shown: suppressionToApi(one, false),
        cells: [one.email, one.reason, one.scope, isoTime(one.createdAt)],
      }))
    },
  )
  suppressTransferCommands(group, context)
}
