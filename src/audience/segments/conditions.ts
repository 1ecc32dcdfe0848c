/** Conditions of segments and dynamic lists, as in requests and in the database. */
import Type, { type TSchema } from 'typebox'
import { MAX_NESTED } from '../contacts/compared-attributes.js'

export interface Rule {
  readonly field: string
  readonly operator: string
  readonly value?: RuleValue
}

export type Scalar = string | number | boolean

export type RuleValue = Scalar | readonly Scalar[]

export interface Conditions {
  readonly match: string
  /** An empty array matches nobody. */
  readonly rules: readonly (Rule | Conditions)[]
}

export function isGroup(one: Rule | Conditions): one is Conditions {
  return 'rules' in one
}

/** Per group; `read-conditions.ts` limits the total. */
const MAX_RULES = 50
const MAX_TEXT = 1_000
/** Per `in` value. */
const MAX_VALUES = 500
export const MAX_NESTING = 3

export const OPERATORS = [
  ...(['equals', 'not_equals', 'contains', 'not_contains', 'starts_with', 'ends_with'] as const),
  ...(['gt', 'lt', 'gte', 'lte', 'is_set', 'is_not_set', 'in', 'not_in'] as const),
  ...(['before', 'after', 'within_days', 'not_within_days', 'in_next_days', 'not_in_next_days'] as const),
  ...(['anniversary_in_next_days', 'not_anniversary_in_next_days'] as const),
] as const

const Text = Type.String({ maxLength: MAX_TEXT })

const rule = {
  field: Type.String({
    minLength: 1,
    maxLength: 120,
    description:
      'email, first_name, last_name, subscribed, bounced, bounce_type, created_at, updated_at, bounced_at, last_opened_at, ' +
      'last_clicked_at, lists, tags; campaign_received, campaign_opened, campaign_clicked (campaign ids, while recipients are kept); ' +
      'purchase_count, purchase_total, last_purchase_at, purchased_product (conversions; the product is `metadata.product_id` or one of ' +
      '`metadata.product_ids`). Any other name is an attribute, with or without the prefix `attributes.`. A dot selects a ' +
      `nested attribute (\`address.city\`), up to ${MAX_NESTED} per contact.`,
    examples: ['plan', 'campaign_opened', 'purchase_total', 'birthday'],
  }),
  operator: Type.String({
    maxLength: 32,
    shown: Type.Enum([...OPERATORS]),
    description:
      '`is_set` is false for empty text and empty arrays. `in_next_days` matches dates from today up to that many days ahead; ' +
      "`anniversary_in_next_days` ignores the year, e.g. for birthdays. Days are days of the workspace's time zone, and an attribute " +
      'without a time (`2026-01-05`) is that day in any zone. `within_days` compares such dates by day, and timestamps by the hour: ' +
      '7 days are 7 times 24 hours.',
  }),
  value: Type.Optional(
    Type.Union(
      [
        Text,
        Type.Number(),
        Type.Boolean(),
        Type.Array(Type.Union([Text, Type.Number(), Type.Boolean()]), { maxItems: MAX_VALUES }),
      ],
      {
        description:
          'Text comparison ignores case and accents. Numbers compare numerically, also with text attributes (`"19.90"`), as does ' +
          'numeric text with `gt`, `gte`, `lt` and `lte`. `in` and `not_in` take an array, `before` and `after` an ISO 8601 date (without a time: midnight in ' +
          "the workspace's time zone; `equals` on a timestamp then matches the whole day), " +
          '`within_days`, `in_next_days` and `anniversary_in_next_days` a number of days. In array attributes, `contains` and `in` match ' +
          'whole items; in text, `contains` matches a substring.',
      },
    ),
  ),
}

const Match = Type.String({ maxLength: 8, shown: Type.Enum(['all', 'any']) })
const rulesOf = (inner: TSchema) => Type.Array(inner, { maxItems: MAX_RULES })

// `read-conditions.ts` checks which fields a rule or group has: for alternatives, schema validation can only report that none matched.
const ruleOrGroup = (inner: TSchema, title: string) =>
  Type.Object(
    {
      field: Type.Optional(rule.field),
      operator: Type.Optional(rule.operator),
      value: rule.value,
      match: Type.Optional(Match),
      rules: Type.Optional(rulesOf(inner)),
    },
    {
      additionalProperties: false,
      title,
      description: 'A rule (`field`, `operator`, `value`) or a nested group (`match`, `rules`).',
    },
  )

const Innermost = Type.Object(rule, { additionalProperties: false, title: 'InnermostSegmentRule' })
const Inner = ruleOrGroup(Innermost, 'InnerSegmentRule')

const WholeSchema = Type.Object(
  { rules: rulesOf(ruleOrGroup(Inner, 'SegmentRule')), match: Match },
  {
    additionalProperties: false,
    title: 'SegmentConditions',
    description:
      'Selects contacts that match all of the rules, or any of them. A rule can be a nested group. No rules match nobody. A `not_` operator ' +
      'also matches where the field is missing.',
  },
)

export const ConditionsSchema = Type.Unsafe<Conditions>(WholeSchema)
