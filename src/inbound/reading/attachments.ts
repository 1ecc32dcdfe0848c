/**
 * Finds what is attached to a mail: its MIME leaves as octets, within bounds, whatever the mail.
 *
 * Called for mail to `dmarc@` and `tlsrpt@`, whose content may be binary and larger than what the reader of returned mail
 * looks at. Lines end in CRLF, which the SMTP listener has seen to. Pure.
 * Standards: RFC 2045 §6, RFC 2046 §5.1. Fails: never; what cannot be taken apart is one leaf.
 */
import { HeaderSection, readHeader, readParameter } from '../../mail/returned/header-section.js'

const MAX_DEPTH = 5
const MAX_LEAVES = 20
/** Of one header; what follows it is body. */
const MAX_HEADER = 65_536

/** Octets of each leaf, its transfer encoding undone; at most 20. */
export function findAttachments(source: Buffer): Buffer[] {
  const leaves: Buffer[] = []
  collect(source.toString('latin1'), 0, source.length, 0, leaves)
  return leaves
}

/** Works on positions, so that no level of nesting copies the text. */
function collect(text: string, start: number, end: number, depth: number, into: Buffer[]): void {
  if (into.length >= MAX_LEAVES) return
  const { header, body } = headerAt(text, start, end)
  const type = header.raw('content-type')
  const boundary =
    depth < MAX_DEPTH && /^\s*multipart\//i.test(type) ? readParameter(type, 'boundary') : undefined
  const pieces = boundary === undefined ? [] : split(text, body, end, boundary.trim())
  if (pieces.length === 0)
    into.push(decode(text.slice(body, end), header.raw('content-transfer-encoding').trim().toLowerCase()))
  for (const piece of pieces) collect(text, piece.start, piece.end, depth + 1, into)
}

function headerAt(text: string, start: number, end: number): { header: HeaderSection; body: number } {
  // An empty header: the body follows its empty line at once.
  if (text.startsWith('\r\n', start)) return { header: new HeaderSection([]), body: start + 2 }
  const found = text.slice(start, Math.min(end, start + MAX_HEADER)).indexOf('\r\n\r\n')
  if (found < 0) return { header: new HeaderSection([]), body: start }
  const section = text.slice(start, start + found).replaceAll('\r\n', '\n')
  return { header: readHeader(section), body: start + found + 4 }
}

function split(text: string, start: number, end: number, boundary: string): { start: number; end: number }[] {
  if (boundary === '') return []
  const delimiter = `\r\n--${boundary}`
  const pieces: { start: number; end: number }[] = []
  let open = -1
  // A delimiter may be the very first line, whose CRLF is that of the header's end.
  for (let at = text.indexOf(delimiter, start - 2); at >= 0 && at < end;) {
    const after = at + delimiter.length
    if (open >= 0) pieces.push({ start: open, end: Math.max(open, at) })
    if (text.startsWith('--', after) || pieces.length >= MAX_LEAVES) return pieces
    const lineEnd = text.indexOf('\r\n', after)
    if (lineEnd < 0) return pieces
    open = lineEnd + 2
    // The line end of one delimiter may begin the next one.
    at = text.indexOf(delimiter, lineEnd)
  }
  // Never closed: a mail that was cut off.
  if (open >= 0 && open < end) pieces.push({ start: open, end })
  return pieces
}

function decode(text: string, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(text, 'base64')
  if (encoding !== 'quoted-printable') return Buffer.from(text, 'latin1')
  const octets = text.replace(/=(?:([0-9A-Fa-f]{2})|\r\n)/g, (_, hex?: string) =>
    hex === undefined ? '' : String.fromCharCode(parseInt(hex, 16)),
  )
  return Buffer.from(octets, 'latin1')
}
