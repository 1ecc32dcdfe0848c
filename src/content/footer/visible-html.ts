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
import { hasMoreTags } from '../../mail/compose/plain-text.js'
import { HtmlTree } from '../../mail/html/html-tree.js'
import { ATTRIBUTE, TAG, tagName, tagsOf, type NameId } from '../../mail/html/names.js'
import { MarkupPlace, readMarkup } from '../../mail/html/read-markup.js'
import { decodeAttribute, decodeText } from '../../mail/html/references.js'
import {
  DRAWN,
  effectOf,
  HIDDEN,
  hidingRules,
  isDrawn,
  lookAfter,
  TINY,
  TRANSPARENT,
  type Effect,
  type Look,
} from './hiding-styles.js'

/** Placeholder for the unsubscribe URL, which the author cannot have written: a hash of the html if it has one like it. */
export function unsubscribeMark(html: string): string {
  const name = html.includes('\ue000') ? createHash('sha256').update(html).digest('hex') : 'unsubscribe'
  return `\ue000${name}\ue001`
}

export interface VisibleHtml {
  readonly hasUnsubscribeLink: boolean
  /** A space replaces each tag. */
  readonly text: string
}

/** Elements that are not drawn, or whose links cannot be followed. */
const NEVER_DRAWN = tagsOf(
  ...([
    'title',
    'style',
    'script',
    'template',
    'noembed',
    'noframes',
    'iframe',
    'object',
    'embed',
    'video',
  ] as const),
  ...([
    'audio',
    'canvas',
    'select',
    'datalist',
    'textarea',
    'svg',
    'math',
    'map',
    'button',
    'dialog',
  ] as const),
  ...(['details', 'progress', 'meter'] as const),
)
/** Elements allowed in `head`; any other starts the body. */
const IN_HEAD = tagsOf('title', 'meta', 'link', 'style', 'script', 'base', 'template', 'noscript')
/** Nesting limit; deeper content counts as hidden. */
const MAX_LEVELS = 1_000
/** Characters of one style sheet. */
const MAX_STYLE = 100_000
const MAX_RULES = 10
/** Characters that are invisible or take no space. */
const BLANK = /[\s\p{Default_Ignorable_Code_Point}\u2800]+/gu

/** HTML with more tags is not read and counts as having nothing visible. */
const MAX_TAGS = 12_000
const MAY_HIDE =
  /display|visibility|hidden|opacity|overflow|clip|indent|position|transform|font|color\s*:\s*(transparent|rgba)/i

/** Whether styles might hide what follows; elements that might are handled by `findEndOfBody`. */
export function mayHide(html: string): boolean {
  return MAY_HIDE.test(html)
}

/**
 * @param mark the placeholder for the unsubscribe URL
 * @param isOurs also counts content after `</body>`: clients show it, but an author's link there does not count as a footer
 */
export function readVisibleHtml(html: string, mark: string, isOurs = false): VisibleHtml {
  if (hasMoreTags(html, MAX_TAGS)) return { hasUnsubscribeLink: false, text: '' }
  const reader = new Reader(html, mark, isOurs)
  reader.read()
  return { hasUnsubscribeLink: reader.hasUnsubscribeLink, text: reader.texts.join(' ') }
}

class Reader extends HtmlTree {
  hasUnsubscribeLink = false
  readonly texts: string[] = []
  /** Of each open element. */
  private readonly looks: Look[] = []
  private readonly areLinks: boolean[] = []
  private look: Look = DRAWN
  private openLinks = 0
  private readonly rules = new Map<string, Effect[]>()
  private style: string | undefined
  /** If there is a `body`, content before it does not count, and after it only with `isBehindShown`. */
  private isInBody: boolean
  private isInHead = false
  private readonly hasBody: boolean
  private readonly isBehindShown: boolean
  private readonly mark: string

  constructor(html: string, mark: string, isBehindShown: boolean) {
    super(html)
    this.isBehindShown = isBehindShown
    this.mark = mark
    this.hasBody = /<body[\s/>]/i.test(html)
    this.isInBody = !this.hasBody
  }

