/**
 * Encodes attachments as MIME entities.
 *
 * Output is 7-bit. Never throws: values are validated on input, and an attached message that does not fit 7-bit lines is sent as an
 * ordinary file.
 * Standards: RFC 2045 §6.8 (base64), RFC 2046 §5.2.1 (messages must not be base64), RFC 2183 (Content-Disposition), RFC 2231 (non-ASCII or
 * long parameters), RFC 2392 (Content-ID), RFC 6047 §2.4 (invitations).
 */
import { extendedParameter, parameter, readMediaType, writeMediaType } from '../mime/media-type.js'
import { encodeBase64 } from '../mime/transfer-encoding.js'
import { toSevenBit } from '../relay/seven-bit.js'

export interface Attachment {
  /** At most 255 characters, without control characters. */
  readonly filename: string
  /** E.g. `application/pdf`, optionally with parameters. */
  readonly contentType: string
  /** Without angle brackets; referenced by `cid:` in the HTML. */
  readonly contentId?: string
  readonly octets: Uint8Array
}

/**
 * Whether it is a calendar object that asks for something, e.g. `text/calendar; method=REQUEST`. Mail programs show the buttons to answer it
 * only if it is an alternative of the text.
 */
export function isInvitation({ contentType }: Pick<Attachment, 'contentType'>): boolean {
  const type = readMediaType(contentType)
  return type.value === 'text/calendar' && parameter(type, 'method') !== undefined
}

/** The invitation as an alternative: without a disposition, lines ended as RFC 5545 §3.1 wants. */
export function invitationPart({ contentType, octets }: Attachment): {
  readonly head: string
  readonly body: string
} {
  const { value, parameters } = readMediaType(contentType)
  const hasCharset = parameters.some(([name]) => name === 'charset')
  const type = { value, parameters: hasCharset ? parameters : [...parameters, ['charset', 'utf-8'] as const] }
  const text = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1')
  return {
    head: [writeMediaType('Content-Type', type), 'Content-Transfer-Encoding: base64'].join('\r\n'),
    body: inBase64(Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'), 'latin1')),
  }
}

/** The same as a file, for programs without a calendar: of another type, so that none shows the invitation twice. */
export function asFile(invitation: Attachment): Attachment {
  const { filename, octets } = invitation
  return { filename, contentType: 'application/ics', octets }
}

/** @param isInline displayed within the HTML instead of listed */
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

const MESSAGE = /^message\/rfc822(?:[ \t]*;|$)/i

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

/** Accepts any line endings. @returns undefined unless it is a message that fits 7-bit lines */
function asSevenBitMessage(octets: Uint8Array): string | undefined {
  const text = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1')
  if (!/^[\x21-\x39\x3b-\x7e]+[ \t]*:/.test(text)) return undefined
  try {
    const sevenBit = toSevenBit(Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'), 'latin1'))
    const { message, isEightBit, hasLongLines, needsSmtpUtf8 } = sevenBit
    return isEightBit || hasLongLines || needsSmtpUtf8 ? undefined : message.toString('latin1')
  } catch {
    // Nested too deeply, or too many parts.
    return undefined
  }
}

function inBase64(octets: Uint8Array): string {
  return encodeBase64(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)).toString('latin1')
}

/** Longest value that is written on one line. */
const SHORT = 60

function filenameParameter(name: string): string {
  if (name.length <= SHORT && /^[\x20-\x7e]*$/.test(name))
    return `filename="${name.replace(/["\\]/g, '\\$&')}"`
  return extendedParameter('filename', name).join(';\r\n ')
}
