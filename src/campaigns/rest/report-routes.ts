/** A campaign's report: over time, by mailbox provider, among a segment, what was bought, and where its mail was clicked. */
import Type, { type Static } from 'typebox'
import { patience } from '../../audience/scan-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import { snapshot } from '../../db/snapshot.js'
import { Id, IntegerOrNull, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { EXAMPLE_ID } from '../../msa/rest/send-schema.js'
import { VARIANT_NAMES, type VariantName } from '../model/ab-test.js'
import { VariantId } from './ab-test-schema.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Campaign } from '../model/campaign.js'
import { SENT_EXAMPLE } from './campaign-example.js'
import { CampaignParams, RatesSchema, statsOf, StatsSchema } from './campaign-schema.js'
import { requireCampaign } from '../model/campaigns.js'
import { ratesOf, share } from '../model/campaign-stats.js'
import { clickMapOf, type ClickMapParts } from '../results/click-map.js'
import { bucketsUpTo, HOUR_MS, OTHER_PROVIDERS } from '../results/report-counters.js'
import { listProviders, listTimes, type ProviderCounts, type TimeCounts } from '../results/report-store.js'
import { MAX_LINKS } from '../results/result-store.js'
import { RevenueSchema, type RevenueParts } from './revenue.js'
import { count, rate, rateFields, statFields } from './stats-schema.js'
import { countInSegment } from '../results/segment-result-store.js'

const TimeSchema = Type.Object(
  {
    starts_at: Moment(),
    span: Type.Enum(['hour', 'day'], { description: '`hour` or `day`, in UTC.' }),
    opens: count('Opens, excluding bots.'),
    unique_opens: count('Recipients who opened for the first time.'),
    clicks: count('Clicks, excluding bots.'),
    unique_clicks: count('Recipients who clicked for the first time.'),
    machine_opens: count('Opens by bots: prefetchers and scanners.'),
    machine_clicks: count('Clicks by bots.'),
    unsubscribes: count('Unsubscribes through this campaign.'),
    complaints: count('Emails reported as spam.'),
  },
  { title: 'CampaignReportTime' },
)

const { opens: _opens, clicks: _clicks, ...providerStats } = statFields
const ProviderSchema = Type.Object(
  {
    provider: TextOrNull({ description: 'E.g. Gmail, Outlook or Yahoo; null: all other domains together.' }),
    ...providerStats,
    unsubscribes: count('Unsubscribes through this campaign.'),
    ...rateFields,
  },
  { title: 'CampaignReportProvider' },
)

const ReportSchema = Type.Object(
  {
    counted_at: Moment({
      description:
        'All figures but `revenue` are of this moment; those of `GET /campaigns/{id}` may be of another.',
    }),
    total_recipients: Type.Integer(),
    stats: StatsSchema,
    rates: RatesSchema,
    timeline: Type.Array(TimeSchema, {
      description:
        'Oldest first, from the start to the last activity: by hour up to the fourth midnight (UTC) after the start, then by day, 90 days in all.',
    }),
    machine_opens: count('Opens by bots in the timeline; counted nowhere else.'),
    machine_clicks: count('Clicks by bots in the timeline; counted nowhere else.'),
    providers: Type.Array(ProviderSchema, {
      description: 'By the domain of the address, most sends first, all others last.',
    }),
    revenue: Type.Array(RevenueSchema, {
      description: 'Conversions attributed to this campaign, by currency, highest value first.',
    }),
  },
  { title: 'CampaignReport' },
)

const SegmentResultSchema = Type.Object(
  {
    segment_id: Id(),
    segment_name: Type.String(),
    recipients: count('Recipients who are members of the segment now and were mailed.'),
    delivered: count('Of these, delivered and not bounced later.'),
    unique_opens: count('Of these, opened.'),
    unique_clicks: count('Of these, clicked.'),
    bounces: count('Of these, bounced.'),
    open_rate: rate('unique_opens / delivered.'),
    click_rate: rate('unique_clicks / delivered.'),
    bounce_rate: rate('bounces / recipients.'),
  },
  { title: 'CampaignSegmentResult' },
)

const ClickMapSchema = Type.Object(
  {
    variant: orNull(VariantId, { description: 'Of an A/B test; null: all variants together.' }),
    html: TextOrNull({
      description:
        'The email without a recipient, a numbered badge with its share of the clicks on each link. Show it without scripts. Null if the ' +
        'content is no longer stored, or cannot be rendered without a recipient.',
    }),
    links: Type.Array(
      Type.Object(
        {
          number: IntegerOrNull({
            description:
              'On its badge; null: not in the email as shown, e.g. a URL that differs per recipient.',
          }),
          url: TextOrNull({
            description: `Null: all links beyond the first ${MAX_LINKS}, counted together.`,
          }),
          clicks: count('Clicks, excluding bots.'),
          unique_clicks: count('Recipients who clicked it.'),
          share: rate('clicks / all clicks.'),
        },
        { title: 'ClickMapLink' },
      ),
      { description: 'Those with a badge in the order of the email, then others, most clicked first.' },
    ),
  },
  { title: 'CampaignClickMap' },
)

const MOMENT = '2026-01-05T10:00:00.000Z'
const EXAMPLE: Static<typeof ReportSchema> = {
  counted_at: '2026-01-05T12:00:00.000Z',
  total_recipients: SENT_EXAMPLE.total_recipients,
  stats: SENT_EXAMPLE.stats,
  rates: SENT_EXAMPLE.rates,
  timeline: [
    {
      starts_at: MOMENT,
      span: 'hour' as const,
      opens: 60,
      unique_opens: 48,
      clicks: 14,
      unique_clicks: 12,
      machine_opens: 7,
      machine_clicks: 3,
      unsubscribes: 1,
      complaints: 0,
    },
  ],
  machine_opens: 7,
  machine_clicks: 3,
  providers: [
    {
      provider: 'Gmail',
      sends: 99,
      delivered: 96,
      unique_opens: 48,
      unique_clicks: 12,
      bounces: 3,
      complaints: 0,
      unsubscribes: 1,
      delivery_rate: 0.9697,
      open_rate: 0.5,
      click_rate: 0.125,
      bounce_rate: 0.0303,
      complaint_rate: 0,
      unsubscribe_rate: 0.0104,
    },
  ],
  revenue: [{ currency: 'EUR', conversions: 4, value: 219.6 }],
}

export type ReportParts = CampaignParts &
  Pick<ClickMapParts, 'renderQueue'> &
  Pick<RevenueParts, 'findRevenue'>

export function reportRoutes({ send, renderQueue, findRevenue }: ReportParts): Route[] {
  const { database, clock } = send
  return [
    route({
      method: 'GET',
      path: '/campaigns/:id/report',
      access: 'campaigns:read',
      operationId: 'getCampaignReport',
      chapter: 'Campaigns',
      summary: "Get a campaign's report.",
      description:
        'Opens and clicks over time, results by mailbox provider, and revenue. Read from counters, at the same cost for any number of recipients. ' +
        'Like the campaign’s own counts, they include events until its recipients are deleted (`retention.campaign_recipients`).',
      params: CampaignParams,
      response: ReportSchema,
      exampleAnswer: EXAMPLE,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const { campaign, countedAt, times, providers } = await snapshot(database.reader, async db => {
          const campaign = await requireCampaign(db, principal.workspaceId, params.id)
          return {
            campaign,
            countedAt: clock.now(),
            times: timelineOf(campaign, await listTimes(db, campaign.seq)),
            providers: await listProviders(db, campaign.seq),
          }
        })
        const sum = (name: 'machine_opens' | 'machine_clicks') =>
          times.reduce((total, time) => total + time[name], 0)
        return {
          counted_at: isoTime(countedAt),
          total_recipients: campaign.recipients,
          stats: statsOf(campaign),
          rates: ratesOf(campaign),
          timeline: times,
          machine_opens: sum('machine_opens'),
          machine_clicks: sum('machine_clicks'),
          providers: providers.map(providerToApi),
          revenue: await findRevenue(database.slowReader, campaign.id),
        }
      },
    }),
    route({
      method: 'GET',
      path: '/campaigns/:id/segments/:segment_id',
      access: 'campaigns:read',
      operationId: 'getCampaignSegmentResult',
      chapter: 'Campaigns',
      summary: "Get a campaign's results in a segment.",
      description:
        'Counts the recipients who are members of the segment now. Evaluates the segment, so it costs what counting the segment costs: 503 if that ' +
        'takes more than a few seconds. 409 if the recipients are no longer kept (`retention.campaign_recipients`).',
      params: Type.Object({ ...CampaignParams.properties, segment_id: Type.String({ maxLength: 64 }) }),
      response: SegmentResultSchema,
      exampleAnswer: {
        segment_id: EXAMPLE_ID,
        segment_name: 'Customers',
        recipients: 40,
        delivered: 39,
        unique_opens: 26,
        unique_clicks: 9,
        bounces: 1,
        open_rate: 0.6667,
        click_rate: 0.2308,
        bounce_rate: 0.025,
      },
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params }) {
        const campaign = await requireCampaign(database.reader, workspaceId, params.id)
        const id = params.segment_id.toLowerCase()
        const segment = isUuid(id) ? await findSegment(database.reader, workspaceId, id) : undefined
        if (!segment) throw new AppError('not_found', 'no such segment')
        if (campaign.recipientsPrunedAt !== null)
          throw new AppError('conflict', 'the recipients of this campaign are no longer kept')
        const found = await countInSegment(
          database.slowReader,
          campaign.seq,
          readConditions(segment.conditions),
          { workspaceId, now: clock.now() },
          patience(clock),
        )
        const { recipients, delivered, opened, clicked, bounced } = found
        return {
          segment_id: segment.id,
          segment_name: segment.name,
          recipients,
          delivered,
          unique_opens: opened,
          unique_clicks: clicked,
          bounces: bounced,
          open_rate: share(opened, delivered),
          click_rate: share(clicked, delivered),
          bounce_rate: share(bounced, recipients),
        }
      },
    }),
    route({
      method: 'GET',
      path: '/campaigns/:id/click-map',
      access: 'campaigns:read',
      operationId: 'getCampaignClickMap',
      chapter: 'Campaigns',
      summary: "Get a campaign's click map.",
      description:
        'The email as it was sent, with the clicks of each link. `variant`: the email of a variant of the A/B test, with the clicks of those in ' +
        'the sample who got it. Without it, all clicks, on the email of the winner; before there is one, on that of variant A.',
      params: CampaignParams,
      query: Type.Object({ variant: Type.Optional(VariantId) }, { additionalProperties: false }),
      response: ClickMapSchema,
      exampleAnswer: {
        variant: null,
        html: '<p>Hello you, <a href="https://shop.example/jugs"><span>1 · 100%</span>look</a></p>',
        links: [{ number: 1, url: 'https://shop.example/jugs', clicks: 14, unique_clicks: 12, share: 1 }],
      },
      errors: ['not_found'],
      async handle({ principal, params, query: { variant } }) {
        const campaign = await requireCampaign(database.reader, principal.workspaceId, params.id)
        const number = variant === undefined ? undefined : variantNumber(campaign, variant)
        const { html, links } = await clickMapOf({ database, renderQueue }, campaign, number)
        return {
          variant: variant ?? null,
          html,
          links: links.map(({ number, url, clicks, uniqueClicks, share: part }) => ({
            number,
            url,
            clicks,
            unique_clicks: uniqueClicks,
            share: part,
          })),
        }
      },
    }),
  ]
}

