/**
 * Attachments as MIME entities: header with name and disposition, body in base64, a message as it is.
 *
 * Called by the composer. Pure; octets in, 7-bit text out. Standards: RFC 2045 §6.8 (base64), RFC 2046 §5.2.1 (a message may not
 * be in base64), RFC 2183 (Content-Disposition), RFC 2231 (parameters beyond ASCII or too long for a line), RFC 2392
 * (Content-ID). Fails: never; values are checked where they enter, and a message that 7-bit lines cannot carry is a file like
 * any other.
 */
import { extendedParameter } from '../mime/extended-parameter.js'
import { encodeBase64 } from '../mime/transfer-encoding.js'
import { toSevenBit } from '../relay/seven-bit.js'

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
  const { filename, contentId, octets } = attachment
  const { contentType, encoding, body } = encoded(attachment.contentType, octets)
  const head = [
    `Content-Type: ${contentType}`,
    `Content-Transfer-Encoding: ${encoding}`,
    `Content-Disposition: ${isInline ? 'inline' : 'attachment'};\r\n ${filenameParameter(filename)}`,
    ...(contentId === undefined ? [] : [`Content-ID: <${contentId}>`]),
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const MESSAGE = /^message\/rfc822(?:;|$)/i

function encoded(
  contentType: string,
  octets: Uint8Array,
): { readonly contentType: string; readonly encoding: string; readonly body: string } {
  if (!MESSAGE.test(contentType)) return { contentType, encoding: 'base64', body: inBase64(octets) }
  const body = asSevenBitMessage(octets)
  return body === undefined
    ? { contentType: 'application/octet-stream', encoding: 'base64', body: inBase64(octets) }
    : { contentType, encoding: '7bit', body }
}

/** Of a message in a file, whatever ends its lines. @returns undefined where it is none, or needs more than 7-bit lines */
function asSevenBitMessage(octets: Uint8Array): string | undefined {
  const text = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1')
  if (!/^[\x21-\x39\x3b-\x7e]+[ \t]*:/.test(text)) return undefined
  try {
    const sevenBit = toSevenBit(Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'), 'latin1'))
    const { message, isEightBit, hasLongLines, needsSmtpUtf8 } = sevenBit
    return isEightBit || hasLongLines || needsSmtpUtf8 ? undefined : message.toString('latin1')
  } catch {
    // Nested too deep, or of too many parts.
    return undefined
  }
}

function inBase64(octets: Uint8Array): string {
  return encodeBase64(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)).toString('latin1')
}

/** Characters of a value that stands whole in one line. */
const SHORT = 60

function filenameParameter(name: string): string {
  if (name.length <= SHORT && /^[\x20-\x7e]*$/.test(name))
    return `filename="${name.replace(/["\\]/g, '\\$&')}"`
  return extendedParameter('filename', name).join(';\r\n ')
}
