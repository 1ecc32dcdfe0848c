/**
 * Who may call which route of the admin API: every route × every role × (all workspaces, the own workspace, another one), found in the
 * appliance's own description, so that no route is left out.
 *
 * Requests carry a query field that no route knows: a caller who passes the gate gets a 400 and nothing is done.
 */
import t, { type Test } from 'tap'
import { ROLES, rolePermissions, type OperatorPermission, type Role } from '../../../src/http/roles.js'
import {
  ADMIN_DOCUMENT,
  ask,
  pathWith,
  readOperations,
  type Operation,
} from '../../support/api/api-document.js'
import { tokenWith } from '../../support/program/operators.js'
import { openTestAppliance } from '../../support/program/appliance.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const own = appliance.workspaceId
  const { id: other } = await appliance.json<{ id: string }>('workspace', 'create', 'other')
  const operations = await readOperations(appliance.baseUrl, ADMIN_DOCUMENT)
  return {
    ...appliance,
    own,
    other,
    operations,
    /** @param workspaceId named by the request @returns status and error code */
    call: async (operation: Operation, key: string | undefined, workspaceId?: string): Promise<string> => {
      const path = pathWith(operation, name => (name === 'workspaceId' ? (workspaceId ?? own) : MADE_UP))
      const named =
        operation['x-scope'] === 'query' && workspaceId !== undefined ? `&workspace_id=${workspaceId}` : ''
      const answer = await ask(appliance.baseUrl, {
        method: operation.method,
        path: `${path}?nonsense=1${named}`,
        key,
      })
      const { error } = JSON.parse(answer.text) as { error: { code: string; path?: string } }
      return error.code === 'validation_error' ? 'allowed' : `${answer.status} ${error.code}`
    },
  }
}

type Reach = 'all' | 'own' | 'other'

/** What the rules of `AdminAccess` say. @param named the workspace that the request names */
function expected(operation: Operation, role: Role, reach: Reach, named: 'own' | 'none'): string {
  const permission = operation['x-permission'] as OperatorPermission | undefined
  if (permission === undefined) return 'allowed'
  const isGranted = rolePermissions(role).has(permission)
  const granted = isGranted ? 'allowed' : '403 forbidden'
  switch (operation['x-scope']) {
    case 'record':
      return granted
    case 'appliance':
      return reach === 'all' ? granted : '403 forbidden'
    default:
      if (reach === 'all') return granted
      if (named === 'none') return '403 forbidden'
      return reach === 'own' ? granted : '404 not_found'
  }
}

t.test('every route of the admin API admits exactly the roles that hold its permission', async t => {
  const { operations, own, other, call, key, ...appliance } = await open(t)
  const closed = operations.filter(({ needsKey }) => needsKey)
  t.ok(closed.length > 60)
  for (const operation of closed) {
    t.equal(await call(operation, undefined), '401 unauthorized', `${operation.name}: nobody`)
    t.equal(await call(operation, key), '401 unauthorized', `${operation.name}: API key`)
    t.equal(await call(operation, `pa_${'0'.repeat(40)}`), '401 unauthorized', `${operation.name}: made up`)
  }
  const reaches: readonly (readonly [Reach, string])[] = [
    ['all', '*'],
    ['own', own],
    ['other', other],
  ]
  for (const role of ROLES)
    for (const [reach, workspaceId] of reaches) {
      const token = await tokenWith(appliance, [{ workspaceId, role }])
      for (const operation of closed) {
        const isNaming = operation['x-scope'] === 'path' || operation['x-scope'] === 'query'
        for (const named of isNaming ? (['own', 'none'] as const) : (['none'] as const)) {
          if (named === 'none' && operation['x-scope'] === 'path') continue
          t.equal(
            await call(operation, token, named === 'own' ? own : undefined),
            expected(operation, role, reach, named),
            `${operation.name}: ${role} in ${reach}, naming ${named}`,
          )
        }
      }
    }
})

t.test('open routes of the admin API are those of signing in and out, and no more', async t => {
  const { operations } = await open(t)
  for (const { name, needsKey } of operations)
    if (!needsKey) t.match(name, /^(GET|POST|DELETE) \/api\/admin\/v1\/session/, name)
})

t.test(
  'a role in two workspaces opens both and no third, and a limited token less than its operator',
  async t => {
    const { operations, own, other, call, ...appliance } = await open(t)
    const { id: third } = await appliance.json<{ id: string }>('workspace', 'create', 'third')
    const token = await tokenWith(appliance, [
      { workspaceId: own, role: 'viewer' },
      { workspaceId: other, role: 'owner' },
    ])
    for (const operation of operations.filter(one => one['x-scope'] === 'path')) {
      const permission = operation['x-permission'] as OperatorPermission
      t.equal(await call(operation, token, other), 'allowed', operation.name)
      t.equal(
        await call(operation, token, own),
        rolePermissions('viewer').has(permission) ? 'allowed' : '403 forbidden',
        operation.name,
      )
      t.equal(await call(operation, token, third), '404 not_found', operation.name)
    }
  },
)
