/**
 * Extracts what a reader sees of an HTML mail: its text, and whether an unsubscribe link is visible.
 *
 * Decides which compliance footer a mail needs and where to insert it. Covers what mail clients agree on: comments (including Outlook's
 * conditional ones), elements that are never drawn, `hidden`, inline styles, and style sheet rules for a single element, class or id
 * outside media queries. When in doubt content counts as hidden, which may duplicate a footer but never loses one. Pure. Never throws;
 * linear in the length of the HTML.
 * Standards: HTML Living Standard §13.2.6.4.7 (end tags), §15.3.1 (hidden elements), CSS Display 3, CSS 2.2 §11.2 (visibility).
 */
import { createHash } from 'node:crypto'
import { Parser } from 'htmlparser2'
import { hasMoreTags } from '../../mail/compose/plain-text.js'
import { TAG, tagName, tagsOf, type NameId } from '../../mail/html/names.js'
import { MarkupPlace, readMarkup } from '../../mail/html/read-markup.js'

/** Placeholder for the unsubscribe URL. A hash of the html, so that the author cannot have written it. */
export function unsubscribeMark(html: string): string {
  return `\ue000${createHash('sha256').update(html).digest('hex')}\ue001`
}

export interface VisibleHtml {
  readonly hasUnsubscribeLink: boolean
  /** A space replaces each tag. */
  readonly text: string
}

/** Elements that are not drawn, or whose links cannot be followed. */
const NEVER_DRAWN: ReadonlySet<string> = new Set(
  (
    'title style script template noembed noframes iframe object embed video audio canvas select datalist textarea svg math map button ' +
    'dialog details progress meter'
  ).split(' '),
)
/** Elements allowed in `head`; any other starts the body. */
const IN_HEAD: ReadonlySet<string> = new Set('title meta link style script base template noscript'.split(' '))
/** Nesting limit; deeper content counts as hidden. */
const MAX_LEVELS = 1_000
/** Characters of one style sheet. */
const MAX_STYLE = 100_000
const MAX_RULES = 10
/** Characters that are invisible or take no space. */
const BLANK = /[\s\p{Default_Ignorable_Code_Point}\u2800]+/gu

/** The parser is quadratic in nested tags; HTML with more tags is not parsed and counts as having nothing visible. */
const MAX_TAGS = 12_000
const MAY_HIDE =
  /display|visibility|hidden|opacity|overflow|clip|indent|position|transform|font|color\s*:\s*(transparent|rgba)/i

/** Whether styles might hide what follows; elements that might are handled by `findEndOfBody`. */
export function mayHide(html: string): boolean {
  return MAY_HIDE.test(html)
}

interface Look {
  /** Cannot be undone by inner elements. */
  readonly isHidden: boolean
  /** Inner elements can undo these: `visibility`, `font-size`, `color`. */
  readonly isInvisible: boolean
  readonly isTiny: boolean
  readonly isTransparent: boolean
}

const DRAWN: Look = { isHidden: false, isInvisible: false, isTiny: false, isTransparent: false }

/**
 * @param mark the placeholder for the unsubscribe URL
 * @param isOurs also counts content after `</body>`: clients show it, but an author's link there does not count as a footer
 */
export function readVisibleHtml(html: string, mark: string, isOurs = false): VisibleHtml {
  if (hasMoreTags(html, MAX_TAGS)) return { hasUnsubscribeLink: false, text: '' }
  const reader = new Reader(mark, /<body[\s/>]/i.test(html), isOurs)
  const parser = new Parser(reader, {
    decodeEntities: true,
    lowerCaseTags: true,
    lowerCaseAttributeNames: true,
  })
  parser.end(html)
  return { hasUnsubscribeLink: reader.hasUnsubscribeLink, text: reader.texts.join(' ') }
}

class Reader {
  hasUnsubscribeLink = false
  readonly texts: string[] = []
  private readonly open: { readonly look: Look; readonly isLink: boolean }[] = []
  private openLinks = 0
  private readonly rules = new Map<string, Styles[]>()
  private style: string | undefined
  /** If there is a `body`, content before it does not count, and after it only with `isOurs`. */
  private isInBody: boolean
  private isInHead = false
  private readonly hasBody: boolean
  private readonly isBehindShown: boolean
  private readonly mark: string

