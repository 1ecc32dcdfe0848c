/**
 * Knows, reading on through the static text of an HTML template, where in the markup a value would land.
 *
 * Called by `parse-template.ts` once per template, so that rendering only looks the place up. Follows tags, attribute values,
 * comments; never judges whether the HTML is valid, and after anything odd it believes that it is in text, where what escapes is
 * the same as in an attribute. Pure.
 * Standards: HTML Living Standard §13.2.5 (tokenization), simplified.
 * Fails: never throws; linear in the length of the text.
 */
import type { HtmlPlace, UrlKind } from './merge-tree.js'

type Mode = 'text' | 'comment' | 'tag' | 'before value' | 'value'

/** Where one has got to. A value: the same place twice is equal in meaning, so branches can go back to it. */
export interface HtmlCursor {
  readonly mode: Mode
  /** Of the attribute in hand, lower case. */
  readonly attribute: string
  /** What ends the value: a quote, or nothing where it is unquoted. */
  readonly quote: string
  /** What the value holds so far; merged values stand in it as one letter. */
  readonly value: string
}

export const AT_START: HtmlCursor = { mode: 'text', attribute: '', quote: '', value: '' }

/** Attributes that hold one URL. */
const URL_ATTRIBUTES: ReadonlySet<string> = new Set(
  'action background cite data formaction href longdesc lowsrc dynsrc poster src xlink:href'.split(' '),
)
/** Attributes that hold URLs among other things. */
const OTHER_KINDS: Readonly<Record<string, UrlKind>> = {
  srcset: 'list',
  imagesrcset: 'list',
  content: 'refresh',
}
/** What comes after is all that is ever asked of a value: whether it has begun, and whether a `?` or `#` was there. */
const KEPT_OF_VALUE = 2_000

export function readOn(cursor: HtmlCursor, text: string): HtmlCursor {
  return readOnFrom(cursor, text).cursor
}

/** @returns also where in `text` the last value begins that does; -1 for none */
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

/** Spaces between a name and its `=` do not end the name. */
function endsName(text: string, at: number): boolean {
  return /^\s*=/.test(text.slice(at, at + 20))
}

/** @returns the index of what ends a value that `text` goes on with; its length where nothing does */
export function endOfValue(text: string, from: number, quote: string): number {
  if (quote !== '') {
    const end = text.indexOf(quote, from)
    return end < 0 ? text.length : end
  }
  const end = text.slice(from).search(/[\s>]/)
  return end < 0 ? text.length : from + end
}

/** A value was merged in here. */
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

/** @returns what the attribute whose value is being read holds; undefined where that is no URL */
export function urlKindAt({ mode, attribute }: HtmlCursor): UrlKind | undefined {
  if (mode !== 'value' && mode !== 'before value') return undefined
  if (URL_ATTRIBUTES.has(attribute)) return 'url'
  return Object.hasOwn(OTHER_KINDS, attribute) ? OTHER_KINDS[attribute] : undefined
}
