/**
 * Converts an HTML body to its plain-text alternative.
 *
 * html-to-text does the work, within limits: it takes a second for 256 KB of tags, and deep nesting overflows its stack. HTML with more
 * tags than any real mail has its tags stripped instead. Never throws.
 */
import { compile, type DomNode, type FormatCallback } from 'html-to-text'

/** Including closing tags; 256 KB of terse real markup have some 10,000. */
const MAX_TAGS = 12_000
/** Deeper content shows as `...`; nested table layouts reach 60. */
const MAX_DEPTH = 500
/** Maximum indentation of nested lists, in levels. */
const MAX_INDENT = 4

/**
 * Lists with the marker on the item's first line only. The library indents every line once per level: 10,000 lines nested a hundred deep
 * would become megabytes.
 */
function listFormat(marker: (item: number) => string): FormatCallback {
  return (element, walk, builder) => {
    const level = listLevel(element)
    let items = 0
    builder.openBlock({ leadingLineBreaks: level > 0 ? 1 : 2 })
    for (const child of element.children) {
      if (child.name !== 'li') {
        walk([child], builder)
        continue
      }
      builder.openBlock({ leadingLineBreaks: 1 })
      builder.addLiteral(`${'  '.repeat(level)}${marker(++items)} `)
      walk(child.children, builder)
      builder.closeBlock({ trailingLineBreaks: 1 })
    }
    builder.closeBlock({ trailingLineBreaks: level > 0 ? 1 : 2 })
  }
}

function listLevel(element: DomNode): number {
  let level = 0
  let outer = element.parent
  // Each level is a list, an item, and perhaps a wrapper.
  for (let steps = 0; outer && steps < 4 * MAX_INDENT; steps++) {
    if (outer.name === 'ul' || outer.name === 'ol') level++
    outer = outer.parent
  }
  return Math.min(level, MAX_INDENT)
}

/**
 * `text <href>`, or the text alone if it is the address. The library's own check passes every word through every enclosing link, which took
 * 8 s for nested links.
 */
const linkFormat: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder)
  const { href = '' } = (element.attribs ?? {}) as { readonly href?: string }
  const target = linkTarget(href)
  const [only, ...others] = element.children
  const isShown = others.length === 0 && only?.type === 'text' && only.data?.trim() === target
  // RFC 3986 Appendix C recommends angle brackets around a URI in text.
  if (target !== '' && !target.startsWith('#') && !isShown) builder.addInline(` <${target}>`)
}

/**
 * A link's address as a browser reads it (URL Standard §4.4): without blanks around it, and without tabs and line ends, which mail programs
 * insert; spaces, and brackets, which would end it in text, are percent-encoded. Of a mailto link, the mail address alone.
 */
function linkTarget(href: string): string {
  const url = href.trim().replace(/[\t\r\n]+/g, '')
  const target = /^mailto:/i.test(url) ? (url.slice('mailto:'.length).split('?', 1)[0] ?? '') : url
  return target.replace(/[ <>]/g, character => ENCODED[character] ?? '')
}

const ENCODED: Readonly<Record<string, string>> = { ' ': '%20', '<': '%3C', '>': '%3E' }

const convert = compile({
  // Mail clients wrap to their own width.
  wordwrap: false,
  limits: { maxDepth: MAX_DEPTH },
  formatters: { bullets: listFormat(() => '*'), numbers: listFormat(item => `${item}.`), link: linkFormat },
  selectors: [
    { selector: 'img', format: 'skip' },
    { selector: 'a', format: 'link' },
    { selector: 'ul', format: 'bullets' },
    { selector: 'ol', format: 'numbers' },
    { selector: 'blockquote', format: 'block' },
    // The default is upper case with two empty lines before.
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(selector => ({
      selector,
      options: { uppercase: false, leadingLineBreaks: 2 },
    })),
  ],
})

/** @returns text with links, without images; LF line endings, unwrapped */
export function plainTextOf(html: string): string {
  return hasMoreTags(html, MAX_TAGS) ? stripHtml(html) : convert(html)
}

const SKIPPED_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'title'])

/** All other elements start a new line. */
const INLINE_ELEMENTS: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo big cite code em font i img ins del kbd label mark q s small span strike strong sub sup u var'.split(
    ' ',
  ),
)

/** The common entities; others are kept as written. */
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
}

/**
 * Strips tags in one linear pass: for HTML too large for a parser, and for bounces. A `>` inside an attribute ends the tag.
 *
 * @returns the text, one line per block, without empty lines; links as `text <href>`
 */
export function stripHtml(html: string): string {
  const opening = /<(\/?)([a-z][a-z0-9:-]*)|<!--|<[!?]/gi
  const pieces: string[] = []
  let href = ''
  let at = 0
  for (let match = opening.exec(html); match; match = opening.exec(html)) {
    const [found, slash, written = ''] = match
    const name = written.toLowerCase()
    pieces.push(collapsed(html.slice(at, match.index)))
    if (name === 'a' && href !== '') pieces.push(` <${href}>`)
    if (name !== '' && !INLINE_ELEMENTS.has(name)) pieces.push('\n')
    at = endAfter(html, found === '<!--' ? '-->' : '>', opening.lastIndex)
    if (name === 'a') href = slash === '' ? hrefOf(html.slice(match.index, at)) : ''
    if (slash === '' && SKIPPED_ELEMENTS.has(name)) at = endOfElement(html, name, at)
    opening.lastIndex = at
  }
  pieces.push(collapsed(html.slice(at)))
  return withoutEntities(pieces.join(''))
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')
}

function collapsed(text: string): string {
  return text.replace(/[ \t\r\n\f]+/g, ' ')
}

function hrefOf(tag: string): string {
  const match = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/i.exec(tag)
  const href = linkTarget(match?.[1] ?? match?.[2] ?? match?.[3] ?? '')
  return href.startsWith('#') ? '' : href
}

/** An unclosed construct extends to the end of the text. */
function endAfter(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from)
  return at < 0 ? html.length : at + mark.length
}

function endOfElement(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}`, 'gi')
  close.lastIndex = from
  return close.exec(html) ? endAfter(html, '>', close.lastIndex) : html.length
}

function withoutEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|([a-z]{2,4}));/g, (entity, decimal?: string, name = '') => {
    if (decimal === undefined) return ENTITIES[String(name)] ?? entity
    const code = Number(decimal)
    return code >= 0x20 && code <= 0x10ffff ? String.fromCodePoint(code) : ' '
  })
}

/** Counts every `<`, including those in comments and attributes, as a measure of parsing time. */
export function hasMoreTags(html: string, limit: number): boolean {
  let count = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) if (++count > limit) return true
  return false
}
