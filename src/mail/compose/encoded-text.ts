/**
 * Quoted-printable text assembled from pieces; pieces shared by many messages are encoded once.
 *
 * A pre-encoded piece starts on a new line (after a soft line break), so that it is the same in every position; text between pieces is
 * encoded when written. The canonical form for DKIM is tracked alongside where it differs.
 * Standards: RFC 2045 §6.7 (quoted-printable; rule 5: lines of 76), RFC 6376 §3.4.4 (relaxed).
 */
import { ENCODED_LINE, encodeQuotedPrintable } from '../mime/transfer-encoding.js'

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

/** How far before the end of a line it may be broken at a space. */
const NEAR_OCTETS = 25
const SOFT_BREAK = '=\r\n'
/** A line that continues needs room for the `=` of a soft line break. */
const MAX_BEFORE_BREAK = ENCODED_LINE - 1
/** One line of ASCII without trailing white space: only `=` needs encoding. */
const PLAIN = /^[\x20-\x7e]*[\x21-\x7e]$/

/** RFC 2045 §6.8: line endings become CRLF. */
export function toCrlfOctets(text: string): Buffer {
  return Buffer.from(/[\r\n]/.test(text) ? text.replace(/\r\n?|\n/g, '\r\n') : text)
}

export function encodeBody(octets: Buffer): EncodedText {
  return withCanonical(breakLines(encodeQuotedPrintable(octets, Infinity).toString('latin1')))
}

/** Breaks lines at spaces where possible, which keeps sources and diffs readable. */
function breakLines(encoded: string): string {
  let lines = ''
  let from = 0
  while (from < encoded.length) {
    const lineEnd = encoded.indexOf('\r\n', from)
    const to = lineEnd < 0 ? encoded.length : lineEnd + 2
    // The last line may be continued by another piece.
    const [end, fitting] = lineEnd < 0 ? [to, MAX_BEFORE_BREAK] : [lineEnd, ENCODED_LINE]
    while (end - from > fitting) {
      const most = from + MAX_BEFORE_BREAK
      // Only near the end: a search in all of the text would pass everything before it in each line without a space.
      const space = encoded.slice(most - NEAR_OCTETS, most).lastIndexOf(' ') + 1
      const at = space > 0 ? most - NEAR_OCTETS + space : most - octetsOfSplit(encoded, most)
      lines += encoded.slice(from, at) + SOFT_BREAK
      from = at
    }
    lines += encoded.slice(from, to)
    from = to
  }
  return lines
}

/** @returns undefined if the first or last character may combine with adjacent text */
export function encodePiece(text: string): EncodedPiece | undefined {
  if (/^[\n\udc00-\udfff]|[\r\ud800-\udbff]$/.test(text)) return undefined
  const piece = encodeBody(toCrlfOctets(text))
  return { ...piece, column: piece.encoded.length - (piece.encoded.lastIndexOf('\n') + 1) }
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
