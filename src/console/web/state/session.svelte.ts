/** Who is signed in, and whose data they look at. */
import type { components } from '#api/admin'
import { admin, answer, useScope } from '../api/client'
import { ApiFault } from '../api/fault'
import { param, setParams } from './router.svelte'
import { noteSignedIn } from './sign-in.svelte'

export type Me = components['schemas']['Me']
export type Workspace = components['schemas']['Workspace']
export type Role = NonNullable<Me['limited_to']>

const state = $state<{ me: Me | undefined; workspaces: readonly Workspace[]; isKnown: boolean }>({
  me: undefined,
  workspaces: [],
  isKnown: false,
})

/** Undefined: nobody is signed in. */
export function me(): Me | undefined {
  return state.me
}

/** False until the first look for a session has ended. */
export function isKnown(): boolean {
  return state.isKnown
}

export function workspaces(): readonly Workspace[] {
  return state.workspaces
}

/** Looks for a session, e.g. at the start and after a sign-in. @throws ApiFault unless it only says that there is none */
export async function findSession(): Promise<void> {
  try {
    const [{ data }, { data: workspaces }] = await Promise.all([
      answer(admin.GET('/me')),
      // Without a session it does not ask for one.
      answer(admin.GET('/workspaces', { params: { query: { limit: 1_000 } }, fetch: one => fetch(one) })),
    ])
    state.workspaces = workspaces
    state.me = data
    noteSignedIn(true)
  } catch (error) {
    if (!(error instanceof ApiFault) || error.status !== 401) throw error
    forget()
  } finally {
    state.isKnown = true
  }
}

/** Reads the workspaces again, e.g. after another operator added one. */
export async function refreshWorkspaces(): Promise<void> {
  const query = { limit: 1_000 }
  state.workspaces = (await answer(admin.GET('/workspaces', { params: { query } }))).data
}

export async function signOut(): Promise<void> {
  await answer(admin.DELETE('/session'))
  forget()
}

function forget(): void {
  state.me = undefined
  noteSignedIn(false)
}

/** The workspace in the URL; undefined: all of them. */
export function chosenWorkspace(): Workspace | undefined {
  return state.workspaces.find(({ id }) => id === param('workspace'))
}

/** The workspace whose audience is shown: the chosen one, else the first. */
export function currentWorkspace(): Workspace | undefined {
  return chosenWorkspace() ?? state.workspaces[0]
}

export function isSandbox(): boolean {
  return param('sandbox') === 'true'
}

export function chooseWorkspace(id: string): void {
  setParams({ workspace: id }, 'push')
}

export function chooseSandbox(isSandbox: boolean): void {
  setParams({ sandbox: isSandbox ? 'true' : '' }, 'push')
}

useScope(() => ({ workspaceId: currentWorkspace()?.id, isSandbox: isSandbox() }))

/** Whether a role held in the workspace, or in all, is one of these. @param workspaceId undefined: in all workspaces */
export function hasRole(roles: readonly Role[], workspaceId?: string): boolean {
  return (
    state.me?.roles.some(
      ({ role, workspace_id: held }) =>
        roles.includes(role) && (held === null || (workspaceId !== undefined && held === workspaceId)),
    ) ?? false
  )
}

/** Whether they hold one of these roles anywhere. */
export function hasRoleSomewhere(roles: readonly Role[]): boolean {
  return state.me?.roles.some(({ role }) => roles.includes(role)) ?? false
}

/**
 * The `workspace_id` of a list in the admin API: the chosen workspace; else all of them, or the first one for operators of some only.
 *
 * @param roles that may read the list
 */
export function workspaceFilter(roles: readonly Role[]): { workspace_id?: string } {
  const id = (chosenWorkspace() ?? (hasRole(roles) ? undefined : currentWorkspace()))?.id
  return id === undefined ? {} : { workspace_id: id }
}
