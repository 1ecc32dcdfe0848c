/**
 * `postroad serve`: runs the appliance until it is told to stop.
 *
 * SIGTERM and SIGINT drain it; a second one ends it at once. SIGHUP reads configuration and certificate again: the log
 * level and the certificate take effect, other changes are named as needing a restart. Faults leave everything as it was.
 */
import type { Command } from 'commander'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.js'
import { requireInitialised } from '../appliance.js'
import { chooseConfigFile } from '../config/environment.js'
import { ConfigError } from '../config/faults.js'
import { describeError } from '../core/errors.js'
import { VERSION } from '../core/version.js'
import { openServer, type Server } from '../server.js'
import type { ListenAddress } from '../world/net/listen.js'
import { openServiceManager } from '../world/service-manager.js'
import { findConfigFaults, findingText } from './config-findings.js'
import { command, readConfig, type CliContext, type CommonOptions } from './context.js'

export function serveCommand(program: Command, context: CliContext): void {
  command(program, 'serve', 'run the appliance in the foreground').action(async (options: CommonOptions) => {
    const { config, keysWithoutEffect } = readConfig(context, options)
    const { log } = context.world
    log.setLevel(config.log.level)
    log.setFormat(config.log.format)
    if (keysWithoutEffect.length > 0)
      log.warn('configured keys have no effect in this version', { keys: keysWithoutEffect.join(', ') })
    refuseFaulty(context, options, config)
    const server = await openServer(config, context.world)
    const { http, public: pages, submission, submissionTls, inbound } = server.addresses
    log.info('postroad serves', {
      version: VERSION,
      http: inWords(http),
      ...(pages.length === 0 ? {} : { public: inWords(pages) }),
      submission: inWords(submission),
      submissionTls: inWords(submissionTls),
      inbound: inWords(inbound),
      capture: config.mta.capture,
    })
    const systemd = openServiceManager({
      descriptor: context.env['SD_NOTIFY_FD'],
      watchdog: context.env['WATCHDOG_USEC'],
    })
    systemd.ready(`serves, version ${VERSION}`)
    const stopReloading = reloadOnHangup(context, options, config, server)
    await untilToldToStop(log)
    stopReloading()
    systemd.stopping()
    log.info('postroad stops', { graceMs: config.shutdownGraceMs })
    await server[Symbol.asyncDispose]()
    log.info('postroad stopped')
    await log.flush()
    // The socket of a delivery that was left behind would keep the process alive.
    process.exit(0)
  })
}

/** Before anything is opened, so that a service manager learns that another start would not help. @throws ConfigError */
function refuseFaulty(context: CliContext, options: CommonOptions, config: Config): void {
  requireInitialised(config)
  const file = chooseConfigFile(options.config, context.env)
  const findings = findConfigFaults({ config, file, now: context.world.clock.now() })
  const faults = findings.filter(({ severity }) => severity === 'fault')
  if (faults.length > 0) throw new ConfigError(file, faults.map(findingText))
  for (const one of findings) context.world.log.warn('the configuration will hurt', { ...one })
}

/** Once drained nobody waits for a second signal any more, so that one ends the process as signals do. */
function untilToldToStop(log: CliContext['world']['log']): Promise<void> {
  return new Promise(resolve => {
    const stop = (signal: NodeJS.Signals) => {
      log.info('signal received', { signal })
      process.off('SIGTERM', stop).off('SIGINT', stop)
      resolve()
    }
    process.on('SIGTERM', stop).on('SIGINT', stop)
  })
}

function inWords(addresses: readonly ListenAddress[]): string {
  return addresses.map(({ host, port }) => `${host}:${port}`).join(', ')
}

function reloadOnHangup(
  context: CliContext,
  options: CommonOptions,
  running: Config,
  server: Server,
): () => void {
  const { log } = context.world
  const reload = () => {
    try {
      const { config } = readConfig(context, options)
      log.setLevel(config.log.level)
      log.setFormat(config.log.format)
      const changed = (Object.keys(config) as (keyof Config)[]).filter(
        key => key !== 'log' && !isDeepStrictEqual(config[key], running[key]),
      )
      log.info('configuration read again', { logLevel: config.log.level })
      if (changed.length > 0) log.warn('changes that need a restart', { sections: changed.join(', ') })
      server.reload().catch((error: unknown) => {
        log.error('certificate not taken over', { error: describeError(error) })
      })
    } catch (error) {
      log.error('configuration not taken over', { error: describeError(error) })
    }
  }
  process.on('SIGHUP', reload)
  return () => process.off('SIGHUP', reload)
}
