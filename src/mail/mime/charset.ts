/**
 * Octets as characters: charsets that are declared, and text that does not say what it is in.
 *
 * Called by the readers of header fields and of MIME parts. Charsets are those of the platform's TextDecoder. Pure.
 * Standards: RFC 2045 §5.2, RFC 2047 §2 (charset of an encoded-word), RFC 6532 (raw UTF-8 in headers), Encoding Standard.
 * Fails: never throws; what cannot be decoded is read as windows-1252, which leaves the ASCII that matters. Linear.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

/** Names that mail uses and the Encoding Standard does not have. */
const ALIASES: Readonly<Record<string, string>> = {
  cp932: 'shift_jis',
  'x-ms-cp932': 'shift_jis',
  'windows-31j': 'shift_jis',
  'iso-2022-jp-ms': 'iso-2022-jp',
  cp936: 'gbk',
  cp949: 'euc-kr',
  cp1251: 'windows-1251',
  cp1252: 'windows-1252',
}

/** Labels that say nothing which the octets themselves do not say better. */
const UNINFORMATIVE = /^$|^(?:us-)?ascii$|^unknown|^utf-?8$/
const ESCAPE = 0x1b
// eslint-disable-next-line no-control-regex -- ASCII is what this is about
const NON_ASCII = /[^\x00-\x7f]/

/** By label in lower case. Labels that exist are few, so that this does not grow. */
const DECODERS = new Map<string, TextDecoder>()

/** @returns whether the text holds characters, or octets, beyond ASCII */
export function hasNonAscii(text: string): boolean {
  return NON_ASCII.test(text)
}

/**
 * @param charset as it was labelled; UTF-8, ASCII or no label is read as UTF-8 where the octets are, else as windows-1252
 * @param mayAsk whether a label that was not met before is looked up: asking for one that does not exist is an exception,
 *   which takes longer than decoding a short text
 */
export function decodeCharset(octets: Buffer, charset = '', mayAsk = true): string {
  const label = charset.trim().toLowerCase()
  // Seven bits wide and no ASCII all the same: ISO-2022 has ESC, UTF-16 has NUL. Labels alone are often wrong.
  if (isAscii(octets) && !octets.includes(ESCAPE) && !octets.includes(0)) return octets.toString('latin1')
  const decoder = UNINFORMATIVE.test(label) ? undefined : decoderOf(label, mayAsk)
  return decoder ? decoder.decode(octets) : decodeGuessed(octets)
}

/** What is no UTF-8 becomes U+FFFD, and the rest stays readable. */
export function decodeUtf8(octets: Buffer): string {
  return decodeAs('utf-8', octets)
}

/** Whether there is such a charset. Slow where there is none. */
export function isKnownCharset(label: string): boolean {
  return UNINFORMATIVE.test(label) || decoderOf(label, true) !== undefined
}

/** For text that comes in pieces. @returns undefined where there is no such charset; no label is UTF-8 */
export function streamDecoder(label: string): TextDecoder | undefined {
  const name = label.trim().toLowerCase()
  try {
    return new TextDecoder(UNINFORMATIVE.test(name) ? 'utf-8' : (ALIASES[name] ?? name))
  } catch {
    return undefined
  }
}

/**
 * Characters of octets in a header field outside of encoded-words. What the declared charset does not have becomes U+FFFD:
 * nobody's address is to be a guess.
 *
 * @param octets latin1 string
 * @param charset what the message declares for its text; used where the octets are no valid UTF-8
 */
export function decodeOctets(octets: string, charset = 'windows-1252'): string {
  if (!hasNonAscii(octets)) return octets
  const buffer = Buffer.from(octets, 'latin1')
  if (isUtf8(buffer)) return buffer.toString('utf8')
  return decoderOf(charset.trim().toLowerCase(), true)?.decode(buffer) ?? decodeGuessed(buffer)
}

/** Text of unknown origin: octets as a latin1 string, or characters already, which stay. */
export function guessCharset(text: string): string {
  return /[\u0100-\uffff]/.test(text) ? text : decodeCharset(Buffer.from(text, 'latin1'))
}

function decodeGuessed(octets: Buffer): string {
  // All ASCII to look at: ESC $ begins Japanese characters, and no text in UTF-8 has reason to hold that.
  if (octets.includes('\x1b$B') || octets.includes('\x1b$@')) {
    const text = decodeAs('iso-2022-jp', octets)
    if (!text.includes('\ufffd')) return text
  }
  return decodeAs(isUtf8(octets) ? 'utf-8' : 'windows-1252', octets)
}

function decodeAs(label: string, octets: Buffer): string {
  return decoderOf(label, true)?.decode(octets) ?? octets.toString('latin1')
}

function decoderOf(label: string, mayAsk: boolean): TextDecoder | undefined {
  const known = DECODERS.get(label)
  if (known || !mayAsk) return known
  try {
    const decoder = new TextDecoder(ALIASES[label] ?? label)
    DECODERS.set(label, decoder)
    return decoder
  } catch {
    return undefined
  }
}
