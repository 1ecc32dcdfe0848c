/**
 * Tracks the HTML context (text, tag, attribute, URL) in which a merged value will stand, once per template.
 *
 * Follows tags, attribute values and comments without validating the HTML; malformed markup counts as text, which is escaped like an
 * attribute. Pure. Never throws; linear in the length of the text.
 * Standard: HTML Living Standard §13.2.5 (tokenization), simplified.
 */
import { mapLeaves, type HtmlPlace, type MergeNode, type UrlKind, type ValueNode } from './merge-tree.js'
import { isSettled } from './url-scheme.js'

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

const URL_ATTRIBUTES: ReadonlySet<string> = new Set(
  'action background cite data formaction href longdesc lowsrc dynsrc poster src xlink:href'.split(' '),
)
const OTHER_KINDS: Readonly<Record<string, UrlKind>> = {
  srcset: 'list',
  imagesrcset: 'list',
  content: 'refresh',
}
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const SLASH = 0x2f
const EQUALS = 0x3d
const GREATER = 0x3e
/** Between an attribute's name and its `=`. */
const MAX_BLANKS = 20
/** Only the start of a value matters: whether it is empty, and whether it has a `?` or `#`. */
const KEPT_OF_VALUE = 2_000

export function readOn(cursor: HtmlCursor, text: string): HtmlCursor {
  return readOnFrom(cursor, text).cursor
}

/** @returns also the index in `text` where the last attribute value starts; -1 for none */
function readOnFrom(
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
      else if (opensTag(text.charCodeAt(at))) {
        mode = 'tag'
        attribute = ''
      }
    } else if (mode === 'comment') {
      const close = text.indexOf('-->', at)
      if (close < 0) break
      at = close + 3
      mode = 'text'
    } else if (mode === 'tag') {
      const end = endOfName(text, at)
      if (end > at) {
        attribute += text.slice(at, end).toLowerCase()
        at = end
        continue
      }
      const code = text.charCodeAt(at++)
      if (code === GREATER) mode = 'text'
      else if (code === EQUALS) mode = 'before value'
      else if (!endsName(text, at)) attribute = ''
    } else if (mode === 'before value') {
      const code = text.charCodeAt(at)
      if (isBlank(code)) at++
      else if (code === GREATER) {
        mode = 'text'
        at++
      } else {
        quote = code === DOUBLE_QUOTE ? '"' : code === SINGLE_QUOTE ? "'" : ''
        at += quote.length
        mode = 'value'
        value = ''
        valueAt = at
      }
    } else {
      const end = endOfValue(text, at, quote)
      value = (value + text.slice(at, end)).slice(0, KEPT_OF_VALUE)
      at = end
      if (end < text.length) {
        at = quote === '' ? end : end + 1
        mode = 'tag'
        attribute = ''
      }
    }
  }
  return { cursor: { mode, attribute, quote, value }, valueAt }
}

/** Space before `=` does not end an attribute's name. @returns whether `=` follows */
function endsName(text: string, from: number): boolean {
  let at = from
  while (at < from + MAX_BLANKS && isBlank(text.charCodeAt(at))) at++
  return at < from + MAX_BLANKS && text.charCodeAt(at) === EQUALS
}

/** @returns the index of the next character that is not part of an attribute's name */
function endOfName(text: string, from: number): number {
  let at = from
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === GREATER || code === EQUALS || code === SLASH || isBlank(code)) break
  }
  return at
}

function opensTag(code: number): boolean {
  const lower = code | 0x20
  return (lower >= 0x61 && lower <= 0x7a && code < 0x80) || code === SLASH || code === 0x21 || code === 0x3f
}

function isBlank(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  return code > 0x7f && /\s/.test(String.fromCharCode(code))
}

/** @returns the index where a value continued in `text` ends; its length if it does not */
function endOfValue(text: string, from: number, quote: string): number {
  if (quote !== '') {
    const end = text.indexOf(quote, from)
    return end < 0 ? text.length : end
  }
  const end = text.slice(from).search(/[\s>]/)
  return end < 0 ? text.length : from + end
}

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
function urlKindAt({ mode, attribute }: HtmlCursor): UrlKind | undefined {
  if (mode !== 'value' && mode !== 'before value') return undefined
  if (URL_ATTRIBUTES.has(attribute)) return 'url'
  return Object.hasOwn(OTHER_KINDS, attribute) ? OTHER_KINDS[attribute] : undefined
}

