/** Generates `docs/blocks.md` and its images from the block schemas. */
import {
  BLOCK_CONTENTS,
  BLOCK_TYPES,
  StructureFrame,
  type BlockType,
} from '../../src/content/blocks/structure.js'

export const PAGE = 'docs/blocks.md'
export const PICTURES = 'docs/blocks'

interface Field {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Field[]
  readonly items?: Field
  readonly properties?: Readonly<Record<string, Field>>
  readonly required?: readonly string[]
  readonly title?: string
  readonly pattern?: string
  readonly description?: string
  readonly default?: string | number | boolean
  readonly examples?: readonly object[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly shown?: object
  readonly shownFormat?: string
  readonly 'x-aliases'?: readonly string[]
}

/** Each type with its example, as its image shows it. */
export function exampleBlock(type: BlockType): { id: string; type: BlockType; content: object } {
  const { examples = [] } = BLOCK_CONTENTS[type] as unknown as Field
  return { id: type, type, content: examples[0] ?? {} }
}

export function blocksPage(): string {
  const { settings } = StructureFrame.properties as unknown as Readonly<Record<string, Field>>
  return `<!-- Generated from src/content/blocks/structure.ts: node build/test/content/write-blocks-page.js -->
# Blocks of the visual editor

A template can be submitted as \`json_structure\` instead of HTML. It holds \`blocks\`, from top to bottom, and \`settings\`:

\`\`\`json
${JSON.stringify({ blocks: [exampleBlock('header')], settings: { contentWidth: 600 } }, null, 2)}
\`\`\`

Without \`html\` in the same request, the HTML is rendered from the blocks. With it, that HTML is sent and the blocks are only kept for
the editor. The structure is stored as submitted.

- Every block has an \`id\` of your choice, a \`type\` and a \`content\`. All fields of \`content\` are optional unless marked.
- An unknown field, type or value is refused with 400 \`validation_error\` and its path, for instance
  \`json_structure.blocks.3.content.foo\`. The message names the block.
- The snake_case form of each field (\`background_color\`) and the spellings under "also" are accepted. Giving a field twice is refused.
- [Merge tags](merge-tags.md) work in every text, HTML and URL.
- URLs with a \`javascript:\`, \`vbscript:\`, \`file:\`, \`blob:\` or \`data:\` scheme are refused, except \`data:image/\` in images.
- At most 2,000 blocks, five levels deep, 500 at the top level and 100 in each block or column.

The schemas are in \`/openapi.json\` as \`TemplateStructure\`, \`TemplateBlock\` (discriminated by \`type\`) and \`HeaderBlock\`,
\`HeaderBlockContent\` and so on.

## settings

${table(settings ?? {})}
${BLOCK_TYPES.map(section).join('\n')}`
}

function section(type: BlockType): string {
  const schema = BLOCK_CONTENTS[type] as unknown as Field
  return `## ${type}

${schema.description ?? ''}

![A ${type} block](blocks/${type}.png)

${table(schema)}
\`\`\`json
${JSON.stringify(exampleBlock(type), null, 2)}
\`\`\`
`
}

function table(schema: Field): string {
  return `| Field | Type | Default | |\n|---|---|---|---|\n${rows(schema, '').join('\n')}\n`
}

function rows({ properties = {}, required = [] }: Field, before: string): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const aliases = field['x-aliases'] ?? []
    const notes = [
      required.includes(name) ? 'Required.' : '',
      field.description ?? '',
      aliases.length === 0 ? '' : `Also ${aliases.map(code).join(', ')}.`,
    ]
    const standard = field.default === undefined || field.default === '' ? '' : code(String(field.default))
    const row = `| ${code(before + name)} | ${kind(field)} | ${standard} | ${notes.filter(Boolean).join(' ')} |`
    return [row, ...(field.items?.properties ? rows(field.items, `${before}${name}[].`) : [])]
  })
}

function kind(field: Field): string {
  if (field.anyOf) return field.anyOf.map(kind).join(' or ')
  if (field.enum) return field.enum.map(value => code(String(value))).join(', ')
  if (field.type === 'array')
    return `array of ${field.items?.shown ? 'blocks' : 'objects'}, at most ${field.maxItems ?? ''}`
  if (field.shownFormat !== undefined) return 'URL'
  if (field.pattern?.startsWith('^#') === true) return 'hex colour'
  if (field.type === 'number' && field.maximum !== undefined)
    return `number, ${field.minimum ?? 0} to ${field.maximum}`
  return field.maxLength === undefined
    ? (field.type ?? '')
    : `text, at most ${field.maxLength.toLocaleString('en')}`
}

function code(text: string): string {
  return `\`${text}\``
}
