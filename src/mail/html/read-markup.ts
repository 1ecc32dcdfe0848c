/**
 * HTML tokenizer: reports text, tags and link URLs with their places, in one linear pass that allocates nothing.
 *
 * Every reader of a mail's HTML uses it: tracking, footer, plain text. A text may come in pieces, between which merged values count as one
 * more character; `MarkupPlace` is where reading stopped. Does not validate. Links in comments, scripts, styles and other raw text are
 * ignored; those in Outlook's conditional comments have a reader of their own. Pure.
 * Standards: HTML Living Standard §13.2.5 (tokenization), §13.2.6.5 (foreign content), without escaped comments in scripts, which mail does
 * not have. Never throws; linear in the length of the text.
 */
import {
  ATTRIBUTE,
  ATTRIBUTE_COUNT,
  findAttribute,
  findTag,
  startsWithName,
  TAG,
  tagName,
  tagsOf,
  type NameId,
} from './names.js'

const TEXT = 0
const TAG_NAME = 1
const IN_TAG = 2
const ATTRIBUTE_NAME = 3
const AFTER_NAME = 4
const BEFORE_VALUE = 5
const VALUE = 6
const COMMENT = 7
const DECLARATION = 8
const CDATA = 9
const RAW_TEXT = 10

const TAB = 0x09
const LF = 0x0a
const FF = 0x0c
const CR = 0x0d
const SPACE = 0x20
const BANG = 0x21
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const SLASH = 0x2f
const EQUALS = 0x3d
const GREATER = 0x3e
const QUESTION = 0x3f

/** Where reading stopped, and the current tag. Ranges of names and values are only valid for a tag that is all in one piece. */
export class MarkupPlace {
  mode = TEXT
  /** The current tag; 0 if its name is unknown. */
  tag: NameId = 0
  isEndTag = false
  /** The current attribute; 0 if its name is unknown. */
  attribute: NameId = 0
  /** The closing quote; empty if unquoted. */
  quote = ''
  /** The tag already has an `href`; later ones are ignored. */
  hasHref = false
  /** The tag ends in `/>`. */
  isSelfClosing = false
  /** The element whose end tag ends the raw text. */
  rawElement: NameId = 0
  /** Open SVG and MathML elements, inside which other rules apply. */
  foreignDepth = 0
  /** The text is for Outlook, in which drawings are links too. */
  isForOutlook = false
  nameStart = 0
  nameEnd = 0
  /** The part of the tag's name in earlier pieces, lower case. */
  partialName = ''
  /** The part of the attribute's name in earlier pieces. */
  partialAttribute = ''
  valueStart = 0
  /** Bits of the known attributes that the current tag has. */
  private present = 0
  /** Start and end of the value of each known attribute. */
  private readonly values = new Int32Array(2 * ATTRIBUTE_COUNT)

  /** Outside tags, comments, declarations and raw text. */
  get isInText(): boolean {
    return this.mode === TEXT
  }

  /** Whether the position is inside the URL of a link. */
  get isInHref(): boolean {
    return this.mode === VALUE && this.isLinkValue
  }

  get isLinkValue(): boolean {
    if (this.attribute !== ATTRIBUTE.href || this.isEndTag || this.hasHref) return false
    return LINKS.has(this.tag) || (this.isForOutlook && DRAWINGS.has(this.tag))
  }

  /** Name of the current tag, lower case. @param text the piece */
  nameIn(text: string): string {
    return this.partialName === '' ? text.slice(this.nameStart, this.nameEnd).toLowerCase() : this.partialName
  }

  has(attribute: NameId): boolean {
    return (this.present & (1 << attribute)) !== 0
  }

  /** Value with its character references; empty if the tag has no such attribute. @param text the piece */
  valueIn(text: string, attribute: NameId): string {
    if (!this.has(attribute)) return ''
    return text.slice(this.values[2 * attribute], this.values[2 * attribute + 1])
  }

  beginTag(isEndTag: boolean): void {
    this.mode = TAG_NAME
    this.tag = 0
    this.isEndTag = isEndTag
    this.attribute = 0
    this.hasHref = false
    this.isSelfClosing = false
    this.partialName = ''
    this.present = 0
  }

  beginName(): void {
    this.mode = ATTRIBUTE_NAME
    this.attribute = 0
    this.partialAttribute = ''
  }

