/**
 * Text on its way into a header field: what must be refused, and how HTML leaves a subject.
 *
 * Called by the submission checks before a message is accepted and by the composer after merging, because a
 * merged value can bring in what the template did not have. Pure.
 * Standards: RFC 5322 §2.2 (header fields), §3.2.3 (atoms).
 * Fails: never throws.
 */

// eslint-disable-next-line no-control-regex -- finding control characters is what this is for
const HEADER_BREAK = /[\x00-\x08\x0a-\x1f\x7f]/

/**
 * Whether the text could end its header field, or reach a reader as something other than text: CR, LF, NUL and every
 * other C0 control or DEL. TAB is white space (RFC 5322 §2.2.2) and allowed.
 */
export function hasHeaderBreak(text: string): boolean {
  return HEADER_BREAK.test(text)
}

/**
 * Removes HTML tags from a subject. Entities are left as they are: a subject is text, and `&amp;` may be meant.
 *
 * Linear: every `>` closes the nearest `<` still open, and a `<` is looked at once. Because what is left after a removal
 * counts, no removal can put a new tag together (`<<b>b>`). A `>` inside a quoted attribute ends its tag early.
 */
export function stripTags(subject: string): string {
  if (!subject.includes('<')) return subject
  const kept: string[] = []
  const open: number[] = []
  for (const character of subject) {
    if (character === '<') open.push(kept.length)
    kept.push(character)
    if (character !== '>') continue
    const start = open.pop()
    if (start !== undefined && isTag(kept, start)) kept.length = start
  }
  return kept.join('')
}

/** `<b>`, `</b>`, `<br/>`, `<a href=...>`, `<!-- -->`, `<?xml ?>`; not `<3`, `a < b > c` or `<ann@example.com>`. */
function isTag(characters: readonly string[], start: number): boolean {
  let at = start + 1
  if (characters[at] === '!' || characters[at] === '?') return true
  if (characters[at] === '/') at++
  if (!/^[a-z]$/i.test(characters[at] ?? '')) return false
  while (/^[a-z0-9:-]$/i.test(characters[at] ?? '')) at++
  return /^[\s/>]$/.test(characters[at] ?? '')
}