interface OpenUrl {
  /** The node list it belongs to. */
  readonly list: MergeNode[]
  readonly holds: UrlKind
  readonly parts: MergeNode[]
  /** It ended inside a branch. */
  isBroken: boolean
}

/**
 * Collects the parts of URL attributes, so that rendering can check the finished value: `{{a}}{{b}}` may form a scheme that neither value
 * has.
 *
 * The parser passes every text and node in order, with the node list it belongs to. An attribute that starts and ends in the same list
 * becomes one node, unless the author's text already fixes its scheme. If it ends in a branch, each value is rendered so that it cannot
 * contribute to a scheme.
 */
export class UrlAttributes {
  private readonly open: OpenUrl[] = []

  addText(list: MergeNode[], cursor: HtmlCursor, text: string): HtmlCursor {
    const inner = this.open.at(-1)
    let here = cursor
    let rest = text
    if (inner && urlKindAt(cursor) !== undefined && cursor.mode === 'value') {
      const end = endOfValue(text, 0, cursor.quote)
      if (inner.list !== list) inner.isBroken ||= end < text.length
      else {
        if (end > 0) inner.parts.push(text.slice(0, end))
        here = readOnFrom(cursor, text.slice(0, end)).cursor
        if (end === text.length) return here
        this.close()
        rest = text.slice(end)
      }
    }
    const { cursor: after, valueAt } = readOnFrom(here, rest)
    const holds = after.mode === 'value' && valueAt >= 0 ? urlKindAt(after) : undefined
    if (holds === undefined) {
      this.add(list, rest)
      return after
    }
    if (valueAt > 0) this.add(list, rest.slice(0, valueAt))
    this.begin(list, holds, valueAt < rest.length ? [rest.slice(valueAt)] : [])
    return after
  }

  addValue(list: MergeNode[], cursor: HtmlCursor, node: ValueNode): void {
    const holds = urlKindAt(cursor)
    if (holds !== undefined && cursor.mode === 'before value') this.begin(list, holds, [node])
    else if (holds !== undefined && !this.open.some(({ isBroken }) => !isBroken) && !isSettled(cursor.value))
      // The attribute started in a branch.
      this.add(list, settlingValue(node))
    else this.add(list, node)
  }

  add(list: MergeNode[], node: MergeNode): void {
    const inner = this.open.at(-1)
    if (inner?.list !== list) list.push(node)
    else {
      inner.parts.push(node)
      if (inner.isBroken) this.giveUp()
    }
  }

  /** Call at the end of each branch and of the template. */
  endList(list: MergeNode[]): void {
    while (this.open.at(-1)?.list === list) this.giveUp()
  }

  private begin(list: MergeNode[], holds: UrlKind, parts: MergeNode[]): void {
    this.endList(list)
    this.open.push({ list, holds, parts, isBroken: false })
  }

  private close(): void {
    const url = this.open.pop()
    if (!url) return
    const { list, holds, parts } = url
    if (isSafe(parts, holds)) list.push(...parts)
    else list.push({ kind: 'url', holds, parts })
  }

  private giveUp(): void {
    const url = this.open.pop()
    if (url) url.list.push(...settling(url.parts))
  }
}

/** Whether no value can change the scheme beyond what checking it alone would catch. */
function isSafe(parts: readonly MergeNode[], holds: UrlKind): boolean {
  const [first, second] = parts
  if (parts.every(part => typeof part === 'string')) return true
  if (holds !== 'url') return false
  if (typeof first === 'string') return isSettled(first)
  if (first?.kind !== 'value' || first.place === 'unescaped') return false
  return second === undefined || (typeof second === 'string' && /^[/?#]/.test(second))
}

function settling(parts: readonly MergeNode[]): MergeNode[] {
  const [first] = parts
  if (typeof first === 'string' && isSettled(first)) return [...parts]
  // A branch may continue past the attribute.
  return mapLeaves(parts, leaf => (typeof leaf === 'string' ? leaf : settlingValue(leaf)))
}

function settlingValue(node: ValueNode): ValueNode {
  return node.place === 'url start' || node.place === 'url path' ? { ...node, isSettling: true } : node
}
