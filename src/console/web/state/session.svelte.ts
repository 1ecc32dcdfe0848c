/** Who is signed in, and whose data they look at. */
import type { components } from '#api/admin'
import { admin, answer, useScope } from '../api/client'
import { ApiFault } from '../api/fault'
import { isGranted, isGrantedSomewhere, type Grant, type Role } from './granted'
import { param, setParams } from './router.svelte'
import { noteSignedIn } from '../api/sign-in.svelte'

export type Me = components['schemas']['Me']
export type Workspace = components['schemas']['Workspace']

interface Session {
  me: Me | undefined
  workspaces: readonly Workspace[]
  /** Shown unless the URL names one: the first by name, and the same while it exists. */
  usualId: string | undefined
  isKnown: boolean
}

const state = $state<Session>({
  me: undefined,
  workspaces: [],
  usualId: undefined,
  isKnown: false,
})

/** Undefined: not signed in. */
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

/** In this browser's storage while a session is open: who has none is not asked for it, which the browser's log would show as a fault. */
const HINT = 'postroad.session'

async function mayHaveSession(): Promise<boolean> {
  if (localStorage.getItem(HINT) !== null) return true
  return (await answer(admin.GET('/session/methods'))).data.signed_in
}

/** Loads the session, e.g. at start and after a sign-in. @throws ApiFault except if there is no session */
export async function findSession(): Promise<void> {
  try {
    if (!(await mayHaveSession())) {
      forget()
      return
    }
    const [{ data }, { data: workspaces }] = await Promise.all([
      answer(admin.GET('/me')),
      // Without a session it does not ask for one.
      answer(admin.GET('/workspaces', { params: { query: { limit: 1_000 } }, fetch: one => fetch(one) })),
    ])
    setWorkspaces(workspaces)
    state.me = data
    localStorage.setItem(HINT, 'open')
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
  setWorkspaces((await answer(admin.GET('/workspaces', { params: { query } }))).data)
}

/** Screens reload and lose their selection only if the workspaces have changed. */
function setWorkspaces(workspaces: readonly Workspace[]): void {
  if (JSON.stringify(workspaces) === JSON.stringify(state.workspaces)) return
  state.workspaces = workspaces
  if (workspaces.some(({ id }) => id === state.usualId)) return
  state.usualId = workspaces.toSorted((one, other) => one.name.localeCompare(other.name))[0]?.id
}

export async function signOut(): Promise<void> {
  await answer(admin.DELETE('/session'))
  forget()
}

function forget(): void {
  state.me = undefined
  localStorage.removeItem(HINT)
  noteSignedIn(false)
}

/** The workspace in the URL; undefined: all of them. */
export function chosenWorkspace(): Workspace | undefined {
  return state.workspaces.find(({ id }) => id === param('workspace'))
}

/** The workspace whose audience is shown: the chosen one, else the usual one. */
export function currentWorkspace(): Workspace | undefined {
  return chosenWorkspace() ?? state.workspaces.find(({ id }) => id === state.usualId)
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
  return isGranted(held(), roles, workspaceId)
}

/** The roles of who is signed in. */
export function held(): readonly Grant[] {
  return state.me?.roles ?? []
}

/** Whether they hold one of these roles anywhere. */
export function hasRoleSomewhere(roles: readonly Role[]): boolean {
  return isGrantedSomewhere(held(), roles)
}
