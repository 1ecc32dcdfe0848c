/** Finds the known name closest to a mistyped one, for "did you mean". Pure. */
import { distance } from 'fastest-levenshtein'

/** Longer names are not typos; this also bounds the work. */
const MAX_LENGTH = 100

/**
 * @param known candidate names
 * @returns the first closest name within a third of the length (at least 2 edits, to allow a swap of neighbours), or undefined
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase())
    // Two edits turn any two-letter word into any other.
    if (edits >= bestDistance || edits >= candidate.length) continue
    best = candidate
    bestDistance = edits
  }
  return best
}
