/** Revenue attributed to a campaign's recipients: its schema, and where campaigns read it. */
import Type from 'typebox'
import type { Queries } from '../../db/database.js'

/** Of one currency. */
export interface Revenue {
  /** ISO 4217. */
  readonly currency: string
  readonly conversions: number
  readonly value: number
}

export const RevenueSchema = Type.Object(
  {
    currency: Type.String({ description: 'ISO 4217.' }),
    conversions: Type.Integer(),
    value: Type.Number({ description: 'Sum of values; refunds are subtracted.' }),
  },
  { title: 'CampaignRevenue' },
)

/** Highest value first. Both read an index over the campaign's conversions: for `Database.slowReader`. */
export interface RevenueParts {
  readonly findRevenue: (db: Queries, campaignId: string) => Promise<Revenue[]>
  /** By variant of the A/B test; null: outside the sample. */
  readonly findVariantRevenue: (
    db: Queries,
    campaignId: string,
  ) => Promise<(Revenue & { readonly variant: number | null })[]>
}
