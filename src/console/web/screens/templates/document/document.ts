/**
 * A template's `json_structure` as the editor holds it: an immutable tree of blocks, and what can be done to it.
 *
 * Nothing of a document gets lost: properties that the editor does not know, other spellings, the order of properties and blocks of unknown
 * types stay as they are, so that `serialise(parse(x))` equals `x`. Pure: nothing here knows of screens or requests.
 * Never throws; an operation that is not possible answers the document as it was.
 */
import {
  COLUMN_FIELDS,
  FIELDS,
  isBlockType,
  LIMITS,
  spelledName,
  type BlockType,
  type Field,
} from './fields.js'

export type Properties = Readonly<Record<string, unknown>>

export interface Block {
  /** Of the editor, never stored: ids of documents made elsewhere may repeat or be missing. */
  readonly key: string
  /** The block as written. What its slots hold is in `slots`. */
  readonly written: unknown
  /** Where other blocks can be: one for most containers, two for conditionals, one for each column. */
  readonly slots: readonly Slot[]
}

export interface Slot {
  /** Spelling of the field that holds the blocks, in the block's content or in its column. */
  readonly field: string
  /** Of columns: the column as written. */
  readonly column?: Properties
  readonly blocks: readonly Block[]
}

export interface EditorDocument {
  /** As written; its blocks are in `blocks`. */
  readonly written: Properties
  readonly blocks: readonly Block[]
}

/** Somewhere a block can be put: before the block that is number `at` there now. */
export interface Place {
  /** Key of the container; undefined for the document itself. */
  readonly parent: string | undefined
  /** Number of the container's slot. */
  readonly slot: number
  readonly at: number
}

let lastKey = 0
const newKey = () => `k${String(++lastKey)}`

const isObject = (value: unknown): value is Properties =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function contentOf(block: Block): Properties {
  const content = isObject(block.written) ? block.written['content'] : undefined
  return isObject(content) ? content : {}
}

/** @returns undefined for a type that the editor does not know */
export function typeOf({ written }: Block): BlockType | undefined {
  const type = isObject(written) ? written['type'] : undefined
  return isBlockType(type) ? type : undefined
}

export function parse(structure: unknown): EditorDocument {
  const written = isObject(structure) ? structure : { blocks: [], settings: {} }
  const blocks = written['blocks']
  return { written, blocks: Array.isArray(blocks) ? blocks.map(parseBlock) : [] }
}

export function parseBlock(written: unknown): Block {
  const bare: Block = { key: newKey(), written, slots: [] }
  const type = typeOf(bare)
  if (type === undefined || !isObject((written as Properties)['content'])) return bare
  return { ...bare, slots: readSlots(type, contentOf(bare)) }
}

function readSlots(type: BlockType, content: Properties): Slot[] {
  const fields: readonly Field[] = FIELDS[type]
  return fields.flatMap(field => {
    const name = spelledName(content, field, fields)
    const value = content[name]
    if (field.kind === 'blocks') return readBlocks(value, name) ?? []
    if (field.kind !== 'columns' || !Array.isArray(value)) return []
    const columns = value.map(column => (isObject(column) ? readColumn(column) : undefined))
    return columns.every(column => column !== undefined) ? columns : []
  })
}

function readBlocks(value: unknown, field: string): Slot | undefined {
  if (value === undefined) return { field, blocks: [] }
  return Array.isArray(value) ? { field, blocks: value.map(parseBlock) } : undefined
}

function readColumn(column: Properties): Slot | undefined {
  const [blocks] = COLUMN_FIELDS
  const slot = blocks && readBlocks(...nameAndValue(column, blocks))
  return slot && { ...slot, column }
}

function nameAndValue(column: Properties, field: Field): [unknown, string] {
  const name = spelledName(column, field, COLUMN_FIELDS)
  return [column[name], name]
}

export function serialise({ written, blocks }: EditorDocument): Properties {
  const isAbsent = blocks.length === 0 && !Array.isArray(written['blocks'])
  return isAbsent ? written : { ...written, blocks: blocks.map(serialiseBlock) }
}

export function serialiseBlock(block: Block): unknown {
  const { written, slots } = block
  if (!isObject(written) || slots.length === 0) return written
  return { ...written, content: withSlots(contentOf(block), typeOf(block), slots) }
}

