/** The roles that a person's groups give. */
import type { Queries } from '../../../db/database.js'
import { ALL_WORKSPACES, ROLES, type RoleGrant } from '../../../http/roles.js'
import { findWorkspace, findWorkspaceByName } from '../../workspace-store.js'
import type { OidcSettings } from './settings.js'

type Mapping = OidcSettings['roles'][number]

export interface GroupRoles {
  /** At most one in a workspace: the first in `ROLES`. */
  readonly grants: readonly RoleGrant[]
  /** Workspaces that mappings name and that do not exist. */
  readonly unknownWorkspaces: readonly string[]
}

export async function rolesOfGroups(
  db: Queries,
  mappings: readonly Mapping[],
  groups: readonly string[],
): Promise<GroupRoles> {
  const held = new Set(groups)
  const byWorkspace = new Map<string, RoleGrant>()
  const unknownWorkspaces: string[] = []
  for (const { group, role, workspace } of mappings) {
    if (!held.has(group)) continue
    const workspaceId = await resolveWorkspace(db, workspace)
    if (workspaceId === undefined) {
      unknownWorkspaces.push(workspace)
      continue
    }
    const other = byWorkspace.get(workspaceId)
    if (!other || ROLES.indexOf(role) < ROLES.indexOf(other.role))
      byWorkspace.set(workspaceId, { workspaceId, role })
  }
  return { grants: [...byWorkspace.values()], unknownWorkspaces }
}

/** Workspaces that mappings name and that do not exist. */
export async function unknownWorkspaces(db: Queries, mappings: readonly Mapping[]): Promise<string[]> {
  const missing: string[] = []
  for (const { workspace } of mappings)
    if ((await resolveWorkspace(db, workspace)) === undefined) missing.push(workspace)
  return [...new Set(missing)]
}

/** @param named id or name; empty: all workspaces */
async function resolveWorkspace(db: Queries, named: string): Promise<string | undefined> {
  if (named === '') return ALL_WORKSPACES
  return ((await findWorkspace(db, named)) ?? (await findWorkspaceByName(db, named)))?.id
}
