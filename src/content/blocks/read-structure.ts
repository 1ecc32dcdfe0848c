/**
 * Validates `json_structure`: maps accepted spellings to the documented names, checks every block against the schema of its type, and
 * applies default settings.
 *
 * Called when a template with a structure is submitted; stored structures are not validated again. Pure.
 * Throws AppError validation_error with the field's path as submitted, e.g. `json_structure.blocks.3.content.level`, and the block's type
 * and id in the message.
 */
import type { TSchema } from 'typebox'
import { AppError } from '../../core/errors.js'
import { placedValidator } from '../../http/validate.js'
import { MergeError } from '../merge/merge-tree.js'
import { parseTemplate } from '../merge/parse-template.js'
import { refusedScheme } from '../merge/url-scheme.js'
import { submittedPath, withDocumentedNames, type SubmittedNames } from './documented-names.js'
import {
  BLOCK_CONTENTS,
  BLOCK_TYPES,
  BlockFrame,
  CONTAINER_BLOCKS,
  PLAIN_BLOCKS,
  StructureFrame,
  URL_FORMAT,
  type BlockType,
  type ConditionalContent,
  type ContentOf,
  type ContainerType,
  type PlainType,
} from './structure.js'

const MAX_LEVELS = 5
const MAX_BLOCKS = 2_000

const WHOLE = 'json_structure'
const readFrame = placedValidator(StructureFrame, WHOLE)
const readBlockFrame = placedValidator(BlockFrame, WHOLE)
const readPlain = mapped(PLAIN_BLOCKS)
const readHolding = mapped(CONTAINER_BLOCKS)

/** A validated block. `place` is its path, `json_structure.blocks.3`. */
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

interface Condition {
  readonly tag: 'if' | 'unless'
  readonly expression: string
}

export interface Column {
  readonly blocks: readonly Block[]
  /** Percent. */
  readonly width: number
}

export interface Settings {
  readonly fontFamily: string
  /** Pixels. */
  readonly contentWidth: number
  /** Colours are hex. */
  readonly backgroundColor: string
  readonly contentBackgroundColor: string
  readonly defaultTextColor: string
}

export interface Structure {
  /** Fields submitted under another spelling. */
  readonly written: SubmittedNames
  readonly settings: Settings
  readonly blocks: readonly Block[]
}

export function readStructure(value: unknown): Structure {
  const written: SubmittedNames = new Map()
  try {
    const { blocks, settings = {} } = readFrame(
      withDocumentedNames(value, StructureFrame, [WHOLE], written),
      [WHOLE],
    )
    return {
      written,
      settings: {
        fontFamily: 'Arial, Helvetica, sans-serif',
        contentWidth: 600,
        backgroundColor: '#f4f4f5',
        contentBackgroundColor: '#ffffff',
        defaultTextColor: '#222222',
        ...settings,
      },
      blocks: new BlockReader(written).readAll(blocks, {
        place: [WHOLE, 'blocks'],
        level: 1,
        isInLoop: false,
      }),
    }
  } catch (error) {
    throw error instanceof AppError ? withSubmittedNames(error, written) : error
  }
}

interface Position {
  readonly place: readonly string[]
  readonly level: number
  /** Whether `this` is valid. */
  readonly isInLoop: boolean
}

class BlockReader {
  private count = 0
  private readonly written: SubmittedNames

  constructor(written: SubmittedNames) {
    this.written = written
  }

  readAll(blocks: readonly unknown[], { place, ...position }: Position): Block[] {
    return blocks.map((block, index) => this.read(block, { ...position, place: [...place, String(index)] }))
  }

  private read(value: unknown, position: Position): Block {
    const { place, level } = position
    if (++this.count > MAX_BLOCKS) throw fault(place, `exceeds the limit of ${MAX_BLOCKS} blocks`)
    if (level > MAX_LEVELS) throw fault(place, `is nested more than ${MAX_LEVELS} levels deep`)
    const { id, type, content } = readBlockFrame(value, place)
    if (!isKey(BLOCK_CONTENTS, type))
      throw fault([...place, 'type'], `must be one of ${BLOCK_TYPES.join(', ')} (block "${id}")`)
    const at = { ...position, place: [...place, 'content'], level: level + 1 }
    // Errors name the innermost block only.
    const checked = named(type, id, () => this.check(type, content, at.place))
    if (isKey(PLAIN_BLOCKS, type)) return plainBlock(type, id, place, checked)
    return { id, place, ...this.readHolding(type, id, checked, at) }
  }

