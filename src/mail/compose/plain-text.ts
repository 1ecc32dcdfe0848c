/**
 * Converts an HTML body to its plain-text alternative.
 *
 * html-to-text does the work, within limits: it takes a second for 256 KB of nothing but tags, and recursion
 * overflows the stack for deep nesting. HTML with more tags than any real mail has its tags stripped instead. Never
 * throws.
 */
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { hasMoreTags, stripHtml } from './html-tags.js'

/** Including closing tags; 256 KB of terse real markup have some 10,000. */
const MAX_TAGS = 12_000
/** Deeper content shows as `...`; nested table layouts reach 60. */
const MAX_DEPTH = 500
/** Maximum indentation of nested lists, in levels. */
const MAX_INDENT = 4

/**
 * Lists with the marker on the item's first line only. The library indents every line once per level: 10,000 lines
 * nested a hundred deep would become megabytes.
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

/** @returns the nesting depth, at most `MAX_INDENT` */
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
 * `text <href>`, or the text alone if it is the address. The library's own check passes every word through every
 * enclosing link, which took 8 s for nested links.
 */
const linkFormat: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder)
  const { href = '' } = (element.attribs ?? {}) as { readonly href?: string }
  const target = href.trim().replace(/^mailto:/i, '')
  const [only, ...others] = element.children
  const isShown = others.length === 0 && only?.type === 'text' && only.data?.trim() === target
  // RFC 3986 Appendix C recommends angle brackets around a URI in text.
  if (target !== '' && !target.startsWith('#') && !isShown) builder.addInline(` <${target}>`)
}

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
