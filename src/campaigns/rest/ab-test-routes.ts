import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { route, type Route } from '../../http/route.js'
import { EXAMPLE_ID } from '../../msa/rest/send-schema.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Campaign, Stats } from '../model/campaign.js'
import { CampaignParams } from './campaign-schema.js'
import { requireCampaign } from '../model/campaigns.js'
import { ratesOf, statsFields } from '../model/campaign-stats.js'
import type { Revenue, RevenueParts } from './revenue.js'
import { variantName, VARIANT_NAMES, withVariant, type AbTest } from '../model/ab-test.js'
import { AbTestResultSchema, WinnerBody, type AbTestResult } from './ab-test-schema.js'
import { standing } from '../ab-test/decision.js'
import { decide } from '../ab-test/run-test.js'
import { findTest, type SentTest, type SentVariant } from '../model/variant-store.js'

export type AbTestParts = CampaignParts & Pick<RevenueParts, 'findVariantRevenue'>

/** @param wake tells the runner that a campaign has work */
export function abTestRoutes(
  { send: { database, clock }, findVariantRevenue }: AbTestParts,
  wake: () => void,
): Route[] {
  return [
    route({
      method: 'GET',
      path: '/campaigns/:id/ab-test',
      access: 'campaigns:read',
      operationId: 'getCampaignAbTest',
      chapter: 'Campaigns',
      summary: "Get the A/B test of a campaign with its variants' results.",
      description: 'Returns 404 if the campaign has no A/B test.',
      params: CampaignParams,
      response: AbTestResultSchema,
      exampleAnswer: EXAMPLE,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const { campaign, test } = await snapshot(database.reader, async db => {
          const campaign = await requireTested(db, workspaceId, params.id)
          return { campaign, test: await findTest(db, campaign.seq) }
        })
        return resultToApi(campaign, test, await findVariantRevenue(database.slowReader, campaign.id))
      },
    }),
    route({
      method: 'POST',
      path: '/campaigns/:id/ab-test/winner',
      access: 'campaigns:send',
      operationId: 'chooseCampaignWinner',
      chapter: 'Campaigns',
      summary: 'Choose the winner of an A/B test.',
      description:
        'The rest of the recipients gets this variant, at once unless the campaign is paused; whoever is in the sample still gets the variant ' +
        'drawn for them. Possible from the start of the campaign until there is a winner (otherwise 409); a choice is final.',
      params: CampaignParams,
      body: WinnerBody,
      example: { variant: 'B' },
      response: AbTestResultSchema,
      exampleAnswer: { ...EXAMPLE, decided_by: 'person' },
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId, actor }, params, body }) {
        const now = clock.now()
        const { id } = await requireTested(database.reader, workspaceId, params.id)
        // Read first: once the choice is made, nothing may fail.
        const revenue = await findVariantRevenue(database.slowReader, id)
        const result = await database.write(async tx => {
          const campaign = await requireTested(tx.db, workspaceId, params.id)
          const winner = VARIANT_NAMES.indexOf(body.variant)
          if (winner >= campaign.abTest.variants.length)
            throw new AppError('validation_error', `the test has no variant ${body.variant}`, {
              path: 'variant',
            })
          const { status, startedAt } = campaign
          if (startedAt === null || (status !== 'sending' && status !== 'paused'))
            throw new AppError('conflict', `the campaign is ${status}; a winner is chosen while it is sent`)
          if (!(await decide(tx, campaign, winner, { by: 'person', actor }, now)))
            throw new AppError('conflict', 'the test has a winner already')
          return resultToApi(campaign, await findTest(tx.db, campaign.seq), revenue)
        })
        wake()
        return result
      },
    }),
  ]
}

type Tested = Campaign & { readonly abTest: AbTest }

/** @throws AppError not_found */
async function requireTested(db: Queries, workspaceId: string, id: string): Promise<Tested> {
  const campaign = await requireCampaign(db, workspaceId, id)
  const { abTest } = campaign
  if (!abTest) throw new AppError('not_found', 'the campaign has no A/B test')
  return { ...campaign, abTest }
}

const NO_STATS: Stats = {
  sends: 0,
  deliveries: 0,
  opens: 0,
  uniqueOpens: 0,
  clicks: 0,
  uniqueClicks: 0,
  bounces: 0,
  complaints: 0,
  unsubscribes: 0,
}

type VariantRevenue = Awaited<ReturnType<RevenueParts['findVariantRevenue']>>[number]

