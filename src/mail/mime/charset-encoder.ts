/**
 * Characters as octets of a charset: the way back, which the platform does not have.
 *
 * Called where a few words are added to a text that somebody else wrote in that charset. What a charset has is found out by decoding
 * all that it could have, once: one octet, or two. Longer sequences are not used. Pure.
 * Standards: Encoding Standard (what decodes to what).
 * Fails: never throws.
 */
import { hasNonAscii, streamDecoder } from './charset.js'

/** By label in lower case. Labels that exist are few, so that this does not grow. */
const TABLES = new Map<string, ReadonlyMap<string, Buffer>>()
const HIGH = 0x80
const FIRST_LEAD = 0x81
const FIRST_TRAIL = 0x40
const LAST = 0xff
const LF = 0x0a

/**
 * @param charset one in which octets below 0x80 that stand alone are ASCII
 * @returns undefined where it does not have all the characters
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