  /** The first attribute of a name counts. */
  endAttribute(valueStart: number, valueEnd: number): void {
    const { attribute } = this
    this.mode = IN_TAG
    if (attribute === 0 || this.has(attribute)) return
    if (attribute === ATTRIBUTE.href) this.hasHref = true
    this.present |= 1 << attribute
    this.values[2 * attribute] = valueStart
    this.values[2 * attribute + 1] = valueEnd
  }

  copy(): MarkupPlace {
    const copied = new MarkupPlace()
    copied.moveTo(this)
    return copied
  }

  moveTo(other: MarkupPlace): void {
    this.mode = other.mode
    this.tag = other.tag
    this.isEndTag = other.isEndTag
    this.attribute = other.attribute
    this.quote = other.quote
    this.hasHref = other.hasHref
    this.isSelfClosing = other.isSelfClosing
    this.rawElement = other.rawElement
    this.foreignDepth = other.foreignDepth
    this.isForOutlook = other.isForOutlook
    this.nameStart = other.nameStart
    this.nameEnd = other.nameEnd
    this.partialName = other.partialName
    this.partialAttribute = other.partialAttribute
    this.valueStart = other.valueStart
    this.present = other.present
    this.values.set(other.values)
  }
}

/** Indexes refer to the current piece. */
export interface MarkupSink {
  /** A run of text, with its character references, raw text included. A run ends with its piece. */
  text?(from: number, to: number): void
  /** The `<` of a tag, comment or declaration. */
  markupBegins?(at: number): void
  /** Index of the first character of a link's `href` value. */
  hrefBegins?(at: number): void
  /** Index after its last character. */
  hrefEnds?(at: number): void
  /** Index after a start tag; also called for SVG and other foreign elements. */
  startTag?(place: MarkupPlace, end: number): void
  /** Index of the `<` of an end tag, whose name is known and whose `>` may be missing. */
  endTag?(tag: NameId, at: number): void
  /** Content of a comment that only Outlook shows (`<!--[if mso]>...<![endif]-->`), if the comment is all in one piece. */
  outlookComment?(from: number, to: number): void
  /** Index after an end tag. */
  endTagEnds?(place: MarkupPlace, end: number): void
}

