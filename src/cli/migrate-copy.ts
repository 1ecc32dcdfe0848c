/**
 * `postroad migrate copy SOURCE TARGET`: moves an appliance between SQLite and PostgreSQL.
 *
 * Copies the database while no server uses it, and reads the copy back. Exit status 0 means that every table of the target is equal to the
 * source's. Otherwise nothing is left at the target but, on PostgreSQL, empty tables. Passwords in URLs are never printed.
 */
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config/config.js'
import { parseDatabaseUrl } from '../config/schema/values.js'
import { AppError } from '../core/errors.js'
import {
  copyDatabase,
  isSame,
  type CopiedTable,
  type CopyPhase,
  type CopyProgress,
} from '../db/copy/copy-database.js'
import type { CopySource, CopyTarget } from '../db/copy/copy-side.js'
import { openPostgresSource, openPostgresTarget } from '../db/copy/postgres-side.js'
import { openSqliteSource, openSqliteTarget } from '../db/copy/sqlite-side.js'
import { takeServeLock } from '../db/sqlite/serve-lock.js'
import { actAsOwnerOf } from '../world/process-owner.js'
import type { Clock } from '../world/time/clock.js'
import {
  drawProgress,
  endProgress,
  printResult,
  readConfig,
  table,
  UsageError,
  type CliContext,
  type CommonOptions,
} from './context.js'
import { command } from './options.js'

/** One of the two databases. */
type Place =
  | { readonly dialect: 'sqlite'; readonly file: string; readonly shown: string }
  | { readonly dialect: 'postgres'; readonly url: string; readonly shown: string }

export function migrateCopyCommand(migrate: Command, context: CliContext): void {
  command(
    migrate,
    'copy <source> <target>',
    'copy the database between SQLite (sqlite:FILE) and PostgreSQL (postgres://...); the server must be stopped',
  ).action(async (sourceText: string, targetText: string, options: CommonOptions) => {
    const { config } = readConfig(context, options)
    const [source, target] = [placeOf('SOURCE', sourceText, config), placeOf('TARGET', targetText, config)]
    actAsOwnerOf(config.dataDir)
    const { tables, isEqual, seconds } = await copy(context, options, { source, target, config })
    if (!isEqual) context.fail()
    const json = { success: isEqual, source: source.shown, target: target.shown, tables: tables.map(toJson) }
    printResult(context, options, json, () =>
      [
        reportOf(tables),
        '',
        ...(isEqual
          ? closingWords(tables, seconds, { source, target, config })
          : ['The databases are not equal; nothing was kept at the target.']),
      ].join('\n'),
    )
  })
}

interface Places {
  readonly source: Place
  readonly target: Place
  readonly config: Config
}

async function copy(
  context: CliContext,
  options: CommonOptions,
  { source: from, target: to, config }: Places,
) {
  await using ends = new AsyncDisposableStack()
  for (const folder of lockedFolders(from, config)) ends.use(takeServeLock(folder))
  const source = ends.use(await named('source', () => openSource(context, from)))
  const target = ends.use(await named('target', () => openTarget(context, to)))
  const progress = new ProgressPrinter(context, options)
  ends.defer(endProgress)
  const result = await copyDatabase({ source, target, onProgress: one => progress.show(one) })
  return { ...result, seconds: progress.end() }
}

/** @throws UsageError, which does not repeat a URL: it may contain a password */
function placeOf(argument: string, text: string, { dataDir }: Config): Place {
  const url = parseDatabaseUrl(text)
  if (url?.dialect === 'postgres')
    return { dialect: 'postgres', url: url.location, shown: withoutPassword(url.location) }
  if (url === undefined && /^[a-z]+:\/\//i.test(text))
    throw new UsageError(`${argument} is neither sqlite:FILE nor a valid postgres:// URL`)
  // As in `database.url`, relative to the data directory; a plain path is relative to the working directory.
  const file = url ? resolve(dataDir, url.location) : resolve(text)
  return { dialect: 'sqlite', file, shown: file }
}

function withoutPassword(text: string): string {
  const url = new URL(text)
  url.password = ''
  for (const name of [...url.searchParams.keys()]) if (/password/i.test(name)) url.searchParams.delete(name)
  return url.href
}

/** A server locks its data directory, which may be another folder than the file's. */
function lockedFolders(place: Place, { dataDir, databaseFile }: Config): string[] {
  if (place.dialect === 'postgres') return []
  const isConfigured = databaseFile !== undefined && samePath(databaseFile, place.file)
  const folder = isConfigured ? dataDir : dirname(place.file)
  return existsSync(join(folder, 'serve.lock')) ? [folder] : []
}

function samePath(one: string, other: string): boolean {
  return existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other)
}

function openSource({ world }: CliContext, place: Place): Promise<CopySource> {
  return place.dialect === 'sqlite'
    ? openSqliteSource(place.file, world.clock)
    : openPostgresSource({ ...world, url: place.url })
}

