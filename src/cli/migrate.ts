/**
 * `postroad migrate` upgrades the database schema, as `serve` does at start, or prints what it would do; `postroad compact` rewrites the file.
 * `migrate copy` is in `migrate-copy.ts`.
 */
import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { openAppliance, requireInitialised } from '../appliance/appliance.js'
import { previewUpgrade, type UpgradePreview } from '../appliance/upgrade/preview-upgrade.js'
import { upgradeText } from '../appliance/upgrade/report-upgrade.js'
import type { ReportUpgrade } from '../appliance/upgrade/upgrade.js'
import type { Config } from '../config/config.js'
import { AppError } from '../core/errors.js'
import { roughSize } from '../core/units.js'
import { compactFile } from '../db/sqlite/open-sqlite.js'
import { takeServeLock } from '../db/sqlite/serve-lock.js'
import { actAsOwnerOf } from '../world/process-owner.js'
import { printResult, readConfig, type CliContext, type CommonOptions } from './context.js'
import { migrateCopyCommand } from './migrate-copy.js'
import { command } from './options.js'

interface MigrateOptions extends CommonOptions {
  readonly dryRun?: boolean
}

/** Exit status of `--dry-run` if there is something to do, as of `apply --plan --exit-code`. */
const PENDING = 3

export function migrateCommand(program: Command, context: CliContext): void {
  const migrate = command(program, 'migrate', 'upgrade the database schema (the server must be stopped)')
  migrate.option(
    '--dry-run',
    `print what would be done and change nothing, also beside a running server; exit status ${PENDING} if migrations are pending`,
  )
  migrate.action(async (options: MigrateOptions) => {
    if (options.dryRun) return dryRun(context, options)
    const applied: string[] = []
    let copy: string | null = null
    const onUpgrade: ReportUpgrade = event => {
      if (event.kind === 'migrated') applied.push(event.name)
      if (event.kind === 'copied' || event.kind === 'copy_kept') copy = event.copy.file
      if (!options.json) context.complain(upgradeText(event))
    }
    await whileStopped(context, options, async config => {
      const appliance = await openAppliance({ config, world: context.world, mayMigrate: true, onUpgrade })
      await appliance[Symbol.asyncDispose]()
    })
    printResult(context, options, { success: true, applied, copy }, () => 'the schema is up to date')
  })
  migrateCopyCommand(migrate, context)
}

async function dryRun(context: CliContext, options: CommonOptions): Promise<void> {
  const { config } = readConfig(context, options)
  requireInitialised(config)
  const preview = await previewUpgrade(config, context.world)
  printResult(context, options, toJson(preview), () => previewText(preview))
  if (preview.pending.length > 0) context.fail(PENDING)
}

function toJson({ schema, pending, estimateMs, copy, room }: UpgradePreview) {
  return {
    schema,
    pending: pending.map(({ name, does, rows, estimateMs: ms, octets }) => ({
      name,
      description: does,
      rows,
      estimated_seconds: ms / 1_000,
      estimated_octets: octets,
    })),
    estimated_seconds: estimateMs / 1_000,
    copy: {
      setting: copy.setting,
      will_be_made: copy.willBeMade,
      octets: copy.octets,
      estimated_seconds: copy.estimateMs / 1_000,
      reason: copy.reason ?? null,
    },
    room: { needed: room.needed, free: room.free ?? null },
  }
}

function previewText({ schema, pending, estimateMs, copy, room }: UpgradePreview): string {
  if (pending.length === 0) return `nothing to do: the database has the schema of this version (${schema})`
  return [
    `pending migrations: ${pending.length}; the database is at ${schema}`,
    ...pending.flatMap(migration => [
      '',
      migration.name,
      `  ${migration.does}`,
      `  ${rowsText(migration.rows)}; about ${seconds(migration.estimateMs)}`,
    ]),
    '',
    `time   about ${seconds(estimateMs)}${copy.willBeMade ? `, and ${seconds(copy.estimateMs)} for the copy` : ''}`,
    `copy   ${copy.willBeMade ? `${roughSize(copy.octets)}, made beside the database first` : `none: ${copy.reason ?? ''}`}`,
    `room   ${roughSize(room.needed)} needed, ${room.free === undefined ? "on the PostgreSQL server's disk" : `${roughSize(room.free)} free`}`,
  ].join('\n')
}

function rowsText(rows: Readonly<Record<string, number>>): string {
  const counts = Object.entries(rows).map(([table, count]) => `${count} rows of ${table}`)
  return counts.length === 0 ? 'touches no rows' : `touches ${counts.join(', ')}`
}

function seconds(ms: number): string {
  return ms < 1_000 ? '1 s or less' : `${Math.ceil(ms / 1_000)} s`
}

/** Rewrites the file without free pages; from then on it can return freed space to the disk. */
export function compactCommand(program: Command, context: CliContext): void {
  command(
    program,
    'compact',
    'compact the database file (the server must be stopped; needs twice its size in free disk space)',
  ).action((options: CommonOptions) =>
    whileStopped(context, options, async ({ databaseFile: file, dataDir }) => {
      if (file === undefined)
        throw new AppError(
          'conflict',
          'the database is a PostgreSQL server, which reuses free space automatically',
        )
      const before = statSync(file).size
      const free = await context.world.disk.freeSpace(dataDir)
      if (free < 2 * before)
        throw new AppError(
          'unavailable',
          `not enough disk space: this needs ${roughSize(2 * before)}, ${roughSize(free)} are free`,
        )
      compactFile(file)
      const after = statSync(file).size
      printResult(
        context,
        options,
        { octets_before: before, octets_after: after },
        () => `${roughSize(before)} before, ${roughSize(after)} now`,
      )
    }),
  )
}

/** Keeps the server from starting during the work, and fails if it runs. */
async function whileStopped(
  context: CliContext,
  options: CommonOptions,
  work: (config: Config) => Promise<void>,
): Promise<void> {
  const { config } = readConfig(context, options)
  requireInitialised(config)
  actAsOwnerOf(config.dataDir)
  const lock = takeServeLock(config.dataDir)
  try {
    await work(config)
  } finally {
    lock[Symbol.dispose]()
  }
}
