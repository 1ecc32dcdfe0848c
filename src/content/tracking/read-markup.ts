/**
 * Incremental HTML tokenizer: reports where link URLs start and end, and where tags end.
 *
 * Used to find the end of the body, and by `track-template.ts` in pieces, between which merged values count as one more character. Does not
 * validate. Links in comments (including Outlook's conditional ones), scripts, styles and other raw text are ignored. Pure.
 * Standards: HTML Living Standard §13.2.5 (tokenization), §13.2.6.5 (foreign content), without escaped comments in scripts, which mail does
 * not have. Never throws; linear in the length of the text.
 */

export interface MarkupPlace {
  mode: Mode
  /** The current tag, lower case. */
  tag: string
  isEndTag: boolean
  /** The current attribute, lower case. */
  attribute: string
  /** The closing quote; empty if unquoted. */
  quote: string
  /** The tag already has an `href`; later ones are ignored. */
  hasHref: boolean
  /** The element whose end tag ends the raw text. */
  rawElement: string
  /** Open SVG and MathML elements, inside which other rules apply. */
  foreignDepth: number
}

type Mode =
  | 'text'
  | 'tag name'
  | 'in tag'
  | 'attribute name'
  | 'after name'
  | 'before value'
  | 'value'
  | 'comment'
  | 'declaration'
  | 'cdata'
  | 'raw text'

/** Indexes refer to the current piece. */
export interface MarkupSink {
  /** The `<` of a tag, comment or declaration. */
  markupBegins?(at: number): void
  /** Index of the first character of a link's `href` value. */
  hrefBegins(at: number): void
  /** Index after its last character. */
  hrefEnds(at: number): void
  /** Index after a start tag; also called for SVG and other foreign elements. */
  startTag?(name: string, end: number): void
  /** Index of the `<` of an end tag. */
  endTag(name: string, at: number): void
}

export function startOfMarkup(): MarkupPlace {
  return {
    mode: 'text',
    tag: '',
    isEndTag: false,
    attribute: '',
    quote: '',
    hasHref: false,
    rawElement: '',
    foreignDepth: 0,
  }
}

/** Elements whose content is text up to their end tag. `noscript` is not one: mail runs no scripts, so its content is shown. */
const RAW_TEXT_ELEMENTS: ReadonlySet<string> = new Set(
  'script style textarea title xmp iframe noembed noframes plaintext'.split(' '),
)
const FOREIGN_ELEMENTS: ReadonlySet<string> = new Set(['svg', 'math'])
/** Elements that implicitly close SVG and MathML (§13.2.6.5). */
const BREAKING_OUT: ReadonlySet<string> = new Set(
  (
    'b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby ' +
    's small span strong strike sub sup table tt u ul var'
  ).split(' '),
)
const LINKS: ReadonlySet<string> = new Set(['a', 'area'])

export function readMarkup(place: MarkupPlace, text: string, sink: MarkupSink): void {
  let at = 0
  while (at < text.length) at = STEPS[place.mode](place, text, at, sink)
}

/** Advances over a merged value, which counts as a character that ends nothing. */
export function passMergedValue(place: MarkupPlace, sink: MarkupSink): void {
  if (place.mode === 'in tag' || place.mode === 'after name') beginName(place)
  else if (place.mode === 'before value') beginValue(place, '', 0, sink)
}

export function isInHref({ mode, tag, isEndTag, attribute, hasHref }: MarkupPlace): boolean {
  return mode === 'value' && !isEndTag && !hasHref && attribute === 'href' && LINKS.has(tag)
}

type Step = (place: MarkupPlace, text: string, at: number, sink: MarkupSink) => number

