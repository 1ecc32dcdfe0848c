/** Every screen: where it is, what it is called, who may see it, and its code, which is loaded when it is opened. */
import type { Component } from 'svelte'
import type { Texts } from './i18n/en'
import type { IconName } from './lib/icons'
import type { Role } from './state/session.svelte'

/** Screens without parameters in their path take none. */
export type ScreenComponent = Component<{ params: Params }> | Component<Record<string, never>>
export type Params = Readonly<Record<string, string>>

export interface Screen {
  /** Below `/console`; `:name` is a parameter. */
  readonly path: string
  readonly load: () => Promise<{ readonly default: ScreenComponent }>
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

/** Roles with `system:read` and `webhooks:read`. */
const READERS = ['owner', 'operator', 'viewer'] as const

export const SCREENS: readonly Screen[] = [
  {
    path: '/',
    load: () => import('./screens/overview/Overview.svelte'),
    nav: { group: 'top', name: 'overview', icon: 'overview', shortcut: 'o' },
  },
  {
    path: '/messages',
    load: () => import('./screens/messages/Messages.svelte'),
    nav: { group: 'mail', name: 'messages', icon: 'messages', shortcut: 'm' },
  },
  { path: '/messages/:id', load: () => import('./screens/messages/Message.svelte') },
  { path: '/account', load: () => import('./screens/account/Account.svelte') },
  {
    path: '/domains',
    load: () => import('./screens/domains/Domains.svelte'),
    nav: { group: 'sending', name: 'domains', icon: 'domains', shortcut: 'n' },
  },
  { path: '/domains/:id', load: () => import('./screens/domains/Domain.svelte') },
  {
    path: '/webhooks',
    load: () => import('./screens/webhooks/Webhooks.svelte'),
    nav: { group: 'sending', name: 'webhooks', icon: 'webhooks', shortcut: 'w' },
    roles: READERS,
  },
  { path: '/webhooks/:id', load: () => import('./screens/webhooks/Webhook.svelte'), roles: READERS },
  {
    path: '/keys',
    load: () => import('./screens/keys/Keys.svelte'),
    nav: { group: 'sending', name: 'keys', icon: 'keys', shortcut: 'k' },
    roles: ['owner', 'operator'],
  },
  {
    path: '/workspaces',
    load: () => import('./screens/workspaces/Workspaces.svelte'),
    nav: { group: 'appliance', name: 'workspaces', icon: 'workspaces' },
  },
  { path: '/workspaces/:id', load: () => import('./screens/workspaces/Workspace.svelte') },
  {
    path: '/operators',
    load: () => import('./screens/operators/Operators.svelte'),
    nav: { group: 'appliance', name: 'operators', icon: 'operators' },
    roles: ['owner', 'operator'],
  },
  {
    path: '/operators/:id',
    load: () => import('./screens/operators/Operator.svelte'),
    roles: ['owner', 'operator'],
  },
  {
    path: '/activity',
    load: () => import('./screens/activity/Activity.svelte'),
    nav: { group: 'appliance', name: 'activity', icon: 'activity', shortcut: 'a' },
  },
  {
    path: '/health',
    load: () => import('./screens/health/Health.svelte'),
    nav: { group: 'appliance', name: 'health', icon: 'health' },
    roles: READERS,
    isAppliance: true,
  },
  {
    path: '/jobs',
    load: () => import('./screens/system/Jobs.svelte'),
    nav: { group: 'appliance', name: 'jobs', icon: 'jobs' },
    roles: READERS,
    isAppliance: true,
  },
  {
    path: '/backups',
    load: () => import('./screens/system/Backups.svelte'),
    nav: { group: 'appliance', name: 'backups', icon: 'backup' },
    roles: READERS,
    isAppliance: true,
  },
  {
    path: '/certificates',
    load: () => import('./screens/system/Certificates.svelte'),
    nav: { group: 'appliance', name: 'certificates', icon: 'certificate' },
    roles: READERS,
    isAppliance: true,
  },
  {
    path: '/settings',
    load: () => import('./screens/system/Settings.svelte'),
    nav: { group: 'appliance', name: 'settings', icon: 'settings' },
    roles: READERS,
    isAppliance: true,
  },
]

export interface Found {
  readonly screen: Screen
  readonly params: Params
}

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
    if (part.startsWith(':')) params[part.slice(1)] = decodeURIComponent(value)
    else if (part !== value) return undefined
  }
  return params
}