  constructor(mark: string, hasBody: boolean, isBehindShown: boolean) {
    this.isBehindShown = isBehindShown
    this.mark = mark
    this.hasBody = hasBody
    this.isInBody = !hasBody
  }

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'body') this.isInBody = true
    if (name === 'head' && !this.hasBody) this.isInHead = true
    else if (!IN_HEAD.has(name)) this.isInHead = false
    if (name === 'style') this.style = ''
    const outer = this.open.at(-1)?.look ?? DRAWN
    const look =
      this.open.length > MAX_LEVELS ? { ...outer, isHidden: true } : this.lookOf(name, attributes, outer)
    const isLink = name === 'a' && this.isUnsubscribe(attributes['href'] ?? '')
    if (isLink) this.openLinks++
    this.open.push({ look, isLink })
    if (name === 'img') this.image(attributes, look)
  }

  onclosetag(name: string): void {
    if (this.open.pop()?.isLink === true) this.openLinks--
    if (name === 'body' && this.hasBody) this.isInBody = this.isBehindShown
    if (name === 'head') this.isInHead = false
    if (name === 'style' && this.style !== undefined) {
      for (const { selector, styles } of hidingRules(this.style.slice(0, MAX_STYLE)))
        this.rules.set(selector, [...(this.rules.get(selector) ?? []), styles].slice(-MAX_RULES))
      this.style = undefined
    }
  }

  ontext(text: string): void {
    if (this.style !== undefined) this.style += text
    const look = this.open.at(-1)?.look ?? DRAWN
    if (this.isVisible(look)) this.add(text)
  }

  /** After any other prefix, the mark is a parameter of another URL, or not a link. */
  private isUnsubscribe(href: string): boolean {
    return href.trim().startsWith(this.mark) || (/^\s*https?:/i.test(href) && href.includes(this.mark))
  }

  private image({ alt = '', width, height }: Readonly<Record<string, string>>, look: Look): void {
    const isDot = [width, height].some(size => size !== undefined && /^[012]\s*(px)?$/.test(size.trim()))
    if (!isDot && this.isVisible({ ...look, isTiny: false, isTransparent: false })) this.add(alt)
  }

  private isVisible({ isHidden, isInvisible, isTiny, isTransparent }: Look): boolean {
    return this.isInBody && !this.isInHead && !isHidden && !isInvisible && !isTiny && !isTransparent
  }

  private add(text: string): void {
    this.texts.push(text)
    if (this.hasUnsubscribeLink || text.replace(BLANK, '') === '') return
    // Mail clients linkify URLs in text.
    this.hasUnsubscribeLink = text.includes(this.mark) || this.openLinks > 0
  }

  private lookOf(name: string, attributes: Readonly<Record<string, string>>, outer: Look): Look {
    const { style = '', class: classes = '', id = '' } = attributes
    const styles: Styles[] = []
    if (this.rules.size > 0)
      for (const one of [name, `#${id}`, ...classes.split(/\s+/).map(each => `.${each}`)])
        for (const selector of one === name ? [one] : [one, name + one])
          styles.push(...(this.rules.get(selector.toLowerCase()) ?? []))
    if (style !== '') styles.push(readStyles(style))
    const look = styles.reduce((before, one) => withStyles(before, one), outer)
    const isHidden = look.isHidden || 'hidden' in attributes || NEVER_DRAWN.has(name)
    return isHidden ? { ...look, isHidden: true } : look
  }
}

type Styles = ReadonlyMap<string, string>

function readStyles(text: string): Styles {
  const styles = new Map<string, string>()
  for (const declaration of text.replace(/\/\*.*?(\*\/|$)/gs, '').split(';')) {
    const colon = declaration.indexOf(':')
    if (colon < 0) continue
    const value = declaration.slice(colon + 1).replace(/!\s*important/i, '')
    styles.set(declaration.slice(0, colon).trim().toLowerCase(), value.trim().toLowerCase())
  }
  return styles
}

/** Below two pixels. */
const NEAR_ZERO = /^[01]?(\.\d+)?(px|pt)?$|^0?(\.0+)?(r?em|%)$/
const ZERO = /^0*(\.0+)?(px|pt|r?em|%)?$/

