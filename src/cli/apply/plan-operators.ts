/** Operators in the plan of `postroad apply`: their accounts and roles. */
import { AppError } from '../../core/errors.js'
import type { Api, ApiClient } from '../api.js'
import { segment } from '../options.js'
import { differences, type PlannedChange } from './change.js'
import type { OperatorState, State } from './state-file.js'

const MAX_READ = 100_000

/** @param ids of workspaces by name in lower case, new ones once they are created @throws AppError not_found, conflict, validation_error */
export async function planOperators(
  { admin }: Api,
  state: State,
  workspaces: readonly { readonly id: string; readonly name: string }[],
  ids: ReadonlyMap<string, string>,
): Promise<PlannedChange[]> {
  const existing = await admin.list<ExistingOperator>('/operators', {}, MAX_READ)
  const me = await admin.get<{ id: string }>('/me')
  const names = new Map(workspaces.map(({ id, name }) => [id, name]))
  const described = new Set((state.workspaces ?? []).map(one => one.name.toLowerCase()))
  for (const { email, roles = [] } of state.operators ?? [])
    for (const { workspace } of roles)
      if (
        workspace !== undefined &&
        !ids.has(workspace.toLowerCase()) &&
        !described.has(workspace.toLowerCase())
      )
        throw noWorkspace(workspace, email)
  const planned = (state.operators ?? []).flatMap(wanted => planOperator(admin, wanted, existing, names, ids))
  if (!state.prune?.includes('operators')) return planned
  const kept = new Set((state.operators ?? []).map(({ email }) => email.toLowerCase()))
  for (const { id, email } of existing.filter(one => !kept.has(one.email.toLowerCase()))) {
    if (id === me.id)
      throw new AppError(
        'conflict',
        `pruning would remove ${email}, who runs this; describe that operator too`,
      )
    planned.push({
      act: 'delete',
      what: 'operator',
      name: email,
      fields: {},
      async apply() {
        await admin.send('DELETE', `/operators/${segment(id)}`)
      },
    })
  }
  return planned
}

interface ExistingOperator {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly roles: readonly { readonly workspace_id: string | null; readonly role: string }[]
}

const EVERYWHERE = 'all workspaces'

function planOperator(
  admin: ApiClient,
  { email, name, roles, invite }: OperatorState,
  existing: readonly ExistingOperator[],
  names: ReadonlyMap<string, string>,
  ids: ReadonlyMap<string, string>,
): PlannedChange[] {
  const known = existing.find(one => one.email.toLowerCase() === email.toLowerCase())
  // Names of workspaces ignore case.
  const nameOf = (workspace: string) => {
    const id = ids.get(workspace.toLowerCase())
    return (id === undefined ? undefined : names.get(id)) ?? workspace
  }
  const wanted =
    roles &&
    rolesText(
      roles.map(({ workspace, role }) => [workspace === undefined ? EVERYWHERE : nameOf(workspace), role]),
    )
  const before = known?.roles.map(({ workspace_id: id, role }): [string, string] => [
    id === null ? EVERYWHERE : (names.get(id) ?? id),
    role,
  ])
  const fields = differences(
    { ...(name === undefined ? {} : { name }), ...(wanted === undefined ? {} : { roles: wanted }) },
    known && { name: known.name, roles: rolesText(before ?? []) },
  )
  /** @throws AppError not_found */
  const placeOf = (workspace: string | undefined): string => {
    if (workspace === undefined) return 'all'
    const id = ids.get(workspace.toLowerCase())
    if (id === undefined) throw noWorkspace(workspace, email)
    return id
  }
  const grant = (path: string, { workspace, role }: { workspace?: string; role: string }) =>
    admin.send('PUT', `${path}/roles/${placeOf(workspace)}`, { role })
  if (!known) {
    const [first, ...others] = roles ?? []
    if (!first) throw new AppError('validation_error', `the new operator ${email} needs roles`)
    return [
      {
        act: 'create',
        what: 'operator',
        name: email,
        fields,
        async apply() {
          const place = placeOf(first.workspace)
          const made = await admin.send<{ id: string }>('POST', '/operators', {
            email,
            ...(name === undefined ? {} : { name }),
            role: first.role,
            workspace_id: place === 'all' ? null : place,
            ...(invite === undefined ? {} : { send_mail: invite }),
          })
          for (const one of others) await grant(`/operators/${made.id}`, one)
        },
      },
    ]
  }
  if (Object.keys(fields).length === 0) return []
  return [
    {
      act: 'change',
      what: 'operator',
      name: email,
      fields,
      async apply() {
        const path = `/operators/${known.id}`
        if (fields['name']) await admin.send('PATCH', path, { name })
        if (!fields['roles'] || !roles) return
        for (const one of roles) await grant(path, one)
        const kept = new Set(roles.map(one => placeOf(one.workspace)))
        for (const { workspace_id: id } of known.roles)
          if (!kept.has(id ?? 'all')) await admin.send('DELETE', `${path}/roles/${id ?? 'all'}`)
      },
    },
  ]
}

function noWorkspace(workspace: string, email: string): AppError {
  return new AppError(
    'not_found',
    `no workspace ${workspace}, in which the operator ${email} should have a role`,
  )
}

function rolesText(roles: readonly (readonly [string, string])[]): string {
  return roles
    .map(([workspace, role]) => `${role} in ${workspace}`)
    .sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
    .join(', ')
}
