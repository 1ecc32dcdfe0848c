/**
 * Finds the fields of a header block in the octets of a message.
 *
 * Called by the reader of relayed headers and by the walk through MIME parts. Keeps every octet: a field is told by where
 * it stands and as it stands. Works on one latin1 string, without a regular expression for each character. Pure.
 * Standards: RFC 5322 §2.2 (fields), §2.2.3 (folding).
 * Fails: never throws; a line without a colon becomes a field without a name.
 */

/** One field as it was written. */
export interface FieldLines {
  /** Lower case, without white space before the colon; empty for a line that has no colon. */
  readonly name: string
  /** Octets as a latin1 string, folds included, without the CRLF at the end. */
  readonly raw: string
  /** Where it begins, in octets from the start of the text. */
  readonly start: number
  /** After its CRLF, or the end of the text. */
  readonly end: number
}

const TAB = 0x09
const SP = 0x20

/**
 * @param text header block with CRLF line ends, without the empty line
 * @param most how many fields are looked for
 * @returns in order; one more than `most` where there are more
 */
export function fieldLines(text: string, most: number): FieldLines[] {
  const fields: FieldLines[] = []
  let start = 0
  while (start < text.length && fields.length <= most) {
    let lineEnd = endOfLine(text, start)
    // Past the end charCodeAt is NaN, which is neither.
    for (let next = text.charCodeAt(lineEnd + 2); next === SP || next === TAB;) {
      lineEnd = endOfLine(text, lineEnd + 2)
      next = text.charCodeAt(lineEnd + 2)
    }
    const raw = text.slice(start, lineEnd)
    const end = Math.min(lineEnd + 2, text.length)
    fields.push({ name: nameOf(raw), raw, start, end })
    start = lineEnd + 2
  }
  return fields
}

function endOfLine(text: string, from: number): number {
  const at = text.indexOf('\r\n', from)
  return at < 0 ? text.length : at
}

function nameOf(raw: string): string {
  const colon = raw.indexOf(':')
  return colon <= 0 ? '' : raw.slice(0, colon).trimEnd().toLowerCase()
}
