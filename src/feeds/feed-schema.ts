/** Bodies and answers of the feed routes, and the checks that a schema cannot express. */
import Type, { type Static } from 'typebox'
import { isTimezone } from '../accounts/workspace-settings.js'
import { refusal } from '../audience/checks.js'
import { given } from '../core/given.js'
import { isoTime, isoTimeOrNull } from '../core/moments.js'
import { Id, IdOrNull, Moment, MomentOrNull, TextOrNull } from '../http/answer/answer-fields.js'
import { EXAMPLE_ID } from '../msa/rest/send-schema.js'
import {
  AnyId,
  LIST,
  manner,
  mannerToApi,
  orCleared,
  SEGMENT,
  shownManner,
  Subject,
} from '../campaigns/rest/campaign-schema.js'
import { NO_MANNER } from '../campaigns/rest/campaign-example.js'
import { readFields } from '../campaigns/rest/campaign-fields.js'
import { CLOCK_TIME } from '../campaigns/model/send-window.js'
import {
  MAX_ITEMS_SENT,
  RUN_STATUSES,
  type Feed,
  type FeedFields,
  type FeedItem,
  type FeedRun,
} from './feed.js'
import { FREQUENCIES, type FeedSchedule } from './feed-schedule.js'

export const FeedParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

export const MAX_FEEDS = 100
const DEFAULT_ITEMS = 10

const ScheduleSchema = Type.Object(
  {
    every: Type.Enum([...FREQUENCIES], { description: 'One of: daily, weekly, monthly.' }),
    at: Type.String({
      minLength: 5,
      maxLength: 5,
      description: 'Time of day, e.g. 09:00.',
      examples: ['09:00'],
    }),
    weekday: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 7,
        description: 'Required for `weekly`: 1 = Monday to 7 = Sunday.',
      }),
    ),
    day: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 31,
        description: 'Required for `monthly`: day of the month; shorter months use their last day.',
      }),
    ),
  },
  { additionalProperties: false, title: 'FeedSchedule' },
)

const Name = Type.String({
  minLength: 1,
  maxLength: 180,
  description: 'Internal name; campaigns are named after it and their date.',
})
const Url = Type.String({
  minLength: 1,
  maxLength: 2_048,
  description: 'RSS 2.0, RSS 1.0, Atom or JSON Feed, http or https, at most 2 MB.',
})
const FeedSubject = {
  ...Subject,
  description: 'May contain merge tags, also of the items: `{{items.0.title}}`.',
} as typeof Subject
const TEMPLATE =
  'Template of the campaigns. Its merge tags find `items` (each with title, link, summary, author, image, date, date_iso), `item_count` ' +
  'and `feed` (title, description, link): `{{#each items}}<a href="{{this.link}}">{{this.title}}</a>{{/each}}`.'

const options = {
  timezone: orCleared(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'IANA time zone of the schedule. Default: the workspace’s.',
    }),
  ),
  max_items: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_ITEMS_SENT,
      default: DEFAULT_ITEMS,
      description: 'Maximum number of items in one campaign, the newest ones. Default 10.',
    }),
  ),
  enabled: Type.Optional(
    Type.Boolean({ default: true, description: 'Whether it runs on its schedule. Default true.' }),
  ),
  ...manner,
}

const initial = {
  initial_items: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_ITEMS_SENT,
      default: 0,
      description: 'Of the items it contains now, send so many of the newest with the first run. Default 0.',
    }),
  ),
}

export const NewFeedBody = Type.Object(
  {
    name: Name,
    url: Url,
    subject: FeedSubject,
    template_id: AnyId(TEMPLATE),
    list_id: Type.Optional(AnyId(LIST)),
    segment_id: Type.Optional(AnyId(SEGMENT)),
    schedule: ScheduleSchema,
    ...options,
    ...initial,
  },
  { additionalProperties: false, title: 'NewFeed' },
)
export type NewFeedBody = Static<typeof NewFeedBody>

