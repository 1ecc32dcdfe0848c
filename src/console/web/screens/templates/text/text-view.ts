/** An editor of formatted text, or of a line of plain text, with merge tags as things of their own. Loaded with the first text on a screen. */
import {
  baseKeymap,
  chainCommands,
  createParagraphNear,
  liftEmptyBlock,
  setBlockType,
  splitBlockAs,
  toggleMark,
} from 'prosemirror-commands'
import { keymap } from 'prosemirror-keymap'
import { Slice, type MarkType, type Node } from 'prosemirror-model'
import { liftListItem, sinkListItem, splitListItem, wrapInList } from 'prosemirror-schema-list'
import { EditorState, TextSelection, type Command, type Plugin } from 'prosemirror-state'
import { EditorView } from 'prosemirror-view'
import { nameIn } from './merge-tags'
import { FORMATS, SHAPES, type Format, type Shape } from './shapes'
import {
  isBare,
  isEditable,
  markTags,
  pageOf,
  plainSchema,
  readPlain,
  readRich,
  richSchema,
  writePlain,
  writeRich,
} from './schema'

export { isEditable }

export type ListKind = 'bullet_list' | 'ordered_list'

/** What holds where the cursor is. */
export interface TextState {
  readonly formats: readonly Format[]
  readonly shape: Shape | undefined
  readonly list: ListKind | undefined
  /** Target of the link. */
  readonly href: string | undefined
}

export interface TextOptions {
  /** `rich`: HTML; `plain`: a line of text. */
  readonly kind: 'rich' | 'plain'
  readonly text: string
  readonly label: string
  readonly isReadOnly: boolean
  readonly change: (text: string) => void
  readonly notice: (state: TextState) => void
  readonly undo: () => void
  readonly redo: () => void
  /** Escape. */
  readonly leave: () => void
}

export interface TextView {
  /** Takes a text that was changed elsewhere; the cursor stays where it is. */
  set(text: string): void
  focus(): void
  toggle(format: Format): void
  setShape(shape: Shape): void
  toggleList(kind: ListKind): void
  /** @param href undefined takes the link away */
  setLink(href: string | undefined): void
  insertTag(tag: string): void
  destroy(): void
}

const { nodes, marks } = richSchema

export function mountText(place: HTMLElement, options: TextOptions): TextView {
  const isRich = options.kind === 'rich'
  const read = isRich ? readRich : readPlain
  const write = (document: Node) => (isRich ? writeRich(document, wasBare) : writePlain(document))
  let current = options.text
  const begun = read(options.text)
  let wasBare = isBare(begun)

  const view = new EditorView(place, {
    state: EditorState.create({ doc: begun, plugins: pluginsFor(options) }),
    editable: () => !options.isReadOnly,
    attributes: {
      role: 'textbox',
      'aria-label': options.label,
      'aria-multiline': String(isRich),
      ...(options.isReadOnly ? { 'aria-readonly': 'true' } : {}),
    },
    nodeViews: { merge_tag: node => ({ dom: chipOf(node) }) },
    transformPastedHTML: html => {
      const page = pageOf(html)
      markTags(page)
      return page.innerHTML
    },
    clipboardTextSerializer: slice => slice.content.textBetween(0, slice.content.size, '\n'),
    ...(isRich ? {} : { clipboardTextParser: (text: string) => new Slice(readPlain(text).content, 0, 0) }),
    dispatchTransaction(transaction) {
      view.updateState(view.state.apply(transaction))
      if (transaction.docChanged && transaction.getMeta('outside') !== true) {
        current = write(view.state.doc)
        options.change(current)
      }
      if (isRich) options.notice(stateOf(view.state))
    },
  })

  const run = (command: Command) => {
    command(view.state, transaction => view.dispatch(transaction), view)
    view.focus()
  }

  return {
    set(text) {
      if (text === current) return
      current = text
      const wanted = read(text)
      wasBare = isBare(wanted)
      replaceDifference(view, wanted)
    },
    focus: () => view.focus(),
    toggle: format => run(toggleMark(marks[format])),
    setShape: shape => run(setBlockType(nodes[shape], shape === 'paragraph' ? { isBare: false } : {})),
    toggleList: kind =>
      run(stateOf(view.state).list === undefined ? wrapInList(nodes[kind]) : liftListItem(nodes.list_item)),
    setLink: href => run(linkTo(href)),
    insertTag(tag) {
      const type = (isRich ? richSchema : plainSchema).nodes.merge_tag
      const kept = view.state.storedMarks ?? view.state.selection.$from.marks()
      view.dispatch(
        view.state.tr.replaceSelectionWith(type.create({ tag }, null, kept), false).scrollIntoView(),
      )
      view.focus()
    },
    destroy: () => view.destroy(),
  }
}

