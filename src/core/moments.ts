/** Moments as the API shows them: ISO 8601 text in UTC. Inside, a moment is ms since epoch. */

export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

export function isoTimeOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}

const ISO_8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i

/** A moment as a client gives it: ISO 8601 with a zone, or a date alone (its midnight in UTC). @returns undefined for all else */
export function readMoment(text: string): number | undefined {
  const moment = ISO_8601.test(text) ? Date.parse(text.toUpperCase()) : NaN
  return Number.isNaN(moment) ? undefined : moment
}