function withSlots(content: Properties, type: BlockType | undefined, slots: readonly Slot[]): Properties {
  if (type === 'columns') {
    const [field] = FIELDS.columns
    const columns = slots.map(({ column = {}, ...slot }) => withBlocks(column, slot))
    return { ...content, [spelledName(content, field, FIELDS.columns)]: columns }
  }
  return slots.reduce(withBlocks, content)
}

function withBlocks(holder: Properties, { field, blocks }: Slot): Properties {
  if (blocks.length === 0 && holder[field] === undefined) return holder
  return { ...holder, [field]: blocks.map(serialiseBlock) }
}

/** A new block. @param content fields by their documented names */
export function makeBlock(type: BlockType, content: Properties, newId: () => string): Block {
  return parseBlock({ id: newId(), type, content })
}

export interface Found {
  readonly block: Block
  readonly place: Place
  /** Of the container that holds it, from the outside in. */
  readonly above: readonly Block[]
}

export function find(document: EditorDocument, key: string): Found | undefined {
  return findIn(document.blocks, key, { parent: undefined, slot: 0, at: 0 }, [])
}

function findIn(
  blocks: readonly Block[],
  key: string,
  { parent, slot }: Place,
  above: readonly Block[],
): Found | undefined {
  for (const [at, block] of blocks.entries()) {
    if (block.key === key) return { block, place: { parent, slot, at }, above }
    for (const [index, { blocks: inside }] of block.slots.entries()) {
      const found = findIn(inside, key, { parent: block.key, slot: index, at: 0 }, [...above, block])
      if (found) return found
    }
  }
  return undefined
}

/** All blocks, each before those that it holds. */
export function* allBlocks(blocks: readonly Block[]): Generator<Block> {
  for (const block of blocks) {
    yield block
    for (const { blocks: inside } of block.slots) yield* allBlocks(inside)
  }
}

const countOf = (blocks: readonly Block[]) => [...allBlocks(blocks)].length

/** How many levels of blocks there are, 1 for one that holds none. */
function heightOf({ slots }: Block): number {
  return 1 + Math.max(0, ...slots.flatMap(slot => slot.blocks.map(heightOf)))
}

/** The blocks of a slot; undefined if there is no such slot. */
export function blocksAt(document: EditorDocument, { parent, slot }: Place): readonly Block[] | undefined {
  return parent === undefined ? document.blocks : find(document, parent)?.block.slots[slot]?.blocks
}

/** Whether blocks that are not in the document may be put there. */
export function mayInsert(document: EditorDocument, place: Place, blocks: readonly Block[]): boolean {
  const there = blocksAt(document, place)
  if (!there) return false
  const holder = place.parent === undefined ? undefined : find(document, place.parent)
  const level = holder ? holder.above.length + 1 : 0
  const most = holder ? LIMITS.nestedBlocks : LIMITS.topBlocks
  return (
    there.length + blocks.length <= most &&
    level + Math.max(0, ...blocks.map(heightOf)) <= LIMITS.levels &&
    countOf(document.blocks) + countOf(blocks) <= LIMITS.blocks
  )
}

export function insert(document: EditorDocument, place: Place, blocks: readonly Block[]): EditorDocument {
  if (!mayInsert(document, place, blocks)) return document
  return changeBlocks(document, place, there => [
    ...there.slice(0, place.at),
    ...blocks,
    ...there.slice(place.at),
  ])
}

export function remove(document: EditorDocument, key: string): EditorDocument {
  const found = find(document, key)
  if (!found) return document
  return changeBlocks(document, found.place, there => there.filter(block => block.key !== key))
}

/** @param place as it is before the block is taken out */
export function move(document: EditorDocument, key: string, place: Place): EditorDocument {
  const found = find(document, key)
  if (!found || !mayMove(document, key, place)) return document
  const { place: from, block } = found
  const isSameSlot = from.parent === place.parent && from.slot === place.slot
  const at = isSameSlot && place.at > from.at ? place.at - 1 : place.at
  if (isSameSlot && at === from.at) return document
  return insert(remove(document, key), { ...place, at }, [block])
}

export function mayMove(document: EditorDocument, key: string, place: Place): boolean {
  const found = find(document, key)
  if (!found || [...allBlocks([found.block])].some(inside => inside.key === place.parent)) return false
  return mayInsert(remove(document, key), place, [found.block])
}

