/**
 * Content-Type and Content-Disposition: a value and its parameters, read and written.
 *
 * Called by the reader of relayed headers and by the 7-bit conversion. Parameters keep the form and the order they have;
 * `parameter` puts the pieces of RFC 2231 together. Pure.
 * Standards: RFC 2045 §5.1 (grammar), RFC 2231 §3, §4 (long and non-ASCII parameters), RFC 2183 (Content-Disposition).
 * Fails: never throws; what cannot be read is left out. Linear.
 */
import { hasNonAscii } from './header-decode.js'

export interface MediaType {
  /** `text/plain`, or `attachment` for a disposition: lower case; empty where there is none. */
  readonly value: string
  /** In order, names in lower case as written (`filename*0*`), values without their quotes. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
}

const NAME = /\s*([^\s=;"(]+)\s*=\s*/y
const TOKEN = /[^\s;"(]*/y
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?$)/sy
/** RFC 2045 §5.1: no tspecials. */
const IS_TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]+$/
/** Of one parameter on its line. */
const MAX_PARAMETER = 70
/** Of a type or the name of a parameter; what is longer is none, and would fit into no line. */
const MAX_NAME = 100
/** Parameters of one field; nobody has use for more. */
const MAX_PARAMETERS = 100

/** @param text unfolded value of the field */
export function readMediaType(text: string): MediaType {
  const semicolon = text.indexOf(';')
  const value = (semicolon < 0 ? text : text.slice(0, semicolon)).replace(/\(.*/s, '').trim().toLowerCase()
  const parameters: [string, string][] = []
  let at = semicolon
  while (at >= 0 && parameters.length < MAX_PARAMETERS) {
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

/** @returns value of a parameter, the pieces of RFC 2231 §3 joined; extended ones (`*=`) still percent-encoded */
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
  return inPieces(ascii, percentEncoded(value))
}

/** Encoded already: only what should not stand there is encoded, and what is too long for a line is cut in pieces. */
function writeExtended(name: string, value: string): string[] {
  const encoded =
    value.match(/%[0-9A-Fa-f]{2}|./gsu)?.flatMap(each => (each.length > 2 ? [each] : asExtended(each))) ?? []
  const whole = `${name}=${encoded.join('')}`
  if (whole.length <= 900) return [whole]
  // A numbered piece that long was never written by a program.
  return /^[^*]+\*$/.test(name) ? numbered(name.slice(0, -1), encoded, '') : []
}

/** The two quotes around the language are part of the form. */
function asExtended(character: string): string[] {
  return character === "'" || character === '%' ? [character] : percentEncoded(character)
}

function inPieces(name: string, characters: readonly string[]): string[] {
  const whole = `${name}*=utf-8''${characters.join('')}`
  return whole.length <= MAX_PARAMETER ? [whole] : numbered(name, characters, "utf-8''")
}

/** RFC 2231 §4.1: numbered pieces, the charset in the first. */
function numbered(name: string, characters: readonly string[], charset: string): string[] {
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

/** One entry for each character, so that none is cut in two. */
function percentEncoded(text: string): string[] {
  return Array.from(text, character =>
    /^[A-Za-z0-9._~-]$/.test(character)
      ? character
      : encodeURIComponent(character).replace(
          /[!'()*]/g,
          each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
        ),
  )
}
