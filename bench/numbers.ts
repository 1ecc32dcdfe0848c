/** Figures in the few forms that the tables need. */

/** @param share 0..1 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** Three significant digits, or the whole number where that is more. */
export function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
