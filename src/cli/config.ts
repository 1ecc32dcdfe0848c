/** `postroad config check|show|reference`: none of them opens the database. */
import type { Command } from 'commander'
import { referenceMarkdown, showConfig } from '../config/generate.js'
import { CONFIG_SCHEMA } from '../resources.js'
import { command, printResult, readConfig, type CliContext, type CommonOptions } from './context.js'

export function configCommands(program: Command, context: CliContext): void {
  const group = program.command('config').description('the configuration')
  command(group, 'check', 'say whether the configuration is right').action((options: CommonOptions) => {
    const { keysWithoutEffect } = readConfig(context, options)
    printResult(context, options, { ok: true, keys_without_effect: keysWithoutEffect }, () =>
      keysWithoutEffect.length === 0
        ? 'ok'
        : `ok; these keys have no effect in this version: ${keysWithoutEffect.join(', ')}`,
    )
  })
  command(group, 'show', 'what is in force, defaults and environment included; secrets hidden').action(
    (options: CommonOptions) => {
      const shown = showConfig(CONFIG_SCHEMA, readConfig(context, options))
      printResult(context, options, { toml: shown }, () => shown)
    },
  )
  command(group, 'reference', 'every key, what it does and its default').action((options: CommonOptions) => {
    const reference = referenceMarkdown(CONFIG_SCHEMA)
    printResult(context, options, { markdown: reference }, () => reference)
  })
}
