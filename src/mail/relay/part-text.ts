/**
 * The text of a part of finished mail as characters that can be cut and put together again without losing an octet of it.
 *
 * Called by the delivery threads for the parts that get a footer or tracking. A charset that nobody here can write stays as it is:
 * each octet of the text is then one character, ASCII is what it is, and what is added has to be ASCII, or to be brought into the
 * charset (`charset-encoder.ts`). Pure.
 * Standards: RFC 2045 §6 (transfer encodings), RFC 2046 §4.1.2 (charset), Encoding Standard.
 * Fails: never throws; undefined for what cannot be read without guessing.
 */
import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { encodeInCharset } from '../mime/charset-encoder.js'
import { decodeCharset, hasNonAscii } from '../mime/charset.js'
import { parameter } from '../mime/media-type.js'
import type { MimeEntity } from '../mime/mime-structure.js'
import { ENCODED_LINE, encodeBase64, encodeQuotedPrintable } from '../mime/transfer-encoding.js'
import { contentOf } from './readable-parts.js'

export interface PartText {
  readonly text: string
  /** Each character is an octet of `charset`; otherwise they are characters, and become UTF-8. */
  readonly isOctets: boolean
  /** Lower case; empty where none is declared. */
  readonly charset: string
}

export interface ExtensibleText {
  readonly part: PartText
  readonly written: (text: string) => string
}

/** Says UTF-8, or says nothing that UTF-8 would not say as well. */
const IS_UTF8 = /^$|^utf-?8$|^(?:us-)?ascii$|^unknown/
/** Octets below 0x80 are not always ASCII there: markup is no markup, and a text cannot just be added to. */
const OF_OTHER_OCTETS = /^(?:utf-?(?:16|32|7)|unicode|iso-2022-|csiso2022|hz-gb|ucs-)/

export function readPartText(message: Buffer, entity: MimeEntity): PartText | undefined {
  const content = contentOf(message, entity)
  const charset = parameter(entity.type, 'charset')?.trim().toLowerCase() ?? ''
  if (OF_OTHER_OCTETS.test(charset)) {
    const text = decodeExactly(content, charset)
    return text === undefined ? undefined : { text, isOctets: false, charset }
  }
  const isOctets = !IS_UTF8.test(charset) || !isUtf8(content)
  return { text: content.toString(isOctets ? 'latin1' : 'utf8'), isOctets, charset }
}

/** Characters of a piece of it. */
export function decodePiece(piece: string, { isOctets, charset }: PartText): string {
  return isOctets && hasNonAscii(piece) ? decodeCharset(Buffer.from(piece, 'latin1'), charset) : piece
}

/**
 * A text that words can be added to which its charset may not have: in that charset where it has them, else in UTF-8.
 *
 * @param words all characters that may be added
 * @returns `written` brings some of them into the form of `part`
 */
export function makeExtensible(words: string, part: PartText): ExtensibleText {
  if (!part.isOctets) return { part, written: text => text }
  if (encodeInCharset(words, part.charset))
    return { part, written: text => encodeInCharset(text, part.charset)?.toString('latin1') ?? '' }
  const text = decodeExactly(Buffer.from(part.text, 'latin1'), part.charset)
  if (text !== undefined) return { part: { ...part, text, isOctets: false }, written: added => added }
  // Nobody knows what it is in: it stays, and what is added has to do without.
  return { part, written: added => added.replace(/[^\x20-\x7e\r\n]/gu, '?') }
}

/** Whether the label of the part has to say UTF-8 for what it has become. @param words what was added */
export function needsUtf8Label({ isOctets, charset }: PartText, words: string): boolean {
  if (isOctets || /^utf-?8$/.test(charset)) return false
  return !IS_UTF8.test(charset) || hasNonAscii(words)
}

/** The text as the body of its part, in the transfer encoding that this has. */
export function encodePartText(text: string, { isOctets }: PartText, { encoding }: MimeEntity): Buffer {
  const octets = Buffer.from(text, isOctets ? 'latin1' : 'utf8')
  if (encoding === 'quoted-printable') return encodeQuotedPrintable(octets, ENCODED_LINE)
  return encoding === 'base64' ? encodeBase64(octets) : octets
}

function decodeExactly(octets: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(octets)
  } catch {
    return undefined
  }
}
