/** Reports of an upgrade: as log events of a server, and as lines for people. */
import { roughSize } from '../../core/units.js'
import type { Log } from '../../world/log.js'
import type { UpgradeEvent } from './upgrade.js'

export function logUpgrade(log: Log, event: UpgradeEvent): void {
  switch (event.kind) {
    case 'started':
      log.info('upgrade started', { from: event.from, migrations: event.migrations })
      break
    case 'copying':
      log.info('upgrade copy in progress', { percent: percentOf(event.copied) })
      break
    case 'copied':
      log.info('upgrade copy made', { ...event.copy, ms: event.ms })
      break
    case 'copy_kept':
      log.info('upgrade copy kept', { ...event.copy })
      break
    case 'copy_skipped':
      log.warn('upgrade copy skipped', { reason: event.reason })
      break
    case 'copy_not_applicable':
      log.info('upgrade copy not applicable', { reason: event.reason })
      break
    case 'copy_deleted':
      log.info('upgrade copy deleted', { ...event.copy })
      break
    case 'migrating': {
      const { name, number, of, does } = event
      log.info('migration started', { name, number, of, does })
      break
    }
    case 'migrated': {
      const { name, number, of, ms } = event
      log.info('migration applied', { name, number, of, ms })
      break
    }
    case 'state_not_written':
      log.warn('upgrade state not written', { reason: event.reason })
      break
    case 'completed':
      log.info('upgrade completed', { ms: event.ms })
      break
  }
}

/** One line. */
export function upgradeText(event: UpgradeEvent): string {
  switch (event.kind) {
    case 'started':
      return `upgrading the database from ${event.from}: ${event.migrations} migrations`
    case 'copying':
      return `copying the database: ${percentOf(event.copied)} %`
    case 'copied':
      return `copied the database to ${event.copy.file}: ${roughSize(event.copy.octets)}, ${secondsOf(event.ms)}`
    case 'copy_kept':
      return `the upgrade was interrupted before; its copy is ${event.copy.file}`
    case 'copy_skipped':
      return `the database is not copied: ${event.reason}`
    case 'copy_not_applicable':
      return event.reason
    case 'copy_deleted':
      return `deleted ${event.copy.file}`
    case 'migrating':
      return `${event.number} of ${event.of}: ${event.name}: ${event.does}`
    case 'migrated':
      return `${event.number} of ${event.of}: applied in ${secondsOf(event.ms)}`
    case 'state_not_written':
      return `cannot write upgrade.json, which shows how far the upgrade is: ${event.reason}`
    case 'completed':
      return `upgraded in ${secondsOf(event.ms)}`
  }
}

function percentOf(share: number): number {
  return Math.floor(100 * share)
}

function secondsOf(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
