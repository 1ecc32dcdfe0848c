/** What each role may do, and where. */
import t from 'tap'
import { ADMIN_PERMISSIONS, isGranted, rolePermissions, ROLES } from '../../src/http/roles.js'
import { PERMISSIONS } from '../../src/http/principal.js'

t.test('an owner may do everything, an operator everything but manage operators', async t => {
  const all = [...PERMISSIONS, ...ADMIN_PERMISSIONS]
  t.same([...rolePermissions('owner')], all)
  t.same(
    all.filter(name => !rolePermissions('operator').has(name)),
    ['operators:write'],
  )
})

t.test('a marketer has audience, content and reports, but no keys, queue or settings', async t => {
  const marketer = rolePermissions('marketer')
  for (const name of [
    'contacts:write',
    'templates:write',
    'campaigns:send',
    'automations:write',
    'analytics:read',
  ] as const)
    t.ok(marketer.has(name), name)
  for (const name of [
    'keys:read',
    'queue:read',
    'workspace:write',
    'domains:write',
    'webhooks:read',
    'system:read',
    'operators:read',
    'smtp:send',
  ] as const)
    t.notOk(marketer.has(name), name)
})

t.test('a viewer changes nothing and sees neither keys nor operators', async t => {
  const names = [...rolePermissions('viewer')]
  t.same(
    names.filter(name => !name.endsWith(':read')),
    [],
  )
  t.notOk(names.includes('keys:read') || names.includes('operators:read'))
})

t.test('a role in one workspace gives nothing in another, and nothing of the appliance', async t => {
  for (const role of ROLES) {
    const grants = [{ workspaceId: 'w1', role }]
    t.ok(isGranted(grants, 'contacts:read', 'w1'), role)
    t.notOk(isGranted(grants, 'contacts:read', 'w2'), role)
    t.notOk(isGranted(grants, 'system:read', '*'), role)
  }
})

t.test('a role in all workspaces covers each of them and the appliance', async t => {
  const grants = [{ workspaceId: '*', role: 'viewer' as const }]
  t.ok(isGranted(grants, 'contacts:read', 'w1'))
  t.ok(isGranted(grants, 'system:read', '*'))
  t.notOk(isGranted(grants, 'system:write', '*'))
})

t.test('a further role in a workspace adds to the one in all', async t => {
  const grants = [
    { workspaceId: '*', role: 'owner' as const },
    { workspaceId: 'w1', role: 'viewer' as const },
  ]
  t.ok(isGranted(grants, 'keys:write', 'w1'))
})