/** @throws AppError validation_error */
function variantNumber({ abTest }: Campaign, variant: VariantName): number {
  const number = VARIANT_NAMES.indexOf(variant)
  if (number < (abTest?.variants.length ?? 0)) return number
  throw new AppError('validation_error', `the campaign has no variant ${variant}`, { path: 'variant' })
}

const NOTHING: Omit<TimeCounts, 'startsAt'> = {
  opens: 0,
  uniqueOpens: 0,
  clicks: 0,
  uniqueClicks: 0,
  machineOpens: 0,
  machineClicks: 0,
  unsubscribes: 0,
  complaints: 0,
}

/** Without gaps. */
function timelineOf({ startedAt }: Campaign, counted: readonly TimeCounts[]): Static<typeof TimeSchema>[] {
  const last = counted.at(-1)
  if (startedAt === null || !last) return []
  const byStart = new Map(counted.map(one => [one.startsAt, one]))
  return bucketsUpTo(startedAt, last.startsAt).map(({ startsAt, lengthMs }) => {
    const one = byStart.get(startsAt) ?? NOTHING
    return {
      starts_at: isoTime(startsAt),
      span: lengthMs === HOUR_MS ? 'hour' : 'day',
      opens: one.opens,
      unique_opens: one.uniqueOpens,
      clicks: one.clicks,
      unique_clicks: one.uniqueClicks,
      machine_opens: one.machineOpens,
      machine_clicks: one.machineClicks,
      unsubscribes: one.unsubscribes,
      complaints: one.complaints,
    }
  })
}

function providerToApi(one: ProviderCounts): Static<typeof ProviderSchema> {
  const { sends, deliveries, uniqueOpens, uniqueClicks, bounces, complaints, unsubscribes } = one
  return {
    provider: one.provider === OTHER_PROVIDERS ? null : one.provider,
    sends,
    delivered: deliveries,
    unique_opens: uniqueOpens,
    unique_clicks: uniqueClicks,
    bounces,
    complaints,
    unsubscribes,
    delivery_rate: share(deliveries, sends),
    open_rate: share(uniqueOpens, deliveries),
    click_rate: share(uniqueClicks, deliveries),
    bounce_rate: share(bounces, sends),
    complaint_rate: share(complaints, deliveries),
    unsubscribe_rate: share(unsubscribes, deliveries),
  }
}
