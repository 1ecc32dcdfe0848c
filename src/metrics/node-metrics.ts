/** Metrics of this server as one of the nodes that share the database. Never reads the database: the last heartbeat brought everything. */
import { Gauge } from 'prom-client'
import type { NodeStanding } from '../cluster/membership.js'
import { LEASES } from '../cluster/leases.js'
import { ROLES } from '../cluster/roles.js'
import type { Metrics } from './metrics.js'

const STATES = [
  'starting',
  'active',
  'draining',
  'stopping',
] as const satisfies readonly NodeStanding['state'][]

export function observeNode(metrics: Metrics, standing: () => NodeStanding): void {
  const registers = [metrics.registry]
  new Gauge({
    name: 'postroad_node_info',
    help: 'Always 1; the label gives the host name of this node.',
    labelNames: ['name'] as const,
    registers,
  }).set({ name: standing().name }, 1)
  const state = new Gauge({
    name: 'postroad_node_state',
    help: '1 for the state of this node, else 0.',
    labelNames: ['state'] as const,
    registers,
  })
  const role = new Gauge({
    name: 'postroad_node_role',
    help: '1 if this node has the role, else 0.',
    labelNames: ['role'] as const,
    registers,
  })
  const lease = new Gauge({
    name: 'postroad_node_lease',
    help: '1 while this node does this kind of background work for all nodes, else 0.',
    labelNames: ['lease'] as const,
    registers,
  })
  const age = new Gauge({
    name: 'postroad_node_heartbeat_age_seconds',
    help: 'Time since the database last confirmed this node; 0 with SQLite.',
    registers,
  })
  const nodes = new Gauge({
    name: 'postroad_nodes',
    help: 'Nodes that take work of the role, as this node last saw them. Of the database: the same on every node.',
    labelNames: ['role'] as const,
    registers,
  })
  metrics.addSource('node', () => {
    const now = standing()
    for (const one of STATES) state.set({ state: one }, one === now.state ? 1 : 0)
    for (const one of LEASES) lease.set({ lease: one }, now.leases.includes(one) ? 1 : 0)
    age.set(now.heartbeatAgeMs / 1_000)
    for (const one of ROLES) {
      role.set({ role: one }, now.roles.includes(one) ? 1 : 0)
      nodes.set({ role: one }, now.countTaking(one))
    }
  })
}
