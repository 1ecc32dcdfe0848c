/**
 * Work that one node does for all: jobs, campaigns, automations, webhooks, imports, event consumers, inbound mail, counting visits.
 *
 * Started once this node holds the lease. A lease is only lost with the node's row, and then the process ends, so what runs is never stopped
 * and started again.
 */
import { describeError } from '../core/errors.js'
import type { Timer } from '../world/time/clock.js'
import type { Appliance } from './appliance.js'

/** Interval of checks for what other nodes stored. */
const LOOK_MS = 500
const RETRY_MS = 1_000

export interface BackgroundParts {
  start(): Promise<void>
  /** Other nodes may have stored work. Cheap. */
  wake(): void
}

export class BackgroundWork {
  private readonly appliance: Pick<Appliance, 'database' | 'world'>
  private readonly isLeading: () => boolean
  private readonly parts: BackgroundParts
  private starting: Promise<void> | undefined
  private timer: Timer | undefined
  private seen = 0
  private isStopped = false

  constructor(
    appliance: Pick<Appliance, 'database' | 'world'>,
    isLeading: () => boolean,
    parts: BackgroundParts,
  ) {
    this.appliance = appliance
    this.isLeading = isLeading
    this.parts = parts
  }

  /** Starts the work if this node holds the lease and has not started it. */
  start(): Promise<void> {
    if (!this.isLeading() || this.isStopped) return Promise.resolve()
    return (this.starting ??= this.begin())
  }

  /** Starts nothing more. The parts are stopped by whoever opened them. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.timer?.cancel()
    await this.starting?.catch(() => {})
  }

  private async begin(): Promise<void> {
    const { database, world } = this.appliance
    try {
      await this.parts.start()
    } catch (error) {
      if (database.announce === undefined) throw error
      world.log.error('background work not started', { error: describeError(error) })
      this.timer = world.clock.after(RETRY_MS, () => {
        this.starting = undefined
        void this.start()
      })
      return
    }
    if (database.announce === undefined) return
    world.log.info('background work taken over')
    this.look()
  }

  private look(): void {
    const { database, world } = this.appliance
    this.timer = world.clock.after(LOOK_MS, () => {
      const version = database.changes.version('events')
      if (version !== this.seen) this.parts.wake()
      this.seen = version
      if (!this.isStopped) this.look()
    })
  }
}
