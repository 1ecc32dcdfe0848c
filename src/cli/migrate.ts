/** `postroad migrate` upgrades the database schema, as `serve` does at start; `postroad compact` rewrites the file. `migrate copy` is in `migrate-copy.ts`. */
import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { openAppliance, requireInitialised } from '../appliance/appliance.js'
import type { Config } from '../config/config.js'
import { AppError } from '../core/errors.js'
import { compactFile } from '../db/sqlite/open-sqlite.js'
import { takeServeLock } from '../db/sqlite/serve-lock.js'
import { actAsOwnerOf } from '../world/process-owner.js'
import { printResult, readConfig, type CliContext, type CommonOptions } from './context.js'
import { migrateCopyCommand } from './migrate-copy.js'
import { command } from './options.js'

export function migrateCommand(program: Command, context: CliContext): void {
  const migrate = command(program, 'migrate', 'upgrade the database schema (the server must be stopped)')
  migrate.action(async (options: CommonOptions) => {
    await whileStopped(context, options, async config => {
      const appliance = await openAppliance({ config, world: context.world, mayMigrate: true })
      await appliance[Symbol.asyncDispose]()
    })
    printResult(context, options, { success: true }, () => 'the schema is up to date')
  })
  migrateCopyCommand(migrate, context)
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
          `not enough disk space: this needs ${megabytes(2 * before)}, ${megabytes(free)} are free`,
        )
      compactFile(file)
      const after = statSync(file).size
      printResult(
        context,
        options,
        { octets_before: before, octets_after: after },
        () => `${megabytes(before)} before, ${megabytes(after)} now`,
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

function megabytes(octets: number): string {
  return `${(octets / 1e6).toFixed(1)} MB`
}
