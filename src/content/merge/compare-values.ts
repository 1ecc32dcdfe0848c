/**
 * Comparisons in merge template conditions.
 *
 * Values that both look like numbers are compared as numbers, even if they are strings, since template_data and imported attributes
 * often are. Otherwise both are compared as text; a missing value is empty text. Pure. Never throws.
 */
import type { Comparison } from './merge-tree.js'
import { textOf } from './merge-values.js'

export function compare(left: unknown, comparison: Comparison, right: unknown): boolean {
  const [a, b] = sides(left, right)
  switch (comparison) {
    case '==':
      return a === b
    case '!=':
      return a !== b
    case '>':
      return a > b
    case '<':
      return a < b
    case '>=':
      return a >= b
    case '<=':
      return a <= b
  }
}

function sides(left: unknown, right: unknown): [number, number] | [string, string] {
  const numbers = [numberOf(left), numberOf(right)] as const
  if (numbers[0] !== undefined && numbers[1] !== undefined) return [numbers[0], numbers[1]]
  return [textOf(left), textOf(right)]
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : undefined
}
