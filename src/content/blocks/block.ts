/** A validated structure, with documented field names: `read-structure.ts` returns it, `render-structure.ts` renders it. Types only. */
import type { WrittenNames } from './documented-names.js'
import type { ContentOf, PlainType } from './structure.js'

/** A validated block, including the blocks in it. `place` is its path, `json_structure.blocks.3`. */
export type Block = { readonly id: string; readonly place: readonly string[] } & (
  | { readonly [T in PlainType]: { readonly type: T; readonly content: ContentOf<T> } }[PlainType]
  | { readonly type: 'columns'; readonly columns: readonly Column[] }
  | { readonly type: 'dynamic'; readonly source: string; readonly blocks: readonly Block[] }
  | {
      readonly type: 'conditional'
      /** The opening tag, `{{#if ...}}` or `{{#unless ...}}`; undefined if the block is empty. */
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
  /** Colours are hex. */
  readonly backgroundColor: string
  readonly contentBackgroundColor: string
  readonly defaultTextColor: string
}

export interface Structure {
  /** Fields that were submitted by another spelling. */
  readonly written: WrittenNames
  readonly settings: Settings
  readonly blocks: readonly Block[]
}
