/**
 * Decodes the text of a part so that it can be edited and re-encoded without changing other octets.
 *
 * Text in a charset that cannot be encoded stays octets: each character stands for one octet, and additions must be
 * ASCII or encodable in the charset (`mime/charset.ts`). Never throws; returns undefined for text that could only be
 * guessed.
 * Standards: RFC 2045 §6 (transfer encodings), RFC 2046 §4.1.2 (charset), Encoding Standard.
 */
import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { decodeCharset, encodeInCharset, hasNonAscii } from '../mime/charset.js'
import { parameter } from '../mime/media-type.js'
import type { MimeEntity } from '../mime/mime-structure.js'
import { ENCODED_LINE, encodeBase64, encodeQuotedPrintable } from '../mime/transfer-encoding.js'
import { contentOf } from './readable-parts.js'

export interface PartText {
  readonly text: string
  /** Whether each character is an octet of `charset`; otherwise the text is written as UTF-8. */
  readonly isOctets: boolean
  /** Lower case; empty if not declared. */
  readonly charset: string
}

interface ExtensibleText {
  readonly part: PartText
  readonly written: (text: string) => string
}

/** UTF-8, or labels that UTF-8 covers. */
const IS_UTF8 = /^$|^utf-?8$|^(?:us-)?ascii$|^unknown/
/** Octets below 0x80 are not always ASCII in these charsets, so they cannot be edited as octets. */
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

export function decodePiece(piece: string, { isOctets, charset }: PartText): string {
  return isOctets && hasNonAscii(piece) ? decodeCharset(Buffer.from(piece, 'latin1'), charset) : piece
}

/**
 * Prepares a text for additions that its charset may lack: keeps the charset if it can encode them, else converts to
 * UTF-8.
 *
 * @param words all characters that may be added
 * @returns `written` encodes additions for `part`
 */
export function makeExtensible(words: string, part: PartText): ExtensibleText {
  if (!part.isOctets) return { part, written: text => text }
  if (encodeInCharset(words, part.charset))
    return { part, written: text => encodeInCharset(text, part.charset)?.toString('latin1') ?? '' }
  const text = decodeExactly(Buffer.from(part.text, 'latin1'), part.charset)
  if (text !== undefined) return { part: { ...part, text, isOctets: false }, written: added => added }
  // The charset is unknown, so the text is kept and additions are reduced to ASCII.
  return { part, written: added => added.replace(/[^\x20-\x7e\r\n]/gu, '?') }
}

/** Whether the part must be relabelled as UTF-8. @param words the additions */
export function needsUtf8Label({ isOctets, charset }: PartText, words: string): boolean {
  if (isOctets || /^utf-?8$/.test(charset)) return false
  return !IS_UTF8.test(charset) || hasNonAscii(words)
}

/** Encodes the text with the part's transfer encoding. */
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
