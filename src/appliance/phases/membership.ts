/** This server as one of several nodes: leases, and limits that all nodes keep together. It joins the others once its parts are open. */
import { Membership } from '../../cluster/membership.js'
import { rolesOf } from '../../cluster/roles.js'
import type { OpenWindow } from '../../http/sliding-window.js'
import { systemClock } from '../../world/time/clock.js'
import { openLeases } from '../background-work.js'
import { openSharedLimits } from '../open-limits.js'
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
