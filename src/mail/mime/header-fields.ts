/**
 * Finds the fields of a header section, each as it stands, and what a field says when it is unfolded.
 *
 * Called by the readers of relayed and returned mail and by the reader of MIME structure. Keeps every octet: a field is told
 * by where it stands and as it stands. Lines end in CRLF or LF. Works on one string, without a regular expression for each
 * character. Pure.
 * Standards: RFC 5322 §2.2 (fields), §2.2.3 (folding).
 * Fails: never throws; a line without a colon becomes a field without a name. Linear.
 */

/** One field as it was written. */
export interface HeaderField {
  /** Lower case, without white space before the colon; empty for a line that has no colon. */
  readonly name: string
  /** Octets as a latin1 string, folds included, without the line end at its end. */
  readonly raw: string
  /** Where it begins, in characters from the start of the text. */
  readonly start: number
  /** After its line end, or the end of the text. */
  readonly end: number
}

const TAB = 0x09
const SP = 0x20
const CR = 0x0d

/**
 * @param text header section without the empty line
 * @param most how many fields are looked for
 * @returns in order; one more than `most` where there are more
 */
export function readFields(text: string, most: number): HeaderField[] {
  const fields: HeaderField[] = []
  let start = 0
  while (start < text.length && fields.length <= most) {
    let next = afterLine(text, start)
    // Past the end charCodeAt is NaN, which is neither.
    for (let first = text.charCodeAt(next); first === SP || first === TAB;) {
      next = afterLine(text, next)
      first = text.charCodeAt(next)
    }
    const raw = text.slice(start, endOfLine(text, next))
    fields.push({ name: nameOf(raw), raw, start, end: next })
    start = next
  }
  return fields
}

/** Everything after the colon, on one line, without white space at its ends. */
export function unfoldedValue(field: string): string {
  const value = field.slice(field.indexOf(':') + 1)
  return (value.includes('\n') ? value.replace(/\r?\n/g, '') : value).trim()
}

/**
 * The unfolded value of a field that labels a MIME part. NUL is replaced, not removed: what it parted may become another
 * label.
 */
export function safeLabelValue({ raw }: HeaderField): string {
  return unfoldedValue(raw).replaceAll('\0', '?')
}

/** After the line end, or the end of the text. */
function afterLine(text: string, from: number): number {
  const at = text.indexOf('\n', from)
  return at < 0 ? text.length : at + 1
}

/** Before the line end that ends at `next`, if there is one. */
function endOfLine(text: string, next: number): number {
  if (text[next - 1] !== '\n') return next
  return text.charCodeAt(next - 2) === CR ? next - 2 : next - 1
}

function nameOf(raw: string): string {
  const colon = raw.indexOf(':')
  return colon <= 0 ? '' : raw.slice(0, colon).trimEnd().toLowerCase()
}
