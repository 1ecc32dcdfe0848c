/**
 * The plain-text alternative of an HTML body.
 *
 * Called by the composer, or once per shared content by whoever sends the same HTML to many. html-to-text does the work
 * within limits: it builds a tree, which takes a second for 256 KB of nothing but tags, and walks it recursively, which
 * overflows the stack for deep ones. HTML with more tags than anybody writes has them cut out instead. Pure.
 * Fails: never throws, whatever the HTML.
 */
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { hasMoreTags, stripHtml } from './html-tags.js'

/** Tags, closing ones included; 256 KB of the tersest real markup have some 10,000. */
const MAX_TAGS = 12_000
/** Levels of the tree; what is deeper shows as `...`. Layouts of nested tables reach 60. */
const MAX_DEPTH = 500
/** Levels by which the items of nested lists are moved in. */
const MAX_INDENT = 4

/**
 * Lists with the marker on the item's first line only. The library indents every line once per level, quotes likewise:
 * 10,000 lines in a hundred of them would become megabytes.
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

/** @returns how many lists the list stands in, at most `MAX_INDENT` */
function listLevel(element: DomNode): number {
  let level = 0
  let outer = element.parent
  // Each level is a list and an item, give or take a wrapper.
  for (let steps = 0; outer && steps < 4 * MAX_INDENT; steps++) {
    if (outer.name === 'ul' || outer.name === 'ol') level++
    outer = outer.parent
  }
  return Math.min(level, MAX_INDENT)
}

/**
 * `text <href>`, or the text alone where it is the address already. The library's own way of telling sends every word
 * through every link around it: links in links in links took it 8 s.
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
  // Readers wrap to their own width.
  wordwrap: false,
  limits: { maxDepth: MAX_DEPTH },
  formatters: { bullets: listFormat(() => '*'), numbers: listFormat(item => `${item}.`), link: linkFormat },
  selectors: [
    { selector: 'img', format: 'skip' },
    { selector: 'a', format: 'link' },
    { selector: 'ul', format: 'bullets' },
    { selector: 'ol', format: 'numbers' },
    { selector: 'blockquote', format: 'block' },
    // The library's default is capitals with two empty lines before.
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(selector => ({
      selector,
      options: { uppercase: false, leadingLineBreaks: 2 },
    })),
  ],
})

/** @returns text with links kept and images left out; lines end in LF and are not wrapped */
export function plainTextOf(html: string): string {
  return hasMoreTags(html, MAX_TAGS) ? stripHtml(html) : convert(html)
}
