/** `postroad key create|set|list|revoke`, and `postroad login unlock ADDRESS`. A key is printed only when it is created. */
import type { Command } from 'commander'
import { type ApiKey, listApiKeys } from '../../accounts/key-store.js'
import { changeKey, createKey, revokeKey, DEFAULT_KEY_LIMITS } from '../../accounts/keys.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { LOGIN_UNLOCK_PATH } from '../../accounts/login-guard.js'
import { ipVersion } from '../../world/net/ip-address.js'
import {
  type CliContext,
  type CommonOptions,
  printResult,
  table,
  UsageError,
  withAppliance,
} from '../context.js'
import { owned, command, wholeNumber } from '../options.js'
import { askServer } from '../running-server.js'

interface CreateOptions extends CommonOptions {
  readonly workspace: string
  readonly name: string
  readonly sandbox?: boolean
  readonly permissions?: string
  readonly rateLimit?: number
  readonly emailRateLimit?: number
}

interface SetOptions extends CommonOptions {
  readonly name?: string
  readonly permissions?: string
  readonly rateLimit?: number
  readonly emailRateLimit?: number
}

export function keyCommands(program: Command, context: CliContext): void {
  const group = program.command('key').description('API keys')
  owned(command(group, 'create', 'create a key; it is printed only once'), 'workspace of the key')
    .requiredOption('--name <name>', 'what it is for')
    .option('--sandbox', 'create a sandbox key: mail sent with it is not delivered')
    .option(
      '--permissions <list>',
      'comma-separated, e.g. email:send,email:read, or sending_access for everything needed to send (default: all)',
    )
    .option('--rate-limit <n>', 'requests per minute, 0 = unlimited (default: 100)', wholeNumber)
    .option('--email-rate-limit <n>', 'recipients per minute, 0 = unlimited (default: 100)', wholeNumber)
    .action(async (options: CreateOptions) => {
      await withAppliance(context, options, async appliance => {
        const { row, key } = await createKey(
          { ...appliance, ...appliance.world },
          {
            workspaceId: options.workspace,
            name: options.name,
            isSandbox: options.sandbox ?? false,
            ...(options.permissions === undefined
              ? {}
              : { permissions: options.permissions.split(',').map(name => name.trim()) }),
            rateLimit: options.rateLimit ?? DEFAULT_KEY_LIMITS.rateLimit,
            emailRateLimit: options.emailRateLimit ?? DEFAULT_KEY_LIMITS.emailRateLimit,
          },
        )
        printResult(context, options, { ...toJson(row), key }, () => key)
        // On standard error, so that a script can read just the key.
        if (!options.json) context.complain(`id ${row.id}`)
      })
    })
  command(group, 'set <id>', "change a key's name, permissions or rate limits")
    .option('--name <name>', 'what it is for')
    .option('--permissions <list>', 'comma-separated, or sending_access, or full_access')
    .option('--rate-limit <n>', 'requests per minute, 0 = unlimited', wholeNumber)
    .option('--email-rate-limit <n>', 'recipients per minute, 0 = unlimited', wholeNumber)
    .action(async (id: string, options: SetOptions) => {
      const { name, permissions, rateLimit, emailRateLimit } = options
      const changes = {
        ...given({ name, rateLimit, emailRateLimit }),
        ...(permissions === undefined ? {} : { permissions: permissions.split(',').map(one => one.trim()) }),
      }
      if (Object.keys(changes).length === 0)
        throw new UsageError(
          'nothing to change; pass --name, --permissions, --rate-limit or --email-rate-limit',
        )
      await withAppliance(context, options, async ({ database, world }) => {
        const row = await changeKey({ database, clock: world.clock }, id, changes)
        printResult(context, options, toJson(row), () => JSON.stringify(toJson(row), null, 2))
      })
    })
  command(group, 'list', 'list keys, without their secrets')
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: CommonOptions & { workspace?: string }) => {
      await withAppliance(context, options, async ({ database }) => {
        const keys = await listApiKeys(database.reader, options.workspace)
        printResult(context, options, keys.map(toJson), () =>
          table(
            ['ID', 'NAME', 'KEY', 'TYPE', 'RATE', 'EMAILS', 'WORKSPACE', 'REVOKED'],
            keys.map(key => [
              key.id,
              key.name,
              key.hint,
              key.isSandbox ? `${key.type} sandbox` : key.type,
              key.rateLimit,
              key.emailRateLimit,
              key.workspaceId,
              isoTimeOrNull(key.revokedAt),
            ]),
          ),
        )
      })
    })
  command(group, 'revoke <id>', 'revoke a key').action(async (id: string, options: CommonOptions) => {
    await withAppliance(context, options, async ({ database, world }) => {
      await revokeKey({ database, clock: world.clock }, id)
      printResult(context, options, { success: true }, () => 'revoked')
    })
  })
}

function toJson(key: ApiKey) {
  return {
    id: key.id,
    workspace_id: key.workspaceId,
    name: key.name,
    hint: key.hint,
    type: key.type,
    permissions: key.permissions,
    is_sandbox: key.isSandbox,
    rate_limit: key.rateLimit,
    email_rate_limit: key.emailRateLimit,
    created_at: isoTime(key.createdAt),
    revoked_at: isoTimeOrNull(key.revokedAt),
  }
}

export function loginCommands(program: Command, context: CliContext): void {
  const group = program.command('login').description('SMTP logins')
  command(group, 'unlock <address>', 'clear the failed logins of an IP address').action(
    async (address: string, options: CommonOptions) => {
      if (ipVersion(address) === 0) throw new UsageError(`${address} is not a valid IP address`)
      await withAppliance(context, options, async appliance => {
        const answer = await askServer(appliance, 'POST', LOGIN_UNLOCK_PATH, { address })
        // Failed logins are only kept in the server's memory.
        if (answer.trouble !== null) throw new AppError('unavailable', answer.trouble)
        const { unlocked } = answer.data as { unlocked: boolean }
        printResult(context, options, { unlocked }, () =>
          unlocked ? `${address} may log in again` : `${address} has no failed logins`,
        )
      })
    },
  )
}