/** Places for the block in reading order, and which of them it is at. Places are those of the document without it. */
function placesFor(
  document: EditorDocument,
  { block, place: from }: Found,
): { places: Place[]; now: number } {
  const without = remove(document, block.key)
  const places: Place[] = []
  const walk = (blocks: readonly Block[], parent: string | undefined, slot: number) => {
    for (const [at, one] of blocks.entries()) {
      places.push({ parent, slot, at })
      for (const [index, { blocks: inside }] of one.slots.entries()) walk(inside, one.key, index)
    }
    places.push({ parent, slot, at: blocks.length })
  }
  walk(without.blocks, undefined, 0)
  const isHere = ({ parent, slot, at }: Place) =>
    parent === from.parent && slot === from.slot && at === from.at
  return {
    places: places.filter(place => isHere(place) || mayInsert(without, place, [block])),
    now: places.filter(place => isHere(place) || mayInsert(without, place, [block])).findIndex(isHere),
  }
}

/** One step in reading order: into columns and other containers, through them, and out again. */
export function step(document: EditorDocument, key: string, direction: 'up' | 'down'): EditorDocument {
  const found = find(document, key)
  if (!found) return document
  const { places, now } = placesFor(document, found)
  const place = places[now + (direction === 'up' ? -1 : 1)]
  return place ? insert(remove(document, key), place, [found.block]) : document
}

/** To the column or branch beside the one it is in, at the same height. */
export function stepAside(
  document: EditorDocument,
  key: string,
  direction: 'left' | 'right',
): EditorDocument {
  const found = find(document, key)
  const { parent, slot: from, at } = found?.place ?? { parent: undefined, slot: 0, at: 0 }
  if (!found || parent === undefined) return document
  const slot = from + (direction === 'left' ? -1 : 1)
  const there = blocksAt(document, { parent, slot, at: 0 })
  return there ? move(document, key, { parent, slot, at: Math.min(at, there.length) }) : document
}

/** A copy after it, with ids and keys of its own. @returns the key of the copy, too; undefined if there is no room */
export function duplicate(
  document: EditorDocument,
  key: string,
  newId: () => string,
): { readonly document: EditorDocument; readonly copy: string | undefined } {
  const found = find(document, key)
  if (!found) return { document, copy: undefined }
  const copy = withNewIds(found.block, newId)
  const changed = insert(document, { ...found.place, at: found.place.at + 1 }, [copy])
  return { document: changed, copy: changed === document ? undefined : copy.key }
}

export function withNewIds({ written, slots }: Block, newId: () => string): Block {
  return {
    key: newKey(),
    written: isObject(written) && Object.hasOwn(written, 'id') ? { ...written, id: newId() } : written,
    slots: slots.map(slot => ({ ...slot, blocks: slot.blocks.map(block => withNewIds(block, newId)) })),
  }
}

/** The value of a field, however it is spelled. */
export function valueOf(block: Block, name: string): unknown {
  const content = contentOf(block)
  return content[spelling(block, name)]
}

function spelling(block: Block, name: string): string {
  const type = typeOf(block)
  const fields: readonly Field[] = type === undefined ? [] : FIELDS[type]
  const field = fields.find(one => one.name === name)
  return field ? spelledName(contentOf(block), field, fields) : name
}

/** Changes fields by their documented names; a spelling that is there stays. undefined removes a field. */
export function update(document: EditorDocument, key: string, changes: Properties): EditorDocument {
  return changeBlock(document, key, block => {
    if (!isObject(block.written)) return block
    const content: Record<string, unknown> = { ...contentOf(block) }
    for (const [name, value] of Object.entries(changes)) {
      const spelled = spelling(block, name)
      if (value === undefined) Reflect.deleteProperty(content, spelled)
      else content[spelled] = value
    }
    return { ...block, written: { ...block.written, content } }
  })
}

/** @param widths of the columns, percent; undefined for equal shares. Blocks of columns that go are put into the last that stays. */
export function setColumns(
  document: EditorDocument,
  key: string,
  widths: readonly (number | undefined)[],
): EditorDocument {
  return changeBlock(document, key, block => {
    if (typeOf(block) !== 'columns' || widths.length === 0 || !isObject(block.written)) return block
    const field = COLUMN_FIELDS.find(({ kind }) => kind === 'number')
    const homeless = block.slots.slice(widths.length).flatMap(slot => slot.blocks)
    const slots = widths.map((width, index): Slot => {
      const { column = {}, ...slot } = block.slots[index] ?? {
        field: 'blocks',
        blocks: [],
        column: { blocks: [] },
      }
      const blocks = index === widths.length - 1 ? [...slot.blocks, ...homeless] : slot.blocks
      const name = field ? spelledName(column, field, COLUMN_FIELDS) : 'width'
      const others = Object.fromEntries(Object.entries(column).filter(([one]) => one !== name))
      return { ...slot, blocks, column: width === undefined ? others : { ...column, [name]: width } }
    })
    return { ...block, slots }
  })
}

