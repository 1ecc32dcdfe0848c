/** `postroad key create|set|list|revoke`, and `postroad login list|unlock`. A key is printed only when it is created. */
import type { Command } from 'commander'
import { given } from '../../core/given.js'
import { ipVersion } from '../../world/net/ip-address.js'
import { withApi } from '../api.js'
import { type CliContext, type CommonOptions, printResult, table, UsageError } from '../context.js'
import { apiCommand, owned, segment, wholeNumber } from '../options.js'

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

/** As the API returns it. */
interface Key {
  readonly id: string
  readonly workspace_id: string
  readonly name: string
  readonly hint: string
  readonly type: string
  readonly is_sandbox: boolean
  readonly rate_limit: number
  readonly email_rate_limit: number
  readonly revoked_at: string | null
  readonly last_used_at: string | null
}

const MAX_LISTED = 100_000

export function keyCommands(program: Command, context: CliContext): void {
  const group = program.command('key').description('API keys')
  owned(apiCommand(group, 'create', 'create a key; it is printed only once'), 'workspace of the key')
    .requiredOption('--name <name>', 'what it is for')
    .option('--sandbox', 'create a sandbox key: mail sent with it is not delivered')
    .option(
      '--permissions <list>',
      'comma-separated, e.g. email:send,email:read, or sending_access for everything needed to send (default: all)',
    )
    .option('--rate-limit <n>', 'requests per minute, 0 = unlimited (default: 100)', wholeNumber)
    .option('--email-rate-limit <n>', 'recipients per minute, 0 = unlimited (default: 100)', wholeNumber)
    .action(async (options: CreateOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const made = await admin.send<Key & { key: string }>(
          'POST',
          `/workspaces/${options.workspace}/keys`,
          {
            ...settingsOf(options),
            ...given({ sandbox: options.sandbox }),
          },
        )
        printResult(context, options, made, () => made.key)
        // On standard error, so that a script can read just the key.
        if (!options.json) context.complain(`id ${made.id}`)
      })
    })
  apiCommand(group, 'set <id>', "change a key's name, permissions or rate limits")
    .option('--name <name>', 'what it is for')
    .option('--permissions <list>', 'comma-separated, or sending_access, or full_access')
    .option('--rate-limit <n>', 'requests per minute, 0 = unlimited', wholeNumber)
    .option('--email-rate-limit <n>', 'recipients per minute, 0 = unlimited', wholeNumber)
    .action(async (id: string, options: SetOptions) => {
      const changes = settingsOf(options)
      if (Object.keys(changes).length === 0)
        throw new UsageError(
          'nothing to change; pass --name, --permissions, --rate-limit or --email-rate-limit',
        )
      await withApi(context, options, async ({ admin }) => {
        const changed = await admin.send<Key>('PATCH', `/keys/${segment(id)}`, changes)
        printResult(context, options, changed, () => JSON.stringify(changed, null, 2))
      })
    })
  apiCommand(group, 'list', 'list keys, without their secrets')
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: CommonOptions & { workspace?: string }) => {
      await withApi(context, options, async ({ admin }) => {
        const keys = await admin.list<Key>('/keys', { workspace_id: options.workspace }, MAX_LISTED)
        printResult(context, options, keys, () =>
          table(
            ['ID', 'NAME', 'KEY', 'TYPE', 'RATE', 'EMAILS', 'WORKSPACE', 'LAST USED', 'REVOKED'],
            keys.map(key => [
              key.id,
              key.name,
              key.hint,
              key.is_sandbox ? `${key.type} sandbox` : key.type,
              key.rate_limit,
              key.email_rate_limit,
              key.workspace_id,
              key.last_used_at,
              key.revoked_at,
            ]),
          ),
        )
      })
    })
  apiCommand(group, 'revoke <id>', 'revoke a key; mail already scheduled with it is still sent')
    .option('--cancel-scheduled', 'also cancel mail scheduled with it, of a key already revoked as well')
    .action(async (id: string, options: CommonOptions & { cancelScheduled?: true }) => {
      await withApi(context, options, async ({ admin }) => {
        const query = options.cancelScheduled ? '?cancel_scheduled=true' : ''
        const revoked = await admin.send<RevokedKey>('DELETE', `/keys/${segment(id)}${query}`)
        printResult(context, options, revoked, () => revokedText(id, revoked))
      })
    })
}

interface RevokedKey {
  readonly scheduled: number
  readonly cancelled: number
}

function revokedText(id: string, { scheduled, cancelled }: RevokedKey): string {
  const waiting =
    `${mails(scheduled)} scheduled with it will still be sent; ` +
    `cancel with: postroad key revoke ${id} --cancel-scheduled`
  return [
    'revoked',
    ...(cancelled > 0 ? [`${mails(cancelled)} scheduled with it cancelled`] : []),
    ...(scheduled > 0 ? [waiting] : []),
  ].join('\n')
}

function mails(count: number): string {
  return `${count} ${count === 1 ? 'mail' : 'mails'}`
}

function settingsOf({ name, permissions, rateLimit, emailRateLimit }: SetOptions) {
  return given({
    name,
    permissions: permissions?.split(',').map(one => one.trim()),
    rate_limit: rateLimit,
    email_rate_limit: emailRateLimit,
  })
}

interface LoginLock {
  readonly scope: string
  readonly address: string | null
  readonly account: string | null
  readonly failures: number
  readonly locked_until: string
}

export function loginCommands(program: Command, context: CliContext): void {
  const group = program.command('login').description('failed logins, by SMTP and by operators')
  apiCommand(group, 'list', 'list locked accounts and addresses').action(async (options: CommonOptions) => {
    await withApi(context, options, async ({ admin }) => {
      const locks = await admin.list<LoginLock>('/login-locks', {}, MAX_LISTED)
      printResult(context, options, locks, () =>
        table(
          ['LOCKED', 'ADDRESS', 'ACCOUNT', 'FAILURES', 'UNTIL'],
          locks.map(lock => [lock.scope, lock.address, lock.account, lock.failures, lock.locked_until]),
        ),
      )
    })
  })
  apiCommand(group, 'unlock <address>', 'clear the failed logins of an IP address').action(
    async (address: string, options: CommonOptions) => {
      if (ipVersion(address) === 0) throw new UsageError(`${address} is not a valid IP address`)
      await withApi(context, options, async ({ admin }) => {
        const answer = await admin.send<{ unlocked: boolean }>('POST', '/login-locks/unlock', { address })
        printResult(context, options, answer, () =>
          answer.unlocked ? `${address} may log in again` : `${address} has no failed logins`,
        )
      })
    },
  )
}
