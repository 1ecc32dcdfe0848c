/** First phase: the lock on the data folder, the database, and what the database says about this start. */
import { RestoreHold } from '../../accounts/restore-hold-store.js'
import type { Config } from '../../config/config.js'
import { Signal } from '../../core/signal.js'
import { takeServeLock } from '../../db/sqlite/serve-lock.js'
import type { World } from '../../world/world.js'
import { makeDataFolder, openAppliance, requireInitialised } from '../appliance.js'
import { openMeters } from '../open-metrics.js'
import { graceFrom } from '../shutdown.js'
import { logUpgrade, upgradeText } from '../upgrade/report-upgrade.js'

export type StoragePhase = Awaited<ReturnType<typeof openStorage>>

export interface StorageParts {
  readonly config: Config
  readonly world: World
  /** Told what takes long, in one line. */
  readonly onStarting: (status: string) => void
}

/** @throws LockedError, NotInitialisedError, SchemaError */
export async function openStorage(
  { config, world: plainWorld, onStarting }: StorageParts,
  closing: AsyncDisposableStack,
) {
  requireInitialised(config)
  makeDataFolder(config)
  closing.use(takeServeLock(config.dataDir))
  const meters = openMeters(plainWorld)
  const { world, onCommitted } = meters
  const appliance = closing.use(
    await openAppliance({
      config,
      world,
      mayMigrate: true,
      isServing: true,
      onCommitted,
      onUpgrade(event) {
        logUpgrade(world.log, event)
        onStarting(upgradeText(event))
        return world.log.flush()
      },
    }),
  )
  const hold = new RestoreHold(appliance.database.reader)
  await hold.look()
  if (hold.isHeld) world.log.warn('queue held after restore')
  return {
    appliance,
    meters,
    hold,
    signals: openSignals(),
    graceLeft: graceFrom(world.clock, config.shutdownGraceMs),
  }
}

function openSignals() {
  return {
    /** Messages were enqueued in a lane and committed. */
    enqueued: new Signal<[lane: string, dueAt: number]>(),
    /** Events were appended and committed. */
    appended: new Signal(),
    /** A hold on a campaign's mail changed. */
    holdsChanged: new Signal(),
  }
}
