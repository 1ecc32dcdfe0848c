/**
 * `postroad init`: creates the data folder, schema, secrets, a first workspace and its live key and, with `--operator`, the first owner's
 * account. Running it again changes nothing.
 */
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { createKey, DEFAULT_KEY_LIMITS } from '../accounts/keys.js'
import { createWorkspace } from '../accounts/workspace-settings.js'
import { listOperators, type Operator } from '../accounts/operators/operator-store.js'
import { createOperator, renewFirstLink } from '../accounts/operators/operators.js'
import { signInUrl } from '../accounts/operators/links.js'
import { listWorkspaces, type Workspace } from '../accounts/workspace-store.js'
import type { Appliance } from '../appliance/appliance.js'
import { needsUpgrade } from '../appliance/upgrade/preview-upgrade.js'
import { baseUrl, type Config } from '../config/config.js'
import { shellOperator, type OperatorPrincipal } from '../http/operator.js'
import { ALL_WORKSPACES } from '../http/roles.js'
import { isServing } from '../db/sqlite/serve-lock.js'
import { actAsOwnerOf } from '../world/process-owner.js'
import {
  commandToPaste,
  printResult,
  readConfig,
  withOpened,
  type CliContext,
  type CommonOptions,
} from './context.js'
import { shellUser } from './api.js'
import { command } from './options.js'
import { linkText } from './tenant/operator.js'

interface InitOptions extends CommonOptions {
  readonly withoutKey?: boolean
  readonly operator?: string
}

export function initCommand(program: Command, context: CliContext): void {
  command(program, 'init', 'create the data folder, a first workspace and its API key')
    .option('--without-key', 'do not create a key, e.g. if output is logged; create one with `key create`')
    .option(
      '--operator <email>',
      'create the account of the first owner and print a one-time link to sign in',
    )
    .action(async (options: InitOptions) => {
      const { config } = readConfig(context, options)
      actAsOwnerOf(config.dataDir)
      // The schema and the sealed secrets must not change under a running server.
      const isRunning =
        config.databaseFile !== undefined && existsSync(config.databaseFile) && isServing(config.dataDir)
      if (!isRunning && options.operator === undefined && (await needsUpgrade(config))) {
        printResult(context, options, { workspace: null, key: null }, () => OLDER_TEXT)
        return
      }
      await withOpened(context, config, appliance => init(appliance, context, options), {
        mayCreate: true,
        mayMigrate: !isRunning,
      })
    })
}

/** The unit runs `init` before `serve`, which copies the database first, holds its lock and logs how far it is. */
const OLDER_TEXT =
  'The database has the schema of an older version: `postroad serve` upgrades it, or `postroad migrate`.'

async function init(appliance: Appliance, context: CliContext, options: InitOptions): Promise<void> {
  const user = shellOperator(shellUser(context))
  const run = (text: string) => commandToPaste(context, options, text)
  const { json, text } = await initWorkspace(appliance, user, options, run)
  if (options.operator === undefined) {
    const [operator] = await listOperators(appliance.database.reader)
    printResult(context, options, json, () => (operator ? text : `${text}\n${consoleText(run)}`))
    return
  }
  const owner = await initOperator(appliance, user, options.operator, run)
  printResult(context, options, { ...json, ...owner.json }, () => `${text}\n${owner.text}`)
}

/** A command to paste that acts on the same appliance. */
type Paste = (text: string) => string

interface Made {
  readonly json: object
  readonly text: string
}

async function initWorkspace(
  appliance: Appliance,
  { actor }: OperatorPrincipal,
  options: InitOptions,
  run: Paste,
): Promise<Made> {
  const { database, config } = appliance
  const [existing] = await listWorkspaces(database.reader)
  if (existing) {
    const { id, name } = existing
    return { json: { workspace: { id, name }, key: null }, text: againText(existing, config, run) }
  }
  const parts = { ...appliance, ...appliance.world }
  const workspace = await createWorkspace(parts, { name: 'default' }, actor)
  const { id, name } = workspace
  if (options.withoutKey === true)
    return { json: { workspace: { id, name }, key: null }, text: keylessText(workspace, run) }
  const { row, key } = await createKey(
    parts,
    { workspaceId: id, name: 'first key', isSandbox: false, ...DEFAULT_KEY_LIMITS },
    actor,
  )
  const json = { workspace: { id, name }, key: { id: row.id, key } }
  return { json, text: firstText(workspace, key, config, run) }
}

