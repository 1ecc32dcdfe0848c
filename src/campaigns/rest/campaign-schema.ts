import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import type { Waiting } from '../../core/waiting.js'
import {
  Id,
  IdOrNull,
  IntegerOrNull,
  Moment,
  MomentOrNull,
  orNull,
  TextOrNull,
} from '../../http/answer/answer-fields.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { WaitingForOrNull, waitingToApi } from '../../http/answer/waiting-for.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { AbTestSchema, abTestToApi } from './ab-test-schema.js'
import { count, rateFields, RATES, statFields } from './stats-schema.js'
import { ratesOf, statsFields } from '../model/campaign-stats.js'
import {
  CAMPAIGN_STATUSES,
  RESEND_TO,
  SEND_TIMES,
  type Audience,
  type Campaign,
  type Mailing,
  type NamedAudience,
} from '../model/campaign.js'

export const CampaignParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

export const MAX_PER_HOUR = 100_000_000

const TAGS = 'Merge tags (`{{firstName}}`) are filled in for each recipient.'
const Name = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'Internal name, never shown to recipients.',
})
export const Subject = Type.String({
  minLength: 1,
  maxLength: 998,
  description: `HTML tags are stripped. ${TAGS}`,
})
export const AnyId = (description: string) => Type.String({ maxLength: 64, shownFormat: 'uuid', description })
const TEMPLATE = 'Template to send, as it is when the campaign is sent.'
export const LIST = 'List to send to; alternative to segment_id.'
export const SEGMENT = 'Segment to send to; alternative to list_id.'

const EXAMPLE_LIST = '0192f000-0000-7000-8000-0000000000a1'
const EXAMPLE_SEGMENT = '0192f000-0000-7000-8000-0000000000a2'
const EXAMPLE_OTHER = '0192f000-0000-7000-8000-0000000000a3'

const TimeOfDay = (description: string) => Type.String({ minLength: 5, maxLength: 5, description })

const SendWindowSchema = Type.Object(
  {
    days: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: 7 }), {
        minItems: 1,
        maxItems: 7,
        description: 'Days of the week, 1 = Monday to 7 = Sunday. Default: every day.',
      }),
    ),
    from: TimeOfDay('Opening time, e.g. 09:00.'),
    until: TimeOfDay('Closing time, e.g. 17:00; on the next day if before `from`.'),
  },
  {
    additionalProperties: false,
    title: 'SendWindow',
    description: 'Hours in which emails are queued, in the time zone of the workspace.',
  },
)

const address = { minLength: 1, maxLength: MAX_MAILBOX_LENGTH }
export const orCleared = <S extends Type.TSchema>(schema: S) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** Optional settings; null means the default, and in an update resets the field. */
export const manner = {
  from_email: orCleared(
    Type.String({ ...address, description: 'Default: the workspace’s. ASCII before the @.' }),
  ),
  from_name: orCleared(
    Type.String({ maxLength: 100, description: 'Default: the name in from_email, else the workspace’s.' }),
  ),
  reply_to: orCleared(Type.String({ ...address, description: 'ASCII before the @.' })),
  preheader: orCleared(
    Type.String({
      maxLength: 500,
      description: `Text that mail clients show beside the subject in their lists, hidden in the mail itself. Default: its first words. ${TAGS}`,
    }),
  ),
  track_opens: orCleared(Type.Boolean({ description: 'Default: the workspace’s setting when it is sent.' })),
  track_clicks: orCleared(Type.Boolean({ description: 'Default: the workspace’s setting when it is sent.' })),
  rate_per_hour: orCleared(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PER_HOUR,
      description: 'Maximum number of emails queued per hour, spread evenly. Default: no limit.',
    }),
  ),
  send_window: orCleared(SendWindowSchema),
}

/** `manner` in answers. */
export const shownManner = {
  from_email: TextOrNull(),
  from_name: TextOrNull(),
  reply_to: TextOrNull(),
  preheader: TextOrNull(),
  track_opens: orNull(Type.Boolean()),
  track_clicks: orNull(Type.Boolean()),
  rate_per_hour: IntegerOrNull(),
  send_window: orNull(SendWindowSchema),
}

export function mannerToApi(letter: Mailing) {
  return {
    from_email: letter.fromEmail,
    from_name: letter.fromName,
    reply_to: letter.replyTo,
    preheader: letter.preheader,
    track_opens: letter.trackOpens,
    track_clicks: letter.trackClicks,
    rate_per_hour: letter.ratePerHour,
    send_window: letter.sendWindow && windowToApi(letter.sendWindow),
  }
}

