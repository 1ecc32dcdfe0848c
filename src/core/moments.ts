/** Moments as the API shows them: ISO 8601 text in UTC. Inside, a moment is ms since epoch. `read-moment.ts` reads them. */

export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

export function isoTimeOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}
