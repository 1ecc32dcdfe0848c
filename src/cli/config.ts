/**
 * `postroad config check|show|reference`: never opens the database; `check` resolves `public_url`, and fetches it if the server is running.
 */
import type { Command } from 'commander'
import { findConfigFaults, findingText } from '../appliance/doctor/config-findings.js'
import { checkPublicUrl } from '../appliance/doctor/public-url.js'
import { CONFIG_SCHEMA } from '../appliance/resources.js'
import type { Configuration } from '../appliance/system/configuration-routes.js'
import type { Config } from '../config/config.js'
import { chooseConfigFile } from '../config/environment.js'
import { type Finding, outage, warning } from '../config/findings.js'
import { referenceMarkdown, showConfig } from '../config/generate.js'
import { hasRemote, withApi } from './api.js'
import { type CliContext, type CommonOptions, printResult, readConfig } from './context.js'
import { apiCommand, command } from './options.js'

export function configCommands(program: Command, context: CliContext): void {
  const group = program.command('config').description('configuration')
  command(group, 'check', 'check the configuration for errors and likely mistakes').action(
    async (options: CommonOptions) => {
      const { config, keysWithoutEffect } = readConfig(context, options)
      const file = chooseConfigFile(options.config, context.env)
      const findings = await withFetched(
        findConfigFaults({
          config,
          file,
          now: context.world.clock.now(),
          addresses: context.world.machine.addresses(),
        }),
        config,
        context,
      )
      const ok = !findings.some(({ severity }) => severity === 'fault')
      printResult(context, options, { ok, keys_without_effect: keysWithoutEffect, findings }, () =>
        [
          ...findings.map(one => `${one.severity}: ${findingText(one)}`),
          ...(keysWithoutEffect.length === 0
            ? []
            : [`keys without effect in this version: ${keysWithoutEffect.join(', ')}`]),
          ok ? 'ok' : 'not ok: the server will not start',
        ].join('\n'),
      )
      if (!ok) context.fail()
    },
  )
  apiCommand(
    group,
    'show',
    'print the configuration in effect, with defaults and environment; secrets hidden',
  ).action(async (options: CommonOptions) => {
    // Without a remote appliance the file is read here, whether or not it was ever served.
    const { toml } = hasRemote(context, options)
      ? await withApi(context, options, ({ admin }) => admin.get<Configuration>('/configuration'))
      : { toml: showConfig(CONFIG_SCHEMA, readConfig(context, options)) }
    printResult(context, options, { toml }, () => toml)
  })
  command(group, 'reference', 'print every key with its meaning and default').action(
    (options: CommonOptions) => {
      const reference = referenceMarkdown(CONFIG_SCHEMA)
      printResult(context, options, { markdown: reference }, () => reference)
    },
  )
}

/** A successful fetch overrides the finding that the configuration alone suggests for `public_url`. */
async function withFetched(
  findings: readonly Finding[],
  config: Config,
  { world }: CliContext,
): Promise<readonly Finding[]> {
  const fetched = await checkPublicUrl(config, world)
  if (fetched === undefined) return findings
  return fetched.status === 'works'
    ? findings.filter(({ path }) => path !== 'public_url')
    : [...findings, (fetched.status === 'dead' ? outage : warning)('public_url', fetched.what, fetched.fix)]
}
