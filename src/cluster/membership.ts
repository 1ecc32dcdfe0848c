/**
 * This server as one of the nodes that share the database: says that it is alive, learns who else is, takes leases, and cleans up after
 * nodes that died.
 *
 * A node that was not heard of for `ALIVE_MS` is removed by the others. From then on its writes are refused (`Database.actAs`), so what it
 * had claimed can be given to others; if it still runs, e.g. after a pause, it learns of its removal and ends (`removed`).
 * A node that is drained or stops takes no shares and no leases; it hands over the leases it holds (`Lease.release`), as does one that has more
 * than its share of them after another joined.
 * With SQLite there is one node, which holds every lease.
 */
import { describeError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import { isRemoval } from '../db/removed-error.js'
import { isUnreachable } from '../db/faults/transient-error.js'
import type { Services } from '../db/services.js'
import { nodeFor, nodesFor } from './lane-shares.js'
import { leaseTargets, type LeaseName } from './leases.js'
import {
  deleteLease,
  deleteNode,
  deleteOtherNodes,
  deleteSilentNodes,
  insertNode,
  listNodes,
  markStopping,
  renewNode,
  takeLease,
  type ClusterNode,
} from './node-store.js'
import { takes, type NodeState, type Role } from './roles.js'

/** How long a node is believed alive after its last sign. */
export const ALIVE_MS = 12_000
/** Interval of the signs. */
const SIGN_MS = 3_000
/** After this long without a successful sign a node starts nothing new: others may have removed it. */
const TRUSTED_MS = ALIVE_MS - SIGN_MS
/** Interval of checks for changes that were notified. */
const LOOK_MS = 250
/** A stopping node does not wait longer for the database to say so. */
const RETIRE_MS = 1_000

/** After a longer gap between its own signs a node cannot tell whether the others were silent or the database did not answer. */
const MAX_GAP_MS = 2 * SIGN_MS
/** How long the others then have to show that they are alive, if the database was slow; if it was away, they have `ALIVE_MS`. */
const RETURN_MS = 1.5 * SIGN_MS

export interface MembershipParts extends Pick<Services, 'database' | 'clock' | 'log' | 'hostname'> {
  /** Identifies this run of the server. */
  readonly nodeId: string
  readonly roles: readonly Role[]
}

/** Releases what dead nodes had claimed; `nodes` has living ones only. Runs in the transaction that removed them. */
export type OnDeath = (tx: Tx) => Promise<void>

/** Work that only one node may do at a time. */
export interface Lease {
  /** Whether this node may do it now. */
  isHeld(): boolean
  /** Whether this node has it but is to give it up: finish what is in hand, then `release`. */
  isDueForRelease(): boolean
  release(): Promise<void>
}

/** How this node stands, for health and metrics. */
export interface NodeStanding {
  /** Host name. */
  readonly name: string
  readonly roles: readonly Role[]
  readonly state: NodeState | 'starting'
  readonly leases: readonly LeaseName[]
  /** Since the database last confirmed this node's row, ms; 0 with SQLite. */
  readonly heartbeatAgeMs: number
  /** Whether other nodes may share the database: not with SQLite. */
  readonly isShared: boolean
  /** False if the database has not confirmed it for so long that others may have taken over its work. */
  readonly isTrusted: boolean
  /** How many nodes take work of a role; with SQLite this one. */
  countTaking(role: Role): number
}

export class Membership {
  private readonly parts: MembershipParts
  private readonly onDeath: OnDeath[] = []
  private readonly wanted = new Set<LeaseName>()
  private nodes: readonly ClusterNode[] = []
  /** Ids of the nodes that deliver. */
  private deliverers: readonly string[] = []
  /** Leases that this node has and keeps. */
  private kept: ReadonlySet<LeaseName> = new Set()
  private readonly changed: (() => void)[] = []
  private readonly stopping = new AbortController()
  private running: Promise<void> = Promise.resolve()
  private seenVersion = 0
  private confirmedAt: number
  private isTrustLost = false
  private lastSignAt = Infinity
  /** Whether the database could not be reached since the last sign. */
  private isUnreachable = false
  /** Removes nobody before: the others have time to come back as well. */
  private judgesFrom = 0
  private isJoined = false
  private isStarted = false
  private isRetired = false
  private resolveRemoved: () => void = () => {}
  /** Resolves if other nodes removed this one although it runs: it must end. */
  readonly removed = new Promise<void>(resolve => (this.resolveRemoved = resolve))

  constructor(parts: MembershipParts) {
    this.parts = parts
    this.confirmedAt = parts.clock.monotonic()
  }

  get nodeId(): string {
    return this.parts.nodeId
  }

  /** Whether this node delivers to the destination. */
  owns(destination: string): boolean {
    if (this.isAlone) return true
    return this.deliverers.length > 0 && nodeFor(destination, this.deliverers) === this.nodeId
  }

  /** Which parts of a destination that is split among nodes are this node's; from 0. */
  partsOf(destination: string, parts: number): number[] {
    const nodes = nodesFor(destination, this.deliverers)
    return Array.from({ length: parts }, (_, part) => part).filter(
      part => nodes[part % nodes.length] === this.nodeId,
    )
  }

  /** Living nodes, this one included. */
  get count(): number {
    return Math.max(1, this.nodes.length)
  }

  /** Living nodes; none before `join`. */
  get members(): readonly Pick<ClusterNode, 'name' | 'roles'>[] {
    return this.nodes
  }

  /** Nodes that deliver. */
  get deliveringCount(): number {
    return this.isAlone ? 1 : this.deliverers.length
  }

  /** Call before `join`. */
  whenNodeDies(handler: OnDeath): void {
    this.onDeath.push(handler)
  }

  /** Called after nodes joined, left, or take other work, leases changed hands, or this node is trusted again. */
  whenChanged(callback: () => void): void {
    this.changed.push(callback)
  }

  /** Asks for work that only one node may do at a time. A node without the role never gets it. */
  lease(name: LeaseName): Lease {
    const has = () => this.self?.leases.includes(name) ?? false
    if (this.parts.roles.includes('scheduler')) this.wanted.add(name)
    return {
      isHeld: () => this.isAlone || (this.isTrusted && has() && this.kept.has(name)),
      isDueForRelease: () => !this.isAlone && has() && !this.kept.has(name),
      release: () => this.release(name),
    }
  }

  /** Whether this node was heard of recently enough to start something. */
  get isTrusted(): boolean {
    return this.isAlone || (!this.isTrustLost && this.heartbeatAgeMs < TRUSTED_MS)
  }

  get standing(): NodeStanding {
    const { hostname: name, roles } = this.parts
    const state = this.isRetired ? 'stopping' : (this.self?.state ?? 'active')
    return {
      name,
      roles,
      state: this.isStarted || this.isRetired ? state : 'starting',
      leases: this.isAlone ? [...this.wanted] : (this.self?.leases ?? []),
      heartbeatAgeMs: this.isAlone ? 0 : this.heartbeatAgeMs,
      isShared: !this.isAlone,
      isTrusted: this.isTrusted,
      countTaking: role => this.nodes.filter(node => takes(node, role)).length,
    }
  }

  async join(): Promise<void> {
    const { database, clock, log, nodeId, hostname, roles } = this.parts
    await database.write(async tx => {
      await insertNode(tx.db, { id: nodeId, name: hostname, roles }, clock.now(), ALIVE_MS)
      tx.changed('nodes')
    })
    database.actAs?.(nodeId)
    this.isJoined = true
    await this.look()
    if (this.self?.state === 'draining') log.warn('node starts drained', { node: hostname })
    if (!this.isAlone) this.running = this.run()
  }

  /** Call it once all that this node does has begun. */
  noteStarted(): void {
    this.isStarted = true
  }

  /** Takes no new work from now on, and has the others know, so that they take it. Never throws. */
  async retire(): Promise<void> {
    if (this.isRetired) return
    this.isRetired = true
    if (this.isAlone || !this.isJoined) return
    this.learn(this.nodes)
    const { database, clock, log, nodeId } = this.parts
    const isOver = new AbortController()
    const mark = database
      .write(async tx => {
        await markStopping(tx.db, nodeId)
        tx.changed('nodes')
      })
      .catch((error: unknown) => log.warn('node not renewed', { error: describeError(error) }))
    await Promise.race([mark, clock.sleep(RETIRE_MS, isOver.signal)])
    isOver.abort()
  }

  /** Frees all leases. Call it when nothing is left to write. */
  async leave(): Promise<void> {
    this.stopping.abort()
    await this.running
    if (!this.isJoined) return
    await this.parts.database.write(async tx => {
      await deleteNode(tx.db, this.nodeId)
      tx.changed('nodes')
    })
  }

  /** A file is served by one process, so there are no other nodes to watch. */
  private get isAlone(): boolean {
    return this.parts.database.dialect === 'sqlite'
  }

  private get self(): ClusterNode | undefined {
    return this.nodes.find(({ id }) => id === this.nodeId)
  }

  private get heartbeatAgeMs(): number {
    return this.parts.clock.monotonic() - this.confirmedAt
  }

  private async release(name: LeaseName): Promise<void> {
    const { database, nodeId } = this.parts
    await database.write(async tx => {
      await deleteLease(tx.db, name, nodeId)
      tx.changed('nodes')
    })
    const without = ({ id, leases }: ClusterNode) =>
      id === nodeId ? leases.filter(one => one !== name) : leases
    this.learn(this.nodes.map(node => ({ ...node, leases: without(node) })))
  }

  private async run(): Promise<void> {
    const { clock, log } = this.parts
    const { signal } = this.stopping
    let nextSignAt = clock.monotonic() + SIGN_MS
    for (;;) {
      await clock.sleep(LOOK_MS, signal)
      if (signal.aborted) return
      try {
        if (clock.monotonic() < nextSignAt && !(await this.hasNews())) continue
        nextSignAt = clock.monotonic() + SIGN_MS
        await this.look()
      } catch (error) {
        if (isRemoval(error)) this.end()
        else log.warn('node not renewed', { error: describeError(error) })
        if (isUnreachable(error)) this.isUnreachable = true
      }
    }
  }

  /** Whether another node changed something since this one last looked. Reads only after a notification. */
  private async hasNews(): Promise<boolean> {
    const { database } = this.parts
    const version = database.changes.version('nodes')
    if (version === this.seenVersion) return false
    this.seenVersion = version
    return signatureOf(await listNodes(database.reader)) !== signatureOf(this.nodes)
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
      if (taken || dead.length > 0) tx.changed('nodes')
      return { dead, nodes: taken ? await listNodes(tx.db) : nodes }
    })
    if (!found) {
      this.end()
      return
    }
    const isTrusted = () => this.isTrusted
    const wasTrusted = isTrusted()
    this.confirmedAt = since
    this.noteSign()
    if (!this.isAlone) for (const { name } of found.dead) log.warn('node removed', { node: name })
    this.learn(found.nodes)
    // Work whose lease arrived while this node was not trusted has not been started.
    if (!wasTrusted && isTrusted()) this.notifyChanged()
  }

  /** @param found all nodes, as the database has them */
  private learn(found: readonly ClusterNode[]): void {
    const before = signatureOf(this.nodes)
    this.nodes = this.isRetired
      ? found.map(node => (node.id === this.nodeId ? { ...node, state: 'stopping' as const } : node))
      : found
    this.deliverers = this.nodes.filter(node => takes(node, 'mta')).map(({ id }) => id)
    const held = [...this.wanted].filter(name => this.self?.leases.includes(name))
    this.kept = new Set(held.slice(0, this.leaseTarget(this.nodes)))
    if (before !== signatureOf(this.nodes)) this.notifyChanged()
  }

  private notifyChanged(): void {
    for (const callback of this.changed) callback()
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

  /** How many leases this node is to hold. */
  private leaseTarget(nodes: readonly ClusterNode[]): number {
    const takers = nodes.filter(node => takes(node, 'scheduler'))
    return leaseTargets(takers, this.wanted.size).get(this.nodeId) ?? 0
  }

  /** Free leases, as many as make this node's share. @returns whether it took any */
  private async takeShare(tx: Tx, nodes: readonly ClusterNode[], now: number): Promise<boolean> {
    if (this.isAlone || this.isRetired) return false
    const held = new Set(nodes.flatMap(({ leases }) => leases))
    const own = nodes.find(({ id }) => id === this.nodeId)?.leases.length ?? 0
    const share = this.leaseTarget(nodes) - own
    const free = [...this.wanted].filter(name => !held.has(name)).slice(0, Math.max(0, share))
    let hasTaken = false
    for (const name of free) if (await takeLease(tx.db, name, this.nodeId, now)) hasTaken = true
    return hasTaken
  }

  private end(): void {
    this.isTrustLost = true
    this.stopping.abort()
    this.parts.log.error('node removed by others')
    this.resolveRemoved()
  }
}

function signatureOf(nodes: readonly ClusterNode[]): string {
  return nodes
    .map(({ id, state, roles, leases }) => `${id} ${state} ${roles.join()} ${leases.join()}`)
    .join(';')
}