export const FeedChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    url: Type.Optional(Url),
    subject: Type.Optional(FeedSubject),
    template_id: Type.Optional(AnyId(TEMPLATE)),
    list_id: Type.Optional(AnyId(`${LIST} Replaces the segment.`)),
    segment_id: Type.Optional(AnyId(`${SEGMENT} Replaces the list.`)),
    schedule: Type.Optional(ScheduleSchema),
    ...options,
  },
  { additionalProperties: false, title: 'FeedChanges' },
)
export type FeedChangesBody = Static<typeof FeedChangesBody>

export const FeedSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    url: Type.String(),
    subject: Type.String(),
    template_id: Id(),
    list_id: IdOrNull(),
    segment_id: IdOrNull(),
    schedule: ScheduleSchema,
    timezone: TextOrNull(),
    max_items: Type.Integer(),
    enabled: Type.Boolean(),
    ...shownManner,
    is_sandbox: Type.Boolean(),
    next_run_at: MomentOrNull({ description: 'When it is next read; null while disabled.' }),
    failures: Type.Integer({ description: 'Failed attempts in a row.' }),
    last_error: TextOrNull({ description: 'Why the last attempt failed; null if it succeeded.' }),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Feed' },
)
export type ShownFeed = Static<typeof FeedSchema>

export const FeedRunSchema = Type.Object(
  {
    id: Id(),
    due_at: Moment({ description: 'Scheduled time, or time of the request.' }),
    is_manual: Type.Boolean({ description: 'Whether it was requested with `POST /feeds/:id/run`.' }),
    status: Type.Enum([...RUN_STATUSES], {
      description:
        '`sent`, `nothing_new`, `failed`, or `retrying`: failed, and tried again after 5 minutes, 30 minutes and 2 hours.',
    }),
    reason: TextOrNull({
      description:
        'Why it failed, why nothing was sent, or how many items were left out as old. A feed all of whose items have one guid fails.',
    }),
    attempts: Type.Integer({ description: 'Times the feed was read.' }),
    new_items: Type.Integer({
      description: 'Items that were not sent before and are not older than the newest one sent.',
    }),
    sent_items: Type.Integer({ description: 'Items in the campaign, at most `max_items`.' }),
    campaign_id: IdOrNull(),
    started_at: Moment(),
    ended_at: Moment({ description: 'Of the last attempt.' }),
  },
  { title: 'FeedRun' },
)
export type ShownRun = Static<typeof FeedRunSchema>

const ItemSchema = Type.Object(
  {
    title: Type.String(),
    link: Type.String(),
    summary: Type.String({ description: 'Plain text, at most 500 characters.' }),
    author: Type.String(),
    image: Type.String(),
    published_at: MomentOrNull(),
  },
  { title: 'FeedItem' },
)

export const FeedPreviewSchema = Type.Object(
  {
    new_items: Type.Integer({ description: 'Items that were not sent before. 0: a run would send nothing.' }),
    items: Type.Array(ItemSchema, {
      description: 'The items rendered: the new ones, or the newest ones if none is new.',
    }),
    subject: Type.String(),
    html: Type.String({
      description: 'With the compliance footer; its unsubscribe, preference and view links are inactive.',
    }),
    text: Type.String(),
  },
  { title: 'FeedPreview' },
)

/** Reads the fields present in the request. @throws AppError validation_error */
export function readFeedFields(body: Partial<NewFeedBody>): Partial<FeedFields> {
  const { url, schedule, timezone, max_items, enabled, initial_items: _, ...campaign } = body
  const {
    resendOf: _of,
    resendTo: _to,
    isArchived: _archived,
    isIndexed: _indexed,
    ...fields
  } = readFields(campaign)
  if (typeof timezone === 'string' && !isTimezone(timezone))
    throw refusal('timezone', 'timezone is not an IANA time zone name')
  return given({
    ...fields,
    url: url?.trim(),
    schedule: schedule && readSchedule(schedule),
    timezone,
    maxItems: max_items,
    isEnabled: enabled,
  })
}

