/** What the routes of campaigns take and show. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import {
  Id,
  IdOrNull,
  IntegerOrNull,
  Moment,
  MomentOrNull,
  orNull,
  TextOrNull,
} from '../../http/answer/answer-fields.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { ratesOf, toldStats } from '../results/rates.js'
import { RESEND_TO, type Campaign } from './campaign.js'
import { CAMPAIGN_STATUSES } from './campaign-status.js'

export const CampaignParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

export const MOST_PER_HOUR = 100_000_000

const TAGS = 'Merge tags (`{{firstName}}`) are filled in for each recipient.'
const Name = Type.String({ minLength: 1, maxLength: 200, description: 'For you alone.' })
const Subject = Type.String({ minLength: 1, maxLength: 998, description: `HTML tags are stripped. ${TAGS}` })
const AnyId = (description: string) => Type.String({ maxLength: 64, shownFormat: 'uuid', description })
const TEMPLATE = 'What it says: the html as it is when the campaign is sent.'
const LIST = 'Whom it is for; in place of segment_id.'
const SEGMENT = 'Whom it is for; in place of list_id.'

const TimeOfDay = (description: string) => Type.String({ minLength: 5, maxLength: 5, description })

const SendWindowSchema = Type.Object(
  {
    days: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: 7 }), {
        minItems: 1,
        maxItems: 7,
        description: 'Days of the week on which it opens, 1 = Monday to 7 = Sunday. Left out: every day.',
      }),
    ),
    from: TimeOfDay('When it opens, e.g. 09:00'),
    until: TimeOfDay('When it closes, e.g. 17:00, or where that is before `from` on the next day.'),
  },
  {
    additionalProperties: false,
    title: 'SendWindow',
    description: 'Hours in which mails are handed over, in the time zone of the workspace.',
  },
)

const address = { minLength: 1, maxLength: MAX_MAILBOX_LENGTH }
const orCleared = <S extends Type.TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

/** How a campaign goes out; null is as left out, and in a change takes away what was said. */
const manner = {
  from_email: orCleared(
    Type.String({ ...address, description: 'Left out: the default of the workspace. ASCII before the @.' }),
  ),
  from_name: orCleared(
    Type.String({ maxLength: 100, description: 'Left out: the name in from_email, else the default.' }),
  ),
  reply_to: orCleared(Type.String({ ...address, description: 'ASCII before the @.' })),
  track_opens: orCleared(Type.Boolean({ description: 'Left out: as the workspace says when it is sent.' })),
  track_clicks: orCleared(Type.Boolean({ description: 'Left out: as the workspace says when it is sent.' })),
  rate_per_hour: orCleared(
    Type.Integer({
      minimum: 1,
      maximum: MOST_PER_HOUR,
      description: 'Mails handed over in an hour at most, spread evenly. Left out: as fast as they leave.',
    }),
  ),
  send_window: orCleared(SendWindowSchema),
}

export const NewCampaignBody = Type.Object(
  {
    name: Name,
    subject: Subject,
    template_id: AnyId(TEMPLATE),
    list_id: Type.Optional(AnyId(LIST)),
    segment_id: Type.Optional(AnyId(SEGMENT)),
    ...manner,
  },
  { additionalProperties: false, title: 'NewCampaign' },
)
export type NewCampaignBody = Static<typeof NewCampaignBody>

export const CampaignChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    subject: Type.Optional(Subject),
    template_id: Type.Optional(AnyId(TEMPLATE)),
    list_id: Type.Optional(AnyId(`${LIST} Given alone, it takes the place of a segment.`)),
    segment_id: Type.Optional(AnyId(`${SEGMENT} Given alone, it takes the place of a list.`)),
    ...manner,
  },
  { additionalProperties: false, title: 'CampaignChanges' },
)
export type CampaignChangesBody = Static<typeof CampaignChangesBody>

export const CampaignCopyBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Default: `Copy of` and the name.' }),
    ),
  },
  { additionalProperties: false, title: 'CampaignCopy' },
)

export const CampaignResendBody = Type.Object(
  {
    who: Type.Optional(
      Type.Enum([...RESEND_TO], {
        default: 'not_opened',
        description: 'Recipients who have not opened it, or not clicked in it. A click counts as an open.',
      }),
    ),
    subject: Type.Optional(Subject),
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Default: `Resend of` and the name.' }),
    ),
  },
  { additionalProperties: false, title: 'CampaignResend' },
)

export const StatusOfCampaign = Type.Enum([...CAMPAIGN_STATUSES], {
  description: 'One of: draft, scheduled, sending, paused, completed, cancelled, failed.',
})

const count = (description: string) => Type.Integer({ description })
const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description })

export const ExcludedSchema = Type.Object(
  {
    unsubscribed: count('Not subscribed.'),
    bounced: count('Subscribed, and bounced for good before.'),
    suppressed: count('Subscribed and not bounced, but address or domain is suppressed.'),
  },
  { title: 'CampaignExcluded', description: 'Contacts who are meant and not mailed; each counts once.' },
)

