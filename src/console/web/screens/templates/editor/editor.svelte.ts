/** What the block editor's parts share: the document with its history, what is selected, what is dragged, and what is announced. */
import { tr } from '../../../i18n/i18n'
import { asFault } from '../../../state/loaded.svelte'
import { say } from '../../../state/toasts.svelte'
import { copyText, pastedBlocks } from '../document/clipboard'
import {
  allBlocks,
  blocksAt,
  blockWithId,
  duplicate,
  find,
  insert,
  makeBlock,
  mayInsert,
  mayMove,
  move,
  parse,
  remove,
  serialise,
  setColumns,
  step,
  stepAside,
  typeOf,
  update,
  updateSetting,
  withNewIds,
  type Block,
  type EditorDocument,
  type Place,
  type Properties,
} from '../document/document'
import type { BlockType } from '../document/fields'
import { begin, commit, redo, select, undo, type History } from '../document/history'
import { newContent } from './new-block'
import { SavedBlocks, type SavedBlock } from './saved-blocks.svelte'

export type Dragged = { readonly type: BlockType } | { readonly key: string } | { readonly saved: SavedBlock }

export const newId = (): string => crypto.randomUUID().slice(0, 8)

export class Editor {
  readonly isReadOnly: boolean
  dragged = $state.raw<Dragged>()
  /** Where what is dragged would be put. */
  over = $state.raw<Place>()
  /** For screen readers. */
  news = $state('')
  /** Block that is to have the focus, once it is in the page. */
  wantsFocus = $state<string>()
  /** Block that stays in view while texts and images above it get their size, until the user acts. */
  keptInView = $state<string>()
  /** Block to be saved under a name. */
  wantsName = $state<string>()
  readonly saved = new SavedBlocks()
  private history = $state.raw<History>(begin(parse(null)))
  private readonly changed: () => void

  /** @param changed called after each change of the document */
  constructor(isReadOnly: boolean, changed: () => void) {
    this.isReadOnly = isReadOnly
    this.changed = changed
  }

  get document(): EditorDocument {
    return this.history.present.document
  }

  get selected(): string | undefined {
    return this.history.present.selected
  }

  get selectedBlock(): Block | undefined {
    const { selected } = this
    return selected === undefined ? undefined : find(this.document, selected)?.block
  }

  get canUndo(): boolean {
    return this.history.past.length > 0
  }

  get canRedo(): boolean {
    return this.history.future.length > 0
  }

  get structure(): Properties {
    return serialise(this.document)
  }

  /** Begins with another document; its history is empty. */
  open(structure: unknown): void {
    this.history = begin(parse(structure))
  }

  /** Takes another document as a change that can be undone. */
  replace(structure: unknown): void {
    this.commit(parse(structure), undefined)
  }

  select(key: string | undefined): void {
    this.history = select(this.history, key)
  }

  /** Selects a block, scrolls to it and focuses it. @returns false if it is not there */
  show(id: string, path: string): boolean {
    const block = blockWithId(this.document, id, path)
    if (!block) return false
    this.select(block.key)
    this.wantsFocus = block.key
    this.keptInView = block.key
    this.announce(block.key, 'shown')
    return true
  }

  undo(): void {
    this.go(undo(this.history), tr().templates.undone)
  }

  redo(): void {
    this.go(redo(this.history), tr().templates.redone)
  }

  set(key: string, changes: Properties): void {
    this.commit(update(this.document, key, changes), key, `${key} ${Object.keys(changes).join(' ')}`)
  }

  setTheme(name: string, value: unknown): void {
    this.commit(updateSetting(this.document, name, value), this.selected, `theme ${name}`)
  }

  setColumns(key: string, widths: readonly (number | undefined)[]): void {
    this.commit(setColumns(this.document, key, widths), key, `${key} columns ${widths.length}`)
  }

  mayAdd(type: BlockType, place: Place): boolean {
    return mayInsert(this.document, place, [makeBlock(type, {}, newId)])
  }

  mayDrop(place: Place): boolean {
    const { dragged } = this
    if (this.isReadOnly || !dragged) return false
    if ('key' in dragged) return mayMove(this.document, dragged.key, place)
    // What is in it is read when it is dropped.
    if ('saved' in dragged) return blocksAt(this.document, place) !== undefined
    return this.mayAdd(dragged.type, place)
  }

  drop(place: Place): void {
    const { dragged } = this
    this.endDrag()
    if (!dragged) return
    if ('type' in dragged) this.add(dragged.type, place)
    else if ('saved' in dragged) void this.insertSaved(dragged.saved, place)
    else {
      this.commit(move(this.document, dragged.key, place), dragged.key)
      this.announce(dragged.key, 'moved')
    }
  }

  endDrag(): void {
    this.dragged = undefined
    this.over = undefined
  }

