/**
 * Schemas of `json_structure`: settings, and the content of each of the fourteen block types with limits, defaults and an example.
 *
 * No logic.
 *
 * `x-aliases` lists alternative spellings of a field; the snake_case form of any field is accepted too. A `default` documents what
 * `render-structure.ts` uses for an absent field.
 * Source: the contract's tables of `json_structure` and of block types; where it leaves a type's content open, it is defined here.
 */
import Type, { type Static, type TSchema } from 'typebox'

interface FieldOptions {
  readonly description?: string
  readonly default?: string | number | boolean
  readonly 'x-aliases'?: readonly string[]
}

const Optional = Type.Optional
const also = (...names: readonly string[]) => ({ 'x-aliases': names })

const Text = (most: number, options: FieldOptions = {}) => Type.String({ maxLength: most, ...options })
const Html = () =>
  Type.String({
    maxLength: 200_000,
    description: 'HTML with merge tags, used unchanged.',
    ...also('content'),
  })

/** URL fields, checked by `read-structure.ts`. Not a validation `format`, since merge tags are allowed. */
export const URL_FORMAT = 'uri-reference'
const Url = (options: FieldOptions = {}) =>
  Type.String({ maxLength: 2_048, shownFormat: URL_FORMAT, ...options })
const LinkUrl = (description: string) => Url({ description, ...also('href', 'link', 'linkUrl') })
const ImageUrl = (...aliases: readonly string[]) =>
  Url({ description: 'URL of the image.', ...also('image', 'imageUrl', ...aliases) })

const Colour = (options: FieldOptions = {}) =>
  Type.String({ pattern: '^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$', maxLength: 7, ...options })
const TextColour = (options: FieldOptions = {}) =>
  Colour({ description: "Default: the structure's `defaultTextColor`.", ...also('textColor'), ...options })
const Alignment = (standard: 'left' | 'center') =>
  Type.Enum(['left', 'center', 'right'], { default: standard, ...also('align') })
const Pixels = (most: number, standard: number, options: FieldOptions = {}) =>
  Type.Number({ minimum: 0, maximum: most, default: standard, description: 'Pixels.', ...options })

const BLOCK_NAME = 'TemplateBlock'
/** Nested blocks: validated one by one by `read-structure.ts`, shown in the API by reference. */
const Blocks = (description: string, ...aliases: readonly string[]) =>
  Type.Array(Type.Unknown({ shown: { $ref: `#/components/schemas/${BLOCK_NAME}` } }), {
    maxItems: 100,
    description,
    ...also(...aliases),
  })

function content<T extends Record<string, TSchema>>(description: string, example: object, fields: T) {
  return Type.Object(fields, { additionalProperties: false, description, examples: [example] })
}

const textBlock = (id: string, html: string) => ({ id, type: 'text', content: { html } })

