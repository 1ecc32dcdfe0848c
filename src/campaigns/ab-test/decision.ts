/**
 * Which variant of an A/B test is best, and whether that is more than chance. Pure.
 *
 * A variant's rate is the share of its delivered mails whose recipient clicked (or opened), machines excluded.
 */
import type { AbTest } from '../model/ab-test.js'

export interface VariantOutcome {
  readonly deliveries: number
  readonly uniqueOpens: number
  readonly uniqueClicks: number
}

export interface Standing {
  /** Of equals, the first. */
  readonly best: number
  /** No other variant has the same rate. */
  readonly leads: boolean
  readonly isClear: boolean
}

/** Of tests without a difference, this share would be called clear. */
const CHANCE = 0.05

export function standing(metric: AbTest['metric'], variants: readonly VariantOutcome[]): Standing {
  const trials = variants.map(one => {
    const hits = metric === 'clicks' ? one.uniqueClicks : one.uniqueOpens
    // An open can be counted before its delivery.
    return { hits, of: Math.max(one.deliveries, hits) }
  })
  const rates = trials.map(rateOf)
  const best = rates.indexOf(Math.max(...rates))
  const others = trials.filter((_, at) => at !== best)
  const top = trials[best] ?? { hits: 0, of: 0 }
  const leads = others.every(other => rateOf(other) < rateOf(top))
  const isClear = leads && others.every(other => chanceOf(top, other) < CHANCE / others.length)
  return { best, leads, isClear }
}

/** @returns the winner's number; undefined if a person has to choose */
export function winnerByRule(
  { metric, ifUnclear }: Pick<AbTest, 'metric' | 'ifUnclear'>,
  variants: readonly VariantOutcome[],
): number | undefined {
  const { best, isClear } = standing(metric, variants)
  return isClear || ifUnclear === 'best' ? best : undefined
}

interface Trials {
  readonly hits: number
  readonly of: number
}

function rateOf({ hits, of }: Trials): number {
  return of === 0 ? 0 : hits / of
}

/** Two-sided probability of a difference at least as large if there were none: two-proportion z-test with pooled variance. */
function chanceOf(one: Trials, other: Trials): number {
  if (one.of === 0 || other.of === 0) return 1
  const pooled = (one.hits + other.hits) / (one.of + other.of)
  const deviation = Math.sqrt(pooled * (1 - pooled) * (1 / one.of + 1 / other.of))
  if (deviation === 0) return 1
  return complementaryError(Math.abs(rateOf(one) - rateOf(other)) / deviation / Math.SQRT2)
}

/** erfc for x >= 0. Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: error below 1.5e-7. */
function complementaryError(x: number): number {
  const t = 1 / (1 + 0.3275911 * x)
  const polynomial =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return polynomial * Math.exp(-x * x)
}
