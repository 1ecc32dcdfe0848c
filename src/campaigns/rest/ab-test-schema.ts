/** Schemas of a campaign's A/B test in requests and answers. */
import Type, { type Static } from 'typebox'
import { IntegerOrNull, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { RevenueSchema } from './revenue.js'
import { count, rateFields, RATES, statFields } from './stats-schema.js'
import {
  DEFAULT_DECIDE_AFTER_MINUTES,
  IF_UNCLEAR,
  METRICS,
  VARIANT_NAMES,
  type AbTest,
} from '../model/ab-test.js'

const MAX_SAMPLE = 10_000_000
const MAX_MINUTES = 7 * 24 * 60

const orAsCampaign = <S extends Type.TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

const VariantBody = Type.Object(
  {
    subject: orAsCampaign(Type.String({ minLength: 1, maxLength: 998 })),
    template_id: orAsCampaign(Type.String({ maxLength: 64, shownFormat: 'uuid' })),
    from_email: orAsCampaign(Type.String({ minLength: 1, maxLength: MAX_MAILBOX_LENGTH })),
    from_name: orAsCampaign(Type.String({ maxLength: 100 })),
  },
  {
    additionalProperties: false,
    title: 'AbTestVariant',
    description: 'What this variant says differently; absent and null fields are as in the campaign.',
  },
)

const SAMPLE =
  'Recipients who get one variant each, in equal parts; the others get the winner. If there are no others, the campaign is completed without a winner. Give one of sample_percent and sample_size.'

export const AbTestSchema = Type.Object(
  {
    variants: Type.Array(VariantBody, {
      minItems: 2,
      maxItems: VARIANT_NAMES.length,
      description: 'Named A, B, C and D in this order. Each must differ from the others.',
    }),
    sample_percent: orAsCampaign(Type.Integer({ minimum: 1, maximum: 100, description: SAMPLE })),
    sample_size: orAsCampaign(Type.Integer({ minimum: 2, maximum: MAX_SAMPLE, description: SAMPLE })),
    metric: Type.Optional(
      Type.Enum([...METRICS], {
        default: 'clicks',
        description:
          'What the winner has more of: recipients who clicked, or who opened, per delivered email. Machines are not counted.',
      }),
    ),
    decide_after_minutes: orAsCampaign(
      Type.Integer({
        minimum: 1,
        maximum: MAX_MINUTES,
        default: DEFAULT_DECIDE_AFTER_MINUTES,
        description:
          'Wait before the winner is decided, from when the whole sample was queued; it stands still while the campaign is paused. Null: ' +
          'until somebody chooses (`POST /campaigns/{id}/ab-test/winner`), which is possible at any time.',
      }),
    ),
    if_unclear: Type.Optional(
      Type.Enum([...IF_UNCLEAR], {
        default: 'best',
        description:
          'If the lead of the best variant may be chance (`is_clear`): `best`: it wins all the same, and of equals the first; ' +
          '`manual`: the campaign waits until somebody chooses.',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'AbTest',
    description: 'An A/B test: a sample of the recipients gets variants of the mail, the others the winner.',
  },
)
export type AbTestBody = Static<typeof AbTestSchema>

export function abTestToApi(test: AbTest): AbTestBody {
  return {
    variants: test.variants.map(({ subject, templateId, fromEmail, fromName }) => ({
      subject,
      template_id: templateId,
      from_email: fromEmail,
      from_name: fromName,
    })),
    sample_percent: test.samplePercent,
    sample_size: test.sampleSize,
    metric: test.metric,
    decide_after_minutes: test.decideAfterMinutes,
    if_unclear: test.ifUnclear,
  }
}

export const PHASES = ['draft', 'sampling', 'waiting', 'undecided', 'decided', 'ended'] as const

const counted = {
  recipients: count('People this was or will be sent to.'),
  pending: count('Of them, not queued yet.'),
  stats: Type.Object(statFields, { title: 'AbTestStats' }),
  rates: Type.Object(rateFields, { title: 'AbTestRates', description: RATES }),
  conversions: count('Conversions attributed to these emails.'),
  revenue: Type.Array(RevenueSchema, { description: 'These conversions by currency, highest value first.' }),
}

export const VariantId = Type.Enum([...VARIANT_NAMES], { description: 'One of: A, B, C, D.' })

export const AbTestResultSchema = Type.Object(
  {
    phase: Type.Enum([...PHASES], {
      description:
        '`draft`: not sent. `sampling`: the sample is being queued. `waiting`: until decide_at, or for a choice if that is null. ' +
        '`undecided`: the time is over and no variant leads clearly; somebody has to choose. `decided`: there is a winner. ' +
        '`ended`: the campaign was over before there was one, or the sample was everybody.',
    }),
    metric: Type.Enum([...METRICS]),
    decide_at: MomentOrNull({
      description: 'Null until the whole sample is queued, while paused, and if somebody has to choose.',
    }),
    winner: orNull(VariantId),
    decided_at: MomentOrNull(),
    decided_by: orNull(Type.Enum(['rule', 'person'])),
    leader: orNull(VariantId, {
      description: 'The best variant so far; null if none has more than the others.',
    }),
    is_clear: Type.Boolean({
      description:
        'Whether a lead as large as this over every other variant would be chance in less than 5% of all tests (two-proportion z-test ' +
        'with Bonferroni correction).',
    }),
    variants: Type.Array(
      Type.Object(
        {
          id: VariantId,
          subject: Type.String(),
          template_id: Type.String(),
          from_email: TextOrNull(),
          from_name: TextOrNull(),
          ...counted,
        },
        { title: 'AbTestVariantResult' },
      ),
      { description: 'Counts are of the sample alone, so that they compare.' },
    ),
    rest: Type.Object(counted, {
      title: 'AbTestRest',
      description: 'Everybody outside the sample, who gets the winner.',
    }),
    sample_percent: IntegerOrNull(),
    sample_size: IntegerOrNull(),
  },
  { title: 'AbTestResult' },
)
export type AbTestResult = Static<typeof AbTestResultSchema>

export const WinnerBody = Type.Object(
  { variant: VariantId },
  { additionalProperties: false, title: 'AbTestChoice' },
)
