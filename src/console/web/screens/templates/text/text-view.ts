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
import { Slice, type Node } from 'prosemirror-model'
import { liftListItem, sinkListItem, splitListItem, wrapInList } from 'prosemirror-schema-list'
import { EditorState, type Command, type Plugin } from 'prosemirror-state'
import { EditorView } from 'prosemirror-view'
import { differenceTo, linkTo, stateOf, tagInserted, type ListKind, type TextState } from './edits'
import { nameIn } from './merge-tags'
import type { Format, Shape } from './shapes'
import {
  isBare,
  isEditable,
  markTags,
  pageOf,
  readPlain,
  readRich,
  richSchema,
  writePlain,
  writeRich,
} from './schema'

export { isEditable }

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
  /** At the cursor; at the end of a text that never had one. */
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
  /** Whether somebody has put the cursor somewhere. */
  let hasCursor = false

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
    handleDOMEvents: {
      focus: () => {
        hasCursor = true
        return false
      },
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
      const change = differenceTo(view.state, wanted)
      if (change) view.dispatch(change)
    },
    focus: () => view.focus(),
    toggle: format => run(toggleMark(marks[format])),
    setShape: shape => run(setBlockType(nodes[shape], shape === 'paragraph' ? { isBare: false } : {})),
    toggleList: kind =>
      run(stateOf(view.state).list === undefined ? wrapInList(nodes[kind]) : liftListItem(nodes.list_item)),
    setLink: href => run(linkTo(href)),
    insertTag(tag) {
      view.dispatch(tagInserted(view.state, tag, hasCursor ? 'cursor' : 'end').scrollIntoView())
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

function chipOf(node: Node): HTMLElement {
  const chip = document.createElement('span')
  const tag = String(node.attrs['tag'])
  chip.className = 'merge-tag'
  chip.textContent = nameIn(tag)
  chip.title = tag
  return chip
}
