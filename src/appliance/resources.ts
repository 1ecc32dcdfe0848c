/**
 * The list of all resources.
 *
 * Part of the composition root. `phases/resources.ts` opens them all with the same dependencies; each takes what it declares. Their order is that of
 * the API chapters and of the keys in `[retention]`.
 */
import { operators } from '../accounts/operators/resource.js'
import { activity, accounts } from '../accounts/resource.js'
import { forms } from '../audience/forms/resource.js'
import { attributes, contacts, lists, segments, tags } from '../audience/resource.js'
import { conversions } from '../analytics/conversions/resource.js'
import { statistics } from '../analytics/statistics/resource.js'
import { automations } from '../automations/resource.js'
import { feeds } from '../feeds/resource.js'
import { campaigns } from '../campaigns/resource.js'
import type { Config } from '../config/config.js'
import { configSchema } from '../config/schema/schema.js'
import { media } from '../content/media/resource.js'
import { savedBlocks } from '../content/saved-blocks/resource.js'
import { templates } from '../content/templates/resource.js'
import { bounces } from '../deliverability/bounces/resource.js'
import { domains } from '../deliverability/domains/resource.js'
import { domainReports } from '../deliverability/reports/resource.js'
import { suppressions } from '../deliverability/suppressions/resource.js'
import { health } from '../health/resource.js'
import type { Chapters } from '../http/openapi/chapters.js'
import type { OutgoingRequests } from '../http/openapi/outgoing.js'
import { inboundMail } from '../inbound/resource.js'
import { metrics } from '../metrics/resource.js'
import { messages } from '../messages/resource.js'
import { email } from '../msa/resource.js'
import { databaseUpkeep, eventLog } from '../resource/upkeep.js'
import { erasure } from './erasure/resource.js'
import { system } from './system/resource.js'
import { removedWorkspaces } from './purge/purge-workspaces.js'
import { timeline } from './timeline/resource.js'
import { References } from '../resource/references.js'
import type { OpenResource, Resource } from '../resource/resource.js'
import { subscriptions } from '../tracking/subscription-pages.js'
import { mailViews } from '../tracking/view-page.js'
import { queue } from '../queue/operator/resource.js'
import { webhooks } from '../webhooks/resource.js'

const RESOURCES = [
  messages,
  email,
  contacts,
  attributes,
  lists,
  segments,
  tags,
  forms,
  domains,
  suppressions,
  bounces,
  eventLog,
  databaseUpkeep,
  statistics,
  domainReports,
  activity,
  conversions,
  templates,
  savedBlocks,
  media,
  campaigns,
  feeds,
  automations,
  webhooks,
  accounts,
  operators,
  queue,
  removedWorkspaces,
  erasure,
  timeline,
  system,
  health,
  metrics,
  inboundMail,
  subscriptions,
  mailViews,
] as const satisfies readonly Resource<never>[]

/** Everything the resources depend on. */
export type ResourceParts = PartsOf<(typeof RESOURCES)[number]>

/** Turns a union of resources into the intersection of their dependencies. */
type PartsOf<R> = (R extends Resource<infer Parts> ? (parts: Parts) => void : never) extends (
  parts: infer All,
) => void
  ? All
  : never

export const CONFIG_SCHEMA = configSchema({
  sections: merged(RESOURCES.map(({ section }) => (section ? { [section.name]: section.schema } : {}))),
  kept: merged(RESOURCES.map(({ kept = {} }) => kept)),
})

export const CHAPTERS: Chapters = merged(RESOURCES.map(({ chapters = {} }) => chapters))

export const OUTGOING: OutgoingRequests = merged(RESOURCES.map(({ outgoing = {} }) => outgoing))

/** References to lists, tags, segments, templates and automations. */
export function openReferences(): References {
  return new References(
    RESOURCES.flatMap((one: Omit<Resource<never>, 'open'>) => (one.references ? [one.references] : [])),
  )
}

export function openResources(parts: ResourceParts, { sections }: Pick<Config, 'sections'>): OpenResource[] {
  return RESOURCES.map(({ open, section }) => open(parts, section && sections[section.name]))
}

/** @throws Error if two resources declare the same name, a programming error */
function merged<T>(parts: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all: Record<string, T> = {}
  for (const [name, value] of parts.flatMap(part => Object.entries(part))) {
    if (Object.hasOwn(all, name)) throw new Error(`two resources declare ${name}`)
    all[name] = value
  }
  return all
}
