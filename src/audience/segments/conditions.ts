/** What a segment or a dynamic list asks of its contacts, as requests say it and as it is stored. */
import Type, { type TSchema } from 'typebox'
import { MOST_NESTED } from '../contacts/traits.js'

export interface Rule {
  readonly field: string
  readonly operator: string
  readonly value?: RuleValue
}

export type Scalar = string | number | boolean

export type RuleValue = Scalar | readonly Scalar[]

export interface Conditions {
  readonly match: string
  /** Rules, and groups of rules. None: nobody. */
  readonly rules: readonly (Rule | Conditions)[]
}

export function isGroup(one: Rule | Conditions): one is Conditions {
  return 'rules' in one
}

/** Of one group; `read-conditions.ts` bounds all groups together. */
const MOST_RULES = 50
const MOST_TEXT = 1_000
/** Of one `in`. */
const MOST_VALUES = 500
export const MOST_NESTING = 3

export const OPERATORS = [
  ...(['equals', 'not_equals', 'contains', 'not_contains', 'starts_with', 'ends_with'] as const),
  ...(['gt', 'lt', 'gte', 'lte', 'is_set', 'is_not_set', 'in', 'not_in'] as const),
  ...(['before', 'after', 'within_days', 'not_within_days', 'in_next_days', 'not_in_next_days'] as const),
  ...(['anniversary_in_next_days', 'not_anniversary_in_next_days'] as const),
] as const

const Text = Type.String({ maxLength: MOST_TEXT })

const rule = {
  field: Type.String({
    minLength: 1,
    maxLength: 120,
    description:
      'email, first_name, last_name, subscribed, bounced, bounce_type, created_at, updated_at, bounced_at, last_opened_at, ' +
      'last_clicked_at, lists, tags; campaign_received, campaign_opened, campaign_clicked (campaign ids, while recipients are kept); ' +
      'purchase_count, purchase_total, last_purchase_at, purchased_product (conversions; the product is `metadata.product_id` or in ' +
      '`metadata.product_ids`); any other name is that of an attribute, which `attributes.` may precede. A dot reaches into a ' +
      `nested attribute (\`address.city\`), up to ${MOST_NESTED} of a contact.`,
    examples: ['plan', 'campaign_opened', 'purchase_total', 'birthday'],
  }),
  operator: Type.String({
    maxLength: 32,
    shown: Type.Enum([...OPERATORS]),
    description:
      '`is_set` is false for an empty text or array. `in_next_days` matches dates from today to so many days ahead, ' +
      '`anniversary_in_next_days` the same whatever the year, such as a birthday; days are those of UTC.',
  }),
  value: Type.Optional(
    Type.Union(
      [
        Text,
        Type.Number(),
        Type.Boolean(),
        Type.Array(Type.Union([Text, Type.Number(), Type.Boolean()]), { maxItems: MOST_VALUES }),
      ],
      {
        description:
          'Text compares without case and accents. A number compares as a number, also with attributes that are text (`"19.90"`); so does ' +
          'numeric text with `gt`, `gte`, `lt` and `lte`. `in` and `not_in` take an array, `before` and `after` an ISO 8601 date, ' +
          '`within_days`, `in_next_days` and `anniversary_in_next_days` a number of days. In an attribute that is an array, `contains` and `in` look for an item; in text, `contains` ' +
          'looks for a part of it.',
      },
    ),
  ),
}

const Match = Type.String({ maxLength: 8, shown: Type.Enum(['all', 'any']) })
const rulesOf = (inner: TSchema) => Type.Array(inner, { maxItems: MOST_RULES })

// Which fields a rule has, and which a group, `read-conditions.ts` checks, which tells what is wrong in words; of alternatives a
// schema can only say that none of them fits.
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
      description:
        'Either a rule, with field, operator and value, or a group of rules, with match and rules.',
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
      'Which contacts: all of the rules, or any of them, apply. In place of a rule there may be a group of rules; no rules at ' +
      'all apply to nobody. A `not_` operator also applies where the field is missing.',
  },
)

export const ConditionsSchema = Type.Unsafe<Conditions>(WholeSchema)