function readSchedule({ every, at, weekday, day }: Static<typeof ScheduleSchema>): FeedSchedule {
  if (!new RegExp(CLOCK_TIME).test(at)) throw refusal('schedule.at', 'schedule.at must be a time as 09:00')
  if ((every === 'weekly') !== (weekday !== undefined))
    throw refusal('schedule.weekday', 'schedule.weekday is required for weekly, and only allowed for it')
  if ((every === 'monthly') !== (day !== undefined))
    throw refusal('schedule.day', 'schedule.day is required for monthly, and only allowed for it')
  return { every, at, ...given({ weekday, day }) }
}

/** Defaults of a new feed. */
export const FEED_DEFAULTS = { timezone: null, maxItems: DEFAULT_ITEMS, isEnabled: true } as const

export function feedToApi(feed: Feed): ShownFeed {
  const { weekday, day, ...schedule } = feed.schedule
  return {
    id: feed.id,
    name: feed.name,
    url: feed.url,
    subject: feed.subject,
    template_id: feed.templateId,
    list_id: feed.listId,
    segment_id: feed.segmentId,
    schedule: { ...schedule, ...given({ weekday, day }) },
    timezone: feed.timezone,
    max_items: feed.maxItems,
    enabled: feed.isEnabled,
    ...mannerToApi(feed),
    is_sandbox: feed.isSandbox,
    next_run_at: isoTimeOrNull(feed.nextAt),
    failures: feed.failures,
    last_error: feed.lastError,
    created_at: isoTime(feed.createdAt),
    updated_at: isoTime(feed.updatedAt),
  }
}

export function runToApi(run: FeedRun): ShownRun {
  return {
    id: run.id,
    due_at: isoTime(run.dueAt),
    is_manual: run.isManual,
    status: run.status,
    reason: run.reason,
    attempts: run.attempts,
    new_items: run.newItems,
    sent_items: run.sentItems,
    campaign_id: run.campaignId,
    started_at: isoTime(run.startedAt),
    ended_at: isoTime(run.endedAt),
  }
}

export function itemToApi({ title, link, summary, author, image, at }: FeedItem): Static<typeof ItemSchema> {
  return { title, link, summary, author, image, published_at: isoTimeOrNull(at) }
}

const MOMENT = '2026-01-05T09:00:00.000Z'

export const FEED_EXAMPLE = {
  name: 'Blog',
  url: 'https://blog.example/feed.xml',
  subject: '{{feed.title}}: {{items.0.title}}',
  template_id: EXAMPLE_ID,
  list_id: EXAMPLE_ID,
  schedule: { every: 'weekly' as const, at: '09:00', weekday: 1 },
}

export const FEED_EXAMPLE_ANSWER: ShownFeed = {
  id: EXAMPLE_ID,
  ...FEED_EXAMPLE,
  segment_id: null,
  timezone: null,
  max_items: DEFAULT_ITEMS,
  enabled: true,
  ...NO_MANNER,
  is_sandbox: false,
  next_run_at: '2026-01-12T09:00:00.000Z',
  failures: 0,
  last_error: null,
  created_at: MOMENT,
  updated_at: MOMENT,
}

export const RUN_EXAMPLE: ShownRun = {
  id: EXAMPLE_ID,
  due_at: MOMENT,
  is_manual: false,
  status: 'sent',
  reason: null,
  attempts: 1,
  new_items: 3,
  sent_items: 3,
  campaign_id: EXAMPLE_ID,
  started_at: MOMENT,
  ended_at: MOMENT,
}

export const PREVIEW_EXAMPLE: Static<typeof FeedPreviewSchema> = {
  new_items: 1,
  items: [
    {
      title: 'A new jug',
      link: 'https://blog.example/posts/jug',
      summary: 'It holds a litre and does not drip.',
      author: 'Ann',
      image: 'https://blog.example/jug.jpg',
      published_at: MOMENT,
    },
  ],
  subject: 'Our blog: A new jug',
  html: '<p><a href="https://blog.example/posts/jug">A new jug</a></p>',
  text: 'A new jug <https://blog.example/posts/jug>',
}