  /** Without a place: after the selected block, or at the end. */
  add(type: BlockType, place = this.placeAfterSelected()): void {
    const block = makeBlock(type, newContent(type), newId)
    this.put([block], place)
  }

  /** Inserts a copy. Without a place: after the selected block, or at the end. */
  async insertSaved({ id }: SavedBlock, place = this.placeAfterSelected()): Promise<void> {
    try {
      const { blocks } = parse(await this.saved.read(id))
      const copies = blocks.map(block => withNewIds(block, newId))
      if (!this.put(copies, place)) say(tr().templates.noRoom, { kind: 'fault' })
    } catch (error) {
      say(asFault(error).message, { kind: 'fault' })
    }
  }

  private put(blocks: readonly Block[], place: Place): boolean {
    const [first] = blocks
    const changed = insert(this.document, place, blocks)
    if (!first || changed === this.document) {
      this.news = tr().templates.noRoom
      return false
    }
    this.commit(changed, first.key)
    this.wantsFocus = first.key
    this.announce(first.key, 'added')
    return true
  }

  private placeAfterSelected(): Place {
    const { selected, document } = this
    const found = selected === undefined ? undefined : find(document, selected)
    return found
      ? { ...found.place, at: found.place.at + 1 }
      : { parent: undefined, slot: 0, at: document.blocks.length }
  }

  remove(key: string): void {
    const found = find(this.document, key)
    if (!found) return
    const siblings = blocksAt(this.document, found.place) ?? []
    const { at, parent } = found.place
    const next = siblings[at + 1] ?? siblings[at - 1]
    this.news = tr().templates.removed(nameOf(found.block))
    this.commit(remove(this.document, key), next?.key ?? parent)
    this.wantsFocus = next?.key ?? parent
  }

  duplicate(key: string): void {
    const { document, copy } = duplicate(this.document, key, newId)
    if (copy === undefined) {
      this.news = tr().templates.noRoom
      return
    }
    this.commit(document, copy)
    this.wantsFocus = copy
    this.announce(copy, 'added')
  }

  /** By keys or buttons. */
  moveBy(key: string, direction: 'up' | 'down' | 'left' | 'right'): void {
    const isAside = direction === 'left' || direction === 'right'
    const moved = isAside ? stepAside(this.document, key, direction) : step(this.document, key, direction)
    if (moved === this.document) {
      this.news = tr().templates.cannotMove
      return
    }
    this.commit(moved, key)
    this.wantsFocus = key
    this.announce(key, 'moved')
  }

  /** To the block before or after the selected one, in reading order. */
  selectNext(direction: 1 | -1): void {
    const keys = [...allBlocks(this.document.blocks)].map(({ key }) => key)
    const at = this.selected === undefined ? -1 : keys.indexOf(this.selected)
    const next = keys[at === -1 ? (direction === 1 ? 0 : keys.length - 1) : at + direction]
    if (next === undefined) return
    this.select(next)
    this.wantsFocus = next
  }

  /** @returns the selected block as text; undefined without one */
  copy(): string | undefined {
    const block = this.selectedBlock
    return block && copyText([block])
  }

  /** @returns whether the text holds blocks */
  paste(text: string): boolean {
    const blocks = pastedBlocks(text, newId)
    if (blocks.length > 0) this.put(blocks, this.placeAfterSelected())
    return blocks.length > 0
  }

  private announce(key: string, what: 'added' | 'moved' | 'shown'): void {
    const found = find(this.document, key)
    if (!found) return
    const { block, place, above } = found
    const count = blocksAt(this.document, place)?.length ?? 0
    const holder = above.at(-1)
    const where = holder ? placeName(holder, place.slot) : ''
    this.news = tr().templates[what](nameOf(block), place.at + 1, count, where)
  }

  private commit(document: EditorDocument, selected: string | undefined, topic?: string): void {
    if (this.isReadOnly) return
    const before = this.document
    this.history = commit(this.history, { document, selected }, topic, Date.now())
    if (this.document !== before) this.changed()
  }

  private go(history: History, news: string): void {
    if (history === this.history) return
    this.history = history
    this.news = news
    this.changed()
  }
}

/** What a block is called, e.g. “Text”. */
export function nameOf(block: Block): string {
  const type = typeOf(block)
  return type === undefined ? tr().templates.unknownBlock : tr().templates.types[type]
}

/** E.g. “Columns, column 2”. */
export function placeName(holder: Block, slot: number): string {
  return `${nameOf(holder)}, ${slotName(holder, slot)}`
}

export function slotName(holder: Block, slot: number): string {
  const texts = tr().templates
  switch (typeOf(holder)) {
    case 'columns':
      return texts.column(slot + 1)
    case 'conditional':
      return slot === 0 ? texts.thenBlocks : texts.elseBlocks
    case 'dynamic':
      return texts.eachBlocks
    default:
      return texts.inside
  }
}