  protected opens(tag: NameId, place: MarkupPlace | undefined): void {
    if (tag === TAG.body) this.isInBody = true
    if (tag === TAG.head && !this.hasBody) this.isInHead = true
    else if (!IN_HEAD.has(tag)) this.isInHead = false
    if (tag === TAG.style) this.style = ''
    this.looks.push(this.look)
    if (this.looks.length > MAX_LEVELS + 1) this.look |= HIDDEN
    else this.look = this.lookOf(tag, place)
    const isLink =
      tag === TAG.a && place !== undefined && this.isUnsubscribe(this.attributeOf(place, ATTRIBUTE.href))
    if (isLink) this.openLinks++
    this.areLinks.push(isLink)
    if (tag === TAG.img && place) this.image(place)
  }

  protected closes(tag: NameId): void {
    this.look = this.looks.pop() ?? DRAWN
    if (this.areLinks.pop() === true) this.openLinks--
    if (tag === TAG.body && this.hasBody) this.isInBody = this.isBehindShown
    if (tag === TAG.head) this.isInHead = false
    if (tag === TAG.style && this.style !== undefined) {
      for (const { selector, effect } of hidingRules(this.style.slice(0, MAX_STYLE)))
        this.rules.set(selector, [...(this.rules.get(selector) ?? []), effect].slice(-MAX_RULES))
      this.style = undefined
    }
  }

  text(from: number, to: number): void {
    if (this.style !== undefined) this.style += this.html.slice(from, to)
    if (this.isVisible(this.look)) this.add(decodeText(this.html.slice(from, to)))
  }

  private attributeOf(place: MarkupPlace, attribute: NameId): string {
    return decodeAttribute(place.valueIn(this.html, attribute))
  }

  /** After any other prefix, the mark is a parameter of another URL, or not a link. */
  private isUnsubscribe(href: string): boolean {
    if (!href.includes(this.mark)) return false
    return href.trim().startsWith(this.mark) || /^\s*https?:/i.test(href)
  }

  private image(place: MarkupPlace): void {
    const isDot = [ATTRIBUTE.width, ATTRIBUTE.height].some(
      size => place.has(size) && /^[012]\s*(px)?$/.test(this.attributeOf(place, size).trim()),
    )
    if (!isDot && this.isVisible(this.look & ~(TINY | TRANSPARENT)))
      this.add(this.attributeOf(place, ATTRIBUTE.alt))
  }

  private isVisible(look: Look): boolean {
    return this.isInBody && !this.isInHead && isDrawn(look)
  }

  private add(text: string): void {
    this.texts.push(text)
    if (this.hasUnsubscribeLink) return
    // Mail clients linkify URLs in text.
    this.hasUnsubscribeLink =
      text.includes(this.mark) || (this.openLinks > 0 && text.replace(BLANK, '') !== '')
  }

  private lookOf(tag: NameId, place: MarkupPlace | undefined): Look {
    let { look } = this
    if (this.rules.size > 0) look = this.lookByRules(tag, place, look)
    if (place?.has(ATTRIBUTE.style))
      look = lookAfter(look, effectOf(this.attributeOf(place, ATTRIBUTE.style)))
    if (place?.has(ATTRIBUTE.hidden) || NEVER_DRAWN.has(tag)) look |= HIDDEN
    return look
  }

  private lookByRules(tag: NameId, place: MarkupPlace | undefined, outer: Look): Look {
    const name = place ? place.nameIn(this.html) : tagName(tag)
    let look = this.afterRules(name, outer)
    if (!place) return look
    if (place.has(ATTRIBUTE.id))
      look = this.afterRulesOf(`#${this.attributeOf(place, ATTRIBUTE.id)}`, name, look)
    if (place.has(ATTRIBUTE.class))
      for (const each of this.attributeOf(place, ATTRIBUTE.class).split(/\s+/))
        look = this.afterRulesOf(`.${each}`, name, look)
    return look
  }

  private afterRulesOf(selector: string, name: string, outer: Look): Look {
    return this.afterRules(name + selector, this.afterRules(selector, outer))
  }

  private afterRules(selector: string, outer: Look): Look {
    let look = outer
    for (const effect of this.rules.get(selector.toLowerCase()) ?? []) look = lookAfter(look, effect)
    return look
  }
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
