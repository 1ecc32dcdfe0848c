/**
 * Syntax tree of a merge template: produced by `parse-template.ts`, rendered per recipient by `render-template.ts`.
 *
 * Plain values, so that a tree can be sent to a delivery thread.
 */

/** Kind of output, which decides how values are escaped. A subject is one line of text. */
export type MergePlace = 'html' | 'text' | 'subject'

export const FORMATS = ['text', 'uppercase', 'lowercase', 'capitalize'] as const
export type Format = (typeof FORMATS)[number]

export const COMPARISONS = ['==', '!=', '>=', '<=', '>', '<'] as const
export type Comparison = (typeof COMPARISONS)[number]

/**
 * Where a value lands in HTML. Text and attributes are escaped alike; in URLs the place decides the encoding. `url start`: the value begins
 * the URL and may be all of it. `url path`: before any `?`. `url query`: after one. `tag`: inside a tag but unquoted, where a space would
 * start another attribute. `url value`: one value of a URL outside mail, fully encoded.
 */
export type HtmlPlace = 'text' | 'attribute' | 'tag' | 'url start' | 'url path' | 'url query' | 'url value'

export type Lookup =
  /** By the full name first, then by its dotted path. */
  | { readonly of: 'root'; readonly name: string; readonly path: readonly string[] }
  /** The innermost loop's item, or a path within it. */
  | { readonly of: 'this'; readonly path: readonly string[] }
  | { readonly of: 'loop'; readonly variable: 'index' | 'first' | 'last' }

export type Operand = { readonly literal: string | number | boolean | null } | { readonly lookup: Lookup }

export interface Expression {
  readonly left: Operand
  /** Absent for a single operand. */
  readonly right?: { readonly comparison: Comparison; readonly operand: Operand }
}

export interface ValueNode {
  readonly kind: 'value'
  readonly lookup: Lookup
  readonly fallback: string
  readonly format: Format
  /** `plain`: not HTML, not escaped. `unescaped`: `{{{key}}}`, template_data verbatim. */
  readonly place: HtmlPlace | 'plain' | 'unescaped'
  /** Part of a URL that ends inside a branch: rendered so that no scheme can form across parts. */
  readonly isSettling?: true
}

/** Content of a checked attribute: one URL, a comma-separated list, or `<meta http-equiv=refresh>`. */
export type UrlKind = 'url' | 'list' | 'refresh'

/** An attribute value whose scheme is only known once all parts are rendered. */
export interface UrlNode {
  readonly kind: 'url'
  readonly holds: UrlKind
  readonly parts: readonly MergeNode[]
}

interface ChoiceNode {
  readonly kind: 'choice'
  readonly expression: Expression
  /** For `#unless`, the body is `whenFalse`. */
  readonly whenTrue: readonly MergeNode[]
  readonly whenFalse: readonly MergeNode[]
}

interface LoopNode {
  readonly kind: 'loop'
  readonly list: Lookup
  readonly body: readonly MergeNode[]
  /** Rendered if the list is missing or empty. */
  readonly whenEmpty: readonly MergeNode[]
}

/** A link whose clicks are counted; inserted by `tracking/`, not part of the language. */
export interface LinkNode {
  readonly kind: 'link'
  /** The original attribute value, rendered if clicks on it cannot be counted. */
  readonly written: readonly MergeNode[]
  /** The target if it is the same for everybody. */
  readonly url?: string
}

interface PixelNode {
  readonly kind: 'pixel'
}

export type MergeNode = string | ValueNode | UrlNode | ChoiceNode | LoopNode | LinkNode | PixelNode

export interface MergeTemplate {
  readonly place: MergePlace
  readonly nodes: readonly MergeNode[]
  /** Distinct names of values used outside loop items, such as `unsubscribe_url`. */
  readonly names: readonly string[]
}

/** Maps the texts and values of a tree; conditions and loops are kept. */
export function mapLeaves(
  nodes: readonly MergeNode[],
  change: (leaf: string | ValueNode) => MergeNode,
): MergeNode[] {
  const all = (some: readonly MergeNode[]) => mapLeaves(some, change)
  return nodes.map(node => {
    if (typeof node === 'string') return change(node)
    switch (node.kind) {
      case 'value':
        return change(node)
      case 'choice':
        return { ...node, whenTrue: all(node.whenTrue), whenFalse: all(node.whenFalse) }
      case 'loop':
        return { ...node, body: all(node.body), whenEmpty: all(node.whenEmpty) }
      case 'url':
        return { ...node, parts: all(node.parts) }
      case 'link':
      case 'pixel':
        return node
    }
  })
}

/** A fault in a template, shown to its author: a syntax error, or rendering that exceeds its limits. */
export class MergeError extends Error {
  override readonly name = 'MergeError'
  /** From 1; 0 if the fault has no position. */
  readonly line: number
  /** From 1, in UTF-16 units as in editors; 0 if the fault has no position. */
  readonly column: number
  readonly reason: string

  /** @param reason one sentence without a full stop; may quote the source, never a value */
  constructor(reason: string, line = 0, column = 0) {
    super(line === 0 ? reason : `line ${line}, column ${column}: ${reason}`)
    this.reason = reason
    this.line = line
    this.column = column
  }
}

/** @param offset of the source, in UTF-16 units */
export function mergeErrorAt(source: string, offset: number, reason: string): MergeError {
  let line = 1
  let start = 0
  for (let end = source.indexOf('\n'); end >= 0 && end < offset; end = source.indexOf('\n', end + 1)) {
    line++
    start = end + 1
  }
  return new MergeError(reason, line, offset - start + 1)
}
