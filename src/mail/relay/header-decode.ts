/**
 * Text of header fields that others wrote: unfolded, encoded-words read, octets of whatever charset made characters.
 *
 * Called by the readers of relayed mail. Octets travel as latin1 strings, one character each. For display and for
 * decisions only; nothing here is written back as it is. Pure.
 * Standards: RFC 5322 §2.2.3 (unfolding), RFC 2047 (encoded-word), RFC 2231 §5 (its language), RFC 6532 (raw UTF-8).
 * Fails: never throws; what cannot be decoded is shown as it stands. Linear in the length of the text.
 */
import { isUtf8 } from 'node:buffer'

/**
 * One encoded-word. A space inside its text is against RFC 2047 §2, and common. No part can run past the next question
 * mark, so that a text full of beginnings is read once.
 */
const ENCODED_WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,40})?\?([BbQq])\?([^?]*)\?=/y
// eslint-disable-next-line no-control-regex -- ASCII is what this is about
const NON_ASCII = /[^\x00-\x7f]/

/** @returns whether the text holds characters, or octets, beyond ASCII */
export function hasNonAscii(text: string): boolean {
  return NON_ASCII.test(text)
}

/** The value of a field: everything after the colon, on one line, without white space at its ends. */
export function unfoldedValue(field: string): string {
  const value = field.slice(field.indexOf(':') + 1)
  return (value.includes('\r\n') ? value.replaceAll('\r\n', '') : value).trim()
}

/**
 * Characters of octets that say nothing of their charset themselves.
 *
 * @param octets latin1 string
 * @param charset what the message declares for its text; used where the octets are no valid UTF-8
 */
export function decodeOctets(octets: string, charset?: string): string {
  if (!hasNonAscii(octets)) return octets
  const buffer = Buffer.from(octets, 'latin1')
  return isUtf8(buffer) ? buffer.toString('utf8') : inCharset(buffer, charset ?? 'windows-1252')
}

/** An unstructured value as a reader sees it: raw octets and encoded-words decoded. */
export function decodeText(value: string, charset?: string): string {
  return decodeWords(decodeOctets(value, charset))
}

/** Encoded-words of a text; neighbours of one charset are put together first, since many split characters between them. */
export function decodeWords(text: string): string {
  let at = text.indexOf('=?')
  if (at < 0) return text
  const decoded: string[] = []
  let plainFrom = 0
  let pending: { charset: string; octets: Buffer[] } | undefined
  const flush = (): void => {
    if (pending) decoded.push(inCharset(Buffer.concat(pending.octets), pending.charset))
    pending = undefined
  }
  while (at >= 0) {
    ENCODED_WORD.lastIndex = at
    const match = ENCODED_WORD.exec(text)
    if (match) {
      const between = text.slice(plainFrom, at)
      const charset = (match[1] ?? '').toLowerCase()
      // RFC 2047 §6.2: white space between two encoded-words is not shown.
      if (!pending || between.trim() !== '' || pending.charset !== charset) {
        const isBetweenWords = pending !== undefined && between.trim() === ''
        flush()
        if (!isBetweenWords) decoded.push(between)
        pending = { charset, octets: [] }
      }
      pending.octets.push(wordOctets(match[2] ?? '', match[3] ?? ''))
      plainFrom = ENCODED_WORD.lastIndex
    }
    at = text.indexOf('=?', match ? plainFrom : at + 2)
  }
  flush()
  decoded.push(text.slice(plainFrom))
  return decoded.join('')
}

function wordOctets(encoding: string, text: string): Buffer {
  if (encoding === 'B' || encoding === 'b') return Buffer.from(text, 'base64')
  const octets = text
    .replaceAll('_', ' ')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  // A word that was given raw characters holds what no octet does; they are UTF-8 then.
  return Buffer.from(octets, /[^\0-\xff]/.test(octets) ? 'utf8' : 'latin1')
}

function inCharset(octets: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(octets)
  } catch {
    // An unknown charset.
    return octets.toString(isUtf8(octets) ? 'utf8' : 'latin1')
  }
}
