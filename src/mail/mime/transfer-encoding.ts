/**
 * Transfer encodings: quoted-printable and base64, octets in and out, and which octets need them.
 *
 * Never throws; malformed input is decoded as mail readers do. Linear; output is at most about three times the input.
 * Standards: RFC 2045 §2.7, §2.8 (7bit, 8bit), §6.7 (quoted-printable), §6.8 (base64); RFC 5322 §2.1.1 (998 octets).
 */
import { isAscii } from 'node:buffer'

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SP = 0x20
const EQUALS = 0x3d
const QUESTION_MARK = 0x3f

/** RFC 5322 §2.1.1, without CRLF. */
export const MAX_LINE_OCTETS = 998
/** RFC 2045 §6.7 (5), §6.8. */
export const ENCODED_LINE = 76
/** Where filler lines are broken. */
const FILLER_LINE = 900
const HEX = Buffer.from('0123456789ABCDEF', 'latin1')
const NO_DIGIT = -1_000
/** Value of each octet as a hexadecimal digit. */
const HEX_VALUES = Int16Array.from({ length: 256 }, (_, octet) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(octet).toLowerCase())
  return digit < 0 ? NO_DIGIT : digit
})

/** ASCII without NUL, lines of at most 998 octets: the domain of `7bit` (RFC 2045 §2.7). */
export function isSevenBit(octets: Buffer): boolean {
  return isAscii(octets) && !octets.includes(0) && !hasLongLine(octets)
}

/** Skips to the last line ending within reach instead of visiting each line. */
export function hasLongLine(octets: Buffer): boolean {
  let lineStart = 0
  // The LF of a line of 998 octets is 999 further on, after the CR.
  while (octets.length - lineStart > MAX_LINE_OCTETS) {
    const lineEnd = octets.lastIndexOf(LF, lineStart + MAX_LINE_OCTETS + 1)
    if (lineEnd < lineStart) return true
    lineStart = lineEnd + 1
  }
  return false
}

/** For octets that are not displayed: replaces 8-bit octets and NUL with question marks and breaks long lines. */
export function toSevenBitFiller(octets: Buffer): Buffer {
  const filler = Buffer.allocUnsafe(octets.length + 2 * Math.ceil(octets.length / FILLER_LINE))
  let length = 0
  let column = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet === LF) {
      column = 0
    } else if (column === FILLER_LINE && octet !== CR) {
      filler[length++] = CR
      filler[length++] = LF
      column = 1
    } else {
      column++
    }
    filler[length++] = octet === 0 || octet > 0x7f ? QUESTION_MARK : octet
  }
  return filler.subarray(0, length)
}

/** @param encoding lower case; an unknown one leaves the octets unchanged */
export function decodeTransfer(octets: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(octets.toString('latin1'), 'base64')
  return encoding === 'quoted-printable' ? decodeQuotedPrintable(octets) : octets
}

export function encodeText(octets: Buffer): { encoding: 'quoted-printable' | 'base64'; encoded: Buffer } {
  return isShorterInBase64(octets)
    ? { encoding: 'base64', encoded: encodeBase64(octets) }
    : { encoding: 'quoted-printable', encoded: encodeQuotedPrintable(octets, ENCODED_LINE) }
}

/** Quoted-printable turns one octet into three, base64 three into four plus line endings: break-even at 18 % of octets to encode. */
export const BASE64_SHARE = 0.18

export function isShorterInBase64(octets: Buffer): boolean {
  let toEncode = 0
  // Indexed: an iterator takes as long as the encoding itself.
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet >= 0x7f || octet === EQUALS || (octet < SP && octet !== TAB)) toEncode++
    if (octet === LF && octets[at - 1] === CR) toEncode -= 2
  }
  return toEncode > octets.length * BASE64_SHARE
}

/**
 * CRLF stays a line ending; a bare CR or LF is encoded.
 *
 * @param maxLine octets per line; Infinity for callers that break lines themselves
 * @param startColumn octets already in the first line
 */
