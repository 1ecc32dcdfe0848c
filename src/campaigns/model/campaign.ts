/** A campaign: its fields, counts and state machine. Pure. */
import type { Conditions } from '../../audience/segments/conditions.js'
import type { WaitReason } from '../../core/waiting.js'
import type { AbTest } from './ab-test.js'
import type { SendWindow } from './send-window.js'

/** Content, audience and manner of a mailing: of a campaign, or of all campaigns of a feed. */
export interface Mailing {
  readonly name: string
  readonly subject: string
  /** Shown beside the subject in lists of mail; null: the mail's first words are. */
  readonly preheader: string | null
  readonly templateId: string
  /** The audience: exactly one of list, segment and, for a campaign, `audience` and resend is set. */
  readonly listId: string | null
  readonly segmentId: string | null
  /** Null: the workspace's default. */
  readonly fromEmail: string | null
  readonly fromName: string | null
  readonly replyTo: string | null
  readonly trackOpens: boolean | null
  readonly trackClicks: boolean | null
  /** Maximum number of emails queued per hour; null: no limit. */
  readonly ratePerHour: number | null
  readonly sendWindow: SendWindow | null
}

/** A list or segment, by id. */
export type NamedAudience = { readonly listId: string } | { readonly segmentId: string }

/** Contacts in any of `include` and in none of `exclude`; each is mailed once. */
export interface Audience {
  readonly include: readonly NamedAudience[]
  readonly exclude: readonly NamedAudience[]
}

export interface CampaignFields extends Mailing {
  /** Instead of one list or segment. */
  readonly audience: Audience | null
  /** Id of the earlier campaign of a resend; `resendTo` selects among its recipients. */
  readonly resendOf: string | null
  readonly resendTo: ResendTo | null
  readonly sendTime: SendTime
  readonly abTest: AbTest | null
  /** In the public archive of the workspace from its start on, and whether search engines may list it there. */
  readonly isArchived: boolean
  readonly isIndexed: boolean
}

/** `usual_hour`: each mail is due at the hour at which its recipient usually visits, within 24 hours of the start. */
export const SEND_TIMES = ['at_once', 'usual_hour'] as const
export type SendTime = (typeof SEND_TIMES)[number]

/** Selects recipients of an earlier campaign to whom it was delivered. A click counts as an open. */
export const RESEND_TO = ['not_opened', 'not_clicked'] as const
export type ResendTo = (typeof RESEND_TO)[number]

/** The audience as of the start: a static list's number, conditions, or an earlier campaign's number. */
export type SentTo =
  | { readonly list: number }
  | { readonly conditions: Conditions }
  | { readonly include: readonly SentTo[]; readonly exclude: readonly SentTo[] }
  | { readonly recipientsOf: number; readonly who: ResendTo }

/** Number of recipients in each state; each recipient is in exactly one. */
export interface Progress {
  readonly recipients: number
  /** Not queued yet. */
  readonly pending: number
  /** Queued, and neither delivered nor failed. */
  readonly queued: number
  readonly done: number
  /** Could no longer be mailed when its email was queued or delivered. */
  readonly skipped: number
  /** Cancelled together with the campaign. */
  readonly cancelled: number
}

/** Contacts excluded at the start; an estimate while scheduled. */
export interface Excluded {
  readonly unsubscribed: number
  readonly bounced: number
  readonly suppressed: number
}

/** Engagement counts. Unique: number of recipients, each counted once. */
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
  /** The sandbox's id for a sandbox campaign. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly status: CampaignStatus
  readonly error: string | null
  /** Moments, ms since epoch UTC. */
  readonly createdAt: number
  readonly updatedAt: number
  /** Time as of which the audience is evaluated: when it was sent, or its scheduled time. */
  readonly requestedAt: number | null
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** When the runner next checks it; null: nothing to do. */
  readonly nextAt: number | null
  /** Null until the audience is evaluated. */
  readonly who: SentTo | null
  /** Contact numbers: those below have recipient rows; those above `fixedThrough` were created too late. */
  readonly fixedBefore: number | null
  readonly fixedThrough: number | null
  readonly fixedAt: number | null
  /** When the recipient rows were deleted by retention. */
  readonly recipientsPrunedAt: number | null
  /** Content used for new messages, and since when. */
  readonly contentId: string | null
  readonly contentAt: number | null
  /** Since when it was seen to wait, and the reason for which `campaign.waiting` was appended last in this wait. */
  readonly waitingSince: number | null
  readonly waitingAnnounced: WaitReason | null
}

/**
 * State machine of a campaign. Routes, command line and runner change a status only through this table. Pure.
 *
 *   act        draft      scheduled  sending    paused     completed  cancelled  failed
 *   edit       =          ·          ·          ·          ·          ·          ·
 *   delete     gone       ·          ·          ·          ·          ·          ·
 *   send       sending    ·          ·          ·          ·          ·          ·
 *   schedule   scheduled  ·          ·          ·          ·          ·          ·
 *   begin      ·          sending    =          ·          ·          ·          ·
 *   pause      ·          paused     paused     ·          ·          ·          ·
 *   resume     ·          ·          ·          sending *  ·          ·          ·
 *   cancel     ·          cancelled  cancelled  cancelled  ·          ·          ·
 *   complete   ·          ·          completed  ·          ·          ·          ·
 *   fail       ·          failed     failed     failed     ·          ·          ·
 *
 *   ·  refused    =  accepted, status unchanged    *  scheduled, if its time has not come
 *
 * Later events about the mail of a finished campaign are counted but never change its status.
 */
export const CAMPAIGN_STATUSES = [
  'draft',
  'scheduled',
  'sending',
  'paused',
  'completed',
  'cancelled',
  'failed',
] as const
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number]

export type CampaignAct =
  | 'edit'
  | 'delete'
  | 'send'
  | 'schedule'
  | 'begin'
  | 'pause'
  | 'resume'
  | 'cancel'
  | 'complete'
  | 'fail'

const TABLE: Readonly<Record<CampaignAct, Partial<Readonly<Record<CampaignStatus, CampaignStatus>>>>> = {
  edit: { draft: 'draft' },
  delete: { draft: 'draft' },
  send: { draft: 'sending' },
  schedule: { draft: 'scheduled' },
  begin: { scheduled: 'sending', sending: 'sending' },
  pause: { scheduled: 'paused', sending: 'paused' },
  resume: { paused: 'sending' },
  cancel: { scheduled: 'cancelled', sending: 'cancelled', paused: 'cancelled' },
  complete: { sending: 'completed' },
  fail: { scheduled: 'failed', sending: 'failed', paused: 'failed' },
}

/** @returns undefined if the act is refused */
export function statusAfter(status: CampaignStatus, act: CampaignAct): CampaignStatus | undefined {
  return TABLE[act][status]
}
