/**
 * Encodes text as quoted-printable in one pass: UTF-8, line ends, lines of at most 76 octets, and what base64 would take instead.
 *
 * Lines are broken after a space where one is near, which keeps sources and diffs readable.
 * Standards: RFC 2045 §6.7 (quoted-printable), §6.8 (base64). Never throws; linear in the length of the text.
 */
import { BASE64_SHARE, ENCODED_LINE } from '../mime/transfer-encoding.js'

export interface QuotedText {
  /** ASCII; the last line has at most 75 octets, so that it can be continued. */
  readonly encoded: string
  /** Octets of the last line. */
  readonly column: number
  /** It has a tab or several spaces in a row, which relaxed canonicalization (RFC 6376 §3.4.4) changes. */
  readonly hasBlanks: boolean
  /** Octets of the text as it is, in UTF-8. */
  readonly octets: number
  /** Octets that have to be encoded, line ends aside. */
  readonly toEncode: number
  /** CR or LF alone. */
  readonly bareLineEnds: number
}

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const EQUALS = 0x3d
/** How far before the end of a line it may be broken at a space. */
const NEAR_OCTETS = 25
/** A line that continues needs room for the `=` of a soft line break. */
const MAX_BEFORE_BREAK = ENCODED_LINE - 1
const HEX = Buffer.from('0123456789ABCDEF', 'latin1')
const REPLACEMENT = 0xfffd

/** Octets from which on the whole lines in the buffer are made a string. */
const FULL_OCTETS = 60_000
/** With room for a line and what is written before it is broken. */
const out = Buffer.alloc(FULL_OCTETS + 200)

export function quoteText(text: string): QuotedText {
  return new Quoting(text).encode()
}

/** Whether base64 is shorter for the text, whose line ends it has as CRLF. */
export function isShorterAsBase64({ octets, toEncode, bareLineEnds }: QuotedText): boolean {
  return toEncode > (octets + bareLineEnds) * BASE64_SHARE
}

/** Whether base64 is shorter for the literal texts of a template, in which a line end of one octet counts as one to encode. */
export function areShorterAsBase64(texts: readonly QuotedText[]): boolean {
  let [octets, toEncode] = [0, 0]
  for (const text of texts) {
    octets += text.octets
    toEncode += text.toEncode + text.bareLineEnds
  }
  return toEncode > octets * BASE64_SHARE
}

class Quoting {
  private readonly text: string
  /** Before what is in the buffer. */
  private encoded = ''
  private length = 0
  private lineStart = 0
  private octets = 0
  private toEncode = 0
  private bareLineEnds = 0
  private hasBlanks = false

  constructor(text: string) {
    this.text = text
  }

  encode(): QuotedText {
    const { text } = this
    let at = 0
    while (at < text.length) {
      at = this.putPlain(at)
      if (this.length - this.lineStart > ENCODED_LINE) this.breakLine()
      else if (at < text.length) {
        at = this.putOther(at)
        if (this.length - this.lineStart > ENCODED_LINE) this.breakLine()
      }
    }
    // The last line may be continued.
    if (this.length - this.lineStart > MAX_BEFORE_BREAK) this.breakLine()
    this.octets += text.length
    return {
      encoded: this.encoded + out.toString('latin1', 0, this.length),
      column: this.length - this.lineStart,
      hasBlanks: this.hasBlanks,
      octets: this.octets,
      toEncode: this.toEncode,
      bareLineEnds: this.bareLineEnds,
    }
  }

  /** Writes what is its own code, as far as one octet beyond the line. @returns the index after it */
  private putPlain(from: number): number {
    const { text } = this
    const end = this.lineStart + ENCODED_LINE + 1
    let { length } = this
    let at = from
    let code = text.charCodeAt(at)
    while (length < end) {
      const next = text.charCodeAt(at + 1)
      // A space is, before a character that is not blank.
      const isPlain = code > SPACE ? code < 0x7f && code !== EQUALS : code === SPACE && next > SPACE
      if (!isPlain) break
      out[length++] = code
      code = next
      at++
    }
    this.length = length
    return at
  }

  /** Writes a character that `putPlain` does not. @returns the index after it */
  private putOther(at: number): number {
    const code = this.text.charCodeAt(at)
    if (code === SPACE || code === TAB) this.putBlank(code, at)
    else if (code === CR || code === LF) {
      const isPair = code === CR && this.text.charCodeAt(at + 1) === LF
      this.putLineEnd(isPair)
      return isPair ? at + 2 : at + 1
    } else if (code < 0x80) this.putEncoded(code)
    else if (code >= 0xd800 && code <= 0xdfff) {
      const point = this.text.codePointAt(at) as number
      this.putCharacter(point > 0xffff ? point : REPLACEMENT)
      return point > 0xffff ? at + 2 : at + 1
    } else this.putCharacter(code)
    return at + 1
  }

  /** The last of a line is encoded, since it may be lost on the way. */
  private putBlank(code: number, at: number): void {
    const next = this.text.charCodeAt(at + 1)
    if (at + 1 === this.text.length || next === CR || next === LF) {
      this.putHex(code)
      return
    }
    if (code === TAB || next === SPACE) this.hasBlanks = true
    out[this.length++] = code
  }

  private putLineEnd(isPair: boolean): void {
    if (!isPair) this.bareLineEnds++
    out[this.length++] = CR
    out[this.length++] = LF
    this.lineStart = this.length
    this.makeRoom()
  }

  private putCharacter(point: number): void {
    // The units themselves are counted at the end.
    if (point < 0x800) {
      this.octets += 1
      this.putEncoded(0xc0 | (point >> 6))
    } else if (point < 0x10000) {
      this.octets += 2
      this.putEncoded(0xe0 | (point >> 12))
      this.putEncoded(0x80 | ((point >> 6) & 0x3f))
    } else {
      this.octets += 2
      this.putEncoded(0xf0 | (point >> 18))
      this.putEncoded(0x80 | ((point >> 12) & 0x3f))
      this.putEncoded(0x80 | ((point >> 6) & 0x3f))
    }
    this.putEncoded(0x80 | (point & 0x3f))
  }

  private putEncoded(octet: number): void {
    this.toEncode++
    this.putHex(octet)
  }

  private putHex(octet: number): void {
    out[this.length++] = EQUALS
    out[this.length++] = HEX[octet >> 4] as number
    out[this.length++] = HEX[octet & 15] as number
  }

  /** Moves what is behind the break, which is little. */
  private breakLine(): void {
    const at = this.breakingPoint()
    out.copyWithin(at + 3, at, this.length)
    out[at] = EQUALS
    out[at + 1] = CR
    out[at + 2] = LF
    this.length += 3
    this.lineStart = at + 3
    this.makeRoom()
  }

  private makeRoom(): void {
    if (this.length < FULL_OCTETS) return
    this.encoded += out.toString('latin1', 0, this.lineStart)
    out.copyWithin(0, this.lineStart, this.length)
    this.length -= this.lineStart
    this.lineStart = 0
  }

  private breakingPoint(): number {
    const most = this.lineStart + MAX_BEFORE_BREAK
    for (let at = most; at > most - NEAR_OCTETS; at--) if (out[at - 1] === SPACE) return at
    // An encoded octet stays whole.
    if (out[most - 1] === EQUALS) return most - 1
    return out[most - 2] === EQUALS ? most - 2 : most
  }
}
