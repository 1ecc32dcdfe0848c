/**
 * Work that one node does for all: jobs, campaigns, automations, webhooks, imports, event consumers, inbound mail, counting visits.
 *
 * Runs while this node holds the lease. A node that is drained or stops finishes what is in hand and then releases the lease; drained and
 * resumed, it may start again. A lease that is lost otherwise goes with the node's row, and then the process ends.
 */
import type { Lease } from '../cluster/membership.js'
import { describeError } from '../core/errors.js'
import type { Timer } from '../world/time/clock.js'
import type { Appliance } from './appliance.js'

/** Interval of checks for what other nodes stored. */
const LOOK_MS = 500
const RETRY_MS = 1_000

export interface BackgroundParts {
  start(): Promise<void>
  /** Finishes what is in hand. `start` may follow. */
  stop(): Promise<void>
  /** Other nodes may have stored work. Cheap. */
  wake(): void
}

export class BackgroundWork {
  private readonly appliance: Pick<Appliance, 'database' | 'world'>
  private readonly lease: Lease
  private readonly parts: BackgroundParts
  private following: Promise<void> = Promise.resolve()
  private isRunning = false
  private timer: Timer | undefined
  private seen = 0
  private isClosed = false

  constructor(appliance: Pick<Appliance, 'database' | 'world'>, lease: Lease, parts: BackgroundParts) {
    this.appliance = appliance
    this.lease = lease
    this.parts = parts
  }

  /**
   * Call it after the lease may have changed hands: starts the work, or hands it over.
   *
   * @throws with SQLite, what `parts.start` throws; otherwise that is logged and retried
   */
  follow(): Promise<void> {
    return (this.following = this.following.then(() => this.step()))
  }

  /** Starts nothing more. The parts are stopped by whoever opened them. */
  async close(): Promise<void> {
    this.isClosed = true
    this.timer?.cancel()
    await this.following.catch(() => {})
  }

  private async step(): Promise<void> {
    if (this.isClosed) return
    if (this.lease.isDueForRelease()) await this.handOver()
    else if (this.lease.isHeld() && !this.isRunning) await this.begin()
  }

  private async begin(): Promise<void> {
    const { database, world } = this.appliance
    try {
      await this.parts.start()
    } catch (error) {
      if (database.announce === undefined) throw error
      world.log.error('background work not started', { error: describeError(error) })
      this.followAgain()
      return
    }
    this.isRunning = true
    if (database.announce === undefined) return
    world.log.info('background work taken over')
    this.look()
  }

  private async handOver(): Promise<void> {
    const { log } = this.appliance.world
    this.timer?.cancel()
    try {
      if (this.isRunning) await this.parts.stop()
      this.isRunning = false
      await this.lease.release()
      log.info('background work handed over')
    } catch (error) {
      log.warn('background work not handed over', { error: describeError(error) })
      this.followAgain()
    }
  }

  private followAgain(): void {
    this.timer?.cancel()
    this.timer = this.appliance.world.clock.after(RETRY_MS, () => void this.follow())
  }

  private look(): void {
    const { database, world } = this.appliance
    this.timer = world.clock.after(LOOK_MS, () => {
      const version = database.changes.version('events') + database.changes.version('jobs')
      if (version !== this.seen) this.parts.wake()
      this.seen = version
      if (!this.isClosed) this.look()
    })
  }
}
