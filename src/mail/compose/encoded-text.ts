/**
 * Quoted-printable text assembled from pieces; pieces shared by many messages are encoded once.
 *
 * A pre-encoded piece starts on a new line (after a soft line break), so that it is the same in every position; text between pieces is
 * encoded when written. The canonical form for DKIM is tracked alongside where it differs.
 * Standards: RFC 2045 §6.7 (quoted-printable; rule 5: lines of 76), RFC 6376 §3.4.4 (relaxed).
 */
import { encodeBase64, ENCODED_LINE, encodeQuotedPrintable } from '../mime/transfer-encoding.js'
import { isShorterAsBase64, quoteText, type QuotedText } from './quoted-text.js'

/** Body of a part, in lines of at most 76 octets; a latin1 string. */
export interface EncodedText {
  readonly encoded: string
  /** DKIM canonical form, if different. */
  readonly canonical?: string
}

export interface EncodedPiece extends EncodedText {
  /** Octets in its last line. */
  readonly column: number
}

const LF = 0x0a
const CR = 0x0d
const SOFT_BREAK = '=\r\n'
/** A line that continues needs room for the `=` of a soft line break. */
const MAX_BEFORE_BREAK = ENCODED_LINE - 1
/** One line of ASCII without trailing white space: only `=` needs encoding. */
const PLAIN = /^[\x20-\x7e]*[\x21-\x7e]$/

/** RFC 2045 §6.8: line endings become CRLF. */
function toCrlfOctets(text: string): Buffer {
  return Buffer.from(/[\r\n]/.test(text) ? text.replace(/\r\n?|\n/g, '\r\n') : text)
}

/** Encodes a text that is a part of its own, as is shorter. */
export function encodeText(text: string): readonly ['quoted-printable' | 'base64', EncodedText] {
  const quoted = quoteText(text)
  return isShorterAsBase64(quoted)
    ? ['base64', { encoded: encodeBase64(toCrlfOctets(text)).toString('latin1') }]
    : ['quoted-printable', ofQuoted(quoted)]
}

function ofQuoted({ encoded, hasBlanks }: QuotedText): EncodedText {
  return hasBlanks ? withCanonical(encoded) : { encoded }
}

/** Whether no character at its ends may combine with adjacent text, so that it can be encoded alone. */
export function isPiece(text: string): boolean {
  const [first, last] = [text.charCodeAt(0), text.charCodeAt(text.length - 1)]
  return first !== LF && (first & 0xfc00) !== 0xdc00 && last !== CR && (last & 0xfc00) !== 0xd800
}

/** @returns undefined if the text is no piece */
export function encodePiece(text: string): EncodedPiece | undefined {
  return isPiece(text) ? pieceOf(quoteText(text)) : undefined
}

export function pieceOf(quoted: QuotedText): EncodedPiece {
  return { ...ofQuoted(quoted), column: quoted.column }
}

export class QuotedPrintableWriter {
  private readonly pieces: ReadonlyMap<string, EncodedPiece>
  private encoded = ''
  /** Undefined as long as it equals `encoded`. */
  private canonical: string | undefined
  private column = 0
  private pending = ''

  /** @param pieces by their text; looked up for texts of at least `MIN_PIECE_LENGTH` */
  constructor(ahead: ReadonlyMap<string, EncodedPiece>) {
    this.pieces = ahead
  }

  put(text: string): void {
    const piece = text.length >= MIN_PIECE_LENGTH ? this.pieces.get(text) : undefined
    if (piece === undefined) {
      this.pending += text
      return
    }
    this.encodePending()
    if (this.column > 0) this.add({ encoded: SOFT_BREAK })
    this.add(piece)
    this.column = piece.column
  }

  end(): EncodedText {
    this.encodePending()
    const { encoded, canonical } = this
    return canonical === undefined ? { encoded } : { encoded, canonical }
  }

  private encodePending(): void {
    const text = this.pending
    if (text === '') return
    this.pending = ''
    if (PLAIN.test(text)) this.addInLines(text.replaceAll('=', '=3D'))
    else this.addEncoded(toCrlfOctets(text))
  }

  private addInLines(text: string): void {
    let from = 0
    let lines = ''
    for (;;) {
      const room = MAX_BEFORE_BREAK - this.column
      if (text.length - from <= room) break
      const to = from + room - octetsOfSplit(text, from + room)
      lines += text.slice(from, to) + SOFT_BREAK
      from = to
      this.column = 0
    }
    this.column += text.length - from
    this.add(withCanonical(lines + text.slice(from)))
  }

  private addEncoded(octets: Buffer): void {
    const encoded = encodeQuotedPrintable(octets, ENCODED_LINE, this.column).toString('latin1')
    const lineEnd = encoded.lastIndexOf('\n')
    this.column = lineEnd < 0 ? this.column + encoded.length : encoded.length - lineEnd - 1
    this.add(withCanonical(encoded))
  }

  private add({ encoded, canonical }: EncodedText): void {
    if (canonical !== undefined) this.canonical ??= this.encoded
    if (this.canonical !== undefined) this.canonical += canonical ?? encoded
    this.encoded += encoded
  }
}

/** How many characters of an encoded octet are before `at`. */
function octetsOfSplit(text: string, at: number): number {
  if (text[at - 1] === '=') return 1
  return text[at - 2] === '=' ? 2 : 0
}

/** UTF-16 units; encoding a shorter text costs less than the additional line break. */
export const MIN_PIECE_LENGTH = 80

/** Lines here never end in white space, so relaxed canonicalization only collapses runs of it. */
function withCanonical(encoded: string): EncodedText {
  return encoded.includes('  ') || encoded.includes('\t')
    ? { encoded, canonical: encoded.replace(/[ \t]+/g, ' ') }
    : { encoded }
}
