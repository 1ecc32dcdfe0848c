/** Moments as the API shows them: ISO 8601 text in UTC. Inside, a moment is ms since epoch. `read-moment.ts` reads them. */

/** The one that was asked for last: what happens together is told together, a thousand times over. */
let known: { readonly at: number; readonly text: string } = { at: NaN, text: '' }

export function isoTime(at: number): string {
  if (at !== known.at) known = { at, text: new Date(at).toISOString() }
  return known.text
}

export function isoTimeOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}
