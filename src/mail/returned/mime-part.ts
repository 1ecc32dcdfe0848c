/**
 * A returned mail as a list of decoded MIME leaves.
 *
 * Attached messages stay one leaf, and archives are not unpacked. Line endings become LF. Never throws: what cannot be parsed is one text
 * leaf.
 * Standards: RFC 2045, RFC 2046 §5.1 (multipart), leniently (`mime/mime-structure.ts`).
 */
import { decodeCharset } from '../mime/charset.js'
import { HeaderSection } from '../mime/header-fields.js'
import { parameter } from '../mime/media-type.js'
import { leavesOf, LENIENT, readMimeStructure, type MimeEntity } from '../mime/mime-structure.js'
import { decodeTransfer } from '../mime/transfer-encoding.js'

/** Octets; the report precedes the returned message. */
const MAX_SOURCE = 262_144
/** Characters of a decoded leaf. */
const MAX_LEAF = 131_072
const MAX_LEAVES = 64
const LF = 0x0a
const CR = 0x0d

export interface MimePart {
  /** Lower case, without parameters; defaults to `text/plain`. */
  readonly type: string
  /** For a message without parts, the message's header. */
  readonly header: HeaderSection
  /** Transfer encoding and charset decoded; for a message, the transfer encoding only. */
  readonly text: string
}

export interface MimeMessage {
  readonly header: HeaderSection
  readonly type: string
  readonly parts: readonly MimePart[]
}

/** @param source a whole message, octets or a latin1 string; only the first 256 KB are read */
export function readMimeMessage(source: Buffer | string): MimeMessage {
  const octets = typeof source === 'string' ? Buffer.from(source, 'latin1') : source
  const message = withLineFeeds(octets.subarray(0, MAX_SOURCE))
  const entity = readMimeStructure(message, LENIENT)
  return {
    header: new HeaderSection(entity.fields),
    type: typeOf(entity),
    parts: leavesOf(entity)
      .slice(0, MAX_LEAVES)
      .map(leaf => readLeaf(message, leaf)),
  }
}

/** Converts CRLF, bare CR, and the repeated CRs of some relays. */
function withLineFeeds(octets: Buffer): Buffer {
  const lines = Buffer.allocUnsafe(octets.length)
  let length = 0
  for (let at = 0; at < octets.length; at++) {
    let octet = octets[at] as number
    if (octet === CR) {
      const lineFeed = octets[at + 1] === CR ? (octets[at + 2] === CR ? at + 3 : at + 2) : at + 1
      if (octets[lineFeed] === LF) at = lineFeed
      octet = LF
    }
    lines[length++] = octet
  }
  return lines.subarray(0, length)
}

function readLeaf(message: Buffer, leaf: MimeEntity): MimePart {
  const type = typeOf(leaf)
  const octets = message.subarray(leaf.bodyStart, Math.min(leaf.end, leaf.bodyStart + MAX_LEAF))
  const decoded = decodeTransfer(octets, leaf.encoding)
  // An attached message has its own charsets.
  const text = /^message\/(?:rfc822|global)$/.test(type)
    ? decoded.toString('latin1')
    : decodeCharset(decoded, parameter(leaf.type, 'charset'))
  return {
    // A multipart without parts is mislabelled text.
    type: type.startsWith('multipart/') ? 'text/plain' : type,
    header: new HeaderSection(leaf.fields),
    text: text.slice(0, MAX_LEAF).replace(/\r\n?/g, '\n'),
  }
}

function typeOf({ type: { value } }: MimeEntity): string {
  return /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(value) ? value : 'text/plain'
}
