/**
 * Encoded-words: text beyond ASCII in header fields, read and written.
 *
 * Called by whatever reads or writes header fields. Pure.
 * Standards: RFC 2047 §2 (syntax), §4 (B and Q), §5 (where they stand), §6.2 (white space between them); RFC 2231 §5 (their
 * language).
 * Fails: never throws; what cannot be decoded is shown as it stands. Linear in the length of the text.
 */
import { decodeCharset, decodeOctets, decodeUtf8, guessCharset, isKnownCharset } from './charset.js'

/**
 * One encoded-word. A space inside its text is against RFC 2047 §2, and common. No part can run past the next question
 * mark, so that a text full of beginnings is read once.
 */
const ENCODED_WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,40})?\?([BbQq])\?([^?]*)\?=/y
/** Charsets of one text that turn out to be none; of more than these no label is looked up any more. */
const MAX_UNKNOWN_CHARSETS = 8
/** Times that a text changes its charset, or begins a word in ISO-2022; behind them it is shown as it stands. */
const MAX_RUNS = 1_000
/** Of what one encoded-word of ours encodes: with `=?UTF-8?Q?` and `?=` it is 52 long, and fits behind a field name. */
const MAX_Q_CHARACTERS = 40
const MAX_B_OCTETS = 30

/** An unstructured value as a reader sees it: raw octets and encoded-words decoded. @param charset see `decodeOctets` */
export function decodeText(value: string, charset?: string): string {
  return decodeWords(decodeOctets(value, charset))
}

/** The same for a value of any origin: octets as a latin1 string, or characters already. */
export function decodeUnknownText(value: string): string {
  return decodeWords(guessCharset(value))
}

/**
 * Encoded-words of a text; neighbours of one charset are put together first, since many split characters between them. Not
 * those of ISO-2022, each of which begins and ends in ASCII (RFC 2047 §3), and whose escapes make no sense one after the other.
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
      // RFC 2047 §6.2: white space between two encoded-words is not shown.
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
  // A word that was given raw characters holds what no octet does; they are UTF-8 then.
  return /[^\0-\xff]/.test(octets) ? Buffer.from(octets, 'utf8').toString('latin1') : octets
}

/**
 * The text in UTF-8, in as many encoded-words as it takes with a blank between them; no character is divided between two
 * (RFC 2047 §5). Q where most of the text is ASCII and stays readable, else B, which is shorter.
 */
export function encodeWords(text: string): string {
  const ascii = text.replace(/[^\x20-\x7e]+/g, '').length
  const words =
    ascii * 2 >= text.length
      ? qPieces(text).map(piece => `Q?${piece}`)
      : bPieces(text).map(piece => `B?${Buffer.from(piece).toString('base64')}`)
  return words.map(word => `=?UTF-8?${word}?=`).join(' ')
}

/** RFC 2047 §5 (3): what may stand in a phrase as it is; the strictest of the three places serves all. */
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
    // Some readers drop a blank at the end, whatever it is written as but for its octet.
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
