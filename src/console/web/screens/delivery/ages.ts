/** Columns of the queue by age: some of the ages that the API counts, summed. */
import { tr } from '../../i18n/i18n'

export interface AgeColumn {
  readonly name: string
  readonly ages: readonly string[]
  /** Number of the first of its ages. */
  readonly first: number
}

/** @param ages names as the API gives them, youngest first @param firsts number of each column’s first age */
export function ageColumns(ages: readonly string[], firsts: readonly number[]): AgeColumn[] {
  if (ages.length === 0) return []
  return firsts.map((first, index) => {
    const of = ages.slice(first, firsts[index + 1])
    const last = of.at(-1) ?? ''
    const isOldest = last === ages.at(-1)
    return { name: isOldest ? tr().overview.older : tr().overview.upTo(last), ages: of, first }
  })
}

export function countIn({ ages }: AgeColumn, byAge: Readonly<Record<string, number>>): number {
  return ages.reduce((sum, age) => sum + (byAge[age] ?? 0), 0)
}
