/** The kinds of records that open screens show, and which of them a write or an event may have changed. Pure. */
import type { EventGroup } from '../events/store.js'
import type { OperatorPermission } from '../http/roles.js'

/** By topic: the permission to read its records. */
export const LIVE_TOPICS = {
  activity: 'activity:read',
  automations: 'automations:read',
  backups: 'system:read',
  bounces: 'bounces:read',
  campaigns: 'campaigns:read',
  captured: 'system:read',
  certificates: 'system:read',
  contacts: 'contacts:read',
  domains: 'domains:read',
  forms: 'lists:read',
  health: 'system:read',
  imports: 'contacts:read',
  inbound: 'inbound:read',
  jobs: 'system:read',
  keys: 'keys:read',
  lists: 'lists:read',
  media: 'templates:read',
  messages: 'email:read',
  operators: 'operators:read',
  queue: 'queue:read',
  saved_blocks: 'templates:read',
  segments: 'segments:read',
  suppressions: 'suppressions:read',
  tags: 'tags:read',
  templates: 'templates:read',
  webhooks: 'webhooks:read',
  workspaces: 'workspace:read',
} as const satisfies Readonly<Record<string, OperatorPermission>>

export type LiveTopic = keyof typeof LIVE_TOPICS
export const LIVE_TOPIC_NAMES = Object.keys(LIVE_TOPICS) as LiveTopic[]

/** By a fixed part of a route's path. */
const CHANGED_BY_WRITE: Readonly<Record<string, readonly LiveTopic[]>> = {
  attributes: ['contacts'],
  automations: ['automations'],
  backups: ['backups'],
  bounces: ['bounces', 'suppressions'],
  campaigns: ['campaigns', 'queue'],
  capture: ['captured'],
  captured: ['captured'],
  certificates: ['certificates', 'health'],
  contacts: ['contacts', 'lists', 'tags', 'segments'],
  domains: ['domains'],
  email: ['messages', 'queue'],
  events: ['health'],
  feeds: ['campaigns'],
  forms: ['forms'],
  imports: ['imports'],
  inbound: ['inbound', 'bounces'],
  jobs: ['jobs'],
  keys: ['keys'],
  lists: ['lists', 'contacts'],
  me: ['operators'],
  media: ['media'],
  messages: ['messages'],
  nodes: ['health'],
  operators: ['operators'],
  queue: ['queue', 'messages', 'health'],
  'saved-blocks': ['saved_blocks'],
  segments: ['segments'],
  suppressions: ['suppressions', 'contacts'],
  tags: ['tags', 'contacts'],
  templates: ['templates'],
  webhooks: ['webhooks', 'health'],
  workspaces: ['workspaces'],
}

/** @param path as declared, e.g. `/lists/:id/contacts` */
export function topicsOfWrite(path: string): readonly LiveTopic[] {
  const topics = path.split('/').flatMap(part => CHANGED_BY_WRITE[part] ?? [])
  return [...new Set<LiveTopic>([...topics, 'activity'])]
}

const MAIL: readonly LiveTopic[] = ['messages', 'queue', 'captured', 'campaigns']

/** By what is before the dot of an event's kind; single kinds have further ones. */
const CHANGED_BY_EVENT: Readonly<Record<string, readonly LiveTopic[]>> = {
  email: MAIL,
  'email.bounced': ['bounces', 'inbound', 'suppressions'],
  'email.complained': ['bounces', 'inbound', 'suppressions'],
  'email.unsubscribed': ['contacts', 'lists', 'suppressions'],
  campaign: ['campaigns'],
  contact: ['contacts', 'lists', 'segments'],
  contacts: ['contacts', 'lists', 'tags', 'imports'],
  flow: ['automations'],
  form: ['forms', 'contacts', 'lists'],
  list: ['lists', 'contacts'],
  suppression: ['suppressions', 'contacts'],
  tag: ['tags', 'contacts'],
}

export function topicsOfEvent({ kind }: Pick<EventGroup, 'kind'>): readonly LiveTopic[] {
  const [family = ''] = kind.split('.')
  return [...(CHANGED_BY_EVENT[family] ?? []), ...(CHANGED_BY_EVENT[kind] ?? [])]
}

/** All that events can change. */
export const TOPICS_OF_EVENTS: readonly LiveTopic[] = [...new Set(Object.values(CHANGED_BY_EVENT).flat())]