const timing = {
  send_time: Type.Optional(
    Type.Enum([...SEND_TIMES], {
      default: 'at_once',
      description:
        '`usual_hour` sends each email at the hour of the day at which its recipient most often opens and clicks, within 24 hours of the start; ' +
        'contacts without any visit are mailed at the start. Default: `at_once`.',
    }),
  ),
}
const testing = { ab_test: orCleared(AbTestSchema) }

const archiving = {
  archive: Type.Optional(
    Type.Boolean({
      description:
        'Show it in the public archive of the workspace from its start on (`GET /archive`). Default false.',
    }),
  ),
  archive_indexed: Type.Optional(
    Type.Boolean({ description: 'Let search engines list its page in the archive. Default false.' }),
  ),
}

/** Lists and segments together, of each part. */
const MAX_NAMED = 20

const NamedAudienceSchema = Type.Object(
  {
    list_id: Type.Optional(AnyId('A list.')),
    segment_id: Type.Optional(AnyId('Or a segment.')),
  },
  { additionalProperties: false, title: 'NamedAudience', description: 'A list or a segment.' },
)
export type NamedAudienceBody = Static<typeof NamedAudienceSchema>

const AudienceSchema = Type.Object(
  {
    include: Type.Array(NamedAudienceSchema, { minItems: 1, maxItems: MAX_NAMED }),
    exclude: Type.Optional(Type.Array(NamedAudienceSchema, { maxItems: MAX_NAMED })),
  },
  {
    additionalProperties: false,
    title: 'CombinedAudience',
    description:
      'Several lists and segments; alternative to list_id and segment_id. Contacts in any of `include` and in none of `exclude`, as of the start; each gets one email. ' +
      'If `include` has static lists only, who has left all of them by the delivery is skipped.',
    examples: [
      {
        include: [{ list_id: EXAMPLE_LIST }, { segment_id: EXAMPLE_SEGMENT }],
        exclude: [{ list_id: EXAMPLE_OTHER }],
      },
    ],
  },
)

function audienceToApi({ include, exclude }: Audience): Static<typeof AudienceSchema> {
  const named = (one: NamedAudience) =>
    'listId' in one ? { list_id: one.listId } : { segment_id: one.segmentId }
  return { include: include.map(named), exclude: exclude.map(named) }
}

export const NewCampaignBody = Type.Object(
  {
    name: Name,
    subject: Subject,
    template_id: AnyId(TEMPLATE),
    list_id: Type.Optional(AnyId(LIST)),
    segment_id: Type.Optional(AnyId(SEGMENT)),
    audience: Type.Optional(AudienceSchema),
    ...manner,
    ...timing,
    ...testing,
    ...archiving,
  },
  { additionalProperties: false, title: 'NewCampaign' },
)
export type NewCampaignBody = Static<typeof NewCampaignBody>

export const CampaignChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    subject: Type.Optional(Subject),
    template_id: Type.Optional(AnyId(TEMPLATE)),
    list_id: Type.Optional(AnyId(`${LIST} Replaces the segment.`)),
    segment_id: Type.Optional(AnyId(`${SEGMENT} Replaces the list.`)),
    audience: Type.Optional(AudienceSchema),
    ...manner,
    ...timing,
    ...testing,
    ...archiving,
  },
  { additionalProperties: false, title: 'CampaignChanges' },
)
export type CampaignChangesBody = Static<typeof CampaignChangesBody>

export const CampaignCopyBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Default: `Copy of` and the original name.' }),
    ),
  },
  { additionalProperties: false, title: 'CampaignCopy' },
)

export const CampaignResendBody = Type.Object(
  {
    who: Type.Optional(
      Type.Enum([...RESEND_TO], {
        default: 'not_opened',
        description:
          'Recipients who have not opened the campaign, or not clicked in it. A click counts as an open.',
      }),
    ),
    subject: Type.Optional(Subject),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Default: `Resend of` and the original name.',
      }),
    ),
  },
  { additionalProperties: false, title: 'CampaignResend' },
)

export const StatusOfCampaign = Type.Enum([...CAMPAIGN_STATUSES], {
  description: 'One of: draft, scheduled, sending, paused, completed, cancelled, failed.',
})

export const ExcludedSchema = Type.Object(
  {
    unsubscribed: count('Not subscribed.'),
    bounced: count('Subscribed, but hard-bounced before.'),
    suppressed: count('Subscribed and not bounced, but the address or domain is suppressed.'),
  },
  {
    title: 'CampaignExcluded',
    description: 'Contacts in the audience who cannot be mailed; each is counted once.',
  },
)

