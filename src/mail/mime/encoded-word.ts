/**
 * Encoded-words: non-ASCII text in header fields.
 *
 * Never throws; undecodable words are kept as written. Linear in the input.
 * Standards: RFC 2047 §2 (syntax), §4 (B and Q), §5 (placement), §6.2 (white space between them); RFC 2231 §5 (language).
 */
import { decodeCharset, decodeOctets, decodeUtf8, guessCharset, isKnownCharset } from './charset.js'

/**
 * Spaces inside the text violate RFC 2047 §2 but are common. No part can match beyond the next question mark, so that a text full of `=?`
 * is scanned once.
 */
const ENCODED_WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,40})?\?([BbQq])\?([^?]*)\?=/y
/** After this many unknown charsets in one text, no further labels are looked up. */
const MAX_UNKNOWN_CHARSETS = 8
/** Changes of charset, or ISO-2022 words, in one text; the rest is kept as written. */
const MAX_RUNS = 1_000
/** Encoded characters per word; with `=?UTF-8?Q?` and `?=` a word is 52 long, which fits after a field name. */
const MAX_Q_CHARACTERS = 40
const MAX_B_OCTETS = 30

/** An unstructured value as displayed. @param charset see `decodeOctets` */
export function decodeText(value: string, charset?: string): string {
  return decodeWords(decodeOctets(value, charset))
}

/** As `decodeText`, for a value of unknown origin: a latin1 string of octets, or decoded characters. */
export function decodeUnknownText(value: string): string {
  return decodeWords(guessCharset(value))
}

/**
 * Adjacent words of the same charset are joined first, since many programs split characters between them. Not ISO-2022 words, each of which
 * starts and ends in ASCII (RFC 2047 §3).
 */
export function decodeWords(text: string): string {
  let at = text.indexOf('=?')
  if (at < 0) return text
  const decoded: string[] = []
  const unknown = new Set<string>()
  let plainFrom = 0
  let runs = 0
  let pending: { charset: string; octets: string[] } | undefined
  const flush = (): void => {
    if (pending) decoded.push(decodeWord(pending.octets.join(''), pending.charset, unknown))
    pending = undefined
  }
  while (at >= 0) {
    ENCODED_WORD.lastIndex = at
    const match = ENCODED_WORD.exec(text)
    if (match) {
      const between = text.slice(plainFrom, at)
      const charset = (match[1] ?? '').toLowerCase()
      // RFC 2047 §6.2: white space between two encoded-words is ignored.
      if (
        !pending ||
        between.trim() !== '' ||
        pending.charset !== charset ||
        charset.startsWith('iso-2022')
      ) {
        const isBetweenWords = pending !== undefined && between.trim() === ''
        flush()
        if (++runs > MAX_RUNS) break
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

function decodeWord(text: string, charset: string, unknown: Set<string>): string {
  const octets = Buffer.from(text, 'latin1')
  if (charset === 'utf-8') return decodeUtf8(octets)
  const mayAsk = unknown.size < MAX_UNKNOWN_CHARSETS && !unknown.has(charset)
  if (mayAsk && !isKnownCharset(charset)) unknown.add(charset)
  return decodeCharset(octets, charset, mayAsk)
}

/** @returns latin1 string */
function wordOctets(encoding: string, text: string): string {
  if (encoding === 'B' || encoding === 'b') return Buffer.from(text, 'base64').toString('latin1')
  const octets = text
    .replaceAll('_', ' ')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  // A word containing raw characters; they are taken as UTF-8.
  return /[^\0-\xff]/.test(octets) ? Buffer.from(octets, 'utf8').toString('latin1') : octets
}

/**
 * Encodes text as UTF-8 encoded-words separated by spaces; no character is split (RFC 2047 §5). Q if most of the text is ASCII, else B,
 * which is then shorter.
 */
export function encodeWords(text: string): string {
  const ascii = text.replace(/[^\x20-\x7e]+/g, '').length
  const words =
    ascii * 2 >= text.length
      ? qPieces(text).map(piece => `Q?${piece}`)
      : bPieces(text).map(piece => `B?${Buffer.from(piece).toString('base64')}`)
  return words.map(word => `=?UTF-8?${word}?=`).join(' ')
}

/** RFC 2047 §5 (3): characters allowed in a phrase, the strictest context. */
const Q_OCTETS: readonly string[] = Array.from({ length: 256 }, (_, octet) => {
  const character = String.fromCharCode(octet)
  if (/[A-Za-z0-9!*+/-]/.test(character)) return character
  return character === ' ' ? '_' : `=${octet.toString(16).toUpperCase().padStart(2, '0')}`
})

function qPieces(text: string): string[] {
  const octets = Buffer.from(text)
  const pieces: string[] = []
  let piece = ''
  let character = ''
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    // Some readers drop a trailing space unless it is encoded as `=20`.
    character += octet === 0x20 && at === octets.length - 1 ? '=20' : (Q_OCTETS[octet] ?? '')
    const isWithin = ((octets[at + 1] ?? 0) & 0xc0) === 0x80
    if (isWithin) continue
    if (piece.length + character.length > MAX_Q_CHARACTERS) {
      pieces.push(piece)
      piece = ''
    }
    piece += character
    character = ''
  }
  return [...pieces, piece]
}

function bPieces(text: string): string[] {
  const pieces: string[] = []
  let piece = ''
  let octets = 0
  for (const character of text) {
    const width = Buffer.byteLength(character)
    if (octets + width > MAX_B_OCTETS) {
      pieces.push(piece)
      piece = ''
      octets = 0
    }
    piece += character
    octets += width
  }
  return [...pieces, piece]
}