function pluginsFor({ kind, undo, redo, leave }: TextOptions): Plugin[] {
  const done =
    (act: () => void): Command =>
    () => {
      act()
      return true
    }
  const shared = {
    'Mod-z': done(undo),
    'Mod-y': done(redo),
    'Shift-Mod-z': done(redo),
    Escape: done(leave),
  }
  if (kind === 'plain')
    return [keymap({ ...shared, Enter: () => true, 'Shift-Enter': () => true }), keymap(baseKeymap)]
  const hardBreak: Command = (state, dispatch) => {
    dispatch?.(state.tr.replaceSelectionWith(nodes.hard_break.create()).scrollIntoView())
    return true
  }
  return [
    keymap({
      ...shared,
      'Mod-b': toggleMark(marks.strong),
      'Mod-i': toggleMark(marks.em),
      'Mod-u': toggleMark(marks.underline),
      'Mod-]': sinkListItem(nodes.list_item),
      'Mod-[': liftListItem(nodes.list_item),
      'Shift-Enter': hardBreak,
      Enter: chainCommands(
        splitListItem(nodes.list_item),
        createParagraphNear,
        liftEmptyBlock,
        splitBlockAs(() => ({ type: nodes.paragraph, attrs: { isBare: false } })),
      ),
    }),
    keymap(baseKeymap),
  ]
}

/** Only what differs, so that the cursor and what is composed elsewhere stay. */
function replaceDifference(view: EditorView, wanted: Node): void {
  const { doc, tr } = view.state
  const start = doc.content.findDiffStart(wanted.content)
  const end = doc.content.findDiffEnd(wanted.content)
  if (start === null || !end) return
  const overlap = Math.max(0, start - Math.min(end.a, end.b))
  const slice = wanted.slice(start, end.b + overlap)
  const change = tr.replace(start, end.a + overlap, slice).setMeta('outside', true)
  view.dispatch(
    change.doc.eq(wanted)
      ? change
      : view.state.tr.replaceWith(0, doc.content.size, wanted.content).setMeta('outside', true),
  )
}

function stateOf(state: EditorState): TextState {
  const { $from, from, to, empty } = state.selection
  const has = (type: MarkType) =>
    empty
      ? type.isInSet(state.storedMarks ?? $from.marks()) !== undefined
      : state.doc.rangeHasMark(from, to, type)
  const around = Array.from({ length: $from.depth }, (_, at) => $from.node(at + 1).type)
  const link = marks.link.isInSet($from.marks()) ?? marks.link.isInSet($from.nodeAfter?.marks ?? [])
  return {
    formats: FORMATS.filter(format => has(marks[format])),
    shape: SHAPES.find(shape => around.includes(nodes[shape])),
    list: around.includes(nodes.ordered_list)
      ? 'ordered_list'
      : around.includes(nodes.bullet_list)
        ? 'bullet_list'
        : undefined,
    href: link && (link.attrs['kept'] as { href?: string }).href,
  }
}

/** Of the selection, or of the link that the cursor is in. Without either, the address becomes the text. */
function linkTo(href: string | undefined): Command {
  return (state, dispatch) => {
    const [from, to] = linkedRange(state)
    const tr = state.tr
    if (href === undefined) tr.removeMark(from, to, marks.link)
    else if (from === to)
      tr.replaceSelectionWith(richSchema.text(href, [marks.link.create({ kept: { href } })]), false)
    else tr.removeMark(from, to, marks.link).addMark(from, to, marks.link.create({ kept: { href } }))
    dispatch?.(tr)
    return true
  }
}

function linkedRange({ selection, doc }: EditorState): [number, number] {
  const { from, to, empty, $from } = selection
  if (!empty || !(selection instanceof TextSelection)) return [from, to]
  let range: [number, number] = [from, to]
  const begin = $from.start()
  doc.nodesBetween(begin, $from.end(), (node, at) => {
    const isHere = node.isInline && at <= from && from <= at + node.nodeSize
    if (isHere && marks.link.isInSet(node.marks)) range = [at, at + node.nodeSize]
  })
  return range
}

function chipOf(node: Node): HTMLElement {
  const chip = document.createElement('span')
  const tag = String(node.attrs['tag'])
  chip.className = 'merge-tag'
  chip.textContent = nameIn(tag)
  chip.title = tag
  return chip
}
