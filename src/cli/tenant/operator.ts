/** `postroad operator add|list|set|remove|reset|mail|token`: accounts of the people who run the appliance. */
import type { Command } from 'commander'
import { readMoment } from '../../core/moments.js'
import { given } from '../../core/given.js'
import { ROLES } from '../../http/roles.js'
import { withApi, type Api } from '../api.js'
import { printResult, table, UsageError, type CliContext, type CommonOptions } from '../context.js'
import { apiCommand, choice, confirm, confirmable, type ConfirmOptions } from '../options.js'

interface OperatorOptions extends CommonOptions {
  readonly role?: string
  readonly workspace?: string
  readonly name?: string
  readonly invite?: boolean
  readonly removeRole?: boolean
}

interface TokenOptions extends CommonOptions {
  readonly name?: string
  readonly role?: string
  readonly expires?: string
  readonly operator?: string
}

interface OperatorAnswer {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly roles: readonly { readonly workspace_id: string | null; readonly role: string }[]
  readonly has_totp: boolean
  readonly last_sign_in_at: string | null
  readonly invitation: object | null
  readonly link?: string | null
  readonly link_token?: string | null
}

interface TokenAnswer {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly role: string | null
  readonly last_used_at: string | null
  readonly expires_at: string | null
  readonly token?: string
}

interface AccountMailAnswer {
  readonly created_at: string
  readonly to: string
  readonly kind: string
  readonly state: string
  readonly attempts: number
  readonly reason: string | null
}

const MAX_ROWS = 10_000

export function operatorCommands(program: Command, context: CliContext): void {
  const group = program.command('operator').description('accounts of operators')
  addCommand(group, context)
  listCommand(group, context)
  setCommand(group, context)
  removeCommand(group, context)
  resetCommand(group, context)
  mailCommand(group, context)
  tokenCommands(group, context)
}

function addCommand(group: Command, context: CliContext): void {
  const one = apiCommand(group, 'add <email>', 'create an account and a one-time link to sign in')
  choice(one, '--role <role>', ROLES)
    .option('--workspace <name|id>', 'workspace of the role (default: all)')
    .option('--name <name>', 'name of the person')
    .option('--invite', 'send the link by mail instead of printing it')
    .action(async (email: string, options: OperatorOptions) => {
      const { role } = options
      if (role === undefined) throw new UsageError(`--role is missing: one of ${ROLES.join(', ')}`)
      await withApi(context, options, async ({ admin }) => {
        const { name, workspace, invite } = options
        const body = { email, role, ...given({ name, workspace_id: workspace, send_mail: invite }) }
        printLinked(context, options, await admin.send<OperatorAnswer>('POST', '/operators', body))
      })
    })
}

function listCommand(group: Command, context: CliContext): void {
  apiCommand(group, 'list', 'list operators and their roles').action(async (options: CommonOptions) => {
    await withApi(context, options, async ({ admin }) => {
      const found = await admin.list<OperatorAnswer>('/operators', {}, MAX_ROWS)
      printResult(context, options, found, () =>
        table(
          ['EMAIL', 'NAME', 'ROLES', 'TOTP', 'LAST SIGN-IN', 'ID'],
          found.map(one => [
            one.email,
            one.name,
            rolesText(one),
            one.has_totp ? 'yes' : 'no',
            one.invitation ? 'invited' : one.last_sign_in_at,
            one.id,
          ]),
        ),
      )
    })
  })
}

function setCommand(group: Command, context: CliContext): void {
  const one = apiCommand(group, 'set <email>', 'change the name or a role of an operator')
  choice(one, '--role <role>', ROLES)
    .option('--remove-role', 'take the role away')
    .option('--workspace <name|id>', 'workspace of the role (default: all)')
    .option('--name <name>', 'name of the person')
    .action(async (email: string, options: OperatorOptions) => {
      const { role, name, removeRole } = options
      if (role !== undefined && removeRole)
        throw new UsageError('give either --role or --remove-role, not both')
      if (role === undefined && name === undefined && !removeRole)
        throw new UsageError('nothing to change; pass --role, --remove-role or --name')
      await withApi(context, options, async ({ admin }) => {
        const path = pathOf(email)
        const place = `${path}/roles/${options.workspace ?? 'all'}`
        if (name !== undefined) await admin.send('PATCH', path, { name })
        const granted =
          role === undefined
            ? undefined
            : await admin.send<{ credentials_removed: boolean }>('PUT', place, { role })
        if (removeRole) await admin.send('DELETE', place)
        const operator = await admin.get<OperatorAnswer>(path)
        const { credentials_removed = false } = granted ?? {}
        printResult(context, options, granted ? { ...operator, credentials_removed } : operator, () =>
          [
            `${operator.email}  ${rolesText(operator)}`,
            ...(credentials_removed ? [removedText(operator.email)] : []),
          ].join('\n'),
        )
      })
    })
}

function removedText(email: string): string {
  return [
    'The address was not proved, so password, codes, passkeys, tokens, sessions and links of the account were removed.',
    `Send a new link: postroad operator reset ${email} --invite`,
  ].join('\n')
}