export const PLAIN_BLOCKS = {
  header: content(
    'A heading.',
    { text: 'Your order is on its way', level: 1, alignment: 'left' },
    {
      text: Optional(
        Text(1_000, { description: 'Plain text with merge tags.', ...also('title', 'heading') }),
      ),
      level: Optional(Type.Enum([1, 2, 3], { default: 1, description: '28, 22 or 18 pixels.' })),
      alignment: Optional(Alignment('left')),
      color: Optional(TextColour()),
    },
  ),
  text: content(
    'A paragraph, or any HTML.',
    { html: '<p>Hello {{first_name|there}}, we sent your parcel <b>this morning</b>.</p>' },
    {
      html: Optional(Html()),
      alignment: Optional(Alignment('left')),
      color: Optional(TextColour()),
    },
  ),
  button: content(
    'A link styled as a button, in Outlook too.',
    { text: 'Track your parcel', url: 'https://shop.example/track', backgroundColor: '#2563eb' },
    {
      text: Optional(Text(500, { description: 'Plain text with merge tags.', ...also('label', 'title') })),
      url: Optional(LinkUrl('Target of the button.')),
      alignment: Optional(Alignment('center')),
      backgroundColor: Optional(Colour({ default: '#2563eb', ...also('bgColor') })),
      textColor: Optional(Colour({ default: '#ffffff' })),
      borderRadius: Optional(Pixels(100, 4, also('radius'))),
      fullWidth: Optional(Type.Boolean({ default: false, description: 'Fills the column.' })),
    },
  ),
  image: content(
    'An image, linked if `url` is given.',
    { src: 'https://shop.example/mug.png', alt: 'A blue mug', width: 240 },
    {
      src: Optional(ImageUrl()),
      alt: Optional(
        Text(1_000, { description: 'Shown if the image is not loaded.', default: '', ...also('altText') }),
      ),
      width: Optional(
        Type.Union([Type.Enum(['auto', 'full']), Type.Number({ minimum: 1, maximum: 2_000 })], {
          default: 'auto',
          description:
            'Maximum width in pixels, `full` for the width of the mail without margins, or `auto` for the size of the image. ' +
            'Always shrinks to fit a phone.',
        }),
      ),
      alignment: Optional(Alignment('center')),
      url: Optional(LinkUrl('Target of the link.')),
    },
  ),
  divider: content(
    'A horizontal line.',
    { color: '#94a3b8', thickness: 2, style: 'dashed', width: 80 },
    {
      color: Optional(Colour({ default: '#dddddd', ...also('lineColor') })),
      thickness: Optional(Pixels(50, 1)),
      style: Optional(Type.Enum(['solid', 'dashed', 'dotted'], { default: 'solid' })),
      width: Optional(Type.Number({ minimum: 1, maximum: 100, default: 100, description: 'Percent.' })),
    },
  ),
  spacer: content('Empty space.', { height: 32 }, { height: Optional(Pixels(1_000, 20)) }),
  html: content(
    'Raw HTML, placed in a separate table cell.',
    {
      html: '<table width="100%"><tr><td style="padding:8px 24px;font-family:monospace">ORDER 1042</td></tr></table>',
    },
    { html: Optional(Html()) },
  ),
  social: content(
    'Links to social profiles, side by side.',
    {
      links: [
        { platform: 'Mastodon', url: 'https://social.example/@shop' },
        { platform: 'YouTube', url: 'https://video.example/shop', label: 'Our videos' },
      ],
    },
    {
      links: Optional(
        Type.Array(
          Type.Object(
            {
              platform: Text(50, also('network', 'name')),
              url: LinkUrl('URL of the profile.'),
              label: Optional(Text(100, { description: 'Default: `platform`.', ...also('text', 'title') })),
              icon: Optional(
                Url({ description: 'URL of an image, shown 24 pixels wide.', ...also('image', 'src') }),
              ),
            },
            { additionalProperties: false, title: 'SocialLink' },
          ),
          { maxItems: 20, ...also('networks', 'items') },
        ),
      ),
      alignment: Optional(Alignment('center')),
      color: Optional(TextColour()),
    },
  ),
  hero: content(
    'A panel with an image, title, text and button, all optional.',
    {
      title: 'Autumn sale',
      text: 'Everything at half price until Sunday.',
      buttonText: 'See the offers',
      buttonUrl: 'https://shop.example/sale',
    },
    {
      title: Optional(Text(1_000, also('heading', 'headline'))),
      text: Optional(
        Text(10_000, { description: 'Below the title.', ...also('subtitle', 'subheading', 'description') }),
      ),
      src: Optional(ImageUrl()),
      alt: Optional(Text(1_000, { default: '', ...also('altText', 'imageAlt') })),
      backgroundColor: Optional(Colour({ default: '#1f2937', ...also('bgColor') })),
      textColor: Optional(Colour({ default: '#ffffff', ...also('color') })),
      alignment: Optional(Alignment('center')),
      buttonText: Optional(
        Text(500, { description: 'Requires `buttonUrl`.', ...also('buttonLabel', 'ctaText') }),
      ),
      buttonUrl: Optional(
        Url({ description: 'Requires `buttonText`.', ...also('buttonHref', 'buttonLink', 'ctaUrl') }),
      ),
      buttonColor: Optional(Colour({ default: '#2563eb', ...also('buttonBackgroundColor') })),
    },
  ),
  profile: content(
    'A person: image, name, role and a short text.',
    { name: 'Ann Miller', role: 'Founder', text: 'Reply to this mail and I will read it myself.' },
    {
      src: Optional(ImageUrl('avatar', 'photo')),
      name: Optional(Text(500)),
      role: Optional(Text(500, also('title', 'subtitle', 'jobTitle', 'position'))),
      text: Optional(Text(10_000, also('bio', 'description'))),
      url: Optional(LinkUrl('Target of the link.')),
      alignment: Optional(Alignment('center')),
    },
  ),
} as const

export const CONDITION_OPERATORS = [
  'equals',
  'not_equals',
  'gt',
  'gte',
  'lt',
  'lte',
  'is_set',
  'is_not_set',
] as const

