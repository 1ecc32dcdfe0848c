/** Workspace filter of admin API lists. */
import { tr } from '../i18n/i18n'
import type { Role } from './granted'
import { chosenWorkspace, currentWorkspace, hasRole, workspaces } from './session.svelte'

/** The chosen one; else all, for those with one of these roles in all workspaces; else the first. */
export function workspaceFilter(roles: readonly Role[]): { workspace_id?: string } {
  const workspace = chosenWorkspace() ?? (hasRole(roles) ? undefined : currentWorkspace())
  return workspace ? { workspace_id: workspace.id } : {}
}

/** `system`: of the appliance itself. */
export function workspaceName(id: string | null): string {
  if (id === 'system') return tr().nav.appliance
  return workspaces().find(workspace => workspace.id === id)?.name ?? id ?? ''
}
