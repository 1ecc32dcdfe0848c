/**
 * Content-Type and Content-Disposition in ASCII, each parameter on a line of its own.
 *
 * Called by the 7-bit conversion of relayed mail for labels that it changes. Pure.
 * Standards: RFC 2045 §5.1 (grammar), RFC 2231 §3, §4 (long and non-ASCII parameters).
 * Fails: never throws; a parameter that cannot be written is left out. Linear.
 */
import { hasNonAscii } from '../mime/charset.js'
import { extendedParameter, numberedPieces, percentEncoded } from '../mime/extended-parameter.js'
import type { MediaType } from '../mime/media-type.js'

/** RFC 2045 §5.1: no tspecials. */
const IS_TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]+$/
/** Of a type or the name of a parameter; what is longer is none, and would fit into no line. */
const MAX_NAME = 100

/**
 * The field in ASCII, each parameter on a line of its own.
 *
 * @param name as the field is to be called, e.g. `Content-Type`
 * @param media characters, not octets
 * @returns without the CRLF at its end
 */
export function writeMediaType(name: string, media: MediaType): string {
  const lines = media.parameters.flatMap(([each, value]) => writeParameter(each, value))
  return [`${name}: ${media.value.replace(/[^\x21-\x7e]+/g, '?').slice(0, MAX_NAME)}`, ...lines].join(
    ';\r\n ',
  )
}

function writeParameter(name: string, value: string): string[] {
  const ascii = name.replace(/[^\x21-\x7e]+/g, '')
  if (ascii === '' || ascii.length > MAX_NAME) return []
  if (!hasNonAscii(value) && ascii.length + value.length <= 900) {
    if (IS_TOKEN.test(value)) return [`${ascii}=${value}`]
    // eslint-disable-next-line no-control-regex -- control characters are what has to go
    const text = value.replace(/[\x00-\x1f\x7f]+/g, ' ').replace(/["\\]/g, '\\$&')
    return [`${ascii}="${text}"`]
  }
  if (ascii.includes('*')) return writeExtended(ascii, value)
  return extendedParameter(ascii, value)
}

/** Encoded already: only what should not stand there is encoded, and what is too long for a line is cut in pieces. */
function writeExtended(name: string, value: string): string[] {
  const encoded =
    value.match(/%[0-9A-Fa-f]{2}|./gsu)?.flatMap(each => (each.length > 2 ? [each] : asExtended(each))) ?? []
  const whole = `${name}=${encoded.join('')}`
  if (whole.length <= 900) return [whole]
  // A numbered piece that long was never written by a program.
  return /^[^*]+\*$/.test(name) ? numberedPieces(name.slice(0, -1), encoded) : []
}

/** The two quotes around the language are part of the form. */
function asExtended(character: string): string[] {
  return character === "'" || character === '%' ? [character] : percentEncoded(character)
}