/** Only the first account is created here: later ones are created by an operator who may grant their roles. */
async function initOperator(
  appliance: Appliance,
  user: OperatorPrincipal,
  email: string,
  run: Paste,
): Promise<Made> {
  const { database, config, world } = appliance
  const [existing] = await listOperators(database.reader)
  const parts = { ...appliance, ...world }
  if (existing?.email === email.toLowerCase()) {
    // Whoever lost the link before it was used gets another one.
    const link = await renewFirstLink(parts, existing.id)
    if (link !== undefined) return madeOperator(config, { operator: existing, link })
  }
  if (existing)
    return {
      json: { operator: { id: existing.id, email: existing.email }, link: null, link_token: null },
      text: `There is an operator already: ${existing.email}. For another link: ${run(`operator reset ${existing.email}`)}`,
    }
  const grant = { workspaceId: ALL_WORKSPACES, role: 'owner' } as const
  return madeOperator(config, await createOperator(parts, { email, grant }, 'sign_in', user))
}

function madeOperator(config: Config, { operator, link }: { operator: Operator; link: string }): Made {
  const url = signInUrl(config.publicUrl, link)
  return {
    json: { operator: { id: operator.id, email: operator.email }, link: url, link_token: link },
    text: linkText(operator.email, url, link),
  }
}

function firstText(workspace: Workspace, key: string, config: Config, run: Paste): string {
  const lines = [
    `workspace  ${workspace.id} (${workspace.name})`,
    `live key   ${key}`,
    `           (not shown again; create more with \`${run('key create')}\`)`,
    '',
    'Once the server is running, send mail with:',
    '',
    curlCommand(key, config),
    ...smtpExample(key, config),
  ]
  if (config.mta.capture)
    lines.push(
      '',
      'Mail is not delivered but kept in the local inbox. View it with:',
      '',
      `curl ${baseUrl(config)}/capture`,
      run('capture list'),
    )
  return `${lines.join('\n')}\n`
}

function keylessText({ id, name }: Workspace, run: Paste): string {
  return `workspace  ${id} (${name})\nCreate a key with: ${run(`key create --workspace ${id} --name NAME`)}`
}

function curlCommand(key: string, config: Config): string {
  const body = {
    to: 'ann@example.com',
    from_email: 'you@example.org',
    from_name: 'Postroad',
    subject: 'It works',
    html: '<h1>Hello</h1><p>The first mail from this appliance.</p>',
  }
  return [
    `curl ${baseUrl(config)}/api/v1/email/send \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n')
}

/** The same over SMTP, as an application would send it; empty if the submission listener is off. */
function smtpExample(key: string, { submission }: Config): string[] {
  const [address] = submission.listen
  if (!address) return []
  const host = ['0.0.0.0', '::'].includes(address.host) ? 'localhost' : address.host
  return [
    '',
    'or over SMTP (username apikey, password the key):',
    '',
    `curl smtp://${host.includes(':') ? `[${host}]` : host}:${address.port}${submission.requireTls ? ' --ssl-reqd' : ''} --crlf \\`,
    `  --user 'apikey:${key}' \\`,
    "  --mail-from you@example.org --mail-rcpt ann@example.com -T - <<'END'",
    'From: Postroad <you@example.org>',
    'To: ann@example.com',
    'Subject: It works over SMTP',
    '',
    'Hello.',
    'END',
  ]
}

function consoleText(run: Paste): string {
  return `For the console: \`${run('init --operator you@example.com')}\` prints a link to open.`
}

function againText(workspace: Workspace, config: Config, run: Paste): string {
  return [
    `The data folder ${config.dataDir} is already set up: workspace ${workspace.id} (${workspace.name}).`,
    `Keys are shown only when created; create another with: ${run(`key create --workspace ${workspace.id} --name NAME`)}`,
    '',
  ].join('\n')
}