/** Elements whose content is text up to their end tag. `noscript` is not one: mail runs no scripts, so its content is shown. */
const RAW_TEXT_ELEMENTS = tagsOf(
  ...(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes', 'plaintext'] as const),
)
const FOREIGN_ELEMENTS = tagsOf('svg', 'math')
/** Elements that implicitly close SVG and MathML (§13.2.6.5). */
const BREAKING_OUT = tagsOf(
  ...([
    'b',
    'big',
    'blockquote',
    'body',
    'br',
    'center',
    'code',
    'dd',
    'div',
    'dl',
    'dt',
    'em',
    'embed',
  ] as const),
  ...([
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'head',
    'hr',
    'i',
    'img',
    'li',
    'listing',
    'menu',
    'meta',
  ] as const),
  ...([
    'nobr',
    'ol',
    'p',
    'pre',
    'ruby',
    's',
    'small',
    'span',
    'strong',
    'strike',
    'sub',
    'sup',
    'table',
  ] as const),
  ...(['tt', 'u', 'ul', 'var'] as const),
)
const LINKS = tagsOf('a', 'area')
const DRAWINGS = tagsOf('v:group', 'v:image', 'v:line', 'v:oval', 'v:rect', 'v:roundrect', 'v:shape')
/** Start of what stands for the place of a comment that began in another piece. */
const ELSEWHERE = -1

export function readMarkup(place: MarkupPlace, text: string, sink: MarkupSink): void {
  let at = 0
  if (place.mode === COMMENT) place.valueStart = ELSEWHERE
  while (at < text.length) at = readStep(place, text, at, sink)
}

/** Advances over a merged value, which counts as a character that ends nothing. */
export function passMergedValue(place: MarkupPlace, sink: MarkupSink): void {
  if (place.mode === IN_TAG || place.mode === AFTER_NAME) place.beginName()
  else if (place.mode === BEFORE_VALUE) beginValue(place, '', 0, sink)
}

function readStep(place: MarkupPlace, text: string, at: number, sink: MarkupSink): number {
  switch (place.mode) {
    case TEXT:
      return readText(place, text, at, sink)
    case TAG_NAME:
      return readTagName(place, text, at)
    case IN_TAG:
      return readInTag(place, text, at, sink)
    case ATTRIBUTE_NAME:
      return readAttributeName(place, text, at)
    case AFTER_NAME:
      return readAfterName(place, text, at)
    case BEFORE_VALUE:
      return readBeforeValue(place, text, at, sink)
    case VALUE:
      return readValue(place, text, at, sink)
    case COMMENT:
      return readComment(place, text, at, sink)
    case DECLARATION:
      return readUntil(place, text, at, '>')
    case CDATA:
      return readUntil(place, text, at, ']]>')
    default:
      return readRawText(place, text, at, sink)
  }
}

function readText(place: MarkupPlace, text: string, from: number, sink: MarkupSink): number {
  for (let open = text.indexOf('<', from); open >= 0; open = text.indexOf('<', open + 1)) {
    const code = text.charCodeAt(open + 1)
    const isTag = isLetter(code)
    if (!isTag && code !== SLASH && code !== BANG && code !== QUESTION) continue
    if (open > from) sink.text?.(from, open)
    sink.markupBegins?.(open)
    if (isTag) {
      place.beginTag(false)
      return readTagName(place, text, open + 1)
    }
    return code === SLASH ? openEndTag(place, text, open, sink) : openDeclaration(place, text, open)
  }
  sink.text?.(from, text.length)
  return text.length
}

/** @param open the index of its `<` */
function openEndTag(place: MarkupPlace, text: string, open: number, sink: MarkupSink): number {
  const at = open + 2
  if (isLetter(text.charCodeAt(at))) {
    place.beginTag(true)
    const end = readTagName(place, text, at)
    sink.endTag?.(place.tag, open)
    return end
  }
  if (text.charCodeAt(at) === GREATER) return at + 1
  place.mode = DECLARATION
  return at
}

/** `<!-->` and `<!--->` are complete comments. @param open the index of its `<` */
function openDeclaration(place: MarkupPlace, text: string, open: number): number {
  if (text.startsWith('!--', open + 1)) {
    const at = open + 4
    if (text.charCodeAt(at) === GREATER) return at + 1
    if (text.startsWith('->', at)) return at + 2
    place.mode = COMMENT
    place.valueStart = at
    return at
  }
  if (place.foreignDepth > 0 && text.startsWith('![CDATA[', open + 1)) {
    place.mode = CDATA
    return open + '<![CDATA['.length
  }
  place.mode = DECLARATION
  return open + 1
}

function readTagName(place: MarkupPlace, text: string, at: number): number {
  let end = at
  while (end < text.length && !endsTagName(text.charCodeAt(end))) end++
  if (end < text.length) place.mode = IN_TAG
  if (end < text.length && place.partialName === '') {
    place.nameStart = at
    place.nameEnd = end
    place.tag = findTag(text, at, end)
  } else {
    place.partialName += text.slice(at, end).toLowerCase()
    place.tag = findTag(place.partialName, 0, place.partialName.length)
  }
  return end
}

function readInTag(place: MarkupPlace, text: string, at: number, sink: MarkupSink): number {
  let next = at
  let code = text.charCodeAt(next)
  let before = 0
  while (isSpace(code) || code === SLASH) {
    before = code
    code = text.charCodeAt(++next)
  }
  if (next >= text.length) return text.length
  if (code === GREATER) {
    place.isSelfClosing = before === SLASH
    return endTag(place, next + 1, sink)
  }
  place.beginName()
  // A leading `=` is part of the name.
  return readAttributeName(place, text, next, code === EQUALS ? next + 1 : next)
}

function readAttributeName(place: MarkupPlace, text: string, from: number, at = from): number {
  let end = at
  while (end < text.length && !endsAttributeName(text.charCodeAt(end))) end++
  if (end < text.length && place.partialAttribute === '') place.attribute = findAttribute(text, from, end)
  else {
    place.partialAttribute += text.slice(from, end)
    place.attribute = findAttribute(place.partialAttribute, 0, place.partialAttribute.length)
  }
  if (end < text.length) place.mode = AFTER_NAME
  return end
}

function readAfterName(place: MarkupPlace, text: string, at: number): number {
  const next = afterSpace(text, at)
  if (next >= text.length) return next
  if (text.charCodeAt(next) === EQUALS) {
    place.mode = BEFORE_VALUE
    return next + 1
  }
  place.endAttribute(0, 0)
  return next
}

function readBeforeValue(place: MarkupPlace, text: string, at: number, sink: MarkupSink): number {
  const next = afterSpace(text, at)
  if (next >= text.length) return next
  const code = text.charCodeAt(next)
  if (code === GREATER) {
    place.endAttribute(0, 0)
    return next
  }
  const quote = code === DOUBLE_QUOTE ? '"' : code === SINGLE_QUOTE ? "'" : ''
  beginValue(place, quote, next + quote.length, sink)
  return next + quote.length
}

function beginValue(place: MarkupPlace, quote: string, at: number, sink: MarkupSink): void {
  place.mode = VALUE
  place.quote = quote
  place.valueStart = at
  if (place.isLinkValue) sink.hrefBegins?.(at)
}

function readValue(place: MarkupPlace, text: string, at: number, sink: MarkupSink): number {
  const { quote } = place
  let end = at
  if (quote === '') while (end < text.length && !endsValue(text.charCodeAt(end))) end++
  else end = indexOrEnd(text, quote, at)
  if (end >= text.length) return text.length
  if (place.isLinkValue) sink.hrefEnds?.(end)
  place.endAttribute(place.valueStart, end)
  return end + quote.length
}

/** @param end index after the `>` */
function endTag(place: MarkupPlace, end: number, sink: MarkupSink): number {
  const { tag } = place
  place.mode = TEXT
  if (place.isEndTag) {
    sink.endTagEnds?.(place, end)
    if (FOREIGN_ELEMENTS.has(tag)) place.foreignDepth = Math.max(0, place.foreignDepth - 1)
    return end
  }
  sink.startTag?.(place, end)
  if (BREAKING_OUT.has(tag)) place.foreignDepth = 0
  if (FOREIGN_ELEMENTS.has(tag)) {
    if (!place.isSelfClosing) place.foreignDepth += 1
  } else if (place.foreignDepth === 0 && RAW_TEXT_ELEMENTS.has(tag)) {
    place.mode = RAW_TEXT
    place.rawElement = tag
  }
  return end
}

function readComment(place: MarkupPlace, text: string, from: number, sink: MarkupSink): number {
  for (let at = text.indexOf('--', from); at >= 0; at = text.indexOf('--', at + 1)) {
    const code = text.charCodeAt(at + 2)
    if (code !== GREATER && !(code === BANG && text.charCodeAt(at + 3) === GREATER)) continue
    place.mode = TEXT
    if (sink.outlookComment && place.valueStart !== ELSEWHERE && text.startsWith('[if', place.valueStart)) {
      const start = text.indexOf(']>', place.valueStart) + ']>'.length
      if (start > place.valueStart && start < at) sink.outlookComment(start, at)
    }
    return code === GREATER ? at + 3 : at + 4
  }
  return text.length
}

/**
 * Calls back for each link in a text for Outlook with the start and end of its URL, which stands in quotes.
 *
 * Unquoted URLs are left out: what replaces one might end in hyphens, which with the `>` would end the comment.
 */
export function readOutlookLinks(text: string, found: (from: number, to: number) => void): void {
  const place = new MarkupPlace()
  place.isForOutlook = true
  let start = 0
  readMarkup(place, text, {
    hrefBegins(at) {
      start = at
    },
    hrefEnds(at) {
      if (place.quote !== '') found(start, at)
    },
  })
}

function readUntil(place: MarkupPlace, text: string, from: number, mark: string): number {
  const at = text.indexOf(mark, from)
  if (at < 0) return text.length
  place.mode = TEXT
  return at + mark.length
}

function readRawText(place: MarkupPlace, text: string, from: number, sink: MarkupSink): number {
  const end = endOfRawText(text, from, place.rawElement)
  if (end > from) sink.text?.(from, end)
  if (end < text.length) place.mode = TEXT
  return end
}

function endOfRawText(text: string, from: number, element: NameId): number {
  if (element === TAG.plaintext) return text.length
  const name = tagName(element)
  for (let at = text.indexOf('</', from); at >= 0; at = text.indexOf('</', at + 2)) {
    const end = at + 2 + name.length
    if (end < text.length && endsTagName(text.charCodeAt(end)) && startsWithName(text, at + 2, name))
      return at
  }
  return text.length
}

function isLetter(code: number): boolean {
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x7a && code < 0x80
}

function isSpace(code: number): boolean {
  return code === SPACE || code === LF || code === TAB || code === CR || code === FF
}

function endsTagName(code: number): boolean {
  return code === GREATER || isSpace(code) || code === SLASH
}

function endsAttributeName(code: number): boolean {
  return code === EQUALS || endsTagName(code)
}

function endsValue(code: number): boolean {
  return code === GREATER || isSpace(code)
}

function afterSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at
}
