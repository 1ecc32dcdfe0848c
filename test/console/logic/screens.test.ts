/** Screens by path, and who sees which of them. */
import t from 'tap'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import { es } from '../../../src/console/web/i18n/es'
import { fr } from '../../../src/console/web/i18n/fr'
import { findScreen, isOfOneWorkspace, SCREENS, type Screen } from '../../../src/console/web/screens'
import { GROUPS, namedScreens, screensOf } from '../../../src/console/web/shell/navigation'
import {
  isGranted,
  isGrantedSomewhere,
  maySee,
  type Grant,
  type Role,
} from '../../../src/console/web/state/granted'

const screens: readonly Screen[] = SCREENS
const everywhere = (role: Role): Grant[] => [{ role, workspace_id: null }]
const inShop = (role: Role): Grant[] => [{ role, workspace_id: 'shop' }]

t.test('every screen is found by its path, with its parameters', t => {
  for (const { path } of SCREENS) {
    const found = findScreen(path.replace(/:(\w+)/g, (_, name: string) => `the-${name}`))
    t.equal(found?.screen.path, path)
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
    t.same(found?.params, Object.fromEntries(names.map(name => [name, `the-${name}`])), path)
  }
  t.equal(findScreen('/campaigns/compare')?.screen.path, '/campaigns/compare', 'no campaign of that id')
  t.equal(findScreen('/contacts/import')?.screen.path, '/contacts/import')
  t.equal(findScreen('/nowhere'), undefined)
  t.equal(findScreen('/messages/1/2'), undefined)
  t.end()
})

t.test('parameters are read as they were written into the link', t => {
  for (const site of ['mx.one.test', '[2001:db8::1]', 'a b', 'über', '100%'])
    t.same(findScreen(`/delivery/${encodeURIComponent(site)}`)?.params, { site })
  t.same(findScreen('/delivery/100%')?.params, { site: '100%' }, 'typed by hand')
  t.same(findScreen('/reports/a.example/%E0%A4%A')?.params, { domain: 'a.example', id: '%E0%A4%A' })
  t.end()
})

t.test('no two screens share a path, a name or a shortcut', t => {
  const unique = (values: readonly string[]) => t.equal(new Set(values).size, values.length, values.join())
  unique(SCREENS.map(({ path }) => path))
  const named = screens.flatMap(({ nav }) => (nav ? [nav] : []))
  unique(named.map(({ name }) => name))
  unique(named.flatMap(({ shortcut }) => (shortcut === undefined ? [] : [shortcut])))
  for (const texts of [en, de, fr, es]) {
    const names = named.map(({ name }) => texts.nav[name])
    t.notOk(names.includes(''), 'each has a name')
    unique(names)
  }
  t.end()
})

t.test('the navigation has every named screen once, in its group', t => {
  const owner = everywhere('owner')
  const shown = GROUPS.flatMap(group => screensOf(group, owner)).map(({ screen }) => screen.path)
  t.same(
    shown.toSorted(),
    namedScreens(owner)
      .map(({ screen }) => screen.path)
      .toSorted(),
  )
  t.end()
})

const ALL_MAIL = ['messages', 'delivery', 'inbound', 'reports', 'captured', 'bounces', 'suppressions']
const MARKETERS_MAIL = ['messages', 'reports', 'bounces', 'suppressions']
const WORKSPACE_MAIL = ALL_MAIL.filter(name => name !== 'inbound' && name !== 'captured')

t.test('a role sees the screens about mail that it may use', t => {
  const seen = (held: readonly Grant[]) => screensOf('mail', held).map(({ nav }) => nav.name)
  for (const role of ['owner', 'operator', 'viewer'] as const) {
    t.same(seen(everywhere(role)), ALL_MAIL, role)
    t.same(seen(inShop(role)), WORKSPACE_MAIL, `${role} of one workspace: none of the appliance`)
  }
  t.same(seen(everywhere('marketer')), MARKETERS_MAIL)
  t.same(seen(inShop('marketer')), MARKETERS_MAIL)
  t.same(seen([]), [], 'without a role')
  t.end()
})

t.test('screens of the appliance are for roles in all workspaces', t => {
  const appliance = screens.filter(({ isAppliance }) => isAppliance)
  t.ok(appliance.length >= 8)
  for (const screen of appliance) {
    t.ok(maySee(everywhere('viewer'), screen), screen.path)
    t.notOk(maySee(inShop('owner'), screen), screen.path)
    t.notOk(maySee(everywhere('marketer'), screen), screen.path)
  }
  t.end()
})

t.test('only owners and operators see keys and operators, only who may change contacts imports them', t => {
  const seenBy = (path: string) =>
    (['owner', 'operator', 'marketer', 'viewer'] as const).filter(role =>
      maySee(
        inShop(role),
        screens.find(one => one.path === path)!,
      ),
    )
  t.same(seenBy('/keys'), ['owner', 'operator'])
  t.same(seenBy('/operators'), ['owner', 'operator'])
  t.same(seenBy('/operators/:id'), ['owner', 'operator'])
  t.same(seenBy('/contacts/import'), ['owner', 'operator', 'marketer'])
  t.same(seenBy('/segments/new'), ['owner', 'operator', 'marketer'])
  t.same(seenBy('/webhooks'), ['owner', 'operator', 'viewer'])
  t.end()
})

t.test('screens that read and write one workspace say so, those of all workspaces do not', t => {
  const ofOne = SCREENS.map(({ path }) => path).filter(isOfOneWorkspace)
  for (const path of [
    '/contacts',
    '/contacts/:id',
    '/contacts/import',
    '/campaigns/:id',
    '/templates',
    '/forms',
  ])
    t.ok(
      ofOne.some(one => one === path),
      path,
    )
  for (const path of [
    '/',
    '/messages',
    '/domains',
    '/webhooks',
    '/keys',
    '/workspaces',
    '/health',
    '/account',
  ])
    t.notOk(isOfOneWorkspace(path), path)
  t.end()
})

t.test('a role counts in its workspace, one in all workspaces counts everywhere', t => {
  const held: Grant[] = [
    { role: 'marketer', workspace_id: 'shop' },
    { role: 'viewer', workspace_id: null },
  ]
  t.ok(isGranted(held, ['marketer'], 'shop'))
  t.notOk(isGranted(held, ['marketer'], 'blog'))
  t.notOk(isGranted(held, ['marketer']), 'not in all')
  t.ok(isGranted(held, ['viewer'], 'blog'))
  t.ok(isGranted(held, ['owner', 'viewer']))
  t.ok(isGrantedSomewhere(held, ['marketer']))
  t.notOk(isGrantedSomewhere(held, ['owner', 'operator']))
  t.end()
})
