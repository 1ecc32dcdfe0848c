/**
 * Takes a message apart into its MIME leaves, within bounds, whatever the message.
 *
 * Called by the reader of returned mail. Our own and not mailparser, because the input is hostile and mailparser has no
 * bounds (depth, number of parts, decoded size), and because it gives no raw text of the parts that matter here:
 * message/delivery-status, text/rfc822-headers, message/feedback-report. Nothing is ever unpacked; a message inside the
 * message stays one leaf. Line ends become LF.
 * Standards: RFC 2045, RFC 2046 §5.1 (multipart), with the errors that mail systems make: wrong or missing boundaries,
 * parts never closed, delimiters moved in.
 * Fails: never; what cannot be taken apart is one text leaf.
 */
import { decodeCharset, decodeTransfer } from './decode-text.js'
import { HeaderSection, readParameter, splitHeader } from './header-section.js'

/** Of the source, octets: what a mail system has to say comes before the message that it returns. */
const MAX_SOURCE = 262_144
/** Of one decoded leaf, characters. */
const MAX_LEAF = 131_072
const MAX_DEPTH = 8
const MAX_LEAVES = 64

export interface MimePart {
  /** Lower case, without parameters; `text/plain` where none was given. */
  readonly type: string
  /** Header of the part; that of the message for a message without parts. */
  readonly header: HeaderSection
  /** Transfer encoding and charset decoded; of a message, the transfer encoding only. */
  readonly text: string
}

export interface MimeMessage {
  readonly header: HeaderSection
  readonly type: string
  readonly parts: readonly MimePart[]
}

/** @param source a whole message; its first 256 KB are looked at */
export function readMimeMessage(source: Buffer | string): MimeMessage {
  const bytes =
    typeof source === 'string' ? source.slice(0, MAX_SOURCE) : source.toString('latin1', 0, MAX_SOURCE)
  const { header, body } = splitHeader(bytes.replace(/\r{1,3}\n|\r/g, '\n'))
  const parts: MimePart[] = []
  collect(header, body, 0, parts)
  return { header, type: typeOf(header), parts }
}

function collect(header: HeaderSection, body: string, depth: number, into: MimePart[]): void {
  if (into.length >= MAX_LEAVES) return
  const type = typeOf(header)
  const pieces = type.startsWith('multipart/') && depth < MAX_DEPTH ? splitBody(header, body) : undefined
  if (!pieces) {
    // A multipart without parts is text that somebody mislabelled.
    into.push(leaf(type.startsWith('multipart/') ? 'text/plain' : type, header, body))
    return
  }
  for (const piece of pieces) {
    // A part may begin with its body: no header, one empty line (RFC 2046 §5.1).
    const inner = piece.startsWith('\n')
      ? { header: new HeaderSection([]), body: piece.slice(1) }
      : splitHeader(piece)
    // Whatever stands in place of a header without being one is text that somebody wants read.
    if (inner.header.size === 0) collect(inner.header, piece, depth + 1, into)
    else collect(inner.header, inner.body, depth + 1, into)
  }
}

function leaf(type: string, header: HeaderSection, body: string): MimePart {
  const decoded = decodeTransfer(body.slice(0, MAX_LEAF), header.raw('content-transfer-encoding'))
  const charset = readParameter(header.raw('content-type'), 'charset')
  // A message inside the message has charsets of its own.
  const text = /^message\/(?:rfc822|global)$/.test(type) ? decoded : decodeCharset(decoded, charset)
  return { type, header, text: text.slice(0, MAX_LEAF).replace(/\r\n?/g, '\n') }
}

function typeOf(header: HeaderSection): string {
  const type = (header.raw('content-type').split(';', 1)[0] ?? '').trim().toLowerCase()
  return /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type) ? type : 'text/plain'
}

/** @returns the parts, or undefined where no delimiter is found */
function splitBody(header: HeaderSection, body: string): readonly string[] | undefined {
  const stated = readParameter(header.raw('content-type'), 'boundary')
  const byStated = stated === undefined ? undefined : splitAt(body, stated.trim())
  if (byStated) return byStated
  // A relay that rewrote one and not the other: the first line that is followed by a part's header is the delimiter.
  const found = /^--(\S{1,200})[ \t]{0,80}\ncontent-[a-z-]{1,40}:/im.exec(body)?.[1]
  return found === undefined ? undefined : splitAt(body, found)
}

function splitAt(body: string, boundary: string): readonly string[] | undefined {
  if (boundary === '') return undefined
  const delimiter = `--${boundary}`
  const pieces: string[] = []
  let start = -1
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.length)) {
    // First what costs nothing: a line may repeat the delimiter all along.
    if (!isAtLineStart(body, at)) continue
    const lineEnd = endOfLine(body, at)
    const rest = body.slice(at + delimiter.length, Math.min(lineEnd, at + delimiter.length + 80))
    if (!/^(?:--)?[ \t]*$/.test(rest)) continue
    if (start >= 0) pieces.push(body.slice(start, at).replace(/\n$/, ''))
    start = rest.startsWith('--') ? -1 : lineEnd + 1
    if (start < 0 || pieces.length > MAX_LEAVES) break
  }
  if (start >= 0 && pieces.length <= MAX_LEAVES) pieces.push(body.slice(start))
  return pieces.length > 0 ? pieces : undefined
}

function endOfLine(body: string, at: number): number {
  const end = body.indexOf('\n', at)
  return end < 0 ? body.length : end
}

/** One blank before a delimiter is not right, but seen. */
function isAtLineStart(body: string, at: number): boolean {
  const before = body[at - 1]
  return before === undefined || before === '\n' || (before === ' ' && (at === 1 || body[at - 2] === '\n'))
}
