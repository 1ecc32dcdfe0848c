/**
 * Options that commands share, and command groups built from them.
 *
 * A group for resources of a workspace (`lists`, `tags`, `campaign` ...) gives every command `--workspace`; its lists have `--limit`, a table
 * and `--json`. Destructive commands ask for confirmation on a terminal and need `--yes` elsewhere.
 */
import type { Command } from 'commander'
import { withApi, type Query } from './api.js'
import {
  printResult,
  table,
  UsageError,
  type CliContext,
  type CommonOptions,
  type ListOptions,
  type OwnedOptions,
} from './context.js'

/** Adds a command with the options that all commands share. @param nameAndArgs e.g. `show <id>` */
export function command(parent: Command, nameAndArgs: string, description: string): Command {
  return parent
    .command(nameAndArgs)
    .description(description)
    .option(
      '--config <file>',
      'configuration file (default: $POSTROAD_CONFIG, then /etc/postroad/postroad.toml)',
    )
    .option('--json', 'print JSON')
}

/** A command that is a client of the API (`api.ts`), so that it also works on a remote appliance. */
export function apiCommand(parent: Command, nameAndArgs: string, description: string): Command {
  return command(parent, nameAndArgs, description)
    .option('--server <url>', 'use a remote appliance (default: $POSTROAD_SERVER)')
    .option('--token <token>', 'operator token for it (default: $POSTROAD_TOKEN)')
}

/** Adds the option of commands that work in one workspace. @param what its help text */
export function owned(one: Command, what: string): Command {
  return one.requiredOption('--workspace <name|id>', what)
}

/** Adds the option of commands that print a list. @param usual default limit */
export function limited(one: Command, usual: number): Command {
  return one.option('--limit <n>', 'maximum number of rows', wholeNumber, usual)
}

/** Adds an option that takes one of some words. @param flags e.g. `--status <status>` */
export function choice(one: Command, flags: string, known: readonly string[], description?: string): Command {
  return one.option(flags, description ?? `one of ${known.join(', ')}`, text => {
    if (!known.includes(text)) throw new UsageError(`${text} is not one of ${known.join(', ')}`)
    return text
  })
}

/** @throws UsageError */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${text} is not a whole number`)
  return Number(text)
}

/** Default of `--limit`. */
const DEFAULT_ROWS = 100

export interface OwnedGroup {
  readonly group: Command
  readonly inWorkspace: (nameAndArgs: string, description: string) => Command
}

/** A group of API commands in one workspace. @param whose help text of `--workspace` */
export function workspaceGroup(
  program: Command,
  name: string,
  description: string,
  whose = `workspace of the ${name}`,
): OwnedGroup {
  const group = program.command(name).description(description)
  return {
    group,
    inWorkspace: (nameAndArgs, about) => owned(apiCommand(group, nameAndArgs, about), whose),
  }
}

/** A list of the REST API, as a command prints it. */
export interface PrintedList<Row, Options> {
  /** Below `/api/v1`. @param named the command's first argument, empty if it has none */
  readonly path: (named: string, options: Options) => string
  readonly query?: (options: Options) => Query
  readonly head: readonly string[]
  readonly cells: (row: Row) => readonly (string | number | null)[]
}

/** Turns a command of a workspace into one that prints a list, as a table or as the JSON of the API. @param one may have further options */
export function printsRest<Row, Options = object>(
  context: CliContext,
  one: Command,
  { path, query, head, cells }: PrintedList<Row, Options>,
): void {
  limited(one, DEFAULT_ROWS).action(async (...given: unknown[]) => {
    // Commander passes the arguments, the options and the command.
    const options = given.at(-2) as OwnedOptions & ListOptions & Options
    const named = given.length > 2 ? String(given[0]) : ''
    await withApi(context, options, async api => {
      const rest = api.inWorkspace(options.workspace)
      const rows = await rest.list<Row>(path(named, options), query?.(options) ?? {}, options.limit)
      printResult(context, options, rows, () => table(head, rows.map(cells)))
    })
  })
}

/** A value as one segment of an API path. */
export function segment(value: string): string {
  return encodeURIComponent(value)
}

export interface ConfirmOptions extends CommonOptions {
  readonly yes?: boolean
}

/** The user declined; nothing was changed. */
export class NotConfirmed extends Error {
  override readonly name = 'NotConfirmed'
}

export function confirmable(command: Command): Command {
  return command.option('--yes', 'do not ask for confirmation')
}

/** @throws UsageError without a terminal or `--yes`; NotConfirmed if the user declines. @param what e.g. `This takes 12 messages out of the queue.` */
export async function confirm(context: CliContext, options: ConfirmOptions, what: string): Promise<void> {
  if (options.yes === true) return
  if (context.ask === undefined) throw new UsageError(`${what} To confirm, pass --yes.`)
  const answer = await context.ask(`${what} Continue? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new NotConfirmed('cancelled; nothing was changed')
}
