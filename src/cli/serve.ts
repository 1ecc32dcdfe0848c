/**
 * `postroad serve`: runs the appliance in the foreground.
 *
 * SIGTERM and SIGINT drain it; a second one kills it. SIGHUP reloads the configuration and certificate: reloadable keys are applied
 * (`config/reload.ts`), changes to others are logged as needing a restart. A faulty configuration changes nothing.
 */
import type { Command } from 'commander'
import type { Config } from '../config/config.js'
import { requireInitialised } from '../appliance/appliance.js'
import { findConfigFaults, findingText } from '../appliance/doctor/config-findings.js'
import { changedKeys, isReloaded } from '../config/reload.js'
import { Settings } from '../config/settings.js'
import { chooseConfigFile } from '../config/environment.js'
import { ConfigError } from '../config/faults.js'
import { describeError } from '../core/errors.js'
import { VERSION } from '../core/version.js'
import { openServer, type Server } from '../server.js'
import type { ListenAddress } from '../world/net/listen.js'
import { openServiceManager } from '../world/service-manager.js'
import { configRequest, readConfig, type CliContext, type CommonOptions } from './context.js'
import { command } from './options.js'

export function serveCommand(program: Command, context: CliContext): void {
  command(program, 'serve', 'run the appliance in the foreground').action(async (options: CommonOptions) => {
    const settings = new Settings(configRequest(context, options))
    const { config, keysWithoutEffect } = settings.started
    const { log } = context.world
    log.setLevel(config.log.level)
    log.setFormat(config.log.format)
    if (keysWithoutEffect.length > 0)
      log.warn('configuration keys ignored', { keys: keysWithoutEffect.join(', ') })
    refuseFaulty(context, options, config)
    const systemd = openServiceManager({
      descriptor: context.env['SD_NOTIFY_FD'],
      watchdog: context.env['WATCHDOG_USEC'],
    })
    const server = await openServer(config, context.world, settings, status => systemd.starting(status))
    const { http, submission, submissionTls, inbound, ...others } = server.addresses
    log.info('server started', {
      version: VERSION,
      http: inWords(http),
      submission: inWords(submission),
      submissionTls: inWords(submissionTls),
      inbound: inWords(inbound),
      // Optional listeners are logged only if they are configured.
      ...Object.fromEntries(
        Object.entries(others).flatMap(([name, at]) => (at.length === 0 ? [] : [[name, inWords(at)]])),
      ),
      capture: config.mta.capture,
    })
    systemd.ready(`running, version ${VERSION}`)
    const stopReloading = reloadOnHangup(context, options, settings, server)
    await Promise.race([untilStopSignal(log), server.removed.then(() => endRemoved(log))])
    stopReloading()
    systemd.stopping()
    log.info('server stopping', { graceMs: config.shutdownGraceMs })
    await server[Symbol.asyncDispose]()
    log.info('server stopped')
    await log.flush()
    // The socket of an abandoned delivery would keep the process alive.
    process.exit(0)
  })
}

/** Runs before anything is opened: exit status 2 keeps the service manager from restarting in vain. @throws ConfigError */
function refuseFaulty(context: CliContext, options: CommonOptions, config: Config): void {
  requireInitialised(config)
  const file = chooseConfigFile(options.config, context.env)
  const findings = findConfigFaults({
    config,
    file,
    now: context.world.clock.now(),
    addresses: context.world.machine.addresses(),
  })
  const faults = findings.filter(({ severity }) => severity === 'fault')
  if (faults.length > 0) throw new ConfigError(file, faults.map(findingText))
  for (const one of findings) context.world.log.warn('configuration warning', { ...one })
}

/** Without draining: other nodes do its work now, and it could not store any result. */
async function endRemoved(log: CliContext['world']['log']): Promise<never> {
  await log.flush()
  process.exit(1)
}

/** Resolves on the first signal and removes the handlers, so that a second one kills the process. */
function untilStopSignal(log: CliContext['world']['log']): Promise<void> {
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
  settings: Settings,
  server: Server,
): () => void {
  const { log } = context.world
  let reading = Promise.resolve()
  const { started } = settings
  let running = started.tables
  const reload = async () => {
    try {
      const loaded = readConfig(context, options)
      const { config, tables } = loaded
      refuseFaulty(context, options, config)
      await server.reload(config)
      settings.noteReload(loaded)
      log.setLevel(config.log.level)
      log.setFormat(config.log.format)
      const changed = changedKeys(running, tables)
      const waiting = changedKeys(started.tables, tables).filter(key => !isReloaded(key))
      running = tables
      log.info('configuration reloaded', {
        logLevel: config.log.level,
        changed: changed.length === 0 ? 'nothing' : changed.join(', '),
      })
      if (waiting.length > 0) log.warn('restart required', { keys: waiting.join(', ') })
    } catch (error) {
      log.error('configuration reload failed', { error: describeError(error) })
    }
  }
  const onHangup = () => void (reading = reading.then(reload))
  process.on('SIGHUP', onHangup)
  return () => process.off('SIGHUP', onHangup)
}
