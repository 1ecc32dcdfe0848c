/**
 * Reads HTML as a tree without building one: calls `opens` and `closes` in the order of a walk through it.
 *
 * Tolerant as mail clients are: elements without an end tag are closed by what follows (§13.1.2.4), an end tag closes all that was opened
 * inside, and one that matches nothing is ignored. Does not move misplaced content, as browsers do in tables. Pure.
 * Standards: HTML Living Standard §13.1.2 (void elements, optional tags), §13.2.6.4.7 (`</p>`, `</br>`).
 * Never throws; linear in the length of the HTML.
 */
import { MarkupPlace, readMarkup, type MarkupSink } from './read-markup.js'
import { TAG, TAG_COUNT, tagsOf, type NameId, type TagName } from './names.js'

const VOID = tagsOf(
  ...(['area', 'base', 'basefont', 'br', 'col', 'command', 'embed', 'frame', 'hr', 'img', 'input'] as const),
  ...(['keygen', 'link', 'meta', 'param', 'source', 'track', 'wbr'] as const),
)
const FOREIGN = tagsOf('svg', 'math')

type Names = readonly TagName[]
/** Start tags, and the open elements directly around them that they close. */
const CLOSING: readonly (readonly [Names, Names])[] = [
  [
    [
      ...(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'address', 'article', 'aside', 'blockquote'] as const),
      ...(['details', 'div', 'dl', 'fieldset', 'figcaption', 'figure', 'footer', 'form', 'header'] as const),
      ...(['hr', 'main', 'nav', 'ol', 'pre', 'section', 'table', 'ul'] as const),
    ],
    ['p'],
  ],
  [['li'], ['li']],
  [
    ['dd', 'dt'],
    ['dd', 'dt'],
  ],
  [['tr'], ['tr', 'th', 'td']],
  [['td'], ['thead', 'th', 'td']],
  [['th'], ['th']],
  [
    ['tbody', 'tfoot'],
    ['thead', 'tbody'],
  ],
  [['body'], ['head', 'link', 'script']],
  [['option'], ['option']],
  [['optgroup'], ['optgroup', 'option']],
  [
    ['rt', 'rp'],
    ['rt', 'rp'],
  ],
  [
    ['select', 'input', 'output', 'button', 'datalist', 'textarea'],
    ['input', 'option', 'optgroup', 'select', 'button', 'datalist', 'textarea'],
  ],
]

const CLOSED_BY: (ReturnType<typeof tagsOf> | undefined)[] = []
for (const [starts, closed] of CLOSING) for (const name of starts) CLOSED_BY[TAG[name]] = tagsOf(...closed)

export abstract class HtmlTree implements MarkupSink {
  protected readonly html: string
  protected readonly place = new MarkupPlace()
  /** Open elements, outermost first. */
  protected readonly open: NameId[] = []
  /** How many of each are open. */
  private readonly counts: number[] = Array<number>(TAG_COUNT).fill(0)
  /** Numbers of names that the table does not have. */
  private readonly others = new Map<string, NameId>()

  constructor(html: string) {
    this.html = html
  }

  read(): void {
    readMarkup(this.place, this.html, this)
    while (this.open.length > 0) this.pop()
  }

  /** A run of text inside the innermost open element, with its character references. */
  abstract text(from: number, to: number): void

  /** @param place the tag, whose attributes can be read; undefined if it is implied */
  protected abstract opens(tag: NameId, place: MarkupPlace | undefined): void

  protected abstract closes(tag: NameId): void

  startTag(place: MarkupPlace): void {
    const tag = this.numberOf(place)
    const closed = CLOSED_BY[tag]
    if (closed) while (this.open.length > 0 && closed.has(this.open.at(-1) as NameId)) this.pop()
    this.push(tag, place)
    const isEmpty = VOID.has(tag) || (place.isSelfClosing && (place.foreignDepth > 0 || FOREIGN.has(tag)))
    if (isEmpty) this.pop()
  }

  endTagEnds(place: MarkupPlace): void {
    const tag = this.numberOf(place)
    if (tag === TAG.br || (tag === TAG.p && this.counts[tag] === 0)) {
      this.push(tag, undefined)
      this.pop()
    } else if (!VOID.has(tag) && (this.counts[tag] ?? 0) > 0) while (this.pop() !== tag);
  }

  private numberOf(place: MarkupPlace): NameId {
    if (place.tag !== 0) return place.tag
    const name = place.nameIn(this.html)
    const known = this.others.get(name)
    if (known !== undefined) return known
    const tag = TAG_COUNT + this.others.size
    this.others.set(name, tag)
    this.counts.push(0)
    return tag
  }

  private push(tag: NameId, place: MarkupPlace | undefined): void {
    this.open.push(tag)
    this.counts[tag] = (this.counts[tag] as number) + 1
    this.opens(tag, place)
  }

  private pop(): NameId {
    const tag = this.open.pop() as NameId
    this.counts[tag] = (this.counts[tag] as number) - 1
    this.closes(tag)
    return tag
  }
}
