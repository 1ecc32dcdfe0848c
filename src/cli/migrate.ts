/** `postroad migrate`: brings the database's schema up to date; `serve` does the same when it starts. */
import type { Command } from 'commander'
import { openAppliance, requireInitialised } from '../appliance.js'
import { takeServeLock } from '../db/sqlite/serve-lock.js'
import { command, printResult, readConfig, type CliContext, type CommonOptions } from './context.js'

export function migrateCommand(program: Command, context: CliContext): void {
  command(program, 'migrate', 'bring the schema up to date (the server must be stopped)').action(
    async (options: CommonOptions) => {
      const { config } = readConfig(context, options)
      requireInitialised(config)
      const lock = takeServeLock(config.dataDir)
      try {
        const appliance = await openAppliance({ config, world: context.world, mayMigrate: true })
        await appliance[Symbol.asyncDispose]()
      } finally {
        lock[Symbol.dispose]()
      }
      printResult(context, options, { success: true }, () => 'the schema is up to date')
    },
  )
}
