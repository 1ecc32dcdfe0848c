/**
 * This server as one of the nodes that share the database: says that it is alive, learns who else is, takes leases, and cleans up after
 * nodes that died.
 *
 * A node that was not heard of for `ALIVE_MS` is removed by the others. From then on its writes are refused (`Database.actAs`), so what it
 * had claimed can be given to others; if it still runs, e.g. after a pause, it learns of its removal and ends (`removed`).
 * With SQLite there is one node, which holds every lease.
 */
import { describeError } from '../core/errors.js'
import type { Database, Tx } from '../db/database.js'
import { isRemoval } from '../db/removed-error.js'
import { isUnreachable } from '../db/transient-error.js'
import type { Log } from '../world/log.js'
import type { Clock } from '../world/time/clock.js'
import { nodeFor } from './lane-shares.js'
import {
  deleteNode,
  deleteOtherNodes,
  deleteSilentNodes,
  insertNode,
  listNodes,
  renewNode,
  takeLease,
  type ClusterNode,
} from './node-store.js'

/** How long a node is believed alive after its last sign. */
export const ALIVE_MS = 12_000
/** Interval of the signs. */
const SIGN_MS = 3_000
/** After this long without a successful sign a node starts nothing new: others may have removed it. */
const TRUSTED_MS = ALIVE_MS - SIGN_MS
/** After a longer gap between its own signs a node cannot tell whether the others were silent or the database did not answer. */
const MAX_GAP_MS = 2 * SIGN_MS
/** How long the others then have to show that they are alive, if the database was slow; if it was away, they have `ALIVE_MS`. */
const RETURN_MS = 1.5 * SIGN_MS

export interface MembershipParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  /** Identifies this run of the server. */
  readonly nodeId: string
  readonly hostname: string
}

/** Releases what dead nodes had claimed; `nodes` has living ones only. Runs in the transaction that removed them. */
export type OnDeath = (tx: Tx) => Promise<void>

export class Membership {
  private readonly parts: MembershipParts
  private readonly onDeath: OnDeath[] = []
  private readonly wanted = new Set<string>()
  private nodes: readonly ClusterNode[] = []
  private readonly changed: (() => void)[] = []
  private readonly stopping = new AbortController()
  private running: Promise<void> = Promise.resolve()
  private trustedUntil = 0
  private lastSignAt = Infinity
  /** Whether the database could not be reached since the last sign. */
  private isUnreachable = false
  /** Removes nobody before: the others have time to come back as well. */
  private judgesFrom = 0
  private isJoined = false
  private resolveRemoved: () => void = () => {}
  /** Resolves if other nodes removed this one although it runs: it must end. */
  readonly removed = new Promise<void>(resolve => (this.resolveRemoved = resolve))

  constructor(parts: MembershipParts) {
    this.parts = parts
  }

  get nodeId(): string {
    return this.parts.nodeId
  }

  /** Whether this node delivers to the destination. */
  owns(destination: string): boolean {
    return (
      this.nodes.length < 2 ||
      nodeFor(
        destination,
        this.nodes.map(({ id }) => id),
      ) === this.nodeId
    )
  }

  /** Call before `join`. */
  whenNodeDies(handler: OnDeath): void {
    this.onDeath.push(handler)
  }

  /** Called after nodes joined or left, or leases changed hands. */
  whenChanged(callback: () => void): void {
    this.changed.push(callback)
  }

  /**
   * Asks for work that only one node may do at a time.
   *
   * @returns whether this node may do it now
   */
  lease(name: string): () => boolean {
    this.wanted.add(name)
    return () => this.isTrusted && (this.isAlone || (this.self?.leases.includes(name) ?? false))
  }

  /** Whether this node was heard of recently enough to start something. */
  get isTrusted(): boolean {
    return this.isAlone || this.parts.clock.monotonic() < this.trustedUntil
  }

  async join(): Promise<void> {
    const { database, clock, nodeId, hostname } = this.parts
    await database.write(async tx => {
      await insertNode(tx.db, { id: nodeId, name: hostname }, clock.now(), ALIVE_MS)
    })
    database.actAs?.(nodeId)
    this.isJoined = true
    await this.look()
    if (!this.isAlone) this.running = this.run()
  }

