/** `postroad config check|show|reference`: none of them opens the database. */
import type { Command } from 'commander'
import { chooseConfigFile } from '../config/environment.js'
import { referenceMarkdown, showConfig } from '../config/generate.js'
import { CONFIG_SCHEMA } from '../appliance/resources.js'
import { findConfigFaults, findingText } from './config-findings.js'
import { command, printResult, readConfig, type CliContext, type CommonOptions } from './context.js'

export function configCommands(program: Command, context: CliContext): void {
  const group = program.command('config').description('the configuration')
  command(group, 'check', 'say whether the configuration is right, and what of it will hurt').action(
    (options: CommonOptions) => {
      const { config, keysWithoutEffect } = readConfig(context, options)
      const file = chooseConfigFile(options.config, context.env)
      const findings = findConfigFaults({ config, file, now: context.world.clock.now() })
      const ok = !findings.some(({ severity }) => severity === 'fault')
      printResult(context, options, { ok, keys_without_effect: keysWithoutEffect, findings }, () =>
        [
          ...findings.map(one => `${one.severity}: ${findingText(one)}`),
          ...(keysWithoutEffect.length === 0
            ? []
            : [`these keys have no effect in this version: ${keysWithoutEffect.join(', ')}`]),
          ok ? 'ok' : 'the server would not start',
        ].join('\n'),
      )
      if (!ok) context.fail()
    },
  )
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
