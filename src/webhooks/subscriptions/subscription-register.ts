/**
 * Whom there is to tell, in memory: all active subscriptions, by id and by what they are for.
 *
 * The consumer asks it for each event whether anybody is told, once it has read the events; the delivery worker whom. Read at start, after
 * each change of this process, and when another process has committed; the database stays what counts, for deliveries are written of its rows.
 * Memory: some 500 octets each, at most 200 for a workspace or sandbox.
 */
import type { Database } from '../../db/database.js'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { nextTurn } from '../../world/time/clock.js'
import { listActiveSubscriptions, type Subscription } from './subscription-store.js'

/** With what its workspace's settings say. */
export interface KnownSubscription extends Subscription {
  /** Private addresses, where the operator's list has them. */
  readonly isPermitted: boolean
}

const READ_AT_ONCE = 200

export class SubscriptionRegister {
  private readonly database: Database
  private byId = new Map<string, KnownSubscription>()
  /** `workspace event`. */
  private wanted = new Set<string>()
  /** Of another process's commits, when this was read. */
  private version = -1
  /** For each refresh under way what changed since it began to read, so that it does not undo it; undefined: forgotten. */
  private readonly refreshes = new Set<Map<string, KnownSubscription | undefined>>()

  constructor(database: Database) {
    this.database = database
  }

  find(id: string): KnownSubscription | undefined {
    return this.byId.get(id)
  }

  all(): Iterable<KnownSubscription> {
    return this.byId.values()
  }

  /** As it was known at the last refresh; what this process has changed since is known too. */
  isWanted(workspaceId: string, event: string): boolean {
    return this.wanted.has(key(workspaceId, event))
  }

  /** Until the next refresh; what it is asked about is in the database already. */
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

  /** Where another process has committed anything since the last time. */
  async refreshIfOutdated(): Promise<void> {
    if (this.database.foreignVersion() !== this.version) await this.refresh()
  }

  async refresh(): Promise<void> {
    const version = this.database.foreignVersion()
    const changes = new Map<string, KnownSubscription | undefined>()
    this.refreshes.add(changes)
    try {
      const byId = await this.readAll()
      // Another refresh may have begun later and ended sooner.
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
        // Of a removed workspace nothing is told, until it is restored.
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