function openTarget({ world }: CliContext, place: Place): Promise<CopyTarget> {
  return place.dialect === 'sqlite'
    ? openSqliteTarget(place.file, world.clock)
    : openPostgresTarget({ ...world, url: place.url })
}

/** Says which of the two databases an error is about. */
async function named<T>(which: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    if (error instanceof AppError)
      throw new AppError(error.code, `${which}: ${error.message}`, { cause: error })
    throw error instanceof Error ? new Error(`${which}: ${error.message}`, { cause: error }) : error
  }
}

const PHASES: Readonly<Record<CopyPhase, string>> = {
  copying: 'copying',
  building: 'building indexes',
  verifying: 'verifying',
}

/** How often the bar is drawn. */
const DRAW_MS = 200
/** Before this, a rate says little. */
const SETTLED_MS = 1_000

/** A bar on a terminal; elsewhere one line per table and phase on standard error, none with `--json`. */
class ProgressPrinter {
  private readonly clock: Clock
  private readonly complain: ((line: string) => void) | undefined
  private readonly started: number
  private changedAt = 0
  private drawnAt = -Infinity
  private last: CopyProgress | undefined

  constructor({ world, complain }: CliContext, { json }: CommonOptions) {
    this.clock = world.clock
    this.started = world.clock.monotonic()
    this.complain = json || process.stderr.isTTY ? undefined : complain
  }

  show(progress: CopyProgress): void {
    if (this.last?.phase !== progress.phase || this.last.table !== progress.table) {
      this.printLast()
      this.changedAt = this.clock.monotonic()
    }
    this.last = progress
    const now = this.clock.monotonic()
    if (now - this.drawnAt < DRAW_MS) return
    this.drawnAt = now
    const { phase, table, rows, rowsOfTable, done, total } = progress
    const elapsed = now - this.started
    const rate = (1_000 * done) / elapsed
    const parts = [
      PHASES[phase],
      ...(table === '' ? [] : [`${table} ${grouped(rows)} of ${grouped(rowsOfTable)}`]),
    ]
    if (phase !== 'building' && elapsed > SETTLED_MS)
      parts.push(`${grouped(rate)} rows/s`, `${duration((total - done) / rate)} left`)
    drawProgress(total === 0 ? 1 : done / total, parts.join(', '))
  }

  /** @returns seconds since it began */
  end(): number {
    this.printLast()
    return (this.clock.monotonic() - this.started) / 1_000
  }

  private printLast(): void {
    const { last } = this
    if (!last || (last.phase !== 'building' && last.rowsOfTable === 0)) return
    const seconds = ((this.clock.monotonic() - this.changedAt) / 1_000).toFixed(1)
    const what = last.phase === 'building' ? '' : ` ${last.table}: ${grouped(last.rows)} rows`
    this.complain?.(`${PHASES[last.phase]}${what} in ${seconds} s`)
  }
}

function grouped(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}

function duration(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Digits of a checksum that people compare. */
const SHOWN_DIGITS = 16

function reportOf(tables: readonly CopiedTable[]): string {
  const filled = tables.filter(one => one.source.rows > 0 || !isSame(one))
  const empty = tables.length - filled.length
  const rows = filled.map(one => [
    one.table,
    one.source.rows,
    one.source.checksum.slice(0, SHOWN_DIGITS),
    one.target.rows,
    one.target.checksum.slice(0, SHOWN_DIGITS),
    isSame(one) ? 'equal' : 'DIFFERENT',
  ])
  const head = ['TABLE', 'ROWS', 'CHECKSUM', 'ROWS OF COPY', 'CHECKSUM OF COPY', '']
  return [table(head, rows), ...(empty === 0 ? [] : [`and ${empty} empty tables`])].join('\n')
}

/** Files beside the database that are still needed after the move. */
const FILES: readonly (readonly [name: string, meaning: string])[] = [
  ['erased-addresses', 'the register of erased addresses, used when a backup is restored'],
  ['backups', 'backups'],
]

function closingWords(
  tables: readonly CopiedTable[],
  seconds: number,
  { source, target, config }: Places,
): string[] {
  const rows = tables.reduce((sum, one) => sum + one.source.rows, 0)
  const folder = source.dialect === 'sqlite' ? dirname(source.file) : config.dataDir
  const files = FILES.filter(([name]) => existsSync(join(folder, name)))
  return [
    `copied ${grouped(rows)} rows to ${target.shown} in ${duration(seconds)}; read back, every table is equal`,
    `next: set database.url to the target, keep secrets.key, and start the server`,
    ...(files.length === 0
      ? []
      : [
          `not in the database, and left in ${folder}; copy them if the server moves to another data_dir:`,
          ...files.map(([name, meaning]) => `  ${name}: ${meaning}`),
        ]),
    `do not start a server on ${source.shown} again: both would send the queued mail`,
  ]
}

function toJson({ table: name, source, target }: CopiedTable) {
  return { table: name, source, target }
}
