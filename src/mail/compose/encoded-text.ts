/**
 * Text in quoted-printable that is put together of pieces, of which those that many mails share are encoded once for all.
 *
 * A piece that was encoded ahead begins on a line of its own (a soft line break stands before it, which counts for nothing), so that it
 * is the same wherever it comes; what stands between is encoded when it is there. Beside it the same in the canonical form that DKIM
 * signs is kept, wherever the two differ. Made for mail by whoever renders it; `compose.ts` makes a part of it. Pure.
 * Standards: RFC 2045 §6.7 (quoted-printable; (5): lines of 76), RFC 6376 §3.4.4 (relaxed).
 * Fails: never throws.
 */
import { ENCODED_LINE, encodeQuotedPrintable } from '../mime/transfer-encoding.js'

/** The content of a part, in lines of at most 76 octets; octets as a latin1 string. */
export interface EncodedText {
  readonly encoded: string
  /** As DKIM signs it; absent where that is the same. */
  readonly canonical?: string
}

/** Encoded ahead. */
export interface EncodedPiece extends EncodedText {
  /** Octets in the line that it ends with. */
  readonly column: number
}

/** How far before its end a line may be broken for the sake of a word. */
const NEAR_OCTETS = 25
const SOFT_BREAK = '=\r\n'
/** Octets of a line that may still go on: the sign of a soft line break has to have room. */
const MAX_BEFORE_BREAK = ENCODED_LINE - 1
/** ASCII in one line that does not end in white space: `=` is all that has to be encoded of it. */
const PLAIN = /^[\x20-\x7e]*[\x21-\x7e]$/

/** RFC 2045 §6.8: a line end is CRLF, however it was written. */
export function toCrlfOctets(text: string): Buffer {
  return Buffer.from(/[\r\n]/.test(text) ? text.replace(/\r\n?|\n/g, '\r\n') : text)
}

export function encodeBody(octets: Buffer): EncodedText {
  return withCanonical(breakLines(encodeQuotedPrintable(octets, Infinity).toString('latin1')))
}

/** Breaks lines behind words, as far as there are any near: readers of the source and of diffs are glad of it. */
function breakLines(encoded: string): string {
  let lines = ''
  let from = 0
  while (from < encoded.length) {
    const lineEnd = encoded.indexOf('\r\n', from)
    const to = lineEnd < 0 ? encoded.length : lineEnd + 2
    // The last line may have to go on.
    const [end, fitting] = lineEnd < 0 ? [to, MAX_BEFORE_BREAK] : [lineEnd, ENCODED_LINE]
    while (end - from > fitting) {
      const most = from + MAX_BEFORE_BREAK
      const space = encoded.lastIndexOf(' ', most - 1) + 1
      const at = space > most - NEAR_OCTETS ? space : most - octetsOfSplit(encoded, most)
      lines += encoded.slice(from, at) + SOFT_BREAK
      from = at
    }
    lines += encoded.slice(from, to)
    from = to
  }
  return lines
}

/** @returns undefined for a text whose first or last character belongs with what stands beside it */
export function encodePiece(text: string): EncodedPiece | undefined {
  if (/^[\n\udc00-\udfff]|[\r\ud800-\udbff]$/.test(text)) return undefined
  const piece = encodeBody(toCrlfOctets(text))
  return { ...piece, column: piece.encoded.length - (piece.encoded.lastIndexOf('\n') + 1) }
}

export class QuotedPrintableWriter {
  private readonly pieces: ReadonlyMap<string, EncodedPiece>
  private encoded = ''
  /** Where it differs so far. */
  private canonical: string | undefined
  private column = 0
  private pending = ''

  /** @param ahead by their texts; looked for among texts of `LEAST_AHEAD` and more */
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

/** How much of an encoded octet stands before `at`. */
function octetsOfSplit(text: string, at: number): number {
  if (text[at - 1] === '=') return 1
  return text[at - 2] === '=' ? 2 : 0
}

/** UTF-16 units; a shorter text costs less to encode than lines that end before their time. */
export const MIN_PIECE_LENGTH = 80

/** No line ends in white space here, so that runs of it are all that relaxed canonicalization changes. */
function withCanonical(encoded: string): EncodedText {
  return encoded.includes('  ') || encoded.includes('\t')
    ? { encoded, canonical: encoded.replace(/[ \t]+/g, ' ') }
    : { encoded }
}
