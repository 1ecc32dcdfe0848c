/** `postroad suppress add|remove|list`: addresses, or domains as @example.com, that a workspace no longer mails. */
import type { Command } from 'commander'
import { findWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import {
  deleteSuppression,
  insertSuppression,
  listSuppressions,
  type Suppression,
} from '../deliverability/suppression-store.js'
import { asciiDomain, normalizedAddress, parseAddress } from '../mail/address.js'
import {
  command,
  printResult,
  table,
  wholeNumber,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from './context.js'

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
          email: readEntry(email),
          reason: 'manual',
          scope: 'all',
          sourceMessageId: null,
          createdAt: world.clock.now(),
        }
        await database.write(async tx => {
          if (!(await findWorkspace(tx.db, options.workspace)))
            throw new AppError('not_found', `no workspace ${options.workspace}`)
          if (!(await insertSuppression(tx.db, suppression)))
            throw new AppError('duplicate', `${suppression.email} is suppressed already`)
        })
        printResult(context, options, toJson(suppression), () => `${suppression.email} suppressed`)
      })
    },
  )
  owned('remove <email>', 'let an address be mailed again').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        if (!(await database.write(tx => deleteSuppression(tx.db, options.workspace, readEntry(email)))))
          throw new AppError('not_found', `${email} is not suppressed`)
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
        printResult(context, options, all.map(toJson), () =>
          table(
            ['EMAIL', 'REASON', 'SCOPE', 'SINCE'],
            all.map(one => [one.email, one.reason, one.scope, isoTime(one.createdAt)]),
          ),
        )
      })
    })
}

function readEntry(text: string): string {
  const isDomain = text.startsWith('@')
  const domain = isDomain ? asciiDomain(text.slice(1)) : undefined
  if (isDomain ? !domain : !parseAddress(text))
    throw new AppError('validation_error', `${text} is neither an address nor @domain`, { path: 'email' })
  return domain ? `@${domain}` : normalizedAddress(text)
}

function toJson(suppression: Suppression) {
  return {
    email: suppression.email,
    reason: suppression.reason,
    scope: suppression.scope,
    source_message_id: suppression.sourceMessageId,
    created_at: isoTime(suppression.createdAt),
  }
}