  /** Frees all leases. Call it when nothing is left to write. */
  async leave(): Promise<void> {
    this.stopping.abort()
    await this.running
    if (this.isJoined) await this.parts.database.write(tx => deleteNode(tx.db, this.nodeId))
  }

  /** A file is served by one process, so there are no other nodes to watch. */
  private get isAlone(): boolean {
    return this.parts.database.dialect === 'sqlite'
  }

  private get self(): ClusterNode | undefined {
    return this.nodes.find(({ id }) => id === this.nodeId)
  }

  private async run(): Promise<void> {
    const { clock, log } = this.parts
    const { signal } = this.stopping
    for (;;) {
      await clock.sleep(SIGN_MS, signal)
      if (signal.aborted) return
      try {
        await this.look()
      } catch (error) {
        if (isRemoval(error)) this.end()
        else log.warn('node not renewed', { error: describeError(error) })
        if (isUnreachable(error)) this.isUnreachable = true
      }
    }
  }

  /** One sign of life, and what it shows. */
  private async look(): Promise<void> {
    const { database, clock, log, nodeId } = this.parts
    const since = clock.monotonic()
    const found = await database.write(async tx => {
      const now = clock.now()
      if (!(await renewNode(tx.db, nodeId, now, ALIVE_MS))) return undefined
      const dead = await this.deleteDead(tx)
      if (dead.length > 0 || this.nodes.length === 0) for (const handler of this.onDeath) await handler(tx)
      const nodes = await listNodes(tx.db)
      const taken = await this.takeShare(tx, nodes, now)
      return { dead, nodes: taken ? await listNodes(tx.db) : nodes }
    })
    if (!found) {
      this.end()
      return
    }
    this.noteSign()
    this.trustedUntil = since + TRUSTED_MS
    if (!this.isAlone) for (const { name } of found.dead) log.warn('node removed', { node: name })
    const before = this.nodes
    this.nodes = found.nodes
    if (signatureOf(before) !== signatureOf(found.nodes)) for (const callback of this.changed) callback()
  }

  private async deleteDead({ db }: Tx): Promise<readonly { id: string; name: string }[]> {
    if (this.isAlone) return deleteOtherNodes(db, this.nodeId)
    const isSure = !this.hasGap && this.parts.clock.monotonic() >= this.judgesFrom
    return isSure ? deleteSilentNodes(db, ALIVE_MS) : []
  }

  private get hasGap(): boolean {
    return this.parts.clock.monotonic() - this.lastSignAt > MAX_GAP_MS
  }

  private noteSign(): void {
    const now = this.parts.clock.monotonic()
    if (this.isUnreachable) this.judgesFrom = now + ALIVE_MS
    else if (this.hasGap) this.judgesFrom = Math.max(this.judgesFrom, now + RETURN_MS)
    this.isUnreachable = false
    this.lastSignAt = now
  }

  /** Free leases, as many as make this node's share. @returns whether it took any */
  private async takeShare(tx: Tx, nodes: readonly ClusterNode[], now: number): Promise<boolean> {
    if (this.isAlone) return false
    const held = new Set(nodes.flatMap(({ leases }) => leases))
    const own = nodes.find(({ id }) => id === this.nodeId)?.leases.length ?? 0
    const share = Math.ceil(this.wanted.size / nodes.length) - own
    const free = [...this.wanted].filter(name => !held.has(name)).slice(0, Math.max(0, share))
    let hasTaken = false
    for (const name of free) if (await takeLease(tx.db, name, this.nodeId, now)) hasTaken = true
    return hasTaken
  }

  private end(): void {
    this.trustedUntil = 0
    this.stopping.abort()
    this.parts.log.error('node removed by others')
    this.resolveRemoved()
  }
}

function signatureOf(nodes: readonly ClusterNode[]): string {
  return nodes.map(({ id, leases }) => `${id} ${leases.join()}`).join(';')
}