export const CONTAINER_BLOCKS = {
  columns: content(
    'Up to four columns, stacked on phones.',
    {
      columns: [
        { blocks: [textBlock('left', '<b>Pick up</b><br>Ready on Monday')], width: 50 },
        { blocks: [textBlock('right', '<b>Delivery</b><br>Two days more')], width: 50 },
      ],
    },
    {
      columns: Optional(
        Type.Array(
          Type.Object(
            {
              blocks: Optional(Blocks('Blocks from top to bottom.', 'children')),
              width: Optional(
                Type.Number({
                  minimum: 5,
                  maximum: 95,
                  description: 'Percent. Default: an equal share.',
                }),
              ),
            },
            { additionalProperties: false, title: 'TemplateColumn' },
          ),
          { minItems: 1, maxItems: 4 },
        ),
      ),
    },
  ),
  dynamic: content(
    'Repeats its blocks for each entry of a list; `{{this.name}}` in them is a field of the entry.',
    { source: 'items', blocks: [textBlock('item', '{{this.quantity}} × {{this.name}}')] },
    {
      source: Optional(
        Text(200, {
          description: 'Name of a list in template_data. Required if there are blocks.',
          ...also('list', 'each', 'dataSource'),
        }),
      ),
      blocks: Optional(Blocks('Blocks repeated for each entry.', 'children')),
    },
  ),
  conditional: content(
    'Shows its blocks only to recipients who match the condition. The condition is either `condition` or `field`, `operator` ' +
      'and `value`; one of them is required if there are blocks.',
    {
      field: 'attributes.plan',
      operator: 'equals',
      value: 'pro',
      blocks: [textBlock('pro', 'Thank you for being a Pro customer.')],
      elseBlocks: [textBlock('free', 'Upgrade to Pro for free delivery.')],
    },
    {
      condition: Optional(
        Text(500, { description: 'An expression as in `{{#if ...}}`, without the braces: `total > 100`.' }),
      ),
      field: Optional(
        Text(200, {
          description: 'Name of a merge tag: `first_name`, `attributes.plan`, a key of template_data.',
        }),
      ),
      operator: Optional(Type.Enum([...CONDITION_OPERATORS], { default: 'equals' })),
      value: Optional(
        Type.Union([Text(500), Type.Number(), Type.Boolean()], {
          description: 'Required except for `is_set` and `is_not_set`.',
        }),
      ),
      blocks: Optional(Blocks('Shown if the condition is true.', 'children', 'then', 'trueBlocks')),
      elseBlocks: Optional(Blocks('Shown to all other recipients.', 'else', 'falseBlocks')),
    },
  ),
  dropshadow: content(
    'A card with rounded corners and a shadow.',
    { blocks: [textBlock('card', '<b>Gift card</b><br>Valid for a year')] },
    {
      blocks: Optional(Blocks('Blocks inside the card.', 'children')),
      backgroundColor: Optional(
        Colour({ description: "Default: the structure's `contentBackgroundColor`.", ...also('bgColor') }),
      ),
      borderRadius: Optional(Pixels(100, 8, also('radius'))),
      blur: Optional(Pixels(100, 16)),
    },
  ),
} as const

export type PlainType = keyof typeof PLAIN_BLOCKS
export type ContainerType = keyof typeof CONTAINER_BLOCKS
export type ContentOf<T extends PlainType> = Static<(typeof PLAIN_BLOCKS)[T]>
export type ConditionalContent = Static<typeof CONTAINER_BLOCKS.conditional>

export const BLOCK_CONTENTS = { ...PLAIN_BLOCKS, ...CONTAINER_BLOCKS }
export type BlockType = keyof typeof BLOCK_CONTENTS
export const BLOCK_TYPES = Object.keys(BLOCK_CONTENTS) as BlockType[]

const BlockId = () => Type.String({ maxLength: 200, description: 'Any text; quoted in error messages.' })

export const BlockFrame = Type.Object(
  { id: BlockId(), type: Type.String({ maxLength: 50 }), content: Type.Object({}) },
  { additionalProperties: false },
)

const nameOf = (type: BlockType) => `${type[0]?.toUpperCase() ?? ''}${type.slice(1)}Block`

const BlockSchema = Type.Unsafe<unknown>({
  title: BLOCK_NAME,
  description: 'A block of the visual editor. `type` determines the shape of `content`.',
  oneOf: BLOCK_TYPES.map(type =>
    Type.Object(
      {
        id: BlockId(),
        type: Type.Literal(type),
        content: { ...BLOCK_CONTENTS[type], title: `${nameOf(type)}Content` },
      },
      { additionalProperties: false, title: nameOf(type) },
    ),
  ),
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(BLOCK_TYPES.map(type => [type, `#/components/schemas/${nameOf(type)}`])),
  },
})

const settings = Optional(
  Type.Object(
    {
      fontFamily: Optional(
        Type.String({
          maxLength: 200,
          pattern: '^[A-Za-z0-9 ,\'"_-]*$',
          default: 'Arial, Helvetica, sans-serif',
          description: 'A CSS font stack.',
        }),
      ),
      contentWidth: Optional(
        Type.Number({ minimum: 200, maximum: 2_000, default: 600, description: 'Pixels.' }),
      ),
      backgroundColor: Optional(
        Colour({ default: '#f4f4f5', description: 'Background around the content.' }),
      ),
      contentBackgroundColor: Optional(Colour({ default: '#ffffff' })),
      defaultTextColor: Optional(Colour({ default: '#222222' })),
    },
    { additionalProperties: false },
  ),
)

const frame = { additionalProperties: false, title: 'TemplateStructure' }

export const StructureFrame = Type.Object(
  { blocks: Type.Array(Type.Unknown(), { maxItems: 500 }), settings },
  frame,
)

export const StructureSchema = Type.Object(
  { blocks: Type.Array(BlockSchema, { maxItems: 500 }), settings },
  {
    ...frame,
    examples: [
      {
        blocks: [{ id: 'intro', type: 'header', content: { text: 'Hello {{first_name|there}}', level: 1 } }],
        settings: { contentWidth: 600 },
      },
    ],
    description:
      'The structure edited in the visual editor. Unknown fields are rejected with their path. snake_case field names and the ' +
      'spellings in `x-aliases` are also accepted.',
  },
)
