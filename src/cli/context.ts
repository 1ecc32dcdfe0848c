/**
 * Shared by all commands: configuration, output and exit status.
 *
 * Commands print data to standard output and everything else to standard error. `--json` prints the REST form.
 */
import { createReadStream } from 'node:fs'
import {
  findWorkspace,
  findWorkspaceByName,
  listWorkspaces,
  type Workspace,
} from '../accounts/workspace-store.js'
import { type Appliance, openAppliance, type OpenRequest } from '../appliance/appliance.js'
import { CONFIG_SCHEMA } from '../appliance/resources.js'
import type { Config } from '../config/config.js'
import { chooseConfigFile, type Environment } from '../config/environment.js'
import { nearestName } from '../config/key-names.js'
import { loadConfig, type LoadedConfig, type LoadRequest } from '../config/load.js'
import { AppError } from '../core/errors.js'
import { visibleLine } from '../core/names.js'
import { isUuid } from '../core/ids.js'
import type { Queries } from '../db/database.js'
import type { World } from '../world/world.js'

export interface CliContext {
  /** What the user types to run it, for commands to paste; default `postroad`. */
  readonly program?: string
  readonly env: Environment
  readonly world: World
  /** Write whole lines to standard output and standard error, control characters of names and mail as escapes. */
  readonly print: (text: string) => void
  readonly complain: (text: string) => void
  /** Data that programs read: unchanged, unless standard output is a terminal. */
  readonly printData: (text: string) => void
  /** Unchanged: escape sequences of our own. */
  readonly printRaw: (text: string) => void
  /** Asks the user at the terminal; absent without a terminal. */
  readonly ask?: (question: string) => Promise<string>
  /** Standard input; absent if nothing is piped in. */
  readonly input?: () => AsyncIterable<Buffer | string>
  /** Whether the reader of standard output is gone; further output is discarded. */
  readonly isOutputClosed?: () => boolean
  /** Sets the exit status, by default 1, for a command that ran but found something wrong. */
  fail: (status?: number) => void
}

export interface CommonOptions {
  readonly config?: string
  /** URL of a remote appliance, and an operator token for it. */
  readonly server?: string
  readonly token?: string
  readonly json?: boolean
}

export interface OwnedOptions extends CommonOptions {
  readonly workspace: string
}

export interface ListOptions extends CommonOptions {
  readonly limit: number
}

/** @param named id, or name in any case @throws AppError not_found */
export async function getWorkspace(db: Queries, named: string): Promise<Workspace> {
  const workspace = (await findWorkspace(db, named)) ?? (await findWorkspaceByName(db, named))
  if (workspace) return workspace
  const names = isUuid(named) ? [] : (await listWorkspaces(db)).map(({ name }) => name)
  throw new AppError('not_found', `no workspace ${named}${didYouMean(named, names)}`)
}

/** @returns `; did you mean ...?`, or empty if no known name is close */
export function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known)
  return nearest === undefined ? '' : `; did you mean ${nearest}?`
}

/** Replaces a workspace name by its id. An id is not checked here, since some commands also accept removed workspaces. */
async function resolveWorkspace({ database }: Appliance, options: CommonOptions): Promise<void> {
  const given = options as { workspace?: unknown }
  if (typeof given.workspace !== 'string' || isUuid(given.workspace)) return
  given.workspace = (await getWorkspace(database.reader, given.workspace)).id
}

/** @throws ConfigError */
export function readConfig(context: CliContext, options: CommonOptions): LoadedConfig {
  return loadConfig(configRequest(context, options))
}

/** A command to paste that acts on the same appliance. @param text e.g. `capture list` */
export function commandToPaste(
  { program = 'postroad' }: CliContext,
  options: CommonOptions,
  text: string,
): string {
  const { config } = options
  if (config === undefined) return `${program} ${text}`
  return `${program} ${text} --config ${/^[\w./@%+=:-]+$/.test(config) ? config : `'${config.replaceAll("'", String.raw`'\''`)}'`}`
}

export function configRequest({ env }: CliContext, options: CommonOptions): LoadRequest {
  return { schema: CONFIG_SCHEMA, file: chooseConfigFile(options.config, env), env }
}

/** Opens the appliance for one command and closes it afterwards. `options.workspace` is an id when `work` is called. */
export async function withAppliance<T>(
  context: CliContext,
  options: CommonOptions,
  work: (appliance: Appliance) => Promise<T>,
): Promise<T> {
  if (options.server !== undefined)
    throw new UsageError('this command works on the local appliance only; run it on that machine')
  const { config } = readConfig(context, options)
  return withOpened(context, config, async appliance => {
    await resolveWorkspace(appliance, options)
    return work(appliance)
  })
}

export async function withOpened<T>(
  context: CliContext,
  config: Config,
  work: (appliance: Appliance) => Promise<T>,
  may: Pick<OpenRequest, 'mayCreate' | 'mayMigrate'> = {},
): Promise<T> {
  const appliance = await openAppliance({ config, world: context.world, ...may })
  try {
    return await work(appliance)
  } finally {
    await appliance[Symbol.asyncDispose]()
  }
}

export function printResult(
  context: CliContext,
  options: CommonOptions,
  json: unknown,
  text: () => string,
): void {
  context.print(options.json ? JSON.stringify(json, null, 2) : text())
}

export function table(
  head: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): string {
  if (rows.length === 0) return '(none)'
  const cells = [head, ...rows.map(row => row.map(cell => visibleLine(String(cell ?? '-'))))]
  const widths = head.map((_, column) => Math.max(...cells.map(row => (row[column] ?? '').length)))
  return cells
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Invalid command line: exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A progress bar on standard error; prints nothing unless that is a terminal. */

const WIDTH = 30
const TO_END_OF_LINE = '\x1b[K'

/** @param done 0 to 1; undefined if the total is unknown */
export function drawProgress(done: number | undefined, remark: string): void {
  if (!process.stderr.isTTY) return
  if (done === undefined) {
    process.stderr.write(`\r${remark}${TO_END_OF_LINE}`)
    return
  }
  const filled = Math.round(WIDTH * done)
  const bar = '#'.repeat(filled) + '-'.repeat(WIDTH - filled)
  process.stderr.write(`\r[${bar}] ${Math.round(100 * done)}% ${remark}${TO_END_OF_LINE}`)
}

/** Clears the bar before other output. */
export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${TO_END_OF_LINE}`)
}

/** Opens a file argument; `-` is standard input. */
export function openInput(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file)
}
