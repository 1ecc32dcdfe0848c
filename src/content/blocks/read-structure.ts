/**
 * Reads `json_structure`: checks every block against what its type holds, and fills in what is not said.
 *
 * Called when a template with a structure is submitted. Pure.
 * Fails: throws AppError validation_error with the path of the field, e.g. `json_structure.blocks.3.content.level`.
 */
import { placedValidator } from '../../http/validate.js'
import { AppError } from '../../core/errors.js'
import {
  BlockFrame,
  HOLDING_BLOCKS,
  PLAIN_BLOCKS,
  StructureFrame,
  type Block,
  type HoldingType,
  type PlainType,
  type Structure,
} from './structure.js'

/** Blocks in blocks. */
const MOST_LEVELS = 5
/** Of a whole structure. */
const MOST_BLOCKS = 2_000

const WHOLE = 'json_structure'
const readFrame = placedValidator(StructureFrame, WHOLE)
const readBlockFrame = placedValidator(BlockFrame, WHOLE)
const readPlain = mapped(PLAIN_BLOCKS)
const readHolding = mapped(HOLDING_BLOCKS)

export function readStructure(value: unknown): Structure {
  const { blocks, settings = {} } = readFrame(value, [WHOLE])
  return {
    settings: {
      fontFamily: 'Arial, Helvetica, sans-serif',
      contentWidth: 600,
      backgroundColor: '#f4f4f5',
      contentBackgroundColor: '#ffffff',
      defaultTextColor: '#222222',
      ...settings,
    },
    blocks: new BlockReader().readAll(blocks, [WHOLE, 'blocks'], 1),
  }
}

class BlockReader {
  private count = 0

  readAll(blocks: readonly unknown[], place: readonly string[], level: number): Block[] {
    return blocks.map((block, index) => this.read(block, [...place, String(index)], level))
  }

  private read(value: unknown, place: readonly string[], level: number): Block {
    if (++this.count > MOST_BLOCKS) throw fault(place, `is more than ${MOST_BLOCKS} blocks`)
    if (level > MOST_LEVELS) throw fault(place, `stands in more than ${MOST_LEVELS - 1} blocks`)
    const { type, content } = readBlockFrame(value, place)
    const at = [...place, 'content']
    if (isKey(PLAIN_BLOCKS, type)) return plainBlock(type, readPlain[type](content, at))
    if (isKey(HOLDING_BLOCKS, type)) return this.readHolding(type, content, at, level + 1)
    const known = [...Object.keys(PLAIN_BLOCKS), ...Object.keys(HOLDING_BLOCKS)].join(', ')
    throw fault([...place, 'type'], `must be one of ${known}`)
  }

  private readHolding(type: HoldingType, content: unknown, at: readonly string[], level: number): Block {
    switch (type) {
      case 'columns': {
        const { columns = [] } = readHolding.columns(content, at)
        const share = 100 / Math.max(columns.length, 1)
        return {
          type,
          columns: columns.map(({ blocks = [], width = share }, index) => ({
            width,
            blocks: this.readAll(blocks, [...at, 'columns', String(index), 'blocks'], level),
          })),
        }
      }
      case 'dynamic': {
        const { source = '', blocks = [] } = readHolding.dynamic(content, at)
        return { type, source, blocks: this.readAll(blocks, [...at, 'blocks'], level) }
      }
      case 'conditional': {
        const { condition = '', blocks = [], elseBlocks = [] } = readHolding.conditional(content, at)
        return {
          type,
          condition,
          blocks: this.readAll(blocks, [...at, 'blocks'], level),
          elseBlocks: this.readAll(elseBlocks, [...at, 'elseBlocks'], level),
        }
      }
      case 'dropshadow': {
        const {
          blocks = [],
          backgroundColor,
          borderRadius = 8,
          blur = 16,
        } = readHolding.dropshadow(content, at)
        return {
          type,
          blocks: this.readAll(blocks, [...at, 'blocks'], level),
          backgroundColor,
          borderRadius,
          blur,
        }
      }
    }
  }
}

function plainBlock(type: PlainType, content: unknown): Block {
  // The content was checked against the schema of this very type.
  return { type, content } as Block
}

type Reader<S> = (content: unknown, place: readonly string[]) => S

/** A reader for each type of block, its schema compiled once. */
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
