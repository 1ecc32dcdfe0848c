/**
 * An A/B test: up to four variants of a campaign's mail, of which a sample of the recipients gets one each, and the rest the winner.
 *
 * Pure. Fails: AppError validation_error.
 */
import { refusal } from '../../audience/checks.js'

/** Names of the variants, by their number. */
export const VARIANT_NAMES = ['A', 'B', 'C', 'D'] as const
export type VariantName = (typeof VARIANT_NAMES)[number]

/** Fields in which a variant differs; null: as the campaign. */
export interface Variant {
  readonly subject: string | null
  readonly templateId: string | null
  readonly fromEmail: string | null
  readonly fromName: string | null
}

export const METRICS = ['clicks', 'opens'] as const
export type Metric = (typeof METRICS)[number]

/** If the best variant's lead may be chance: it wins all the same, or a person decides. */
export const IF_UNCLEAR = ['best', 'manual'] as const

export interface AbTest {
  readonly variants: readonly Variant[]
  /** Exactly one of the two is set. */
  readonly samplePercent: number | null
  readonly sampleSize: number | null
  readonly metric: Metric
  /** From when the whole sample was queued; null: decided by hand. */
  readonly decideAfterMinutes: number | null
  readonly ifUnclear: (typeof IF_UNCLEAR)[number]
}

export const DEFAULT_DECIDE_AFTER_MINUTES = 240

export function variantName(variant: number): VariantName {
  const name = VARIANT_NAMES[variant]
  if (name === undefined) throw new Error(`there is no variant ${variant}`)
  return name
}

export interface SaidByVariant {
  readonly subject: string
  readonly templateId: string
  readonly fromEmail: string | null
  readonly fromName: string | null
}

/** The campaign's fields as a variant has them. */
export function withVariant<T extends SaidByVariant>(fields: T, variant: Variant | undefined): T {
  if (!variant) return fields
  return {
    ...fields,
    subject: variant.subject ?? fields.subject,
    templateId: variant.templateId ?? fields.templateId,
    fromEmail: variant.fromEmail ?? fields.fromEmail,
    fromName: variant.fromName ?? fields.fromName,
  }
}

/**
 * How many recipients get each variant: the sample in equal parts, of which the first may be larger by one.
 * Everybody has a chance to see each variant, so that a sample is never smaller than the number of variants.
 */
export function sampleSizes(
  { variants, samplePercent, sampleSize }: Pick<AbTest, 'variants' | 'samplePercent' | 'sampleSize'>,
  recipients: number,
): number[] {
  const asked = samplePercent === null ? (sampleSize ?? 0) : Math.ceil((recipients * samplePercent) / 100)
  const sample = Math.min(recipients, Math.max(asked, variants.length))
  const even = Math.floor(sample / variants.length)
  return variants.map((_, at) => even + (at < sample % variants.length ? 1 : 0))
}

/** @throws AppError validation_error if two variants would be the same mail */
export function requireDistinct(fields: SaidByVariant, { variants }: AbTest): void {
  const seen = new Map<string, number>()
  variants.forEach((variant, number) => {
    const { subject, templateId, fromEmail, fromName } = withVariant(fields, variant)
    const key = JSON.stringify([subject, templateId, fromEmail, fromName])
    const same = seen.get(key)
    if (same !== undefined)
      throw refusal(
        `ab_test.variants.${number}`,
        `variants ${variantName(same)} and ${variantName(number)} are the same; change the subject, template or sender of one`,
      )
    seen.set(key, number)
  })
}