function mailCommand(group: Command, context: CliContext): void {
  apiCommand(group, 'mail', 'list invitations and resets that were mailed, newest first').action(
    async (options: CommonOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const found = await admin.list<AccountMailAnswer>('/account-mail', {}, MAX_ROWS)
        printResult(context, options, found, () =>
          table(
            ['CREATED', 'TO', 'KIND', 'STATE', 'ATTEMPTS', 'LAST ANSWER'],
            found.map(one => [one.created_at, one.to, one.kind, one.state, one.attempts, one.reason]),
          ),
        )
      })
    },
  )
}

function removeCommand(group: Command, context: CliContext): void {
  confirmable(apiCommand(group, 'remove <email>', 'remove an account and end its access at once')).action(
    async (email: string, options: ConfirmOptions) => {
      await confirm(context, options, `This removes the account ${email} with its sessions and tokens.`)
      await withApi(context, options, async ({ admin }) => {
        await admin.send('DELETE', pathOf(email))
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
}

function resetCommand(group: Command, context: CliContext): void {
  confirmable(
    apiCommand(
      group,
      'reset <email>',
      'delete password, passkeys and TOTP of an operator, and make a one-time link',
    ),
  )
    .option('--invite', 'send the link by mail instead of printing it')
    .action(async (email: string, options: ConfirmOptions & OperatorOptions) => {
      await confirm(context, options, `This ends all sessions and tokens of ${email}.`)
      await withApi(context, options, async ({ admin }) => {
        const body = given({ send_mail: options.invite })
        printLinked(
          context,
          options,
          await admin.send<OperatorAnswer>('POST', `${pathOf(email)}/reset`, body),
        )
      })
    })
}

function tokenCommands(group: Command, context: CliContext): void {
  const tokens = group.command('token').description('tokens for scripts')
  const whose = '--operator <email>'
  choice(
    apiCommand(tokens, 'create', 'create a token; it is printed only once')
      .requiredOption('--name <name>', 'what it is for')
      .option(whose, 'whose; required on the appliance itself, where you have no account'),
    '--role <role>',
    ROLES,
    'limit the token to this role',
  )
    .option('--expires <time>', 'ISO 8601 time at which it expires (default: never)')
    .action(async (options: TokenOptions) => {
      const { name, role, expires } = options
      if (expires !== undefined && readMoment(expires) === undefined)
        throw new UsageError(`--expires ${expires} is not an ISO 8601 time, e.g. 2027-01-31`)
      await withApi(context, options, async api => {
        const body = given({ name, role, expires_at: expires })
        const created = await api.admin.send<TokenAnswer>('POST', tokensPath(api, options), body)
        printResult(context, options, created, () => created.token ?? '')
        // On standard error, so that a script can read just the token.
        if (!options.json) context.complain(`id ${created.id}`)
      })
    })
  apiCommand(tokens, 'list', 'list tokens, without their secrets')
    .option(whose, 'whose; required on the appliance itself')
    .action(async (options: TokenOptions) => {
      await withApi(context, options, async api => {
        const found = await api.admin.list<TokenAnswer>(tokensPath(api, options), {}, MAX_ROWS)
        printResult(context, options, found, () =>
          table(
            ['ID', 'NAME', 'TOKEN', 'ROLE', 'LAST USED', 'EXPIRES'],
            found.map(one => [one.id, one.name, one.hint, one.role, one.last_used_at, one.expires_at]),
          ),
        )
      })
    })
  apiCommand(tokens, 'revoke <id>', 'revoke a token')
    .option(whose, 'whose; required on the appliance itself')
    .action(async (id: string, options: TokenOptions) => {
      await withApi(context, options, async api => {
        await api.admin.send('DELETE', `${tokensPath(api, options)}/${encodeURIComponent(id)}`)
        printResult(context, options, { success: true }, () => 'revoked')
      })
    })
}

/** @throws UsageError */
function tokensPath({ isRemote }: Api, { operator }: TokenOptions): string {
  if (operator !== undefined) return `${pathOf(operator)}/tokens`
  if (!isRemote) throw new UsageError('--operator is missing: the email address of the operator')
  return '/me/tokens'
}

function pathOf(email: string): string {
  return `/operators/${encodeURIComponent(email)}`
}

function printLinked(context: CliContext, options: OperatorOptions, operator: OperatorAnswer): void {
  const { email, link, link_token } = operator
  printResult(context, options, operator, () =>
    link ? linkText(email, link, link_token ?? '') : `${email}: the link is on its way by mail`,
  )
}

/** @param token for scripts, which have no console */
export function linkText(email: string, link: string, token: string): string {
  return [
    `Sign in as ${email} once with:`,
    '',
    `  ${link}`,
    '',
    `or send {"token": "${token}"} to POST /api/admin/v1/session/link,`,
    'with the header "Sec-Fetch-Site: same-origin", as a browser does.',
  ].join('\n')
}

function rolesText({ roles }: OperatorAnswer): string {
  if (roles.length === 0) return 'none'
  return roles.map(({ workspace_id, role }) => `${role} of ${workspace_id ?? 'all'}`).join(', ')
}
