/**
 * Parameters of MIME fields that are not ASCII or too long for a line: percent-encoded UTF-8, in numbered pieces.
 *
 * Called by whatever writes Content-Type and Content-Disposition: the composer for new mail, the 7-bit conversion for relayed.
 * Pure. Standard: RFC 2231 §3 (numbered pieces), §4 (charset). Every octet beyond letters, digits and `._~-` is encoded, which is
 * more than §7 asks for: readers that take these for URL encoding get it right as well.
 * Fails: never. Linear.
 */

/** Of one parameter on its line. */
const MAX_PARAMETER = 70

/** @returns `name*=utf-8''...` or the numbered pieces of it, each to stand on a line of its own */
export function extendedParameter(name: string, value: string): string[] {
  const characters = percentEncoded(value)
  const whole = `${name}*=utf-8''${characters.join('')}`
  return whole.length <= MAX_PARAMETER ? [whole] : numberedPieces(name, characters, "utf-8''")
}

/**
 * @param characters encoded; none is cut in two
 * @param charset what the first piece begins with (RFC 2231 §4.1), empty where the characters have it
 */
export function numberedPieces(name: string, characters: readonly string[], charset: string): string[] {
  const pieces: string[] = []
  let piece = charset
  for (const character of characters) {
    if (piece.length + character.length + name.length > MAX_PARAMETER) {
      pieces.push(piece)
      piece = ''
    }
    piece += character
  }
  pieces.push(piece)
  return pieces.map((each, index) => `${name}*${index}*=${each}`)
}

/** One entry for each character; half a surrogate pair becomes U+FFFD. */
export function percentEncoded(text: string): string[] {
  return Array.from(text, character =>
    /^[A-Za-z0-9._~-]$/.test(character)
      ? character
      : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}