const ProgressSchema = Type.Object(
  {
    pending: count('Not queued yet.'),
    queued: count('Waiting for the first attempt or a retry.'),
    done: count('Delivered, bounced or failed.'),
    skipped: count('Became unmailable after the start.'),
    cancelled: count('Cancelled with the campaign.'),
  },
  { title: 'CampaignProgress', description: 'Each recipient counts in exactly one of these.' },
)

export const StatsSchema = Type.Object(
  {
    ...statFields,
    opens: count('Opens, excluding bots; a recipient’s first click without an open counts as one.'),
    unsubscribes: count('Unsubscribes through this campaign.'),
    held: count('Queued emails held while the campaign is paused; otherwise 0.'),
  },
  { title: 'CampaignStats' },
)

export const RatesSchema = Type.Object(rateFields, { title: 'CampaignRates', description: RATES })

export const CampaignSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    subject: Type.String(),
    template_id: Id(),
    list_id: IdOrNull(),
    segment_id: IdOrNull(),
    audience: orNull(AudienceSchema, { description: 'Set instead of list_id and segment_id.' }),
    resend_of: IdOrNull({
      description: 'Earlier campaign of a resend; list_id, segment_id and audience are then null.',
    }),
    resend_to: orNull(Type.Enum([...RESEND_TO]), {
      description: 'Which recipients of resend_of are mailed: `not_opened` or `not_clicked`.',
    }),
    ...shownManner,
    send_time: Type.Enum([...SEND_TIMES], { description: '`at_once` or `usual_hour`.' }),
    ab_test: orNull(AbTestSchema),
    archive: Type.Boolean(),
    archive_indexed: Type.Boolean(),
    status: StatusOfCampaign,
    waiting_for: WaitingForOrNull(
      'Why no emails are queued or delivered now, although the campaign has begun: a limit, the sending hours, a pause ...',
    ),
    error: TextOrNull({ description: 'Why the campaign failed.' }),
    is_sandbox: Type.Boolean(),
    total_recipients: count('0 for a draft; an estimate until a scheduled campaign starts.'),
    excluded: ExcludedSchema,
    progress: ProgressSchema,
    stats: StatsSchema,
    rates: RatesSchema,
    scheduled_at: MomentOrNull(),
    started_at: MomentOrNull(),
    completed_at: MomentOrNull({ description: 'When the campaign was completed, cancelled or failed.' }),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Campaign' },
)
export type ShownCampaign = Static<typeof CampaignSchema>

/** @param waiting why it waits, from `findWaits` */
export function campaignToApi(campaign: Campaign, waiting: Waiting | undefined): ShownCampaign {
  return {
    id: campaign.id,
    name: campaign.name,
    subject: campaign.subject,
    template_id: campaign.templateId,
    list_id: campaign.listId,
    segment_id: campaign.segmentId,
    audience: campaign.audience && audienceToApi(campaign.audience),
    resend_of: campaign.resendOf,
    resend_to: campaign.resendTo,
    ...mannerToApi(campaign),
    send_time: campaign.sendTime,
    ab_test: campaign.abTest && abTestToApi(campaign.abTest),
    archive: campaign.isArchived,
    archive_indexed: campaign.isIndexed,
    status: campaign.status,
    waiting_for: waitingToApi(waiting),
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
    stats: statsOf(campaign),
    rates: ratesOf(campaign),
    scheduled_at: timeOrNull(campaign.scheduledAt),
    started_at: timeOrNull(campaign.startedAt),
    completed_at: timeOrNull(campaign.finishedAt),
    created_at: isoTime(campaign.createdAt),
    updated_at: isoTime(campaign.updatedAt),
  }
}

/**
 * As the API shows it. The version leaves out the counts and what it waits for, which change all the time while it is sent.
 *
 * @param waiting why it waits; a draft does not
 */
export function tagged(campaign: Campaign, waiting?: Waiting): Tagged<ShownCampaign> {
  const shown = campaignToApi(campaign, waiting)
  const { total_recipients: _total, excluded: _excluded, progress: _progress, ...others } = shown
  const { stats: _stats, rates: _rates, waiting_for: _waiting, ...settings } = others
  return new Tagged(shown, etagOf(settings))
}

export function statsOf(campaign: Campaign): Static<typeof StatsSchema> {
  return { ...statsFields(campaign), held: campaign.status === 'paused' ? campaign.queued : 0 }
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
