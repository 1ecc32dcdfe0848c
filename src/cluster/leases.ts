/**
 * The kinds of background work, each done by one node for all, and how nodes share them.
 *
 * Parts that share memory are one kind. A kind moves only when its node has stopped it and released the lease, or has lost its row: then all
 * its writes are refused (`Database.actAs`), so two nodes never do the same kind. Pure.
 */

/** In the order in which a node that has too many keeps them: heavy ones in turn. */
export const LEASES = [
  /** Scheduled jobs of no other kind: retention, upkeep, domains, certificates, backups, deletions; the sandbox's scheduled mail. */
  'jobs',
  /** Sending, checks, feeds, results. Results tell the sender that the queue has room. */
  'campaigns',
  /** Creating and sending deliveries, which share the subscriptions and their lanes. */
  'webhooks',
  /** Returned mail: inbound mail, bounces, reports to submitters. */
  'inbound',
  /** Counting mail events and visits. */
  'statistics',
  /** Triggers, which wake runs, and runs. */
  'automations',
  /** Contacts that follow events; imports. */
  'contacts',
] as const

export type LeaseName = (typeof LEASES)[number]

interface Holder {
  readonly id: string
  /** Leases it holds. */
  readonly leases: readonly LeaseName[]
}

/**
 * How many leases each node is to hold: they differ by one at most, and as few move as possible.
 *
 * @param takers nodes that may hold leases; in the same order on every node
 * @param total leases that there are
 */
export function leaseTargets(takers: readonly Holder[], total: number): ReadonlyMap<string, number> {
  const most = [...takers].sort((a, b) => b.leases.length - a.leases.length)
  const [least, more] = [Math.floor(total / takers.length), total % takers.length]
  return new Map(most.map(({ id }, at) => [id, at < more ? least + 1 : least]))
}
