/** Days in UTC, as counters are kept and reports show them. */

export const DAY_MS = 86_400_000

/** @returns midnight in UTC of the day of a moment; both ms since epoch */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS
}
