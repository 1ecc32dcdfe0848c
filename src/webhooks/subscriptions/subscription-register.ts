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
    this.byId.set(subscription.id, { ...subscription, isPermitted })
    this.wanted.add(key(subscription.workspaceId, subscription.event))
  }

  forget(id: string): void {
    this.byId.delete(id)
  }

  noteFailingSince(id: string, failingSince: number | null): void {
    const known = this.byId.get(id)
    if (known) this.byId.set(id, { ...known, failingSince })
  }

  /** Where another process has committed anything since the last time. */
  async refreshIfOutdated(): Promise<void> {
    if (this.database.foreignVersion() !== this.version) await this.refresh()
  }

  async refresh(): Promise<void> {
    const { reader } = this.database
    const version = this.database.foreignVersion()
    const [byId, wanted] = [new Map<string, KnownSubscription>(), new Set<string>()]
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
        wanted.add(key(workspaceId, one.event))
      }
      await nextTurn()
      isMore = page.length === READ_AT_ONCE
      after = page.at(-1)?.id ?? ''
    }
    this.byId = byId
    this.wanted = wanted
    this.version = version
  }
}

function key(workspaceId: string, event: string): string {
  return `${workspaceId} ${event}`
}
