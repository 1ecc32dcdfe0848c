/**
 * Background work, in kinds (`cluster/leases.ts`): this node does those whose lease it holds.
 *
 * A node that is drained or stops, or has more than its share, finishes what is in hand of a kind and then releases its lease; later it may
 * start the kind again. A lease that is lost otherwise goes with the node's row, and then the process ends.
 */
import { LEASES, type LeaseName } from '../cluster/leases.js'
import type { Lease, Membership } from '../cluster/membership.js'
import { describeError } from '../core/errors.js'
import type { Topic } from '../db/changes.js'
import type { Timer } from '../world/time/clock.js'
import type { Appliance } from './appliance.js'

/** Interval of checks for what other nodes stored. */
const LOOK_MS = 500
const RETRY_MS = 1_000

export type Leases = Readonly<Record<LeaseName, Lease>>

export interface BackgroundParts {
  start(kind: LeaseName): Promise<void>
  /** Finishes what is in hand. `start` may follow. @returns whether all has ended; if not, the lease is kept */
  stop(kind: LeaseName): Promise<boolean>
  /** By topic: other nodes may have stored work for what is started here. Cheap. */
  readonly wake: Partial<Readonly<Record<Topic, () => void>>>
}

/** Call it before the node joins. */
export function openLeases(membership: Pick<Membership, 'lease'>): Leases {
  return Object.fromEntries(LEASES.map(name => [name, membership.lease(name)])) as Record<LeaseName, Lease>
}

export class BackgroundWork {
  private readonly appliance: Pick<Appliance, 'database' | 'world'>
  private readonly leases: Leases
  private readonly parts: BackgroundParts
  private readonly following = new Map<LeaseName, Promise<void>>()
  /** Of kinds that are started. `ending`: told to stop, and not known to have ended. */
  private readonly states = new Map<LeaseName, 'running' | 'ending'>()
  private retry: Timer | undefined
  private timer: Timer | undefined
  private readonly seen = new Map<Topic, number>()
  private isClosed = false

  constructor(appliance: Pick<Appliance, 'database' | 'world'>, leases: Leases, parts: BackgroundParts) {
    this.appliance = appliance
    this.leases = leases
    this.parts = parts
    if (appliance.database.announce) this.look()
  }

  /**
   * Call it after leases may have changed hands: starts the work, or hands it over. A kind that takes long to end does not delay others.
   *
   * @throws with SQLite, what `parts.start` throws; otherwise that is logged and retried
   */
  async follow(): Promise<void> {
    await Promise.all(
      LEASES.map(kind => {
        const step = (this.following.get(kind) ?? Promise.resolve()).then(() => this.step(kind))
        this.following.set(kind, step)
        return step
      }),
    )
  }

  /** Starts nothing more. The parts are stopped by whoever opened them. */
  async close(): Promise<void> {
    this.isClosed = true
    this.timer?.cancel()
    this.retry?.cancel()
    await Promise.allSettled(this.following.values())
  }

  private async step(kind: LeaseName): Promise<void> {
    if (this.isClosed) return
    if (this.leases[kind].isDueForRelease()) await this.handOver(kind)
    else if (this.leases[kind].isHeld() && this.states.get(kind) !== 'running') await this.begin(kind)
  }

  private async begin(kind: LeaseName): Promise<void> {
    const { database, world } = this.appliance
    try {
      if (!(await this.end(kind))) return
      await this.parts.start(kind)
    } catch (error) {
      if (database.announce === undefined) throw error
      world.log.error('background work not started', { work: kind, error: describeError(error) })
      this.followAgain()
      return
    }
    this.states.set(kind, 'running')
    if (database.announce) world.log.info('background work taken over', { work: kind })
  }

  private async handOver(kind: LeaseName): Promise<void> {
    const { log } = this.appliance.world
    try {
      if (!(await this.end(kind))) return
      await this.leases[kind].release()
      log.info('background work handed over', { work: kind })
    } catch (error) {
      log.warn('background work not handed over', { work: kind, error: describeError(error) })
      this.followAgain()
    }
  }

  /** @returns false if something of it goes on: it tries again */
  private async end(kind: LeaseName): Promise<boolean> {
    if (!this.states.has(kind)) return true
    this.states.set(kind, 'ending')
    if (await this.parts.stop(kind)) return this.states.delete(kind)
    this.followAgain()
    return false
  }

  private followAgain(): void {
    if (this.isClosed) return
    this.retry?.cancel()
    this.retry = this.appliance.world.clock.after(RETRY_MS, () => void this.follow())
  }

  private look(): void {
    const { database, world } = this.appliance
    this.timer = world.clock.after(LOOK_MS, () => {
      const isRunning = LEASES.some(kind => this.states.get(kind) === 'running')
      for (const [topic, wake] of Object.entries(this.parts.wake) as [Topic, () => void][]) {
        const version = database.changes.version(topic)
        if (version !== this.seen.get(topic) && isRunning) wake()
        this.seen.set(topic, version)
      }
      if (!this.isClosed) this.look()
    })
  }
}
