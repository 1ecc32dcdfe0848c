/** Formats timestamps for the API: ISO 8601 in UTC. Internally they are ms since epoch; `read-moment.ts` parses them. */

/** Caches the last result, because consecutive calls often have the same timestamp. */
let known: { readonly at: number; readonly text: string } = { at: NaN, text: '' }

export function isoTime(at: number): string {
  if (at !== known.at) known = { at, text: new Date(at).toISOString() }
  return known.text
}

export function isoTimeOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}