export function encodeQuotedPrintable(octets: Buffer, maxLine: number, startColumn = 0): Buffer {
  const most = 3 * octets.length
  const encoded = Buffer.allocUnsafe(most + 3 * Math.ceil(most / (maxLine - 3)) + 3)
  let length = 0
  let column = startColumn
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet === CR && octets[at + 1] === LF) {
      encoded[length++] = CR
      encoded[length++] = LF
      column = 0
      at++
      continue
    }
    const isPlain =
      octet > SP
        ? octet < 0x7f && octet !== EQUALS
        : (octet === SP || octet === TAB) &&
          at + 1 < octets.length &&
          !(octets[at + 1] === CR && octets[at + 2] === LF)
    const width = isPlain ? 1 : 3
    if (column + width >= maxLine) {
      encoded[length++] = EQUALS
      encoded[length++] = CR
      encoded[length++] = LF
      column = 0
    }
    if (isPlain) {
      encoded[length++] = octet
    } else {
      encoded[length++] = EQUALS
      encoded[length++] = HEX[octet >> 4] as number
      encoded[length++] = HEX[octet & 15] as number
    }
    column += width
  }
  return encoded.subarray(0, length)
}

/** An invalid `=` is taken literally; trailing white space was added in transit (RFC 2045 §6.7 (3)). Lines end in CRLF or LF. */
export function decodeQuotedPrintable(octets: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(octets.length)
  let length = 0
  // After the last non-white-space octet of the line.
  let kept = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet === LF || (octet === CR && octets[at + 1] === LF)) {
      length = kept
      if (octet === CR) decoded[length++] = octets[at++] as number
      decoded[length++] = LF
      kept = length
    } else if (octet === EQUALS) {
      const value = hexValue(octets[at + 1]) * 16 + hexValue(octets[at + 2])
      const softEnd = value < 0 && (octets[at + 1] ?? 0) <= SP ? softBreakEnd(octets, at) : -1
      if (value >= 0) {
        decoded[length++] = value
        at += 2
      } else if (softEnd >= 0) {
        at = softEnd - 1
      } else {
        decoded[length++] = octet
      }
      kept = length
    } else {
      decoded[length++] = octet
      if (octet !== SP && octet !== TAB) kept = length
    }
  }
  return decoded.subarray(0, kept)
}

/** @returns the offset after the line ending if the `=` is the last of its line, or -1 */
function softBreakEnd(octets: Buffer, equals: number): number {
  let at = equals + 1
  while (octets[at] === SP || octets[at] === TAB) at++
  if (octets[at] === CR && octets[at + 1] === LF) return at + 2
  return octets[at] === LF ? at + 1 : at >= octets.length ? at : -1
}

/** @returns a large negative number for a non-digit */
function hexValue(octet: number | undefined): number {
  return octet === undefined ? NO_DIGIT : (HEX_VALUES[octet] as number)
}

/** Lines of 76 separated by CRLF, none at the end. */
export function encodeBase64(octets: Buffer): Buffer {
  return inLines(Buffer.from(octets.toString('base64'), 'latin1'))
}

/** Rewraps base64 to lines of 76; other characters are dropped, as RFC 2045 §6.8 requires of decoders. */
export function rewrapBase64(octets: Buffer): Buffer {
  const kept = Buffer.allocUnsafe(octets.length)
  let length = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (isBase64Character(octet)) kept[length++] = octet
  }
  return inLines(kept.subarray(0, length))
}

function isBase64Character(octet: number): boolean {
  const letter = octet | 0x20
  return (
    (letter >= 0x61 && letter <= 0x7a && octet < 0x80) ||
    (octet >= 0x2f && octet <= 0x39) ||
    octet === 0x2b ||
    octet === EQUALS
  )
}

function inLines(text: Buffer): Buffer {
  const lines = Math.max(1, Math.ceil(text.length / ENCODED_LINE))
  const wrapped = Buffer.allocUnsafe(text.length + 2 * (lines - 1))
  for (let line = 0; line < lines; line++) {
    const to = line * (ENCODED_LINE + 2)
    text.copy(wrapped, to, line * ENCODED_LINE, (line + 1) * ENCODED_LINE)
    if (line === lines - 1) continue
    wrapped[to + ENCODED_LINE] = CR
    wrapped[to + ENCODED_LINE + 1] = LF
  }
  return wrapped
}
