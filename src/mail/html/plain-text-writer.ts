/**
 * Writes the plain text of HTML while reading it: blocks on lines of their own, links as `text <address>`, lists with markers, table rows
 * as lines, no images. Used by `mail/compose/plain-text.ts`. Pure.
 *
 * Each block asks for a number of line breaks before and after it; between two blocks the larger number counts. Breaks are written when
 * text follows. If there is a `body`, only its content is text. What an element's own style or `hidden` keeps from being drawn is left out, as
 * preheaders are.
 * Never throws; linear in the length of the HTML, and so is the text.
 */
import { HtmlTree } from './html-tree.js'
import { linkTarget } from './link-target.js'
import { ATTRIBUTE, TAG, TAG_COUNT, tagsOf, type NameId } from './names.js'
import type { MarkupPlace } from './read-markup.js'
import { decodeAttribute, decodeText } from './references.js'

/** Deeper content shows as `...`; nested table layouts reach 60. */
const MAX_DEPTH = 500
/** Maximum indentation of nested lists, in levels. */
const MAX_INDENT = 4
const RULE = '-'.repeat(40)

/** Line breaks before and after a block, by tag; 0 for elements within a line. */
const BREAKS = new Uint8Array(TAG_COUNT)
const ONE = ['article', 'aside', 'div', 'footer', 'form', 'header', 'main', 'nav', 'section'] as const
const TWO = ['blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'p', 'pre', 'table'] as const
for (const name of ONE) BREAKS[TAG[name]] = 1
for (const name of TWO) BREAKS[TAG[name]] = 2

/** Elements that begin on a new line, and what follows them does, without being blocks. */
const LINES = tagsOf(
  ...([
    'address',
    'caption',
    'center',
    'dd',
    'details',
    'dl',
    'dt',
    'fieldset',
    'figcaption',
    'figure',
  ] as const),
  ...(['legend', 'li', 'option', 'summary', 'tr'] as const),
)
const CELLS = tagsOf('td', 'th')
const UNSEEN = tagsOf('script', 'style', 'title', 'iframe', 'noembed', 'noframes')
const LISTS = tagsOf('ul', 'ol')

/** Of a `style` attribute. */
const NOT_DRAWN = /(?:^|;)\s*display\s*:\s*none/i

/** Roles of open elements in the text. */
const INLINE = 0
const BLOCK = 1
const LINE = 2
const LINK = 3
const LIST = 4
const ITEM = 5

/** White space that is one space in text; a zero width space is where a line may break. */
const NOT_ONE_SPACE = /[\t\n\f\r\u200b][\t\n\f\r \u200b]*| [\t\n\f\r \u200b]+/g

class Block {
  /** Line breaks between this and the text before it. */
  breaksBefore: number
  /** Line breaks that are due before more text of this block. */
  breaksDue = 0
  hasText = false
  readonly isPre: boolean
  /** Of a list item, until it is written with the first text. */
  marker = ''

  constructor(breaksBefore: number, isPre: boolean) {
    this.breaksBefore = breaksBefore
    this.isPre = isPre
  }
}

interface OpenLink {
  readonly target: string
  /** The text, if it is all that the link contains so far. */
  text: string | undefined
  isEmpty: boolean
}

export class PlainTextWriter extends HtmlTree {
  written = ''
  private block = new Block(0, false)
  private readonly blocks: Block[] = []
  /** Role of each open element. */
  private readonly roles: number[] = []
  private readonly links: OpenLink[] = []
  /** Items so far of each open list. */
  private readonly items: number[] = []
  /** The line has no words yet. */
  private isLineEmpty = true
  /** White space stands before the next word. */
  private isSpaceDue = false
  /** Open `body` elements. */
  private bodies = 0
  private hadBody = false
  /** Open elements up to and with the outermost that is not drawn; 0: all are. */
  private undrawnFrom = 0

  text(from: number, to: number): void {
    const { open } = this
    const tag = open.at(-1) ?? 0
    if (!this.isCounted || UNSEEN.has(tag)) return
    const text = decodeText(this.html.slice(from, to))
    if (tag === TAG.a) {
      const link = this.links.at(-1)
      if (link) {
        link.text = link.isEmpty ? text : undefined
        link.isEmpty = false
      }
    }
    this.put(text)
  }

  protected opens(tag: NameId, place: MarkupPlace | undefined): void {
    if (tag === TAG.body && this.bodies++ === 0) this.beginBody()
    if (this.undrawnFrom === 0 && place && this.isUndrawn(place)) this.undrawnFrom = this.open.length
    if (this.links.length > 0 && this.open.at(-2) === TAG.a && this.undrawnFrom === 0) this.mixLink()
    const role = this.isCounted ? this.roleOf(tag) : INLINE
    this.roles.push(role)
    if (role !== INLINE) this.begin(role, tag, place)
    else if (this.isCounted) this.opensInline(tag)
    if (this.open.length === MAX_DEPTH + 1 && this.undrawnFrom === 0 && (this.bodies > 0 || !this.hadBody))
      this.put('...')
  }

  protected closes(tag: NameId): void {
    const role = this.roles.pop()
    if (role === BLOCK) this.endBlock(BREAKS[tag] as number)
    else if (role === LINE) this.breakLine()
    else if (role === LINK) this.endLink()
    else if (role === ITEM) this.endItem()
    else if (role === LIST) {
      this.items.pop()
      this.endBlock(this.items.length > 0 ? 1 : 2)
    }
    if (tag === TAG.body) this.bodies -= 1
    if (this.open.length < this.undrawnFrom) this.undrawnFrom = 0
  }

  private get isCounted(): boolean {
    return this.undrawnFrom === 0 && this.open.length <= MAX_DEPTH && (this.bodies > 0 || !this.hadBody)
  }

  private isUndrawn(place: MarkupPlace): boolean {
    return (
      place.has(ATTRIBUTE.hidden) ||
      (place.has(ATTRIBUTE.style) && NOT_DRAWN.test(place.valueIn(this.html, ATTRIBUTE.style)))
    )
  }

  /** Text outside of the body does not count. */
  private beginBody(): void {
    if (this.hadBody) return
    this.hadBody = true
    this.written = ''
    this.block = new Block(0, false)
    this.blocks.length = 0
    this.roles.fill(INLINE)
    this.links.length = 0
    this.items.length = 0
    this.undrawnFrom = 0
    this.isLineEmpty = true
    this.isSpaceDue = false
  }

  private roleOf(tag: NameId): number {
    if (tag === TAG.a) return LINK
    if (LISTS.has(tag)) return LIST
    if (tag === TAG.li && LISTS.has(this.open.at(-2) ?? 0)) return this.items.length > 0 ? ITEM : LINE
    if ((BREAKS[tag] ?? 0) > 0) return BLOCK
    return LINES.has(tag) ? LINE : INLINE
  }

  private begin(role: number, tag: NameId, place: MarkupPlace | undefined): void {
    if (role === BLOCK) {
      this.beginBlock(BREAKS[tag] as number, tag === TAG.pre)
      if (tag === TAG.hr) this.put(RULE)
    } else if (role === LINE) this.breakLine()
    else if (role === LINK) {
      const href = place ? decodeAttribute(place.valueIn(this.html, ATTRIBUTE.href)) : ''
      this.links.push({ target: linkTarget(href), text: undefined, isEmpty: true })
    } else if (role === LIST) {
      this.beginBlock(this.items.length > 0 ? 1 : 2, false)
      this.items.push(0)
    } else this.beginItem()
  }

  private opensInline(tag: NameId): void {
    if (tag === TAG.br) this.writeBreak()
    else if (CELLS.has(tag)) this.isSpaceDue = true
  }

  private beginBlock(breaks: number, isPre: boolean): void {
    this.blocks.push(this.block)
    this.block = new Block(breaks, isPre || this.block.isPre)
    this.isLineEmpty = true
    this.isSpaceDue = false
  }

  private endBlock(breaks: number): void {
    const inner = this.block
    const outer = this.blocks.pop() ?? new Block(0, false)
    this.block = outer
    if (!inner.hasText) {
      const between = Math.max(outer.breaksDue, inner.breaksBefore)
      if (outer.hasText) this.written += '\n'.repeat(between)
      else outer.breaksBefore = between
    }
    outer.breaksDue = Math.max(inner.breaksDue, breaks)
    this.isLineEmpty = true
    this.isSpaceDue = false
  }

  private beginItem(): void {
    const level = Math.min(this.items.length - 1, MAX_INDENT)
    const item = (this.items.at(-1) as number) + 1
    this.items[this.items.length - 1] = item
    // The list's own element is the one around the item.
    const isNumbered = this.open.at(-2) === TAG.ol
    this.beginBlock(1, false)
    this.block.marker = `${'  '.repeat(level)}${isNumbered ? `${item}.` : '*'} `
  }

  private endItem(): void {
    if (!this.block.hasText) this.beginText()
    this.endBlock(1)
  }

  private breakLine(): void {
    if (!this.isLineEmpty) this.block.breaksDue = Math.max(this.block.breaksDue, 1)
    this.isSpaceDue = false
  }

  private writeBreak(): void {
    this.beginText()
    this.written += '\n'
    this.isLineEmpty = true
  }

  private put(text: string): void {
    const { block } = this
    if (block.isPre) {
      this.beginText()
      this.writeDueBreaks()
      this.written += text
      this.isLineEmpty = false
      return
    }
    const spaced = NOT_ONE_SPACE.test(text) ? text.replace(NOT_ONE_SPACE, ' ') : text
    NOT_ONE_SPACE.lastIndex = 0
    if (spaced === '' || spaced === ' ') {
      if (block.breaksDue === 0 && spaced !== '') this.isSpaceDue = true
      return
    }
    this.beginText()
    this.writeDueBreaks()
    // Runs are one space by now, and no other white space is cut.
    const isAfterSpace = spaced.startsWith(' ')
    const isBeforeSpace = spaced.endsWith(' ')
    if (!this.isLineEmpty && (this.isSpaceDue || isAfterSpace)) this.written += ' '
    this.written += spaced.slice(isAfterSpace ? 1 : 0, isBeforeSpace ? -1 : undefined)
    this.isLineEmpty = false
    this.isSpaceDue = isBeforeSpace
  }

  private writeDueBreaks(): void {
    const { block } = this
    if (block.breaksDue === 0) return
    this.written += '\n'.repeat(block.breaksDue)
    block.breaksDue = 0
    this.isLineEmpty = true
  }

  /** Writes what stands before the first text of the block, and of the blocks around it that have none. */
  private beginText(): void {
    if (this.block.hasText) return
    let { block } = this
    let markers = block.marker
    let breaks = block.breaksBefore
    block.hasText = true
    for (let at = this.blocks.length - 1; at >= 0; at--) {
      const outer = this.blocks[at] as Block
      breaks = Math.max(outer.breaksDue, breaks)
      if (outer.hasText) {
        this.written += '\n'.repeat(breaks)
        break
      }
      outer.hasText = true
      block = outer
      if (block.marker !== '') {
        markers = markers === '' ? block.marker : `${block.marker.trimEnd()}\n${markers}`
        breaks = block.breaksBefore
      }
    }
    this.written += markers
  }

  /** The open link has more than text. */
  private mixLink(): void {
    const link = this.links.at(-1) as OpenLink
    link.isEmpty = false
    link.text = undefined
  }

  private endLink(): void {
    const { target, text } = this.links.pop() as OpenLink
    const isShown = text !== undefined && text.trim() === target
    // RFC 3986 Appendix C recommends angle brackets around a URI in text.
    if (target !== '' && !target.startsWith('#') && !isShown) this.put(` <${target}>`)
  }
}
