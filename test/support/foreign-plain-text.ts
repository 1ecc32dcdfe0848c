/** The plain text of HTML as html-to-text writes it, set up as the server's own writer is: it is what that is held to. */
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { linkTarget } from '../../src/mail/html/link-target.js'

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
  for (let outer = element.parent; outer; outer = outer.parent)
    if (outer.name === 'ul' || outer.name === 'ol') level++
  return Math.min(level, 4)
}

const linkFormat: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder)
  const target = linkTarget(((element.attribs ?? {}) as { readonly href?: string }).href ?? '')
  const [only, ...others] = element.children
  const isShown = others.length === 0 && only?.type === 'text' && only.data?.trim() === target
  if (target !== '' && !target.startsWith('#') && !isShown) builder.addInline(` <${target}>`)
}

export const foreignPlainText: (html: string) => string = compile({
  wordwrap: false,
  formatters: { bullets: listFormat(() => '*'), numbers: listFormat(item => `${item}.`), link: linkFormat },
  selectors: [
    { selector: 'img', format: 'skip' },
    ...['[hidden]', '[style*="display:none"]', '[style*="display: none"]'].map(selector => ({
      selector,
      format: 'skip',
    })),
    { selector: 'a', format: 'link' },
    { selector: 'ul', format: 'bullets' },
    { selector: 'ol', format: 'numbers' },
    { selector: 'blockquote', format: 'block' },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(selector => ({
      selector,
      options: { uppercase: false, leadingLineBreaks: 2 },
    })),
  ],
})
