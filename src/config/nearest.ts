/** The known name nearest to a mistyped one, for "did you mean". Called by the configuration loader. Pure. */
import { distance } from 'fastest-levenshtein'

/** Names longer than this are no typing errors of ours; it also bounds the work. */
const LONGEST = 100

/**
 * @param known names to choose from
 * @returns the nearest within a third of the length (at least 2 edits, as a swap of neighbours is), the first of equals; or
 *   undefined
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > LONGEST) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase())
    // Two edits make any two-letter word out of any other.
    if (edits >= bestDistance || edits >= candidate.length) continue
    best = candidate
    bestDistance = edits
  }
  return best
}
