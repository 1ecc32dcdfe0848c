/**
 * Trimming in time linear in the length of the text. An expression such as `/=+$/` tries to reach the end from each character of each run,
 * which takes quadratic time where a long run is not at the end. Pure.
 */

/** @param characters those to remove from the end */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}

/** @param characters those to remove from both ends */
export function trimBoth(text: string, characters: string): string {
  const shortened = trimEnd(text, characters)
  let start = 0
  while (start < shortened.length && characters.includes(shortened.charAt(start))) start += 1
  return shortened.slice(start)
}