function withStyles(outer: Look, styles: Styles): Look {
  const is = (name: string, value: RegExp) => value.test(styles.get(name) ?? '?')
  const isCut =
    is('overflow', /^(hidden|clip)$/) || is('overflow-y', /^hidden$/) || is('overflow-x', /^hidden$/)
  const isHidden =
    is('display', /^none$/) ||
    is('opacity', /^0*(\.0\d*)?%?$/) ||
    is('content-visibility', /^hidden$/) ||
    is('transform', /scale[xy3d]*\(\s*0/) ||
    is('clip', /^rect\(\s*0/) ||
    is('clip-path', /^inset\(\s*(50|100)%/) ||
    is('text-indent', /^-\d{3,}/) ||
    (is('position', /^(absolute|fixed|relative)$/) && (is('left', /^-\d{3,}/) || is('top', /^-\d{3,}/))) ||
    (isCut && ['height', 'max-height', 'width', 'max-width'].some(name => is(name, ZERO)))
  return {
    isHidden: outer.isHidden || isHidden,
    isInvisible: undone(outer.isInvisible, styles.get('visibility'), value =>
      /^(hidden|collapse)$/.test(value),
    ),
    isTiny: undone(outer.isTiny, fontSizeOf(styles), size => NEAR_ZERO.test(size)),
    isTransparent: undone(outer.isTransparent, styles.get('color'), isTransparentColor),
  }
}

function isTransparentColor(color: string): boolean {
  const comma = color.lastIndexOf(',')
  const hasAlpha = color.startsWith('rgba(') && color.endsWith(')') && comma >= 0
  return color === 'transparent' || (hasAlpha && /^0*(\.0+)?%?$/.test(color.slice(comma + 1, -1).trim()))
}

/** A size relative to the outer one inherits its visibility. */
function fontSizeOf(styles: Styles): string | undefined {
  const size =
    styles.get('font-size') ?? /(?:^|\s)([\d.]+(?:px|pt|r?em|%))/.exec(styles.get('font') ?? '')?.[1]
  return size !== undefined && /(?<![\d.])[0.]*[1-9][\d.]*(em|%)$/.test(size) && !size.endsWith('rem')
    ? undefined
    : size
}

function undone(outer: boolean, value: string | undefined, isHiding: (value: string) => boolean): boolean {
  return value === undefined || value === 'inherit' ? outer : isHiding(value)
}

/** Hiding rules with a simple selector. Rules in media queries are ignored. */
function hidingRules(sheet: string): { selector: string; styles: Styles }[] {
  const plain = sheet.replace(/\/\*.*?(\*\/|$)/gs, '')
  const rules: { selector: string; styles: Styles }[] = []
  let depth = 0
  let from = 0
  let selectors = ''
  for (let at = 0; at < plain.length; at++) {
    const character = plain[at]
    if (character === '{') {
      if (depth++ === 0) selectors = plain.slice(from, at)
      from = depth === 1 ? at + 1 : from
    } else if (character === '}') {
      if (--depth === 0 && !selectors.includes('@')) {
        const styles = readStyles(plain.slice(from, at))
        const isHiding = Object.values(withStyles(DRAWN, styles)).some(Boolean)
        if (isHiding)
          for (const one of selectors.split(',')) rules.push({ selector: one.trim().toLowerCase(), styles })
      }
      depth = Math.max(0, depth)
      if (depth === 0) from = at + 1
    } else if (character === ';' && depth === 0) from = at + 1
  }
  return rules
}

/** Elements that hide their content; their end tag also closes everything opened inside. */
const HIDING = tagsOf('select', 'template', 'object', 'button', 'details', 'dialog')
/** Nesting limit; real mail stays far below it. */
const MAX_OPEN = 100

export interface EndOfBody {
  /** Index in the html: the last `</body>`, else the last `</html>`, else the end of the visible part. */
  readonly at: number
  /** Open elements that would hide content at this position, innermost first. */
  readonly hiding: readonly string[]
}

/**
 * Finds the last real `</body>`: not in a comment, script, style or attribute value.
 *
 * In truncated HTML the position is before the unclosed comment, tag or style, which would hide the footer; other elements that would hide
 * it are reported for closing.
 */
export function findEndOfBody(html: string): EndOfBody {
  const place = new MarkupPlace()
  const ends: { body?: EndOfBody; html?: EndOfBody } = {}
  const open: NameId[] = []
  let lastMarkup = 0
  const endAt = (at: number): EndOfBody => ({ at, hiding: open.toReversed().map(tagName) })
  readMarkup(place, html, {
    markupBegins(at) {
      lastMarkup = at
    },
    startTag({ tag }) {
      if (HIDING.has(tag) && open.length < MAX_OPEN) open.push(tag)
    },
    endTag(tag, at) {
      if (tag === TAG.body) ends.body = endAt(at)
      else if (tag === TAG.html) ends.html = endAt(at)
      else if (HIDING.has(tag) && open.includes(tag)) open.length = open.lastIndexOf(tag)
    },
  })
  return ends.body ?? ends.html ?? endAt(place.isInText ? html.length : lastMarkup)
}

/** @returns the index after the first `<body>` tag, or 0 without one */
export function findStartOfBody(html: string): number {
  let start = 0
  readMarkup(new MarkupPlace(), html, {
    startTag({ tag }, end) {
      if (tag === TAG.body && start === 0) start = end
    },
  })
  return start
}
