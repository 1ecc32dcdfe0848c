/** Roles of operators as they are read and chosen. */
import type { components } from '#api/admin'
import { tr } from '../../i18n/i18n'
import { workspaceName } from '../../state/list-scope.svelte'

type RoleGrant = components['schemas']['RoleGrant']

/** From most to least powerful. */
export const ROLES = ['owner', 'operator', 'marketer', 'viewer'] as const
/** Stands for all workspaces in paths of the API. */
export const ALL = 'all'

export function placeOf({ workspace_id: id }: RoleGrant): string {
  return id === null ? tr().shell.allWorkspaces : workspaceName(id)
}

export function rolesText(grants: readonly RoleGrant[]): string {
  return grants.map(grant => `${tr().words.role[grant.role]} (${placeOf(grant)})`).join(', ')
}
