/**
 * Parameters of MIME fields that are not ASCII or too long for a line: percent-encoded UTF-8, in numbered pieces.
 *
 * Called by whatever writes Content-Type and Content-Disposition: the composer for new mail, the 7-bit conversion for relayed.
 * What is written for a value never changes: a retry after an update sends what the first attempt sent. Pure.
 * Standard: RFC 2231 §3 (numbered pieces), §4 (charset), §7 (attribute-char stays as it is). Fails: never. Linear.
 */

/** Characters of a value on one line. */
const MAX_PIECE = 60

/** @returns `name*=utf-8''...` or the numbered pieces of it, each to stand on a line of its own */
export function extendedParameter(name: string, value: string): string[] {
  const pieces = inPieces(percentEncoded(value), "utf-8''")
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? [`${name}*=${only}`] : numbered(name, pieces)
}

/**
 * The numbered pieces of what is encoded already.
 *
 * @param characters none is cut in two; those of the charset and its quotes among them
 */
export function numberedPieces(name: string, characters: readonly string[]): string[] {
  return numbered(name, inPieces(characters, ''))
}

function numbered(name: string, pieces: readonly string[]): string[] {
  return pieces.map((piece, index) => `${name}*${index}*=${piece}`)
}

/** @param charset what the first piece begins with (RFC 2231 §4.1) */
function inPieces(characters: readonly string[], charset: string): string[] {
  const pieces: string[] = []
  let piece = charset
  for (const character of characters) {
    if (piece.length + character.length > MAX_PIECE) {
      pieces.push(piece)
      piece = ''
    }
    piece += character
  }
  return [...pieces, piece]
}

/** One entry for each character; half a surrogate pair becomes U+FFFD. */
export function percentEncoded(text: string): string[] {
  return Array.from(text, character =>
    /^[A-Za-z0-9!#$&+.^_`{|}~-]$/.test(character)
      ? character
      : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}
