export const DAY_MS = 86_400_000

/** @returns midnight UTC of that day; both in ms since epoch */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS
}
