/**
 * What can be edited as formatted text, and how it is read from HTML and written to it.
 *
 * Attributes of paragraphs, headings, lists, links and spans are kept as they are written. HTML with anything else is not taken:
 * `isEditable` says so, and it is then edited as HTML, so that nothing of it gets lost.
 */
import {
  DOMParser as DocumentReader,
  DOMSerializer,
  Schema,
  type MarkSpec,
  type Node,
  type NodeSpec,
} from 'prosemirror-model'
import { piecesOf } from './merge-tags'

/** Stands for `style` except where HTML is text: set on an element, it is parsed, and loses what browsers do not know. */
const STYLE = 'data-written-style-6d1f'

type Kept = Readonly<Record<string, string>>

const keptOf = (element: HTMLElement): { kept: Kept } => ({
  kept: Object.fromEntries(
    [...element.attributes].map(({ name, value }) => [name === STYLE ? 'style' : name, value]),
  ),
})

const shown = ({ kept }: { kept?: Kept | undefined }): Record<string, string> => {
  // Nothing that acts: the console's own page is not the place for handlers, ids and targets of a mail.
  const { style, dir, lang } = kept ?? {}
  return Object.fromEntries(
    Object.entries({ style, dir, lang }).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

const attrs = { kept: { default: {} } }

function blockOf(tag: string, more: Partial<NodeSpec>): NodeSpec {
  return {
    attrs,
    parseDOM: [{ tag, getAttrs: keptOf }],
    toDOM: node => [tag, shown(node.attrs), 0],
    ...more,
  }
}

function markOf(tags: readonly string[], more: Partial<MarkSpec> = {}): MarkSpec {
  const [tag = 'span'] = tags
  return { parseDOM: tags.map(one => ({ tag: one })), toDOM: () => [tag, 0], ...more }
}

const mergeTag: NodeSpec = {
  inline: true,
  group: 'inline',
  atom: true,
  attrs: { tag: {} },
  leafText: node => String(node.attrs['tag']),
  parseDOM: [
    { tag: 'span[data-merge-tag]', priority: 60, getAttrs: node => ({ tag: node.dataset['mergeTag'] }) },
  ],
  toDOM: node => ['span', { 'data-merge-tag': String(node.attrs['tag']) }, String(node.attrs['tag'])],
}

export const richSchema = new Schema({
  nodes: {
    doc: { content: 'block+' },
    paragraph: {
      content: 'inline*',
      group: 'block',
      /** `isBare`: text that is in no `p`. */
      attrs: { ...attrs, isBare: { default: true } },
      parseDOM: [{ tag: 'p', getAttrs: element => ({ ...keptOf(element), isBare: false }) }],
      toDOM: node => ['p', { ...shown(node.attrs), ...(node.attrs['isBare'] ? { class: 'bare' } : {}) }, 0],
    },
    heading1: blockOf('h1', { content: 'inline*', group: 'block', defining: true }),
    heading2: blockOf('h2', { content: 'inline*', group: 'block', defining: true }),
    heading3: blockOf('h3', { content: 'inline*', group: 'block', defining: true }),
    bullet_list: blockOf('ul', { content: 'list_item+', group: 'block' }),
    ordered_list: blockOf('ol', { content: 'list_item+', group: 'block' }),
    list_item: blockOf('li', { content: 'paragraph (bullet_list | ordered_list)*', defining: true }),
    text: { group: 'inline' },
    hard_break: {
      inline: true,
      group: 'inline',
      selectable: false,
      leafText: () => '\n',
      parseDOM: [{ tag: 'br' }],
      toDOM: () => ['br'],
    },
    merge_tag: mergeTag,
  },
  marks: {
    link: {
      attrs,
      inclusive: false,
      parseDOM: [{ tag: 'a[href]', getAttrs: keptOf }],
      toDOM: mark => ['a', { ...shown(mark.attrs), title: (mark.attrs['kept'] as Kept)['href'] ?? '' }, 0],
    },
    span: {
      attrs,
      excludes: '',
      parseDOM: [{ tag: 'span:not([data-merge-tag])', getAttrs: keptOf }],
      toDOM: mark => ['span', shown(mark.attrs), 0],
    },
    strong: markOf(['strong', 'b']),
    em: markOf(['em', 'i']),
    underline: markOf(['u']),
    strike: markOf(['s', 'strike', 'del']),
  },
})

export const plainSchema = new Schema({
  nodes: { doc: { content: 'inline*' }, text: { group: 'inline' }, merge_tag: mergeTag },
})

const reader = DocumentReader.fromSchema(richSchema)

/** The document is never shown. Browsers complain of style attributes in it all the same, under the console's policy. */
export function pageOf(html: string): HTMLElement {
  const renamed = html.replace(/<[a-z][^<>]*>/gi, tag => tag.replace(/\sstyle\s*=/gi, ` ${STYLE}=`))
  return new DOMParser().parseFromString(renamed, 'text/html').body
}

export function readRich(html: string): Node {
  const page = pageOf(html)
  markTags(page)
  return reader.parse(page)
}

/** Puts merge tags in elements, which are then read as nodes. */
export function markTags(page: HTMLElement): void {
  const walker = page.ownerDocument.createTreeWalker(page, NodeFilter.SHOW_TEXT)
  const texts: Text[] = []
  while (walker.nextNode()) texts.push(walker.currentNode as Text)
  for (const text of texts) {
    const pieces = piecesOf(text.data)
    if (pieces.length === 1) continue
    text.replaceWith(
      ...pieces.map((piece, at) => {
        if (at % 2 === 0) return piece
        const element = page.ownerDocument.createElement('span')
        element.dataset['mergeTag'] = piece
        return element
      }),
    )
  }
}

export function readPlain(text: string): Node {
  const { doc, merge_tag: tag } = plainSchema.nodes
  const inline = piecesOf(text.replace(/\s+/g, ' ')).flatMap((piece, at) => {
    if (at % 2 === 1) return [tag.create({ tag: piece })]
    return piece === '' ? [] : [plainSchema.text(piece)]
  })
  return doc.create(null, inline)
}

export function writePlain(document: Node): string {
  return document.textBetween(0, document.content.size, '', leaf => leaf.type.spec.leafText?.(leaf) ?? '')
}

/** Stand for texts until the HTML is complete. */
const BARE = 'bare-text'
const TAG = 'tag-text'

const written = ({ kept }: { kept?: Kept | undefined }) =>
  Object.fromEntries(
    Object.entries(kept ?? {}).map(([name, value]) => [name === 'style' ? STYLE : name, value]),
  )

const writer = new DOMSerializer(
  {
    ...DOMSerializer.nodesFromSchema(richSchema),
    ...Object.fromEntries(
      (
        [
          ['heading1', 'h1'],
          ['heading2', 'h2'],
          ['heading3', 'h3'],
          ['bullet_list', 'ul'],
          ['ordered_list', 'ol'],
          ['list_item', 'li'],
        ] as const
      ).map(([name, tag]) => [name, (node: Node) => [tag, written(node.attrs), 0] as const]),
    ),
    paragraph: node => [node.attrs['isBare'] ? BARE : 'p', written(node.attrs), 0],
    merge_tag: node => [TAG, String(node.attrs['tag'])],
  },
  {
    ...DOMSerializer.marksFromSchema(richSchema),
    link: mark => ['a', written(mark.attrs), 0],
    span: mark => ['span', written(mark.attrs), 0],
  },
)

/** Whether the text is in no paragraph. */
export function isBare(document: Node): boolean {
  return document.childCount === 1 && document.firstChild?.attrs['isBare'] === true
}

/** @param mayBeBare whether a text in no paragraph stays so; else it becomes one */
export function writeRich(document: Node, mayBeBare = true): string {
  const detached = window.document.implementation.createHTMLDocument()
  const page = detached.createElement('div')
  page.append(writer.serializeFragment(document.content, { document: detached }))
  for (const tag of page.querySelectorAll(TAG)) tag.replaceWith(...tag.childNodes)
  const isAlone = mayBeBare && document.childCount === 1
  for (const bare of page.querySelectorAll(BARE)) {
    if (isAlone || bare.parentElement !== page) bare.replaceWith(...bare.childNodes)
    else {
      // Texts beside each other would run into one line.
      const paragraph = detached.createElement('p')
      paragraph.append(...bare.childNodes)
      bare.replaceWith(paragraph)
    }
  }
  return page.innerHTML.replaceAll(` ${STYLE}=`, ' style=')
}

/** Whether nothing gets lost if the HTML is edited as formatted text. */
export function isEditable(html: string): boolean {
  try {
    return shapeOf(pageOf(html)) === shapeOf(pageOf(writeRich(readRich(html))))
  } catch {
    return false
  }
}

const SAME: Readonly<Record<string, string>> = { b: 'strong', i: 'em', strike: 's', del: 's' }
const BLOCKS = /^(p|h\d|ul|ol|li|div|table)$/

/** Equal for HTML that means the same. */
function shapeOf(node: globalThis.Node): string {
  if (node instanceof Text || node.nodeType === 3) return (node.nodeValue ?? '').replace(/[ \t\r\n]+/g, ' ')
  if (node.nodeType !== 1) return `<!${node.nodeValue ?? ''}>`
  const element = node as Element
  const name = element.localName
  const attributes = [...element.attributes].map(one => `${one.name}=${one.value}`).sort()
  const inside = [...element.childNodes].map(shapeOf).join('')
  const isAround = BLOCKS.test(name) || name === 'body'
  return `<${[SAME[name] ?? name, ...attributes].join(' ')}>${isAround ? trimmed(inside) : inside}</>`
}

/** Without the spaces that browsers do not show: at the edges of blocks and between them. */
function trimmed(shape: string): string {
  return shape.trim().replace(/> </g, '><')
}
