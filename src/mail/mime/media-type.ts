/**
 * Content-Type and Content-Disposition: parses and writes a value with parameters.
 *
 * Parsed parameters keep their form and order; `parameter` joins RFC 2231 pieces. Never throws; unreadable parameters, and those that
 * cannot be written, are omitted. Linear.
 * Standards: RFC 2045 §5.1 (grammar), RFC 2231 §3, §4, §7 (long and non-ASCII parameters), RFC 2183 (Content-Disposition).
 */
import { hasNonAscii } from './charset.js'

export interface MediaType {
  /** E.g. `text/plain` or `attachment`, lower case; empty if absent. */
  readonly value: string
  /** In order; names in lower case as written (`filename*0*`), values unquoted. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
}

const NAME = /\s*([^\s=;"(]+)\s*=\s*/y
const TOKEN = /[^\s;"(]*/y
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?$)/sy
/** Maximum number of semicolons considered. */
const MAX_PARAMETERS = 100

/** @param text unfolded value of the field */
export function readMediaType(text: string): MediaType {
  const semicolon = text.indexOf(';')
  const value = (semicolon < 0 ? text : text.slice(0, semicolon)).replace(/\(.*/s, '').trim().toLowerCase()
  const parameters: [string, string][] = []
  let at = semicolon
  for (let looks = 0; at >= 0 && looks < MAX_PARAMETERS; looks++) {
    NAME.lastIndex = at + 1
    const name = NAME.exec(text)?.[1]
    if (name !== undefined) {
      const pattern = text[NAME.lastIndex] === '"' ? QUOTED : TOKEN
      pattern.lastIndex = NAME.lastIndex
      const match = pattern.exec(text)
      const found = pattern === QUOTED ? (match?.[1] ?? '').replace(/\\(.)/gs, '$1') : (match?.[0] ?? '')
      parameters.push([name.toLowerCase(), found])
      at = pattern.lastIndex - 1
    }
    at = text.indexOf(';', at + 1)
  }
  return { value, parameters }
}

/** @returns the value, RFC 2231 §3 pieces joined; extended ones (`*=`) remain percent-encoded */
export function parameter({ parameters }: MediaType, name: string): string | undefined {
  const whole = parameters.find(([each]) => each === name || each === `${name}*`)
  if (whole) return whole[1]
  const pieces: string[] = []
  for (;;) {
    const stem = `${name}*${pieces.length}`
    const piece = parameters.find(([each]) => each === stem || each === `${stem}*`)
    if (!piece) return pieces.length > 0 ? pieces.join('') : undefined
    pieces.push(piece[1])
  }
}

const MAX_PIECE = 60

/**
 * RFC 2231 encoding of a non-ASCII or long parameter: percent-encoded UTF-8 in numbered pieces. The result for a value must never change,
 * since retries after an upgrade send the same message.
 *
 * @returns `name*=utf-8''...` or its numbered pieces, one per line
 */
export function extendedParameter(name: string, value: string): string[] {
  const pieces = inPieces(percentEncoded(value), "utf-8''")
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? [`${name}*=${only}`] : numbered(name, pieces)
}

/**
 * Splits an already encoded value into numbered pieces.
 *
 * @param characters not split; includes those of the charset and its quotes
 */
function numberedPieces(name: string, characters: readonly string[]): string[] {
  return numbered(name, inPieces(characters, ''))
}

function numbered(name: string, pieces: readonly string[]): string[] {
  return pieces.map((piece, index) => `${name}*${index}*=${piece}`)
}

/** @param charset prefix of the first piece (RFC 2231 §4.1) */
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

/** One entry per character; a lone surrogate becomes U+FFFD. */
function percentEncoded(text: string): string[] {
  return Array.from(text, character =>
    /^[A-Za-z0-9!#$&+.^_`{|}~-]$/.test(character)
      ? character
      : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}

/** RFC 2045 §5.1: no tspecials. */
const IS_TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]+$/
const MAX_NAME = 100

/**
 * The field in ASCII, each parameter on its own line.
 *
 * @param name field name, e.g. `Content-Type`
 * @param media characters, not octets
 * @returns without the final CRLF
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

/** For values that are already percent-encoded: encodes only invalid characters, and splits a value too long for a line. */
function writeExtended(name: string, value: string): string[] {
  const encoded =
    value.match(/%[0-9A-Fa-f]{2}|./gsu)?.flatMap(each => (each.length > 2 ? [each] : asExtended(each))) ?? []
  const whole = `${name}=${encoded.join('')}`
  if (whole.length <= 900) return [whole]
  // No program writes a numbered piece of this length.
  return /^[^*]+\*$/.test(name) ? numberedPieces(name.slice(0, -1), encoded) : []
}

/** The quotes around the language are part of the syntax. */
function asExtended(character: string): string[] {
  return character === "'" || character === '%' ? [character] : percentEncoded(character)
}
