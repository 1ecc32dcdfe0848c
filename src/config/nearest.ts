/**
 * The known name nearest to a mistyped one, for "did you mean".
 *
 * Called by the configuration loader. Pure. Damerau-Levenshtein in its restricted form: insertions, deletions,
 * substitutions and swaps of neighbours count one each, which is what typing errors are made of.
 */

/** Names longer than this are no typing errors of ours; it also bounds the work. */
const LONGEST = 100

/**
 * @param known names to choose from
 * @returns the nearest within a third of the length (at least 2 edits), the first of equals; or undefined
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > LONGEST) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    // Two edits make any two-letter word out of any other.
    if (distance >= bestDistance || distance >= candidate.length) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** Edits that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      )
      const swapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) cost = Math.min(cost, at(beforeLast, column - 2) + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity
}