  private check(type: BlockType, content: object, place: readonly string[]): object {
    const documented = withDocumentedNames(content, BLOCK_CONTENTS[type], place, this.written)
    const checked = isKey(PLAIN_BLOCKS, type)
      ? readPlain[type](documented, place)
      : readHolding[type](documented, place)
    refuseScripts(checked, BLOCK_CONTENTS[type], place)
    return checked
  }

  /** @param checked the content, valid for the type */
  private readHolding(type: ContainerType, id: string, checked: object, at: Position) {
    const inside = (blocks: readonly unknown[], ...way: readonly string[]) =>
      this.readAll(blocks, { ...at, place: [...at.place, ...way] })
    switch (type) {
      case 'columns': {
        const { columns = [] } = checked as Checked<'columns'>
        const share = 100 / Math.max(columns.length, 1)
        return {
          type,
          columns: columns.map(({ blocks = [], width = share }, index) => ({
            width,
            blocks: inside(blocks, 'columns', String(index), 'blocks'),
          })),
        }
      }
      case 'dynamic': {
        const { source = '', blocks = [] } = checked as Checked<'dynamic'>
        named(type, id, () => checkSource(source, blocks, at))
        const looped = { ...at, place: [...at.place, 'blocks'], isInLoop: true }
        return { type, source, blocks: this.readAll(blocks, looped) }
      }
      case 'conditional': {
        const content = checked as Checked<'conditional'>
        return {
          type,
          condition: named(type, id, () => readCondition(content, at)),
          blocks: inside(content.blocks ?? [], 'blocks'),
          elseBlocks: inside(content.elseBlocks ?? [], 'elseBlocks'),
        }
      }
      case 'dropshadow': {
        const { blocks = [], backgroundColor, borderRadius = 8, blur = 16 } = checked as Checked<'dropshadow'>
        return { type, blocks: inside(blocks, 'blocks'), backgroundColor, borderRadius, blur }
      }
    }
  }
}

type Checked<T extends ContainerType> = ReturnType<(typeof readHolding)[T]>

/** Blocks without a condition would be shown to everybody, so it is required unless the block is empty. */
function readCondition(content: ConditionalContent, { place, isInLoop }: Position): Condition | undefined {
  const { condition, field, operator = 'equals', value, blocks = [], elseBlocks = [] } = content
  const hasRule = field !== undefined || content.operator !== undefined || value !== undefined
  if (condition !== undefined && hasRule)
    throw fault(
      [...place, field === undefined ? (value === undefined ? 'operator' : 'value') : 'field'],
      'cannot be combined with condition; give one of them',
    )
  if (!hasRule && (condition ?? '').trim() === '') {
    if (blocks.length + elseBlocks.length === 0) return undefined
    throw fault([...place, 'condition'], 'is required: without one the blocks would be shown to everybody')
  }
  const isUnary = operator === 'is_set' || operator === 'is_not_set'
  if (hasRule && (field ?? '').trim() === '') throw fault([...place, 'field'], 'is required')
  if (hasRule && !isUnary && value === undefined)
    throw fault([...place, 'value'], `is required for the operator ${operator}`)
  if (hasRule && isUnary && value !== undefined)
    throw fault([...place, 'value'], `cannot be given with the operator ${operator}`)
  const expression = condition ?? expressionOf(field ?? '', operator, value, place)
  requireReadable(`#if ${expression}`, '/if', [...place, condition === undefined ? 'field' : 'condition'], {
    isInLoop,
    text: condition ?? field ?? '',
  })
  return { tag: operator === 'is_not_set' ? 'unless' : 'if', expression }
}

