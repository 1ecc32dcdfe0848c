/**
 * The fields of each block type, as far as the editor needs them: how a field is edited, its default and bounds, and its other spellings.
 *
 * A test holds this table to the schemas of the API.
 */

export type Field = {
  readonly name: string
  /** Other spellings in documents made elsewhere; the snake_case form of each is one, too. */
  readonly aliases?: readonly string[]
} & (
  | { readonly kind: 'line' | 'lines' | 'rich' | 'code' | 'url' | 'image'; readonly most: number }
  | { readonly kind: 'colour'; readonly standard?: string }
  | { readonly kind: 'alignment'; readonly standard: 'left' | 'center' }
  | {
      readonly kind: 'choice'
      readonly options: readonly (string | number)[]
      readonly standard: string | number
    }
  | {
      readonly kind: 'number'
      readonly unit: 'px' | '%'
      readonly least: number
      readonly most: number
      readonly standard?: number
    }
  | { readonly kind: 'truth'; readonly standard: boolean }
  | { readonly kind: 'width' }
  | { readonly kind: 'links' }
  | { readonly kind: 'value' }
  /** Nested blocks. */
  | { readonly kind: 'blocks' }
  | { readonly kind: 'columns' }
)

const LINK = ['href', 'link', 'linkUrl']
const IMAGE = ['image', 'imageUrl']
const CHILDREN = ['children']

const textColour: Field = { name: 'color', kind: 'colour', aliases: ['textColor'] }
const link = (name = 'url', aliases = LINK): Field => ({ name, kind: 'url', most: 2_048, aliases })
const image = (...more: readonly string[]): Field => ({
  name: 'src',
  kind: 'image',
  most: 2_048,
  aliases: [...IMAGE, ...more],
})
const aligned = (standard: 'left' | 'center'): Field => ({
  name: 'alignment',
  kind: 'alignment',
  standard,
  aliases: ['align'],
})
const pixels = (name: string, most: number, standard: number, aliases: readonly string[] = []): Field => ({
  name,
  kind: 'number',
  unit: 'px',
  least: 0,
  most,
  standard,
  aliases,
})

export const FIELDS = {
  header: [
    { name: 'text', kind: 'line', most: 1_000, aliases: ['title', 'heading'] },
    { name: 'level', kind: 'choice', options: [1, 2, 3], standard: 1 },
    aligned('left'),
    textColour,
  ],
  text: [{ name: 'html', kind: 'rich', most: 200_000, aliases: ['content'] }, aligned('left'), textColour],
  button: [
    { name: 'text', kind: 'line', most: 500, aliases: ['label', 'title'] },
    link(),
    aligned('center'),
    { name: 'backgroundColor', kind: 'colour', standard: '#2563eb', aliases: ['bgColor'] },
    { name: 'textColor', kind: 'colour', standard: '#ffffff' },
    pixels('borderRadius', 100, 4, ['radius']),
    { name: 'fullWidth', kind: 'truth', standard: false },
  ],
  image: [
    image(),
    { name: 'alt', kind: 'line', most: 1_000, aliases: ['altText'] },
    { name: 'width', kind: 'width' },
    aligned('center'),
    link(),
  ],
  divider: [
    { name: 'color', kind: 'colour', standard: '#dddddd', aliases: ['lineColor'] },
    pixels('thickness', 50, 1),
    { name: 'style', kind: 'choice', options: ['solid', 'dashed', 'dotted'], standard: 'solid' },
    { name: 'width', kind: 'number', unit: '%', least: 1, most: 100, standard: 100 },
  ],
  spacer: [pixels('height', 1_000, 20)],
  columns: [{ name: 'columns', kind: 'columns' }],
  social: [{ name: 'links', kind: 'links', aliases: ['networks', 'items'] }, aligned('center'), textColour],
  dynamic: [
    { name: 'source', kind: 'line', most: 200, aliases: ['list', 'each', 'dataSource'] },
    { name: 'blocks', kind: 'blocks', aliases: CHILDREN },
  ],
  conditional: [
    { name: 'condition', kind: 'line', most: 500 },
    { name: 'field', kind: 'line', most: 200 },
    {
      name: 'operator',
      kind: 'choice',
      options: ['equals', 'not_equals', 'gt', 'gte', 'lt', 'lte', 'is_set', 'is_not_set'],
      standard: 'equals',
    },
    { name: 'value', kind: 'value' },
    { name: 'blocks', kind: 'blocks', aliases: [...CHILDREN, 'then', 'trueBlocks'] },
    { name: 'elseBlocks', kind: 'blocks', aliases: ['else', 'falseBlocks'] },
  ],
  hero: [
    { name: 'title', kind: 'line', most: 1_000, aliases: ['heading', 'headline'] },
    { name: 'text', kind: 'lines', most: 10_000, aliases: ['subtitle', 'subheading', 'description'] },
    image(),
    { name: 'alt', kind: 'line', most: 1_000, aliases: ['altText', 'imageAlt'] },
    { name: 'buttonText', kind: 'line', most: 500, aliases: ['buttonLabel', 'ctaText'] },
    link('buttonUrl', ['buttonHref', 'buttonLink', 'ctaUrl']),
    aligned('center'),
    { name: 'backgroundColor', kind: 'colour', standard: '#1f2937', aliases: ['bgColor'] },
    { name: 'textColor', kind: 'colour', standard: '#ffffff', aliases: ['color'] },
    { name: 'buttonColor', kind: 'colour', standard: '#2563eb', aliases: ['buttonBackgroundColor'] },
  ],
  profile: [
    { name: 'name', kind: 'line', most: 500 },
    { name: 'role', kind: 'line', most: 500, aliases: ['title', 'subtitle', 'jobTitle', 'position'] },
    { name: 'text', kind: 'lines', most: 10_000, aliases: ['bio', 'description'] },
    image('avatar', 'photo'),
    link(),
    aligned('center'),
  ],
  html: [{ name: 'html', kind: 'code', most: 200_000, aliases: ['content'] }],
  dropshadow: [
    { name: 'backgroundColor', kind: 'colour', aliases: ['bgColor'] },
    pixels('borderRadius', 100, 8, ['radius']),
    pixels('blur', 100, 16),
    { name: 'blocks', kind: 'blocks', aliases: CHILDREN },
  ],
} as const satisfies Readonly<Record<string, readonly Field[]>>

