/** Every screen: where it is, what it is called and who may see it. `screen-code.ts` has its code. Pure. */
import type { Texts } from './i18n/en'
import type { IconName } from './lib/icons'
import type { Role } from './state/granted'

export type Params = Readonly<Record<string, string>>

export interface Screen {
  /** Below `/console`; `:name` is a parameter. */
  readonly path: string
  /** In the navigation. */
  readonly nav?: {
    readonly group: 'top' | 'mail' | 'audience' | 'sending' | 'appliance'
    readonly name: keyof Texts['nav']
    readonly icon: IconName
    /** After `g`, e.g. `m` for `g m`. */
    readonly shortcut?: string
  }
  /** Who may see it, in any workspace; default: everybody. */
  readonly roles?: readonly Role[]
  /** Whether a role in all workspaces is needed, as it concerns the appliance. */
  readonly isAppliance?: boolean
}

/** Who may see the queue, inbound mail, webhooks and the appliance. */
const WITHOUT_MARKETERS = ['owner', 'operator', 'viewer'] as const

export const SCREENS = [
  {
    path: '/',
    nav: { group: 'top', name: 'overview', icon: 'overview', shortcut: 'o' },
  },
  {
    path: '/messages',
    nav: { group: 'mail', name: 'messages', icon: 'messages', shortcut: 'm' },
  },
  { path: '/messages/:id' },
  {
    path: '/delivery',
    nav: { group: 'mail', name: 'delivery', icon: 'delivery', shortcut: 'd' },
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/delivery/:site',
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/inbound',
    nav: { group: 'mail', name: 'inbound', icon: 'inbound', shortcut: 'i' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/inbound/:id',
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/reports',
    nav: { group: 'mail', name: 'reports', icon: 'reports', shortcut: 'r' },
  },
  { path: '/reports/:domain/:id' },
  {
    path: '/captured',
    nav: { group: 'mail', name: 'captured', icon: 'captured' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/captured/:id',
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/bounces',
    nav: { group: 'mail', name: 'bounces', icon: 'bounce', shortcut: 'b' },
  },
  {
    path: '/suppressions',
    nav: { group: 'mail', name: 'suppressions', icon: 'suppressions', shortcut: 'u' },
  },
  {
    path: '/contacts',
    nav: { group: 'audience', name: 'contacts', icon: 'contacts', shortcut: 'c' },
  },
  {
    path: '/contacts/import',
    roles: ['owner', 'operator', 'marketer'],
  },
  { path: '/contacts/import/:id' },
  { path: '/contacts/:id' },
  {
    path: '/lists',
    nav: { group: 'audience', name: 'lists', icon: 'lists', shortcut: 'l' },
  },
  { path: '/lists/:id' },
  {
    path: '/segments',
    nav: { group: 'audience', name: 'segments', icon: 'segments', shortcut: 's' },
  },
  {
    path: '/segments/new',
    roles: ['owner', 'operator', 'marketer'],
  },
  { path: '/segments/:id' },
  {
    path: '/tags',
    nav: { group: 'audience', name: 'tags', icon: 'tags' },
  },
  {
    path: '/attributes',
    nav: { group: 'audience', name: 'attributes', icon: 'attributes' },
  },
  {
    path: '/forms',
    nav: { group: 'audience', name: 'forms', icon: 'forms' },
  },
  { path: '/forms/:id' },
  { path: '/account' },
  {
    path: '/campaigns',
    nav: { group: 'sending', name: 'campaigns', icon: 'campaigns', shortcut: 'p' },
  },
  { path: '/campaigns/compare' },
  { path: '/campaigns/:id' },
  {
    path: '/automations',
    nav: { group: 'sending', name: 'automations', icon: 'automations' },
  },
  { path: '/automations/:id' },
  {
    path: '/feeds',
    nav: { group: 'sending', name: 'feeds', icon: 'feeds' },
  },
  { path: '/feeds/:id' },
  {
    path: '/templates',
    nav: { group: 'sending', name: 'templates', icon: 'templates', shortcut: 't' },
  },
  { path: '/templates/:id' },
  {
    path: '/media',
    nav: { group: 'sending', name: 'media', icon: 'media' },
  },
  {
    path: '/domains',
    nav: { group: 'sending', name: 'domains', icon: 'domains', shortcut: 'n' },
  },
  { path: '/domains/:id' },
  {
    path: '/webhooks',
    nav: { group: 'sending', name: 'webhooks', icon: 'webhooks', shortcut: 'w' },
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/webhooks/:id',
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/keys',
    nav: { group: 'sending', name: 'keys', icon: 'keys', shortcut: 'k' },
    roles: ['owner', 'operator'],
  },
  {
    path: '/workspaces',
    nav: { group: 'appliance', name: 'workspaces', icon: 'workspaces' },
  },
  { path: '/workspaces/:id' },
  {
    path: '/operators',
    nav: { group: 'appliance', name: 'operators', icon: 'operators' },
    roles: ['owner', 'operator'],
  },
  {
    path: '/operators/:id',
    roles: ['owner', 'operator'],
  },
  {
    path: '/activity',
    nav: { group: 'appliance', name: 'activity', icon: 'activity', shortcut: 'a' },
  },
  {
    path: '/health',
    nav: { group: 'appliance', name: 'health', icon: 'health' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/jobs',
    nav: { group: 'appliance', name: 'jobs', icon: 'jobs' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/backups',
    nav: { group: 'appliance', name: 'backups', icon: 'backup' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/certificates',
    nav: { group: 'appliance', name: 'certificates', icon: 'certificate' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/settings',
    nav: { group: 'appliance', name: 'settings', icon: 'settings' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
] as const satisfies readonly Screen[]

/** Screens that show and change one workspace, by the beginning of their path; the others can show all of them. */
const OF_ONE_WORKSPACE = new Set([
  'attributes',
  'automations',
  'bounces',
  'campaigns',
  'contacts',
  'feeds',
  'forms',
  'lists',
  'media',
  'segments',
  'suppressions',
  'tags',
  'templates',
])

/** @param path as in the address */
export function isOfOneWorkspace(path: string): boolean {
  return OF_ONE_WORKSPACE.has(path.split('/')[1] ?? '')
}

export type ScreenPath = (typeof SCREENS)[number]['path']

export interface Found {
  readonly screen: Screen & { readonly path: ScreenPath }
  readonly params: Params
}

/** A fixed part of a path comes before a parameter: `/campaigns/compare` is no campaign. */
export function findScreen(path: string): Found | undefined {
  for (const screen of SCREENS) {
    const params = match(screen.path, path)
    if (params) return { screen, params }
  }
  return undefined
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decoded(value)
    else if (part !== value) return undefined
  }
  return params
}

/** What no program has encoded, e.g. `50%`, stays as it was typed. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
