/** A feed: an RSS, Atom or JSON feed whose new items are sent as a campaign on a schedule. Types only. */
import type { RenderQueue } from '../content/rendering/render-queue.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { EgressPolicy } from '../world/net/egress-policy.js'
import type { Mailing } from '../campaigns/model/campaign.js'
import type { CampaignParts } from '../campaigns/model/campaign-parts.js'
import type { FeedSchedule } from './feed-schedule.js'

export interface FeedParts extends CampaignParts {
  readonly renderQueue: RenderQueue
  /** @param isPermitted whether the workspace allows private addresses; the operator's allowlist still applies */
  readonly outgoingCalls: (isPermitted: boolean) => {
    readonly http: HttpClient
    readonly egress: EgressPolicy
  }
}

export interface FeedFields extends Mailing {
  readonly url: string
  readonly schedule: FeedSchedule
  /** IANA name; null: the workspace's. */
  readonly timezone: string | null
  /** Items in one campaign, the newest ones. */
  readonly maxItems: number
  readonly isEnabled: boolean
}

export interface Feed extends FeedFields {
  readonly seq: number
  readonly id: string
  /** The sandbox's id for a sandbox feed. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  /** Moments, ms since epoch UTC. */
  readonly createdAt: number
  readonly updatedAt: number
  /** Grows with every run and change; what acts on a feed it read earlier must find it unchanged. */
  readonly turn: number
  /** The scheduled time of the next run; null while disabled. */
  readonly dueAt: number | null
  /** When it is next read: `dueAt`, or later while that run is retried. */
  readonly nextAt: number | null
  /** Attempts in a row that failed. */
  readonly failures: number
  readonly lastError: string | null
  /** Validators of the content whose items are all remembered (RFC 9110 §8.8). */
  readonly etag: string | null
  readonly lastModified: string | null
  /** Latest date of the items it sent, ms since epoch UTC; older ones are not new. Null: none that has a date. */
  readonly newestSentAt: number | null
  /** Its items are those of this moment, remembered by their ids only, by a former version; null: by all their keys. */
  readonly idsOnlyUntil: number | null
}

/**
 * Result of a run. `retrying`: failed, and tried again before the next scheduled time. The other three are final.
 */
export const RUN_STATUSES = ['sent', 'nothing_new', 'retrying', 'failed'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export interface FeedRun {
  readonly id: string
  /** The scheduled time, or the time of the request. */
  readonly dueAt: number
  readonly isManual: boolean
  readonly status: RunStatus
  /** Why it failed, why nothing was sent, or why items were left out. */
  readonly reason: string | null
  /** Times the feed was read for this run. */
  readonly attempts: number
  /** Items not sent before, and how many of them the campaign contains. */
  readonly newItems: number
  readonly sentItems: number
  readonly campaignId: string | null
  readonly startedAt: number
  readonly endedAt: number
}

/** An item as read, cleaned: plain text on one line, absolute http(s) URLs. */
export interface FeedItem {
  /** Digests of what identifies it, at least one: it is known if one of them is. */
  readonly keys: readonly string[]
  readonly title: string
  /** Empty if it has none. */
  readonly link: string
  readonly summary: string
  readonly author: string
  readonly image: string
  /** When it was published, ms since epoch UTC; null if not said. */
  readonly at: number | null
}

export interface ReadFeed {
  readonly title: string
  readonly description: string
  readonly link: string
  /** Newest first; items without a date keep the order of the feed. At most `MAX_ITEMS`. */
  readonly items: readonly FeedItem[]
}

/** Items read of one feed, the first ones. */
export const MAX_ITEMS = 1_000
/** Items of one campaign. */
export const MAX_ITEMS_SENT = 50

/** A fault of the feed, worded for its owner. */
export class FeedError extends Error {
  override readonly name = 'FeedError'
}
