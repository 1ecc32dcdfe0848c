/** This server as one of several nodes: leases, and limits that all nodes keep together. It joins the others once its parts are open. */
import { deleteEndedUses, drawLimits } from '../../cluster/limit-use-store.js'
import { Membership } from '../../cluster/membership.js'
import { rolesOf } from '../../cluster/roles.js'
import { SharedLimits } from '../../cluster/shared-limits.js'
import type { OpenWindow } from '../../http/sliding-window.js'
import { systemClock } from '../../world/time/clock.js'
import type { Appliance } from '../appliance.js'
import { openLeases } from '../background-work.js'
import type { StoragePhase } from './storage.js'

export type MembershipPhase = ReturnType<typeof openMembership>

export function openMembership({ appliance }: StoragePhase, closing: AsyncDisposableStack) {
  const { config, world } = appliance
  const membership = new Membership({
    ...world,
    ...appliance,
    // In real time, since other nodes judge this one by the database's clock.
    clock: systemClock,
    nodeId: appliance.newId(),
    hostname: config.hostname,
    roles: rolesOf(config.roles),
  })
  // After all that still writes.
  closing.defer(() => membership.leave())
  const leases = openLeases(membership)
  const limits = openSharedLimits(appliance, membership)
  closing.defer(() => limits?.stop())
  const openWindow: OpenWindow | undefined = limits && ((kind, windowMs) => limits.window(kind, windowMs))
  return { membership, leases, limits, openWindow }
}

/** Limits that nodes keep together. @returns undefined with SQLite, where one process counts for itself */
function openSharedLimits(
  { database: { shared }, world }: Pick<Appliance, 'database' | 'world'>,
  membership: Membership,
): SharedLimits | undefined {
  if (!shared) return undefined
  return new SharedLimits({
    ...world,
    nodes: () => membership.count,
    draw: (nodes, asked) => drawLimits(shared, membership.nodeId, nodes, asked),
    clear: () => deleteEndedUses(shared),
  })
}
