/**
 * Relaxed canonicalization for DKIM, and the check whether a message can be signed.
 *
 * Works on octets: white space is SP and TAB only, unlike `\s` in regular expressions.
 * Standards: RFC 6376 §3.4.2 (header), §3.4.4 (body), §5.3 (normalization before signing); RFC 5322 §2.1.1 (998
 * octets).
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { MAX_LINE_OCTETS } from '../mime/transfer-encoding.js'

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SP = 0x20

export interface MessageParts {
  /** In order, folded as written, without the terminating CRLF. Octets as latin1 strings. */
  readonly fields: readonly string[]
  /** Everything after the empty line; a view of the message. */
  readonly body: Buffer
}

/**
 * Throws unless the message will arrive unchanged: relays that re-encode 8-bit text, repair bare line endings or
 * break long lines would break the signature (RFC 6376 §5.3). A UTF-8 header (RFC 6532) is safe: servers that cannot
 * transmit it reject the message (RFC 6531 §3.5).
 */
export function assertSignable(message: Buffer): void {
  if (!isAscii(message)) assertUtf8Header(message)
  let lineStart = 0
  for (let at = 0; at < message.length; at++) {
    const octet = message[at] as number
    // A single comparison for nearly every octet.
    if (octet > CR || (octet !== CR && octet !== LF)) continue
    if (octet === LF || message[at + 1] !== LF) throw new Error('not signable: bare CR or LF in the message')
    if (at - lineStart > MAX_LINE_OCTETS) throw new Error('not signable: line longer than 998 octets')
    at++
    lineStart = at + 1
  }
  if (message.length - lineStart > MAX_LINE_OCTETS)
    throw new Error('not signable: line longer than 998 octets')
}

function assertUtf8Header(message: Buffer): void {
  const end = message.indexOf('\r\n\r\n')
  if (end < 0 || !isAscii(message.subarray(end))) throw new Error('not signable: the message is not 7-bit')
  if (!isUtf8(message.subarray(0, end)))
    throw new Error('not signable: the header is neither ASCII nor UTF-8')
}

/** Splits at the first empty line; without one the message is all header. */
export function splitMessage(message: Buffer): MessageParts {
  // Empty header.
  if (message[0] === CR && message[1] === LF) return { fields: [], body: message.subarray(2) }
  const end = message.indexOf('\r\n\r\n')
  const header = message.toString('latin1', 0, end < 0 ? message.length : end)
  return {
    fields: header.split(/\r\n(?![ \t])/).filter(field => field !== ''),
    body: end < 0 ? message.subarray(message.length) : message.subarray(end + 4),
  }
}

/** Includes the empty line; the whole message if there is none. */
export function headerOf(message: Buffer): Buffer {
  const end = message.indexOf('\r\n\r\n')
  return end < 0 ? message : message.subarray(0, end + '\r\n\r\n'.length)
}

/** @returns the name in lower case */
export function fieldName(field: string): string {
  const colon = field.indexOf(':')
  return field
    .slice(0, colon < 0 ? field.length : colon)
    .replace(/[ \t]+$/, '')
    .toLowerCase()
}

/**
 * Relaxed header canonicalization (RFC 6376 §3.4.2).
 *
 * @param field as returned by `splitMessage`
 * @returns `name:value`, without CRLF
 */
export function canonicalField(field: string): string {
  const value = field
    .slice(field.indexOf(':') + 1)
    .replaceAll('\r\n', '')
    .replace(/[ \t]+/g, ' ')
  const start = value.startsWith(' ') ? 1 : 0
  const end = value.endsWith(' ') ? -1 : undefined
  return `${fieldName(field)}:${value.slice(start, end)}`
}

/**
 * Relaxed body canonicalization (RFC 6376 §3.4.4).
 *
 * @returns a view of the body if nothing changed, as for most mail
 */
export function canonicalBody(body: Buffer): Buffer {
  const end = endOfText(body)
  if (end === 0) return body.subarray(0, 0)
  if (end + 2 <= body.length && hasCanonicalSpace(body, end)) return body.subarray(0, end + 2)
  return rewrite(body, end)
}

/** Offset of the trailing CRLFs. */
function endOfText(body: Buffer): number {
  let end = body.length
  while (end >= 2 && body[end - 1] === LF && body[end - 2] === CR) end -= 2
  return end
}

function hasCanonicalSpace(body: Buffer, end: number): boolean {
  for (let at = 0; at < end; at++) {
    const octet = body[at] as number
    // A single comparison for nearly every octet.
    if (octet > SP) continue
    if (octet === TAB) return false
    if (octet !== SP) continue
    const next = body[at + 1] as number
    if (next === SP || next === TAB || isLineEnd(body, at + 1)) return false
  }
  return true
}

function isLineEnd(body: Buffer, at: number): boolean {
  return body[at] === CR && body[at + 1] === LF
}

/** @param end end of the last line of text */
function rewrite(body: Buffer, end: number): Buffer {
  const canonical = Buffer.allocUnsafe(end + 2)
  let length = 0
  for (let at = 0; at < end; at++) {
    const octet = body[at] as number
    if (octet !== SP && octet !== TAB) {
      canonical[length++] = octet
      continue
    }
    while (at + 1 < end && (body[at + 1] === SP || body[at + 1] === TAB)) at++
    // White space at the end of a line or of the body is dropped.
    if (at + 1 < end && !isLineEnd(body, at + 1)) canonical[length++] = SP
  }
  // Lines of white space only may have become trailing empty lines.
  while (length >= 2 && canonical[length - 1] === LF && canonical[length - 2] === CR) length -= 2
  return length === 0 ? canonical.subarray(0, 0) : withLineEnd(canonical, length)
}

function withLineEnd(octets: Buffer, length: number): Buffer {
  octets[length] = CR
  octets[length + 1] = LF
  return octets.subarray(0, length + 2)
}
