/** What a campaign is: the mail, whom it is for, how it goes out, and what came of it. Holds no logic. */
import type { Conditions } from '../../audience/segments/conditions.js'
import type { SendWindow } from '../sending/send-window.js'
import type { CampaignStatus } from './campaign-status.js'

/** What a draft may change. */
export interface CampaignFields {
  readonly name: string
  readonly subject: string
  readonly templateId: string
  /** One of these three says whom it is for. */
  readonly listId: string | null
  readonly segmentId: string | null
  /** Id of an earlier campaign, some of whose recipients are mailed again; `resendTo` says which. */
  readonly resendOf: string | null
  readonly resendTo: ResendTo | null
  /** Null: as the workspace says. */
  readonly fromEmail: string | null
  readonly fromName: string | null
  readonly replyTo: string | null
  readonly trackOpens: boolean | null
  readonly trackClicks: boolean | null
  /** Mails handed over in an hour at most; null: as fast as they leave. */
  readonly ratePerHour: number | null
  readonly sendWindow: SendWindow | null
}

/** Recipients to whom an earlier campaign was delivered, and who have not opened it or not clicked in it. A click counts as an open. */
export const RESEND_TO = ['not_opened', 'not_clicked'] as const
export type ResendTo = (typeof RESEND_TO)[number]

/** Whom it means, as of the moment it started: a static list by its number, conditions, or recipients of the campaign with a number. */
export type SentTo =
  | { readonly list: number }
  | { readonly conditions: Conditions }
  | { readonly recipientsOf: number; readonly who: ResendTo }

/** How many recipients there are; each is counted in one of the others. */
export interface Progress {
  readonly recipients: number
  /** Not handed over yet. */
  readonly pending: number
  /** Handed to the queue, and neither delivered nor given up. */
  readonly queued: number
  readonly done: number
  /** Left out at hand-over or before delivery, since they may not be mailed any more. */
  readonly skipped: number
  /** Taken back when it was cancelled. */
  readonly cancelled: number
}

/** Left out when it started; an estimate while it is scheduled. */
export interface Excluded {
  readonly unsubscribed: number
  readonly bounced: number
  readonly suppressed: number
}

/** What happened to its mail. Unique: recipients to whom it happened at least once. */
export interface Stats {
  readonly sends: number
  readonly deliveries: number
  readonly opens: number
  readonly uniqueOpens: number
  readonly clicks: number
  readonly uniqueClicks: number
  readonly bounces: number
  readonly complaints: number
  readonly unsubscribes: number
}

export interface Campaign extends CampaignFields, Progress, Excluded, Stats {
  readonly seq: number
  readonly id: string
  /** Of a sandbox the sandbox's. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly status: CampaignStatus
  /** Why it failed. */
  readonly error: string | null
  /** Moments, ms since epoch UTC. */
  readonly createdAt: number
  readonly updatedAt: number
  /** As of when its audience is evaluated: when it was sent, or its scheduled time came. */
  readonly requestedAt: number | null
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** When the runner looks at it next; null: it has nothing to do for it. */
  readonly nextAt: number | null
  /** Null until then. */
  readonly who: SentTo | null
  /** Numbers of contacts: those before have their row; those after the last came too late. */
  readonly fixedBefore: number | null
  readonly fixedThrough: number | null
  /** When the last recipient had its row. */
  readonly fixedAt: number | null
  /** Since when the rows are gone, which are kept for a time only. */
  readonly recipientsPrunedAt: number | null
  /** Content of the messages made at present, and since when. */
  readonly contentId: string | null
  readonly contentAt: number | null
}
