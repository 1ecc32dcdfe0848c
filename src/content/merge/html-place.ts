/**
 * Tracks where in the markup a merged value would land while reading the static text of an HTML template.
 *
 * Used by `parse-template.ts` once per template, so that rendering only looks the place up. Follows tags, attribute values and
 * comments without validating the HTML; malformed markup counts as text, which is escaped like an attribute. Pure.
 * Standards: HTML Living Standard §13.2.5 (tokenization), simplified.
 * Never throws; linear in the length of the text.
 */
import type { HtmlPlace, UrlKind } from './merge-tree.js'

type Mode = 'text' | 'comment' | 'tag' | 'before value' | 'value'

/** Immutable position, so that each branch can restart from the same one. */
export interface HtmlCursor {
  readonly mode: Mode
  /** The current attribute, lower case. */
  readonly attribute: string
  /** The closing quote; empty for an unquoted value. */
  readonly quote: string
  /** The value so far; each merged value counts as one letter. */
  readonly value: string
}

export const AT_START: HtmlCursor = { mode: 'text', attribute: '', quote: '', value: '' }

/** Attributes that hold a URL. */
const URL_ATTRIBUTES: ReadonlySet<string> = new Set(
  'action background cite data formaction href longdesc lowsrc dynsrc poster src xlink:href'.split(' '),
)
/** Attributes that contain URLs. */
const OTHER_KINDS: Readonly<Record<string, UrlKind>> = {
  srcset: 'list',
  imagesrcset: 'list',
  content: 'refresh',
}
/** Only the start of a value matters: whether it is empty, and whether it has a `?` or `#`. */
const KEPT_OF_VALUE = 2_000

export function readOn(cursor: HtmlCursor, text: string): HtmlCursor {
  return readOnFrom(cursor, text).cursor
}

/** @returns also the index in `text` where the last attribute value starts; -1 for none */
export function readOnFrom(
  cursor: HtmlCursor,
  text: string,
): { readonly cursor: HtmlCursor; readonly valueAt: number } {
  let { mode, attribute, quote, value } = cursor
  let at = 0
  let valueAt = -1
  while (at < text.length) {
    if (mode === 'text') {
      const open = text.indexOf('<', at)
      if (open < 0) break
      at = open + 1
      if (text.startsWith('!--', at)) mode = 'comment'
      else if (/[a-z/!?]/i.test(text[at] ?? '')) [mode, attribute] = ['tag', '']
    } else if (mode === 'comment') {
      const close = text.indexOf('-->', at)
      if (close < 0) break
      at = close + 3
      mode = 'text'
    } else if (mode === 'tag') {
      const character = text[at++] ?? ''
      if (character === '>') mode = 'text'
      else if (character === '=') mode = 'before value'
      else if (/[\s/]/.test(character)) attribute = endsName(text, at) ? attribute : ''
      else attribute += character.toLowerCase()
    } else if (mode === 'before value') {
      const character = text[at] ?? ''
      if (/\s/.test(character)) at++
      else if (character === '>') [mode, at] = ['text', at + 1]
      else {
        quote = character === '"' || character === "'" ? character : ''
        at += quote.length
        ;[mode, value, valueAt] = ['value', '', at]
      }
    } else {
      const end = endOfValue(text, at, quote)
      value = (value + text.slice(at, end)).slice(0, KEPT_OF_VALUE)
      at = end
      if (end < text.length) {
        at = quote === '' ? end : end + 1
        ;[mode, attribute] = ['tag', '']
      }
    }
  }
  return { cursor: { mode, attribute, quote, value }, valueAt }
}

/** Space before `=` does not end an attribute's name. */
function endsName(text: string, at: number): boolean {
  return /^\s*=/.test(text.slice(at, at + 20))
}

/** @returns the index where a value continued in `text` ends; its length if it does not */
export function endOfValue(text: string, from: number, quote: string): number {
  if (quote !== '') {
    const end = text.indexOf(quote, from)
    return end < 0 ? text.length : end
  }
  const end = text.slice(from).search(/[\s>]/)
  return end < 0 ? text.length : from + end
}

/** Advances over a merged value. */
export function passValue(cursor: HtmlCursor): HtmlCursor {
  if (cursor.mode === 'before value') return { ...cursor, mode: 'value', quote: '', value: 'x' }
  return cursor.mode === 'value' ? { ...cursor, value: `${cursor.value}x` } : cursor
}

export function placeAt({ mode, attribute, quote, value }: HtmlCursor): HtmlPlace {
  if (mode === 'text' || mode === 'comment') return 'text'
  const isUnquoted = mode === 'before value' || (mode === 'value' && quote === '')
  if (mode === 'tag') return 'tag'
  if (!URL_ATTRIBUTES.has(attribute)) return isUnquoted ? 'tag' : 'attribute'
  if (mode === 'before value' || value.trim() === '') return 'url start'
  return /[?#]/.test(value) ? 'url query' : 'url path'
}

/** @returns what kind of URL the current attribute value holds; undefined if none */
export function urlKindAt({ mode, attribute }: HtmlCursor): UrlKind | undefined {
  if (mode !== 'value' && mode !== 'before value') return undefined
  if (URL_ATTRIBUTES.has(attribute)) return 'url'
  return Object.hasOwn(OTHER_KINDS, attribute) ? OTHER_KINDS[attribute] : undefined
}
