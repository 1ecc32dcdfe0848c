/** Dependencies of the audience's services and routes, and the acting party. Holds no logic. */
import type { Services } from '../db/services.js'
import type { AudienceSource } from './audience-events.js'

export type AudienceParts = Pick<Services, 'database' | 'clock' | 'newId' | 'onEvents'>

/** Whose contacts are acted on, and by what. */
export interface Acting {
  /** A sandbox has an id separate from its workspace's. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly source: AudienceSource
}

/** How long deleted contacts, lists, tags, segments and forms can be restored. */
export const RESTORABLE_MS = 30 * 86_400_000

/** Maximum contacts per bulk request. */
export const MAX_CONTACTS = 5_000
/** Contacts per transaction of a bulk operation: a few milliseconds, so other writers are not delayed. */
export const PIECE = 250

/** Limits per workspace: compiling a rule or rendering a preferences page reads all of them. */
export const MAX_LISTS = 1_000
export const MAX_SEGMENTS = 1_000
export const MAX_TAGS = 5_000
export const MAX_DECLARED = 500
