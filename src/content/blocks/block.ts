/** A structure as `read-structure.ts` returns it and `render-structure.ts` takes it: checked, with documented names. Holds no logic. */
import type { WrittenNames } from './documented-names.js'
import type { ContentOf, PlainType } from './structure.js'

/** A block as it was read: its content checked, the blocks in it read as well. `place` is its path, `json_structure.blocks.3`. */
export type Block = { readonly id: string; readonly place: readonly string[] } & (
  | { readonly [T in PlainType]: { readonly type: T; readonly content: ContentOf<T> } }[PlainType]
  | { readonly type: 'columns'; readonly columns: readonly Column[] }
  | { readonly type: 'dynamic'; readonly source: string; readonly blocks: readonly Block[] }
  | {
      readonly type: 'conditional'
      /** The tag that begins it: `{{#if ...}}` or `{{#unless ...}}`; undefined where it has no blocks. */
      readonly condition: Condition | undefined
      readonly blocks: readonly Block[]
      readonly elseBlocks: readonly Block[]
    }
  | {
      readonly type: 'dropshadow'
      readonly blocks: readonly Block[]
      readonly backgroundColor: string | undefined
      readonly borderRadius: number
      readonly blur: number
    }
)

export interface Condition {
  readonly tag: 'if' | 'unless'
  readonly expression: string
}

export interface Column {
  readonly blocks: readonly Block[]
  /** Percent. */
  readonly width: number
}

export interface Settings {
  /** CSS font stack. */
  readonly fontFamily: string
  /** Pixels. */
  readonly contentWidth: number
  /** These are hex colours. */
  readonly backgroundColor: string
  readonly contentBackgroundColor: string
  readonly defaultTextColor: string
}

export interface Structure {
  /** Which fields were submitted by another spelling. */
  readonly written: WrittenNames
  readonly settings: Settings
  readonly blocks: readonly Block[]
}
