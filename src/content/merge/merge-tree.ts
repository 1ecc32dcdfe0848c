/**
 * A merge template, parsed: what `parse-template.ts` makes of a source and `render-template.ts` renders for each recipient.
 *
 * Plain values, so that a tree can be handed to a delivery thread. Holds no logic.
 */

/** What the source becomes: decides how values are escaped. A subject is one line of text. */
export type MergePlace = 'html' | 'text' | 'subject'

export const FORMATS = ['text', 'uppercase', 'lowercase', 'capitalize'] as const
export type Format = (typeof FORMATS)[number]

export const COMPARISONS = ['==', '!=', '>=', '<=', '>', '<'] as const
export type Comparison = (typeof COMPARISONS)[number]

/**
 * Where a value lands in HTML: text and attributes are escaped alike; in a URL the place decides what is encoded.
 * `url start`: the value begins the URL and may be all of it. `url path`: before any `?`. `url query`: behind one.
 * `tag`: inside a tag but in no quoted value, where a space would begin another attribute. `url value`: one value of a URL outside of mail,
 * encoded as a whole.
 */
export type HtmlPlace = 'text' | 'attribute' | 'tag' | 'url start' | 'url path' | 'url query' | 'url value'

/** Where a value is looked up. */
export type Lookup =
  /** By its whole name first, then along its dots. */
  | { readonly of: 'root'; readonly name: string; readonly path: readonly string[] }
  /** The item of the innermost loop, or what the path leads to in it. */
  | { readonly of: 'this'; readonly path: readonly string[] }
  | { readonly of: 'loop'; readonly variable: 'index' | 'first' | 'last' }

export type Operand = { readonly literal: string | number | boolean | null } | { readonly lookup: Lookup }

export interface Expression {
  readonly left: Operand
  /** Absent where the expression is one operand. */
  readonly right?: { readonly comparison: Comparison; readonly operand: Operand }
}

export interface ValueNode {
  readonly kind: 'value'
  readonly lookup: Lookup
  /** Stands for a value that is empty. */
  readonly fallback: string
  readonly format: Format
  /** `plain`: no HTML, so nothing to escape. `unescaped`: `{{{key}}}`, which gives template_data as it is. */
  readonly place: HtmlPlace | 'plain' | 'unescaped'
  /** Part of a URL whose end lies in a branch: it must not leave open whether the URL has a scheme. */
  readonly isSettling?: true
}

/** What a checked attribute holds: one URL, several with commas, or that of `<meta http-equiv=refresh>`. */
export type UrlKind = 'url' | 'list' | 'refresh'

/** The value of an attribute whose scheme shows only once all of its parts are filled in. */
export interface UrlNode {
  readonly kind: 'url'
  readonly holds: UrlKind
  readonly parts: readonly MergeNode[]
}

export interface ChoiceNode {
  readonly kind: 'choice'
  readonly expression: Expression
  /** Rendered where the expression is true, or for `#unless` where it is not. */
  readonly whenTrue: readonly MergeNode[]
  readonly whenFalse: readonly MergeNode[]
}

export interface LoopNode {
  readonly kind: 'loop'
  readonly list: Lookup
  readonly body: readonly MergeNode[]
  /** For a list that is missing or empty. */
  readonly whenEmpty: readonly MergeNode[]
}

/** The URL of a link whose clicks are counted; put in by `tracking/`, no tag of the language. */
export interface LinkNode {
  readonly kind: 'link'
  /** What stands in the attribute: rendered where clicks on it cannot be counted. */
  readonly written: readonly MergeNode[]
  /** Where it leads everybody; absent where that is each recipient's own. */
  readonly url?: string
}

/** The picture that tells of openings; put in by `tracking/`. */
export interface PixelNode {
  readonly kind: 'pixel'
}

/** A text stands for itself. */
export type MergeNode = string | ValueNode | UrlNode | ChoiceNode | LoopNode | LinkNode | PixelNode

export interface MergeTemplate {
  readonly place: MergePlace
  readonly nodes: readonly MergeNode[]
  /** Names of the values that it asks for outside of loops' items, each once: `unsubscribe_url`. */
  readonly names: readonly string[]
}
