/** Wires the limits that nodes keep together (`cluster/`). Undefined with SQLite, where one process counts for itself. */
import { deleteEndedUses, drawLimits } from '../cluster/limit-use-store.js'
import type { Membership } from '../cluster/membership.js'
import { SharedLimits } from '../cluster/shared-limits.js'
import type { Appliance } from './appliance.js'

export function openSharedLimits(
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
