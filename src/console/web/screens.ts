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

/** Who may see the queue, inbound mail, webhooks and the appliance. */
const WITHOUT_MARKETERS = ['owner', 'operator', 'viewer'] as const

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
  {
    path: '/delivery',
    load: () => import('./screens/delivery/Delivery.svelte'),
    nav: { group: 'mail', name: 'delivery', icon: 'delivery', shortcut: 'd' },
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/delivery/:site',
    load: () => import('./screens/delivery/Delivery.svelte'),
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/inbound',
    load: () => import('./screens/inbound/InboundList.svelte'),
    nav: { group: 'mail', name: 'inbound', icon: 'inbound', shortcut: 'i' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/inbound/:id',
    load: () => import('./screens/inbound/Inbound.svelte'),
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/reports',
    load: () => import('./screens/reports/Reports.svelte'),
    nav: { group: 'mail', name: 'reports', icon: 'reports', shortcut: 'r' },
  },
  { path: '/reports/:domain/:id', load: () => import('./screens/reports/Report.svelte') },
  {
    path: '/captured',
    load: () => import('./screens/captured/Captured.svelte'),
    nav: { group: 'mail', name: 'captured', icon: 'captured' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/captured/:id',
    load: () => import('./screens/captured/Captured.svelte'),
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/bounces',
    load: () => import('./screens/bounces/Bounces.svelte'),
    nav: { group: 'mail', name: 'bounces', icon: 'bounce', shortcut: 'b' },
  },
  {
    path: '/suppressions',
    load: () => import('./screens/suppressions/Suppressions.svelte'),
    nav: { group: 'mail', name: 'suppressions', icon: 'suppressions', shortcut: 'u' },
  },
  {
    path: '/contacts',
    load: () => import('./screens/contacts/Contacts.svelte'),
    nav: { group: 'audience', name: 'contacts', icon: 'contacts', shortcut: 'c' },
  },
  {
    path: '/contacts/import',
    load: () => import('./screens/imports/NewImport.svelte'),
    roles: ['owner', 'operator', 'marketer'],
  },
  { path: '/contacts/import/:id', load: () => import('./screens/imports/Import.svelte') },
  { path: '/contacts/:id', load: () => import('./screens/contacts/Contact.svelte') },
  {
    path: '/lists',
    load: () => import('./screens/lists/Lists.svelte'),
    nav: { group: 'audience', name: 'lists', icon: 'lists', shortcut: 'l' },
  },
  { path: '/lists/:id', load: () => import('./screens/lists/List.svelte') },
  {
    path: '/segments',
    load: () => import('./screens/segments/Segments.svelte'),
    nav: { group: 'audience', name: 'segments', icon: 'segments', shortcut: 's' },
  },
  {
    path: '/segments/new',
    load: () => import('./screens/segments/NewSegment.svelte'),
    roles: ['owner', 'operator', 'marketer'],
  },
  { path: '/segments/:id', load: () => import('./screens/segments/Segment.svelte') },
  {
    path: '/tags',
    load: () => import('./screens/tags/Tags.svelte'),
    nav: { group: 'audience', name: 'tags', icon: 'tags' },
  },
  {
    path: '/forms',
    load: () => import('./screens/forms/Forms.svelte'),
    nav: { group: 'audience', name: 'forms', icon: 'forms' },
  },
  { path: '/forms/:id', load: () => import('./screens/forms/Form.svelte') },
  { path: '/account', load: () => import('./screens/account/Account.svelte') },
  {
    path: '/campaigns',
    load: () => import('./screens/campaigns/Campaigns.svelte'),
    nav: { group: 'sending', name: 'campaigns', icon: 'campaigns', shortcut: 'p' },
  },
  { path: '/campaigns/compare', load: () => import('./screens/campaigns/report/Compare.svelte') },
  { path: '/campaigns/:id', load: () => import('./screens/campaigns/Campaign.svelte') },
  {
    path: '/automations',
    load: () => import('./screens/automations/Automations.svelte'),
    nav: { group: 'sending', name: 'automations', icon: 'automations' },
  },
  { path: '/automations/:id', load: () => import('./screens/automations/Automation.svelte') },
  {
    path: '/feeds',
    load: () => import('./screens/feeds/Feeds.svelte'),
    nav: { group: 'sending', name: 'feeds', icon: 'feeds' },
  },
  { path: '/feeds/:id', load: () => import('./screens/feeds/Feed.svelte') },
  {
    path: '/templates',
    load: () => import('./screens/templates/Templates.svelte'),
    nav: { group: 'sending', name: 'templates', icon: 'templates', shortcut: 't' },
  },
  { path: '/templates/:id', load: () => import('./screens/templates/Template.svelte') },
  {
    path: '/media',
    load: () => import('./screens/media/Media.svelte'),
    nav: { group: 'sending', name: 'media', icon: 'media' },
  },
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
    roles: WITHOUT_MARKETERS,
  },
  {
    path: '/webhooks/:id',
    load: () => import('./screens/webhooks/Webhook.svelte'),
    roles: WITHOUT_MARKETERS,
  },
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
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/jobs',
    load: () => import('./screens/system/Jobs.svelte'),
    nav: { group: 'appliance', name: 'jobs', icon: 'jobs' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/backups',
    load: () => import('./screens/system/Backups.svelte'),
    nav: { group: 'appliance', name: 'backups', icon: 'backup' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/certificates',
    load: () => import('./screens/system/Certificates.svelte'),
    nav: { group: 'appliance', name: 'certificates', icon: 'certificate' },
    roles: WITHOUT_MARKETERS,
    isAppliance: true,
  },
  {
    path: '/settings',
    load: () => import('./screens/system/Settings.svelte'),
    nav: { group: 'appliance', name: 'settings', icon: 'settings' },
    roles: WITHOUT_MARKETERS,
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
