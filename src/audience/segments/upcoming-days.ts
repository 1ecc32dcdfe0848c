/** Days of the year for anniversary rules, in UTC. February 29 falls on the 28th in other years. Pure. */

const DAY_MS = 86_400_000

/** `MMDD` of the first and last day; first > last for a range across New Year. */
export interface DaysOfYear {
  readonly from: string
  readonly to: string
}

/** @param today any moment of the first day, ms since epoch UTC @returns undefined for the whole year */
export function upcomingDaysOfYear(today: number, days: number): DaysOfYear | undefined {
  if (days >= 365) return undefined
  const end = today + days * DAY_MS
  const isEndOfFebruary = dayOfYear(end) === '0228' && dayOfYear(end + DAY_MS) === '0301'
  return { from: dayOfYear(today), to: isEndOfFebruary ? '0229' : dayOfYear(end) }
}

function dayOfYear(at: number): string {
  return new Date(at).toISOString().slice(5, 10).replace('-', '')
}