const COMPARISONS = { equals: '==', not_equals: '!=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

function expressionOf(
  field: string,
  operator: NonNullable<ConditionalContent['operator']>,
  value: ConditionalContent['value'],
  place: readonly string[],
): string {
  if (operator === 'is_set' || operator === 'is_not_set') return field
  if (typeof value !== 'string') return `${field} ${COMPARISONS[operator]} ${String(value)}`
  const quote = value.includes('"') ? "'" : '"'
  if (value.includes(quote) || /[{}]/.test(value))
    throw fault([...place, 'value'], 'must not contain braces or both kinds of quotation marks')
  // The tag's content is parsed as HTML.
  return `${field} ${COMPARISONS[operator]} ${quote}${value.replaceAll('&', '&amp;')}${quote}`
}

function checkSource(source: string, blocks: readonly unknown[], { place, isInLoop }: Position): void {
  if (source.trim() === '' && blocks.length > 0)
    throw fault([...place, 'source'], 'is required: it names the list whose entries are shown')
  if (source.trim() !== '')
    requireReadable(`#each ${source}`, '/each', [...place, 'source'], { isInLoop, text: source })
}

/** @throws AppError validation_error if the block tag cannot be parsed */
function requireReadable(
  begin: string,
  end: string,
  place: readonly string[],
  { isInLoop, text }: { readonly isInLoop: boolean; readonly text: string },
): void {
  if (/[{}]/.test(text)) throw fault(place, 'must be written without braces')
  const tags = `{{${begin}}}{{${end}}}`
  try {
    parseTemplate(isInLoop ? `{{#each x}}${tags}{{/each}}` : tags, 'html')
  } catch (error) {
    if (!(error instanceof MergeError)) throw error
    throw fault(place, `is invalid: ${error.reason}`)
  }
}

/** Rejects script URLs. Merged URLs are checked again on rendering (`merge/render-template.ts`). */
function refuseScripts(value: unknown, schema: TSchema, place: readonly string[]): void {
  const { properties, items, shownFormat } = schema as {
    readonly properties?: Readonly<Record<string, TSchema>>
    readonly items?: TSchema
    readonly shownFormat?: string
  }
  if (shownFormat === URL_FORMAT && typeof value === 'string') {
    const isPicture = place.at(-1) === 'src' || place.at(-1) === 'icon'
    const scheme = isPicture && /^\s*data:image\//i.test(value) ? undefined : refusedScheme(value)
    if (scheme !== undefined) throw fault(place, `must not be a ${scheme}: URL`)
  }
  if (Array.isArray(value) && items)
    for (const [index, item] of value.entries()) refuseScripts(item, items, [...place, String(index)])
  else if (typeof value === 'object' && value !== null && properties)
    for (const [name, field] of Object.entries(properties))
      refuseScripts((value as Readonly<Record<string, unknown>>)[name], field, [...place, name])
}

/** Appends the block's type and id to errors in its content. */
function named<T>(type: string, id: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${error.message} (${type} block "${id}")`, { path: error.path ?? WHOLE })
  }
}

function plainBlock(type: PlainType, id: string, place: readonly string[], content: object): Block {
  // `check` validated the content against this type's schema.
  return { id, place, type, content: content as ContentOf<typeof type> } as Block
}

type Reader<S> = (content: unknown, place: readonly string[]) => S

/** A validator per block type, each compiled once. */
function mapped<T extends Readonly<Record<string, Parameters<typeof placedValidator>[0]>>>(schemas: T) {
  return Object.fromEntries(
    Object.entries(schemas).map(([type, schema]) => [type, placedValidator(schema, WHOLE)]),
  ) as {
    readonly [K in keyof T]: T[K] extends infer S extends Parameters<typeof placedValidator>[0]
      ? Reader<ReturnType<ReturnType<typeof placedValidator<S>>>>
      : never
  }
}

function isKey<T extends object>(table: T, name: string): name is Extract<keyof T, string> {
  return Object.hasOwn(table, name)
}

function fault(place: readonly string[], problem: string): AppError {
  const path = place.join('.')
  return new AppError('validation_error', `${path} ${problem}`, { path })
}

function withSubmittedNames(error: AppError, written: SubmittedNames): AppError {
  const { path = WHOLE, message } = error
  const submitted = submittedPath(path, written)
  return submitted === path
    ? error
    : new AppError(error.code, submitted + message.slice(path.length), { path: submitted })
}
