/** The days of the year that a rule about anniversaries means, in UTC. Where there is no 29th of February, it is the 28th. Pure. */

const DAY_MS = 86_400_000

/** `MMDD` of the first and the last day; the first is the greater one where a year ends in between. */
export interface DaysOfYear {
  readonly from: string
  readonly to: string
}

/** @param today any moment of the first day, ms since epoch UTC @returns undefined: every day */
export function upcomingDaysOfYear(today: number, days: number): DaysOfYear | undefined {
  if (days >= 365) return undefined
  const end = today + days * DAY_MS
  const isEndOfFebruary = dayOfYear(end) === '0228' && dayOfYear(end + DAY_MS) === '0301'
  return { from: dayOfYear(today), to: isEndOfFebruary ? '0229' : dayOfYear(end) }
}

function dayOfYear(at: number): string {
  return new Date(at).toISOString().slice(5, 10).replace('-', '')
}