function resultToApi(
  campaign: Tested,
  sent: SentTest | undefined,
  revenue: readonly VariantRevenue[],
): AbTestResult {
  const { abTest } = campaign
  const variants: readonly Counted[] =
    sent?.variants ?? abTest.variants.map(() => ({ ...NO_STATS, recipients: 0, pending: 0 }))
  const phase = phaseOf(campaign, sent)
  const winner = sent?.winner ?? null
  const { best, leads, isClear } = standing(abTest.metric, variants)
  const boughtFrom = (variant: number | null) => revenue.filter(one => one.variant === variant)
  return {
    phase,
    metric: abTest.metric,
    decide_at: phase === 'waiting' && sent?.pausedAt === null ? timeOrNull(sent.decideAt) : null,
    winner: winner === null ? null : variantName(winner),
    decided_at: timeOrNull(sent?.decidedAt ?? null),
    decided_by: sent?.decidedBy ?? null,
    leader: leads ? variantName(best) : null,
    is_clear: isClear,
    variants: variants.map((counted, at) => {
      const { subject, templateId, fromEmail, fromName } = withVariant(campaign, abTest.variants[at])
      return {
        id: variantName(at),
        subject,
        template_id: templateId,
        from_email: fromEmail,
        from_name: fromName,
        ...countedToApi(counted, boughtFrom(at)),
      }
    }),
    rest: countedToApi(restOf(campaign, variants, typeof sent?.drawnAt === 'number'), boughtFrom(null)),
    sample_percent: abTest.samplePercent,
    sample_size: abTest.sampleSize,
  }
}

function phaseOf({ status, finishedAt, abTest }: Tested, sent: SentTest | undefined): AbTestResult['phase'] {
  if (status === 'draft' || !sent) return 'draft'
  if (sent.winner !== null) return 'decided'
  if (finishedAt !== null) return 'ended'
  if (sent.sampledAt === null) return 'sampling'
  return sent.decideAt === null && abTest.decideAfterMinutes !== null ? 'undecided' : 'waiting'
}

type Counted = Pick<SentVariant, 'recipients' | 'pending' | keyof Stats>

/** Counts of the recipients outside the sample; at least 0, since the two reads see counts that change. */
function restOf(campaign: Tested, variants: readonly Counted[], isDrawn: boolean): Counted {
  if (!isDrawn) return { ...NO_STATS, recipients: 0, pending: 0 }
  const names = [...(Object.keys(NO_STATS) as (keyof Stats)[]), 'recipients', 'pending'] as const
  const left = names.map(name => {
    const sampled = variants.reduce((sum, one) => sum + one[name], 0)
    return [name, Math.max(0, campaign[name] - sampled)]
  })
  return Object.fromEntries(left) as Counted
}

function countedToApi(counted: Counted, revenue: readonly Revenue[]) {
  const { recipients, pending } = counted
  return {
    recipients,
    pending,
    stats: statsFields(counted),
    rates: ratesOf(counted),
    conversions: revenue.reduce((sum, { conversions }) => sum + conversions, 0),
    revenue: revenue.map(({ currency, conversions, value }) => ({ currency, conversions, value })),
  }
}

function timeOrNull(moment: number | null): string | null {
  return moment === null ? null : isoTime(moment)
}

const exampleOf = (
  [recipients, uniqueOpens, uniqueClicks]: readonly [number, number, number],
  conversions: number,
  value: number,
) =>
  countedToApi(
    {
      ...NO_STATS,
      recipients,
      pending: 0,
      sends: recipients,
      deliveries: recipients,
      opens: uniqueOpens,
      uniqueOpens,
      clicks: uniqueClicks,
      uniqueClicks,
    },
    [{ currency: 'EUR', conversions, value }],
  )

const EXAMPLE: AbTestResult = {
  phase: 'decided',
  metric: 'clicks',
  decide_at: null,
  winner: 'B',
  decided_at: '2026-01-05T14:00:00.000Z',
  decided_by: 'rule',
  leader: 'B',
  is_clear: true,
  variants: [
    { name: 'A' as const, subject: 'News', counted: exampleOf([500, 210, 40], 3, 89.7) },
    {
      name: 'B' as const,
      subject: 'News for {{firstName|you}}',
      counted: exampleOf([500, 260, 75], 7, 219.6),
    },
  ].map(({ name, subject, counted }) => ({
    id: name,
    subject,
    template_id: EXAMPLE_ID,
    from_email: null,
    from_name: null,
    ...counted,
  })),
  rest: exampleOf([4_000, 1_900, 560], 52, 1_644.9),
  sample_percent: 20,
  sample_size: null,
}
