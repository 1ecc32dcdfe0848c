/** What the services and routes of the audience are handed, and whose audience they act on. Holds no logic. */
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { AudienceSource } from './audience-events.js'
import type { Clock } from '../world/time/clock.js'

export interface AudienceParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  /** The event log has grown. */
  readonly onEvents: () => void
}

/** Whose contacts, and who or what acts on them. */
export interface Acting {
  /** Of a sandbox the sandbox's. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly source: AudienceSource
}

/** Bulk operations on contacts take so many at once. */
export const MOST_CONTACTS = 5_000
/** Contacts of one piece of a bulk operation: a few milliseconds, between which others have their turn. */
export const PIECE = 250

/** Of one workspace: rules name them, and whoever compiles a rule or shows a preferences page reads them all. */
export const MOST_LISTS = 1_000
export const MOST_SEGMENTS = 1_000
export const MOST_TAGS = 5_000
