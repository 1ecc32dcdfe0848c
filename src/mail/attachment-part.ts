/**
 * Attachments as MIME entities: header with name and disposition, body in base64.
 *
 * Called by the composer. Pure; octets in, 7-bit text out. Message parts are refused where they come in: base64 is not
 * allowed for them (RFC 2046 §5.2.1). Standards: RFC 2045 §6.8 (base64), RFC 2183 (Content-Disposition), RFC 2231
 * (parameters beyond ASCII or too long for a line), RFC 2392 (Content-ID). Fails: never; values are checked where they enter.
 */

export interface Attachment {
  /** At most 255 characters, free of control characters. */
  readonly filename: string
  /** E.g. `application/pdf`; parameters may follow. */
  readonly contentType: string
  /** Without angle brackets; what `cid:` in the HTML names. */
  readonly contentId?: string
  readonly octets: Uint8Array
}

/** @param isInline shown within the HTML, not listed beside it */
export function attachmentPart(attachment: Attachment, isInline: boolean): string {
  const { filename, contentType, contentId, octets } = attachment
  const head = [
    `Content-Type: ${contentType}`,
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: ${isInline ? 'inline' : 'attachment'};\r\n ${filenameParameter(filename)}`,
    ...(contentId === undefined ? [] : [`Content-ID: <${contentId}>`]),
  ]
  return `${head.join('\r\n')}\r\n\r\n${inBase64(octets)}`
}

/** RFC 2045 §6.8: lines of 76. */
export function inBase64(octets: Uint8Array): string {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
  const lines: string[] = []
  for (let at = 0; at < buffer.length; at += 57) lines.push(buffer.toString('base64', at, at + 57))
  return lines.join('\r\n')
}

/** Characters of a value that stands whole in one line. */
const SHORT = 60

function filenameParameter(name: string): string {
  if (name.length <= SHORT && /^[\x20-\x7e]*$/.test(name))
    return `filename="${name.replace(/["\\]/g, '\\$&')}"`
  return extendedParameter('filename', name)
}

/** RFC 2231 §3, §4: in pieces where it is long, each of whole octets. */
function extendedParameter(parameter: string, value: string): string {
  const pieces: string[] = []
  let piece = `utf-8''`
  for (const character of value) {
    const encoded = percentEncoded(character)
    if (piece.length + encoded.length > SHORT) {
      pieces.push(piece)
      piece = ''
    }
    piece += encoded
  }
  pieces.push(piece)
  if (pieces.length === 1) return `${parameter}*=${pieces[0] ?? ''}`
  return pieces.map((piece, index) => `${parameter}*${index}*=${piece}`).join(';\r\n ')
}

/** attribute-char of RFC 2231 §7 stays as it is. */
function percentEncoded(character: string): string {
  if (/^[A-Za-z0-9!#$&+.^_`{|}~-]$/.test(character)) return character
  return [...Buffer.from(character)]
    .map(octet => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')
}