/** Percent; undefined where a column has none of its own. */
export function columnWidths(block: Block): (number | undefined)[] {
  const field = COLUMN_FIELDS.find(({ kind }) => kind === 'number')
  return block.slots.map(({ column = {} }) => {
    const width = field && column[spelledName(column, field, COLUMN_FIELDS)]
    return typeof width === 'number' ? width : undefined
  })
}

function settingsOf({ written }: EditorDocument): Properties {
  return isObject(written['settings']) ? written['settings'] : {}
}

const settingField = (name: string): Field => ({ name, kind: 'value' })

export function settingOf(document: EditorDocument, name: string): unknown {
  const settings = settingsOf(document)
  return settings[spelledName(settings, settingField(name), [])]
}

/** @param value undefined for the default */
export function updateSetting(document: EditorDocument, name: string, value: unknown): EditorDocument {
  const settings: Record<string, unknown> = { ...settingsOf(document) }
  const spelled = spelledName(settings, settingField(name), [])
  if (value === undefined) Reflect.deleteProperty(settings, spelled)
  else settings[spelled] = value
  return { ...document, written: { ...document.written, settings } }
}

/** The block that a path of a validation error is in, e.g. `json_structure.blocks.3.content.columns.0.blocks.1.content.text`. */
export function blockAtPath(document: EditorDocument, path: string): Block | undefined {
  const names = path.split('.')
  let blocks: readonly Block[] = document.blocks
  let found: Block | undefined
  for (let at = 2; at < names.length;) {
    const block: Block | undefined = blocks[Number(names[at])]
    if (!block) return found
    found = block
    const isColumn = typeOf(block) === 'columns'
    const slot: Slot | undefined = isColumn
      ? block.slots[Number(names[at + 3])]
      : block.slots.find(({ field }) => field === names[at + 2])
    if (!slot) return found
    blocks = slot.blocks
    at += isColumn ? 5 : 3
  }
  return found
}

/** Its id as written; undefined without one. */
export function idOf({ written }: Block): string | undefined {
  const id = isObject(written) ? written['id'] : undefined
  return typeof id === 'string' ? id : undefined
}

/** The block with that id; of several the one at that path, which the document may have had before it was edited. */
export function blockWithId(document: EditorDocument, id: string, path: string): Block | undefined {
  const found = [...allBlocks(document.blocks)].filter(block => idOf(block) === id)
  const atPath = blockAtPath(document, path)
  return found.find(block => block === atPath) ?? (found.length === 1 ? found[0] : undefined)
}

function changeBlocks(
  document: EditorDocument,
  { parent, slot }: Place,
  change: (blocks: readonly Block[]) => readonly Block[],
): EditorDocument {
  if (parent === undefined) return { ...document, blocks: change(document.blocks) }
  return changeBlock(document, parent, block => ({
    ...block,
    slots: block.slots.map((one, index) => (index === slot ? { ...one, blocks: change(one.blocks) } : one)),
  }))
}

function changeBlock(document: EditorDocument, key: string, change: (block: Block) => Block): EditorDocument {
  const blocks = changeIn(document.blocks, key, change)
  return blocks === document.blocks ? document : { ...document, blocks }
}

/** Blocks and lists without a change stay the same objects. */
function changeIn(blocks: readonly Block[], key: string, change: (block: Block) => Block): readonly Block[] {
  return mapChanged(blocks, block => {
    if (block.key === key) return change(block)
    const slots = mapChanged(block.slots, slot => {
      const inside = changeIn(slot.blocks, key, change)
      return inside === slot.blocks ? slot : { ...slot, blocks: inside }
    })
    return slots === block.slots ? block : { ...block, slots }
  })
}

function mapChanged<T>(all: readonly T[], change: (one: T) => T): readonly T[] {
  const changed = all.map(change)
  return changed.some((one, at) => one !== all[at]) ? changed : all
}
