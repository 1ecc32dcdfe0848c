/**
 * Collects the parts of URL attributes, so that rendering can check the finished value: `{{a}}{{b}}` may form a scheme that neither
 * value has.
 *
 * Used by `parse-template.ts` for HTML, which passes every text and node in order, with the node list it belongs to. An attribute that
 * starts and ends in the same list becomes one node, unless the author's text already fixes its scheme. If it ends in a branch, each
 * value is rendered so that it cannot contribute to a scheme. Pure. Never throws.
 */
import { endOfValue, readOnFrom, urlKindAt, type HtmlCursor } from './html-place.js'
import { mapLeaves } from './map-nodes.js'
import type { MergeNode, UrlKind, ValueNode } from './merge-tree.js'
import { isSettled } from './url-scheme.js'

interface OpenUrl {
  /** The node list it belongs to. */
  readonly list: MergeNode[]
  readonly holds: UrlKind
  readonly parts: MergeNode[]
  /** It ended inside a branch. */
  isBroken: boolean
}

export class UrlAttributes {
  private readonly open: OpenUrl[] = []

  /** @returns the position after the text */
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

  /** @param cursor the position before it */
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
