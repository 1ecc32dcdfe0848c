/**
 * A message as it travels after DATA: dots doubled, the end marked.
 *
 * Called by `smtp-transaction.ts` (encoding) and `render.ts` (the check). Pure. Standard: RFC 5321 §4.5.2, §4.1.1.4,
 * §2.3.8. Fails: never throws.
 */

const LINE_DOT = Buffer.from('\r\n.')
const LINE_END = Buffer.from('\r\n')
const DOT = Buffer.from('.')

/**
 * @param message lines end in CRLF
 * @returns the octets between the 354 and the last reply: dots at line starts doubled, closed by CRLF.CRLF
 */
export function encodeData(message: Buffer): Buffer {
  const pieces: Buffer[] = []
  if (message[0] === 0x2e) pieces.push(DOT)
  let start = 0
  for (let at = message.indexOf(LINE_DOT); at !== -1; at = message.indexOf(LINE_DOT, at + 2)) {
    pieces.push(message.subarray(start, at + 3), DOT)
    start = at + 3
  }
  pieces.push(message.subarray(start))
  // §4.1.1.4: the CRLF before the last dot is the one that ends the last line; a second one would be part of the message.
  if (message.length > 0 && !message.subarray(-2).equals(LINE_END)) pieces.push(LINE_END)
  pieces.push(DOT, LINE_END)
  return Buffer.concat(pieces)
}

/**
 * Where a CR or LF stands alone. Such a message is never sent: servers that take a bare LF for a line end could be
 * made to see the end of the message, and another one after it, inside it (§2.3.8; "SMTP smuggling").
 *
 * @returns offset in octets, or undefined where every line ends in CRLF
 */
export function findBareLineEnd(message: Buffer): number | undefined {
  let lastReturn = -2
  for (let at = 0; at < message.length; at++) {
    const octet = message[at]
    if (octet === 0x0d) {
      if (message[at + 1] !== 0x0a) return at
      lastReturn = at
    } else if (octet === 0x0a && lastReturn !== at - 1) {
      return at
    }
  }
  return undefined
}
