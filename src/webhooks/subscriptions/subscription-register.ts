/**
 * In-memory index of active subscriptions, by id and by event.
 *
 * The consumer checks it for each event, the delivery worker for each subscription. Refreshed at start, after each change in this process
 * and after commits of other processes. The database is authoritative: deliveries are created from its rows.
 * Memory: about 500 octets per subscription, at most 200 for a workspace or sandbox.
 */
import type { Database } from '../../db/database.js'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { nextTurn } from '../../world/time/clock.js'
import { inLists } from '../../db/statement.js'
import { listActiveSubscriptions, listSubscribers, type Subscription } from './subscription-store.js'

/** With its workspace's settings. */
export interface KnownSubscription extends Subscription {
  /** Private addresses are allowed, within the operator's allowlist. */
  readonly isPermitted: boolean
}

const READ_AT_ONCE = 200

export class SubscriptionRegister {
  private readonly database: Database
  private byId = new Map<string, KnownSubscription>()
  /** `workspace event`. */
  private wanted = new Set<string>()
  /** Like `wanted`, of the workspaces of the last `refreshFor` and beyond the last refresh. */
  private recent = new Set<string>()
  private version = -1
  /** Changes made during each running refresh, which must not undo them; undefined: forgotten. */
  private readonly refreshes = new Set<Map<string, KnownSubscription | undefined>>()

  constructor(database: Database) {
    this.database = database
  }

  /** Grows when subscriptions may have changed, or what their workspaces allow: one that is removed calls nobody. */
  get changes(): number {
    const { changes } = this.database
    return changes.version('webhooks') + changes.version('workspaces')
  }

  find(id: string): KnownSubscription | undefined {
    return this.byId.get(id)
  }

  all(): Iterable<KnownSubscription> {
    return this.byId.values()
  }

  /** As of the last refresh, plus changes made by this process, and those found by the last `refreshFor`. */
  isWanted(workspaceId: string, event: string): boolean {
    const name = key(workspaceId, event)
    return this.wanted.has(name) || this.recent.has(name)
  }

  /** Holds until the next refresh; the change must be committed already. */
  note(subscription: Subscription, isPermitted: boolean): void {
    const known = { ...subscription, isPermitted }
    this.byId.set(known.id, known)
    this.wanted.add(key(known.workspaceId, known.event))
    for (const changes of this.refreshes) changes.set(known.id, known)
  }

  forget(id: string): void {
    this.byId.delete(id)
    for (const changes of this.refreshes) changes.set(id, undefined)
  }

  noteFailingSince(id: string, failingSince: number | null): void {
    const known = this.byId.get(id)
    if (known) this.note({ ...known, failingSince }, known.isPermitted)
  }

  async refreshIfOutdated(): Promise<void> {
    if (this.changes !== this.version) await this.refresh()
  }

  /**
   * For the event consumer: `isWanted` then knows every subscription of these workspaces that was committed before the call. Where nodes share
   * the database, another node's notification arrives a moment after its commit, too late for the events of that moment.
   */
  async refreshFor(workspaceIds: readonly string[]): Promise<void> {
    await this.refreshIfOutdated()
    const { dialect, reader } = this.database
    if (dialect === 'sqlite') return
    const recent = new Set<string>()
    const acting = new Map<string, boolean>()
    for (const list of inLists([...new Set(workspaceIds)]))
      for (const { workspaceId, event } of await listSubscribers(reader, list)) {
        const name = key(workspaceId, event)
        if (this.wanted.has(name)) continue
        if (!acting.has(workspaceId))
          acting.set(workspaceId, (await findActingWorkspace(reader, workspaceId)) !== undefined)
        if (acting.get(workspaceId)) recent.add(name)
      }
    this.recent = recent
  }

  async refresh(): Promise<void> {
    const version = this.changes
    const changes = new Map<string, KnownSubscription | undefined>()
    this.refreshes.add(changes)
    try {
      const byId = await this.readAll()
      // A refresh that started later may have finished first.
      if (version < this.version) return
      for (const [id, known] of changes)
        if (known) byId.set(id, known)
        else byId.delete(id)
      this.byId = byId
      this.wanted = new Set([...byId.values()].map(({ workspaceId, event }) => key(workspaceId, event)))
      this.version = version
    } finally {
      this.refreshes.delete(changes)
    }
  }

  private async readAll(): Promise<Map<string, KnownSubscription>> {
    const { reader } = this.database
    const byId = new Map<string, KnownSubscription>()
    const permitted = new Map<string, boolean | undefined>()
    for (let after = '', isMore = true; isMore;) {
      const page = await listActiveSubscriptions(reader, after, READ_AT_ONCE)
      for (const one of page) {
        const { workspaceId } = one
        // Removed workspaces get no events until they are restored.
        if (!permitted.has(workspaceId))
          permitted.set(workspaceId, (await findActingWorkspace(reader, workspaceId))?.allowPrivateWebhooks)
        const isPermitted = permitted.get(workspaceId)
        if (isPermitted === undefined) continue
        byId.set(one.id, { ...one, isPermitted })
      }
      await nextTurn()
      isMore = page.length === READ_AT_ONCE
      after = page.at(-1)?.id ?? ''
    }
    return byId
  }
}

function key(workspaceId: string, event: string): string {
  return `${workspaceId} ${event}`
}
