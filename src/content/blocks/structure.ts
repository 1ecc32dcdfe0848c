/**
 * The visual editor's structure of a template: settings, and blocks in their order. What each type of block holds, with its bounds.
 *
 * Blocks may hold fields beyond these; an editor keeps what it needs. Holds no logic.
 * Source: the contract's tables of `json_structure` and of block types; where it gives a type no content shape, the choice is made here.
 */
import { given } from '../../core/given.js'
import Type, { type Static, type TSchema } from 'typebox'

const Text = (most: number, description?: string) =>
  Type.String({ maxLength: most, ...given({ description }) })
/** May be a merge tag. */
const Url = () => Type.String({ maxLength: 2_048 })
const Colour = () => Type.String({ pattern: '^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$', maxLength: 7 })
const Alignment = () => Type.Enum(['left', 'center', 'right'])
const Pixels = (most: number) => Type.Number({ minimum: 0, maximum: most })
const Optional = Type.Optional
const content = <T extends Record<string, TSchema>>(fields: T) => Type.Object(fields)

const HTML_MOST = 200_000

/** Content of the blocks that hold no other blocks. */
export const PLAIN_BLOCKS = {
  header: content({
    text: Optional(Text(1_000)),
    level: Optional(Type.Enum([1, 2, 3])),
    alignment: Optional(Alignment()),
    color: Optional(Colour()),
  }),
  text: content({
    html: Optional(Text(HTML_MOST)),
    alignment: Optional(Alignment()),
    color: Optional(Colour()),
  }),
  button: content({
    text: Optional(Text(500)),
    url: Optional(Url()),
    alignment: Optional(Alignment()),
    backgroundColor: Optional(Colour()),
    textColor: Optional(Colour()),
    borderRadius: Optional(Pixels(100)),
    fullWidth: Optional(Type.Boolean()),
  }),
  image: content({
    src: Optional(Url()),
    alt: Optional(Text(1_000)),
    width: Optional(Type.Union([Type.Enum(['auto', 'full']), Type.Number({ minimum: 1, maximum: 2_000 })])),
    alignment: Optional(Alignment()),
    url: Optional(Url()),
  }),
  divider: content({
    color: Optional(Colour()),
    thickness: Optional(Pixels(50)),
    style: Optional(Type.Enum(['solid', 'dashed', 'dotted'])),
    width: Optional(Type.Number({ minimum: 1, maximum: 100, description: 'Percent.' })),
  }),
  spacer: content({ height: Optional(Pixels(1_000)) }),
  html: content({ html: Optional(Text(HTML_MOST)) }),
  social: content({
    alignment: Optional(Alignment()),
    color: Optional(Colour()),
    links: Optional(
      Type.Array(
        Type.Object({ platform: Text(50), url: Url(), label: Optional(Text(100)), icon: Optional(Url()) }),
        { maxItems: 20 },
      ),
    ),
  }),
  hero: content({
    title: Optional(Text(1_000)),
    text: Optional(Text(10_000)),
    src: Optional(Url()),
    alt: Optional(Text(1_000)),
    backgroundColor: Optional(Colour()),
    textColor: Optional(Colour()),
    alignment: Optional(Alignment()),
    buttonText: Optional(Text(500)),
    buttonUrl: Optional(Url()),
    buttonColor: Optional(Colour()),
  }),
  profile: content({
    src: Optional(Url()),
    name: Optional(Text(500)),
    role: Optional(Text(500)),
    text: Optional(Text(10_000)),
    url: Optional(Url()),
    alignment: Optional(Alignment()),
  }),
} as const

/** Content of the blocks that hold others; those are read by themselves. */
export const HOLDING_BLOCKS = {
  columns: content({
    columns: Optional(
      Type.Array(
        Type.Object({
          blocks: Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
          width: Optional(Type.Number({ minimum: 5, maximum: 95, description: 'Percent.' })),
        }),
        { minItems: 1, maxItems: 4 },
      ),
    ),
  }),
  dynamic: content({
    source: Optional(Text(200, 'Name of a list in template_data; the blocks are repeated for each entry.')),
    blocks: Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
  }),
  conditional: content({
    condition: Optional(Text(500, 'As in `{{#if ...}}`.')),
    blocks: Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
    elseBlocks: Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
  }),
  dropshadow: content({
    blocks: Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
    backgroundColor: Optional(Colour()),
    borderRadius: Optional(Pixels(100)),
    blur: Optional(Pixels(100)),
  }),
} as const

export type PlainType = keyof typeof PLAIN_BLOCKS
export type HoldingType = keyof typeof HOLDING_BLOCKS
export type ContentOf<T extends PlainType> = Static<(typeof PLAIN_BLOCKS)[T]>

export const BlockFrame = Type.Object({
  id: Type.String({ maxLength: 200 }),
  type: Type.String({ maxLength: 50 }),
  content: Type.Object({}),
})

export const StructureFrame = Type.Object(
  {
    blocks: Type.Array(Type.Unknown(), { maxItems: 500 }),
    settings: Optional(
      Type.Object({
        fontFamily: Optional(Type.String({ maxLength: 200, pattern: '^[A-Za-z0-9 ,\'"_-]*$' })),
        contentWidth: Optional(Type.Number({ minimum: 200, maximum: 2_000 })),
        backgroundColor: Optional(Colour()),
        contentBackgroundColor: Optional(Colour()),
        defaultTextColor: Optional(Colour()),
      }),
    ),
  },
  { title: 'TemplateStructure' },
)

/** A block as it was read: its content checked, the blocks in it read as well. */
export type Block =
  | { readonly [T in PlainType]: { readonly type: T; readonly content: ContentOf<T> } }[PlainType]
  | { readonly type: 'columns'; readonly columns: readonly Column[] }
  | { readonly type: 'dynamic'; readonly source: string; readonly blocks: readonly Block[] }
  | {
      readonly type: 'conditional'
      readonly condition: string
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
  readonly settings: Settings
  readonly blocks: readonly Block[]
}
