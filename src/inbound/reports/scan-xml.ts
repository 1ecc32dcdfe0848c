/**
 * Reads XML by a stranger in one pass: tags, text and CDATA, each told once, in time and memory that the text's length bounds.
 *
 * Called by the reader of DMARC reports. Our own and not a general parser: those keep what is looked at here for a moment
 * only (attributes, entities, runs of `]`), and a few KB of that are enough to end the thread. A document type is refused, and
 * with it every entity that could be declared; of entities only those that XML knows are read. Namespaces and attributes mean
 * nothing here. Pure. Standard: XML 1.0 §2.4, §2.7, §3.1, §4.1.
 * Fails: throws a plain Error that says what is wrong.
 */

export interface XmlHandler {
  /** @param name with its prefix, if any */
  open(name: string): void
  /** Decoded; a long text is cut. May come in several pieces. */
  addText(text: string): void
  close(): void
}

/** Elements of a document; a report of 10 MB has 400,000. */
const MOST_ELEMENTS = 500_000
/** Characters of one tag with its attributes. */
const MOST_TAG = 4_096
/** Characters of one piece of text that are told; nothing that is kept of a report is longer. */
const MOST_TEXT = 4_096

const NAME = /^[\p{L}_:][\p{L}\p{N}_:.\u00b7-]{0,99}$/u
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi
const KNOWN: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** @throws Error */
export function scanXml(text: string, handler: XmlHandler): void {
  const open: string[] = []
  let elements = 0
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length) {
    const start = text.indexOf('<', at)
    const end = start < 0 ? text.length : start
    if (end > at && open.length > 0) handler.addText(decode(text.slice(at, Math.min(end, at + MOST_TEXT))))
    if (start < 0) break
    if (text.startsWith('<!--', start)) at = behind(text, '-->', start + 4)
    else if (text.startsWith('<?', start)) at = behind(text, '?>', start + 2)
    else if (text.startsWith('<![CDATA[', start)) {
      at = behind(text, ']]>', start + 9)
      if (open.length > 0) handler.addText(text.slice(start + 9, Math.min(at - 3, start + 9 + MOST_TEXT)))
    } else if (text.startsWith('<!', start)) {
      throw new Error('it declares a document type')
    } else if (text.startsWith('</', start)) {
      at = behind(text, '>', start + 2)
      if (at - start > MOST_TAG || text.slice(start + 2, at - 1).trimEnd() !== open.pop()) throw damaged()
      handler.close()
    } else {
      at = endOfTag(text, start + 1)
      const isEmpty = text[at - 2] === '/'
      const name = nameIn(text.slice(start + 1, isEmpty ? at - 2 : at - 1))
      if (open.length === 0 && elements > 0) throw damaged()
      elements += 1
      if (elements > MOST_ELEMENTS) throw new Error('its XML has too many elements')
      handler.open(name)
      if (isEmpty) handler.close()
      else open.push(name)
    }
  }
  if (open.length > 0 || elements === 0) throw damaged()
}

/** Where what follows `mark` begins. @throws Error where there is none: nothing is searched to the end twice */
function behind(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  if (at < 0) throw damaged()
  return at + mark.length
}

/** An attribute's value may hold a `>`. */
function endOfTag(text: string, from: number): number {
  const last = Math.min(text.length, from + MOST_TAG)
  let quote = ''
  for (let at = from; at < last; at += 1) {
    const char = text.charAt(at)
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '>') return at + 1
    else if (char === '"' || char === "'") quote = char
    else if (char === '<') break
  }
  throw damaged()
}

function nameIn(tag: string): string {
  const end = tag.search(/\s/)
  const name = end < 0 ? tag : tag.slice(0, end)
  if (!NAME.test(name)) throw damaged()
  return name
}

/** What is no entity stays as it is: some reporters write a bare `&`. */
function decode(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(ENTITY, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return KNOWN[name.toLowerCase()] ?? whole
    const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

function damaged(): Error {
  return new Error('its XML is damaged')
}
