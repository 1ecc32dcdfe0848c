/**
 * Decodes and encodes charsets, declared or guessed.
 *
 * Uses the platform's TextDecoder. Never throws: what cannot be decoded is read as windows-1252, which preserves the ASCII.
 * Standards: RFC 2045 §5.2, RFC 2047 §2 (charset of an encoded-word), RFC 6532 (raw UTF-8 in headers), Encoding Standard.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

/** Labels used in mail that the Encoding Standard lacks. */
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

/** Labels that say no more than the octets do. */
const UNINFORMATIVE = /^$|^(?:us-)?ascii$|^unknown|^utf-?8$/
const ESCAPE = 0x1b
// eslint-disable-next-line no-control-regex -- ASCII is what this is about
const NON_ASCII = /[^\x00-\x7f]/

/** By lower-case label; bounded, since only valid labels are stored. */
const DECODERS = new Map<string, TextDecoder>()

export function hasNonAscii(text: string): boolean {
  return NON_ASCII.test(text)
}

/**
 * @param charset as labelled; UTF-8, ASCII or no label means UTF-8 if valid, else windows-1252
 * @param mayAsk whether an unknown label may be looked up, which is expensive if it does not exist
 */
export function decodeCharset(octets: Buffer, charset = '', mayAsk = true): string {
  const label = charset.trim().toLowerCase()
  // ISO-2022 (with ESC) and UTF-16 (with NUL) are 7-bit and not ASCII; labels alone are often wrong.
  if (isAscii(octets) && !octets.includes(ESCAPE) && !octets.includes(0)) return octets.toString('latin1')
  const decoder = UNINFORMATIVE.test(label) ? undefined : decoderOf(label, mayAsk)
  return decoder ? decoder.decode(octets) : decodeGuessed(octets)
}

/** Invalid sequences become U+FFFD. */
export function decodeUtf8(octets: Buffer): string {
  return decodeAs('utf-8', octets)
}

/** Slow for unknown labels. */
export function isKnownCharset(label: string): boolean {
  return UNINFORMATIVE.test(label) || decoderOf(label, true) !== undefined
}

/** For text that arrives in pieces. @returns undefined for an unknown charset; no label means UTF-8 */
export function streamDecoder(label: string): TextDecoder | undefined {
  const name = label.trim().toLowerCase()
  try {
    return new TextDecoder(UNINFORMATIVE.test(name) ? 'utf-8' : (ALIASES[name] ?? name))
  } catch {
    return undefined
  }
}

/**
 * Decodes octets in a header field outside encoded-words, which say nothing of their charset: UTF-8 if valid, else the charset that the
 * message declares for its text, if it explains all octets, else windows-1252. Never U+FFFD.
 *
 * @param octets latin1 string, not cut inside a character
 */
export function decodeOctets(octets: string, charset = ''): string {
  if (!hasNonAscii(octets)) return octets
  const buffer = Buffer.from(octets, 'latin1')
  if (isUtf8(buffer)) return buffer.toString('utf8')
  const label = charset.trim().toLowerCase()
  const decoder = UNINFORMATIVE.test(label) ? undefined : decoderOf(label, true)
  // UTF-16 cannot stand in a header, but nearly all octets decode as some of it.
  const declared = decoder?.encoding.startsWith('utf-16') ? undefined : decoder?.decode(buffer)
  return declared === undefined || declared.includes('\ufffd') ? decodeAs('windows-1252', buffer) : declared
}

/** Cuts a latin1 string of octets, never inside a UTF-8 character, which would make all of it invalid. */
export function cutOctets(octets: string, limit: number): string {
  let end = limit
  while (end > limit - 4 && (octets.charCodeAt(end) & 0xc0) === 0x80) end -= 1
  return octets.slice(0, end)
}

/** Decodes text of unknown origin: a latin1 string of octets, or already decoded characters, which are kept. */
export function guessCharset(text: string): string {
  return /[\u0100-\uffff]/.test(text) ? text : decodeCharset(Buffer.from(text, 'latin1'))
}

function decodeGuessed(octets: Buffer): string {
  // ESC $ starts Japanese text in ISO-2022-JP, and does not occur in UTF-8 text.
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

const TABLES = new Map<string, ReadonlyMap<string, Buffer>>()
const HIGH = 0x80
const FIRST_LEAD = 0x81
const FIRST_TRAIL = 0x40
const LAST = 0xff
const LF = 0x0a

/**
 * Encodes characters in a legacy charset, which the platform cannot do. The table is built once by decoding all one- and two-octet
 * sequences; longer ones are not used.
 *
 * @param charset one in which single octets below 0x80 are ASCII
 * @returns undefined if the charset lacks a character
 */
export function encodeInCharset(text: string, charset: string): Buffer | undefined {
  if (!hasNonAscii(text)) return Buffer.from(text, 'latin1')
  const table = tableOf(charset.trim().toLowerCase())
  const pieces: Buffer[] = []
  for (const character of text) {
    const octets = hasNonAscii(character) ? table?.get(character) : Buffer.from(character, 'latin1')
    if (!octets) return undefined
    pieces.push(octets)
  }
  return Buffer.concat(pieces)
}

function tableOf(label: string): ReadonlyMap<string, Buffer> | undefined {
  const known = TABLES.get(label)
  if (known) return known
  const table = readTable(label)
  if (table) TABLES.set(label, table)
  return table
}

function readTable(label: string): ReadonlyMap<string, Buffer> | undefined {
  const table = new Map<string, Buffer>()
  for (const sequences of [singles(), pairs()]) {
    const lines = Buffer.concat(sequences.flatMap(sequence => [sequence, Buffer.of(LF)]))
    const decoded = streamDecoder(label)?.decode(lines)
    if (decoded === undefined) return undefined
    for (const [index, character] of decoded.split('\n').entries()) {
      const sequence = sequences[index]
      const isOne = /^.$/u.test(character) && hasNonAscii(character) && character !== '\ufffd'
      if (sequence && isOne && !table.has(character)) table.set(character, sequence)
    }
  }
  return table
}

function singles(): Buffer[] {
  return Array.from({ length: LAST + 1 - HIGH }, (_, index) => Buffer.of(HIGH + index))
}

function pairs(): Buffer[] {
  const all: Buffer[] = []
  for (let lead = FIRST_LEAD; lead < LAST; lead++)
    for (let trail = FIRST_TRAIL; trail < LAST; trail++) all.push(Buffer.of(lead, trail))
  return all
}

export function octetsToText(message: Buffer): string {
  return message.toString(isUtf8(message) ? 'utf8' : 'latin1')
}