const ProgressSchema = Type.Object(
  {
    pending: count('Not handed to the queue yet.'),
    queued: count('In the queue: not tried yet, or to be tried again.'),
    done: count('Delivered, refused or given up.'),
    skipped: count('Left out after the recipients were fixed, since they may not be mailed any more.'),
    cancelled: count('Taken back when the campaign was cancelled.'),
  },
  { title: 'CampaignProgress', description: 'Each recipient counts in one of these.' },
)

const StatsSchema = Type.Object(
  {
    sends: count('Mails first handed to a remote server.'),
    delivered: count('A remote server took responsibility.'),
    opens: count('Openings, without machines; the first click of who was not seen to open is one.'),
    unique_opens: count('Recipients who opened.'),
    clicks: count('Clicks, without machines.'),
    unique_clicks: count('Recipients who clicked.'),
    bounces: count('Refused for good, expired, or come back.'),
    complaints: count('Marked as spam.'),
    unsubscribes: count('Unsubscribed by this mail.'),
    held: count('Queued mails held while the campaign is paused; 0 otherwise.'),
  },
  { title: 'CampaignStats' },
)

const RatesSchema = Type.Object(
  {
    delivery_rate: rate('delivered of sends.'),
    open_rate: rate('unique_opens of delivered.'),
    click_rate: rate('unique_clicks of delivered.'),
    bounce_rate: rate('bounces of sends.'),
    complaint_rate: rate('complaints of delivered.'),
    unsubscribe_rate: rate('unsubscribes of delivered.'),
  },
  { title: 'CampaignRates', description: '0 to 1; 0 where there is nothing to be a share of.' },
)

export const CampaignSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    subject: Type.String(),
    template_id: Id(),
    list_id: IdOrNull(),
    segment_id: IdOrNull(),
    resend_of: IdOrNull({
      description: 'The earlier campaign, for a resend; list_id and segment_id are null then.',
    }),
    resend_to: orNull(Type.Enum([...RESEND_TO]), {
      description: 'Which recipients of resend_of are meant: `not_opened` or `not_clicked`.',
    }),
    from_email: TextOrNull(),
    from_name: TextOrNull(),
    reply_to: TextOrNull(),
    track_opens: orNull(Type.Boolean()),
    track_clicks: orNull(Type.Boolean()),
    rate_per_hour: IntegerOrNull(),
    send_window: orNull(SendWindowSchema),
    status: StatusOfCampaign,
    error: TextOrNull({ description: 'Why it failed.' }),
    is_sandbox: Type.Boolean(),
    total_recipients: count('0 for a draft; an estimate for a scheduled campaign until it starts.'),
    excluded: ExcludedSchema,
    progress: ProgressSchema,
    stats: StatsSchema,
    rates: RatesSchema,
    scheduled_at: MomentOrNull(),
    started_at: MomentOrNull(),
    completed_at: MomentOrNull({ description: 'When it was completed, cancelled or failed.' }),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Campaign' },
)
export type ShownCampaign = Static<typeof CampaignSchema>

export function campaignToApi(campaign: Campaign): ShownCampaign {
  return {
    id: campaign.id,
    name: campaign.name,
    subject: campaign.subject,
    template_id: campaign.templateId,
    list_id: campaign.listId,
    segment_id: campaign.segmentId,
    resend_of: campaign.resendOf,
    resend_to: campaign.resendTo,
    from_email: campaign.fromEmail,
    from_name: campaign.fromName,
    reply_to: campaign.replyTo,
    track_opens: campaign.trackOpens,
    track_clicks: campaign.trackClicks,
    rate_per_hour: campaign.ratePerHour,
    send_window: campaign.sendWindow && windowToApi(campaign.sendWindow),
    status: campaign.status,
    error: campaign.error,
    is_sandbox: campaign.isSandbox,
    total_recipients: campaign.recipients,
    excluded: excludedToApi(campaign),
    progress: {
      pending: campaign.pending,
      queued: campaign.queued,
      done: campaign.done,
      skipped: campaign.skipped,
      cancelled: campaign.cancelled,
    },
    stats: { ...toldStats(campaign), held: campaign.status === 'paused' ? campaign.queued : 0 },
    rates: ratesOf(campaign),
    scheduled_at: timeOrNull(campaign.scheduledAt),
    started_at: timeOrNull(campaign.startedAt),
    completed_at: timeOrNull(campaign.finishedAt),
    created_at: isoTime(campaign.createdAt),
    updated_at: isoTime(campaign.updatedAt),
  }
}

export function excludedToApi({
  unsubscribed,
  bounced,
  suppressed,
}: Pick<Campaign, 'unsubscribed' | 'bounced' | 'suppressed'>): Static<typeof ExcludedSchema> {
  return { unsubscribed, bounced, suppressed }
}

function windowToApi({ days, from, until }: NonNullable<Campaign['sendWindow']>) {
  return { ...(days === undefined ? {} : { days: [...days] }), from, until }
}

function timeOrNull(moment: number | null): string | null {
  return moment === null ? null : isoTime(moment)
}
