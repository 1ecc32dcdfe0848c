/**
 * Which styles hide content, and how an element looks after its own and its parents' styles. Pure. Never throws; linear.
 *
 * Standards: CSS Display 3, CSS 2.2 §11.2 (visibility). Rules in media queries are ignored.
 */

/** Ways of being invisible, as bits. Inner elements can undo all but the first. */
export type Look = number

export const DRAWN: Look = 0
export const HIDDEN: Look = 1
/** `visibility`. */
const INVISIBLE: Look = 2
/** `font-size`. */
export const TINY: Look = 4
/** `color`. */
export const TRANSPARENT: Look = 8

/** How styles change a look. */
export interface Effect {
  readonly kept: number
  readonly added: number
}

const NONE: Effect = { kept: -1, added: 0 }

export function isDrawn(look: Look): boolean {
  return look === DRAWN
}

export function lookAfter(outer: Look, { kept, added }: Effect): Look {
  return (outer & kept) | added
}

/** Of inline styles, which repeat within a mail and from one mail of a sender to the next. */
const known = new Map<string, Effect>()
const MAX_KNOWN = 2_000
/** Characters. */
const MAX_KNOWN_LENGTH = 500

/** @param text declarations, as in a `style` attribute */
export function effectOf(text: string): Effect {
  const found = known.get(text)
  if (found) return found
  const effect = effectOfStyles(readStyles(text))
  if (text.length > MAX_KNOWN_LENGTH) return effect
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(text, effect)
  return effect
}

type Styles = ReadonlyMap<string, string>

function readStyles(text: string): Styles {
  const styles = new Map<string, string>()
  const plain = text.includes('/*') ? withoutComments(text) : text
  for (const declaration of plain.split(';')) {
    const colon = declaration.indexOf(':')
    if (colon < 0) continue
    const value = declaration.slice(colon + 1).replace(/!\s*important/i, '')
    styles.set(declaration.slice(0, colon).trim().toLowerCase(), value.trim().toLowerCase())
  }
  return styles
}

function withoutComments(text: string): string {
  return text.replace(/\/\*.*?(\*\/|$)/gs, '')
}

/** Below two pixels. */
const NEAR_ZERO = /^[01]?(\.\d+)?(px|pt)?$|^0?(\.0+)?(r?em|%)$/
const ZERO = /^0*(\.0+)?(px|pt|r?em|%)?$/

function effectOfStyles(styles: Styles): Effect {
  if (styles.size === 0) return NONE
  let { kept, added } = NONE
  const set = (bit: Look, value: string | undefined, isHiding: (value: string) => boolean) => {
    if (value === undefined || value === 'inherit') return
    if (isHiding(value)) added |= bit
    else kept &= ~bit
  }
  if (hides(styles)) added |= HIDDEN
  set(INVISIBLE, styles.get('visibility'), value => /^(hidden|collapse)$/.test(value))
  set(TINY, fontSizeOf(styles), size => NEAR_ZERO.test(size))
  set(TRANSPARENT, styles.get('color'), isTransparentColor)
  return { kept, added }
}

function hides(styles: Styles): boolean {
  const is = (name: string, value: RegExp) => {
    const written = styles.get(name)
    return written !== undefined && value.test(written)
  }
  const isCut =
    is('overflow', /^(hidden|clip)$/) || is('overflow-y', /^hidden$/) || is('overflow-x', /^hidden$/)
  return (
    is('display', /^none$/) ||
    is('opacity', /^0*(\.0\d*)?%?$/) ||
    is('content-visibility', /^hidden$/) ||
    is('transform', /scale[xy3d]*\(\s*0/) ||
    is('clip', /^rect\(\s*0/) ||
    is('clip-path', /^inset\(\s*(50|100)%/) ||
    is('text-indent', /^-\d{3,}/) ||
    (is('position', /^(absolute|fixed|relative)$/) && (is('left', /^-\d{3,}/) || is('top', /^-\d{3,}/))) ||
    (isCut && ['height', 'max-height', 'width', 'max-width'].some(name => is(name, ZERO)))
  )
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

interface HidingRule {
  /** Of one element, class or id, lower case. */
  readonly selector: string
  readonly effect: Effect
}

const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const SEMICOLON = 0x3b

/** Hiding rules with a simple selector. */
export function hidingRules(sheet: string): HidingRule[] {
  const plain = sheet.includes('/*') ? withoutComments(sheet) : sheet
  const rules: HidingRule[] = []
  let depth = 0
  let from = 0
  let selectors = ''
  for (let at = 0; at < plain.length; at++) {
    const code = plain.charCodeAt(at)
    if (code === OPENING_BRACE) {
      if (depth++ === 0) selectors = plain.slice(from, at)
      from = depth === 1 ? at + 1 : from
    } else if (code === CLOSING_BRACE) {
      if (--depth === 0 && !selectors.includes('@')) {
        const effect = effectOf(plain.slice(from, at))
        if (effect.added !== 0)
          for (const one of selectors.split(',')) rules.push({ selector: one.trim().toLowerCase(), effect })
      }
      depth = Math.max(0, depth)
      if (depth === 0) from = at + 1
    } else if (code === SEMICOLON && depth === 0) from = at + 1
  }
  return rules
}
