/** Roles of nodes; each node has its own from its configuration. Pure. */

/** `http`, `submission` and `inbound` listen for clients; `mta` delivers; `scheduler` may hold leases of background work. */
export const ROLES = ['http', 'submission', 'inbound', 'mta', 'scheduler'] as const

export type Role = (typeof ROLES)[number]

/** `draining`: takes no new work, because of the operator; `stopping`: because it ends. */
export const NODE_STATES = ['active', 'draining', 'stopping'] as const

export type NodeState = (typeof NODE_STATES)[number]

/** @param enabled by role */
export function rolesOf(enabled: Readonly<Record<Role, boolean>>): readonly Role[] {
  return ROLES.filter(role => enabled[role])
}

/** Whether the node takes new work of the role. */
export function takes(
  { roles, state }: { readonly roles: readonly Role[]; readonly state: NodeState },
  role: Role,
): boolean {
  return state === 'active' && roles.includes(role)
}