const STEPS: Readonly<Record<Mode, Step>> = {
  text(place, text, at, sink) {
    const open = text.indexOf('<', at)
    return open < 0 ? text.length : openMarkup(place, text, open, sink)
  },
  'tag name'(place, text, at) {
    const end = indexOf(/[\t\n\f\r />]/g, text, at)
    place.tag += text.slice(at, end).toLowerCase()
    if (end < text.length) place.mode = 'in tag'
    return end
  },
  'in tag'(place, text, at, sink) {
    const next = indexOf(/[^\t\n\f\r /]/g, text, at)
    if (text[next] === '>') return endTag(place, text, next, sink)
    if (next === text.length) return next
    beginName(place)
    if (text[next] !== '=') return next
    // A leading `=` is part of the name.
    place.attribute = '='
    return next + 1
  },
  'attribute name'(place, text, at) {
    const end = indexOf(/[\t\n\f\r />=]/g, text, at)
    place.attribute += text.slice(at, end).toLowerCase()
    if (end < text.length) place.mode = 'after name'
    return end
  },
  'after name'(place, text, at) {
    const next = indexOf(/[^\t\n\f\r ]/g, text, at)
    if (text[next] === '=') {
      place.mode = 'before value'
      return next + 1
    }
    if (next < text.length) endAttribute(place)
    return next
  },
  'before value'(place, text, at, sink) {
    const next = indexOf(/[^\t\n\f\r ]/g, text, at)
    const character = text[next]
    if (character === undefined) return next
    if (character === '>') {
      endAttribute(place)
      return next
    }
    const quote = character === '"' || character === "'" ? character : ''
    beginValue(place, quote, next + quote.length, sink)
    return next + quote.length
  },
  value(place, text, at, sink) {
    const { quote } = place
    const end = quote === '' ? indexOf(/[\t\n\f\r >]/g, text, at) : indexOrEnd(text, quote, at)
    if (end === text.length) return end
    if (isInHref(place)) sink.hrefEnds(end)
    endAttribute(place)
    return end + quote.length
  },
  comment(place, text, at) {
    return readUntil(place, /--!?>/g, text, at)
  },
  declaration(place, text, at) {
    return readUntil(place, />/g, text, at)
  },
  cdata(place, text, at) {
    return readUntil(place, /\]\]>/g, text, at)
  },
  'raw text'(place, text, at) {
    const { rawElement } = place
    if (rawElement === 'plaintext') return text.length
    const end = indexOf(new RegExp(`</${rawElement}(?=[\\t\\n\\f\\r />])`, 'gi'), text, at)
    if (end < text.length) place.mode = 'text'
    return end
  },
}

/** @param open the index of a `<` in text */
function openMarkup(place: MarkupPlace, text: string, open: number, sink: MarkupSink): number {
  const at = open + 1
  sink.markupBegins?.(open)
  if (/[a-z]/i.test(text[at] ?? '')) return beginTag(place, false, at)
  if (text[at] === '/') {
    const name = /[a-z][^\t\n\f\r />]*/iy
    name.lastIndex = at + 1
    const found = name.exec(text)
    if (found) {
      sink.endTag(found[0].toLowerCase(), open)
      return beginTag(place, true, at + 1)
    }
    // `</` at the very end of the input is text.
    if (text[at + 1] !== '>') place.mode = 'declaration'
    return at + 1
  }
  if (text.startsWith('!--', at)) return beginComment(place, text, at + 3)
  if (place.foreignDepth > 0 && text.startsWith('![CDATA[', at)) {
    place.mode = 'cdata'
    return at + '![CDATA['.length
  }
  if (text[at] === '!' || text[at] === '?') place.mode = 'declaration'
  return at
}

function beginTag(place: MarkupPlace, isEndTag: boolean, at: number): number {
  Object.assign(place, { mode: 'tag name', tag: '', isEndTag, attribute: '', hasHref: false })
  return at
}

/** `<!-->` and `<!--->` are complete comments. */
function beginComment(place: MarkupPlace, text: string, at: number): number {
  const empty = /-?>/y
  empty.lastIndex = at
  if (empty.test(text)) return empty.lastIndex
  place.mode = 'comment'
  return at
}

/** @param at the index of the `>` */
function endTag(place: MarkupPlace, text: string, at: number, sink: MarkupSink): number {
  const { tag, isEndTag } = place
  place.mode = 'text'
  if (!isEndTag) sink.startTag?.(tag, at + 1)
  if (!isEndTag && BREAKING_OUT.has(tag)) place.foreignDepth = 0
  if (FOREIGN_ELEMENTS.has(tag)) {
    if (isEndTag) place.foreignDepth = Math.max(0, place.foreignDepth - 1)
    else if (text[at - 1] !== '/') place.foreignDepth += 1
  } else if (!isEndTag && place.foreignDepth === 0 && RAW_TEXT_ELEMENTS.has(tag)) {
    place.mode = 'raw text'
    place.rawElement = tag
  }
  return at + 1
}

function beginName(place: MarkupPlace): void {
  place.mode = 'attribute name'
  place.attribute = ''
}

function beginValue(place: MarkupPlace, quote: string, at: number, sink: MarkupSink): void {
  place.mode = 'value'
  place.quote = quote
  if (isInHref(place)) sink.hrefBegins(at)
}

function endAttribute(place: MarkupPlace): void {
  if (place.attribute === 'href') place.hasHref = true
  place.mode = 'in tag'
}

function readUntil(place: MarkupPlace, end: RegExp, text: string, at: number): number {
  end.lastIndex = at
  if (!end.test(text)) return text.length
  place.mode = 'text'
  return end.lastIndex
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at
}