export type BlockType = keyof typeof FIELDS
/** In the order of the palette. */
export const BLOCK_TYPES = Object.keys(FIELDS) as readonly BlockType[]

export const isBlockType = (name: unknown): name is BlockType =>
  typeof name === 'string' && Object.hasOwn(FIELDS, name)

/** Fields of a link in a `social` block. */
export const LINK_FIELDS: readonly Field[] = [
  { name: 'platform', kind: 'line', most: 50, aliases: ['network', 'name'] },
  { name: 'url', kind: 'url', most: 2_048, aliases: LINK },
  { name: 'label', kind: 'line', most: 100, aliases: ['text', 'title'] },
  { name: 'icon', kind: 'image', most: 2_048, aliases: ['image', 'src'] },
]

/** Fields of a column. */
export const COLUMN_FIELDS: readonly Field[] = [
  { name: 'blocks', kind: 'blocks', aliases: CHILDREN },
  { name: 'width', kind: 'number', unit: '%', least: 5, most: 95 },
]

export const THEME_FIELDS: readonly Field[] = [
  { name: 'fontFamily', kind: 'line', most: 200 },
  { name: 'contentWidth', kind: 'number', unit: 'px', least: 200, most: 2_000, standard: 600 },
  { name: 'backgroundColor', kind: 'colour', standard: '#f4f4f5' },
  { name: 'contentBackgroundColor', kind: 'colour', standard: '#ffffff' },
  { name: 'defaultTextColor', kind: 'colour', standard: '#222222' },
]

/** Of a document and of its blocks. */
export const LIMITS = { levels: 5, blocks: 2_000, topBlocks: 500, nestedBlocks: 100, columns: 4 } as const

const snakeCase = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** How the value has the field spelled. @returns its documented name if it has none */
export function spelledName(value: object, field: Field, all: readonly Field[]): string {
  const names = [field.name, snakeCase(field.name)]
  // Documented names of other fields win over aliases of this one.
  for (const alias of field.aliases ?? [])
    for (const name of [alias, snakeCase(alias)])
      if (!all.some(other => other.name === name)) names.push(name)
  return names.find(name => Object.hasOwn(value, name)) ?? field.name
}
