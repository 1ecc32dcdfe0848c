/** Changes of an edited text, as transactions and commands: nothing here needs a view. */
import type { MarkType, Node } from 'prosemirror-model'
import { Selection, TextSelection, type Command, type EditorState, type Transaction } from 'prosemirror-state'
import { plainSchema, richSchema } from './schema'
import { FORMATS, SHAPES, type Format, type Shape } from './shapes'

const { nodes, marks } = richSchema

export type ListKind = 'bullet_list' | 'ordered_list'

/** What holds where the cursor is. */
export interface TextState {
  readonly formats: readonly Format[]
  readonly shape: Shape | undefined
  readonly list: ListKind | undefined
  /** Target of the link. */
  readonly href: string | undefined
}

/** The tag takes the formats of the text before it, and the place of what is selected. */
export function tagInserted(state: EditorState, tag: string, where: 'cursor' | 'end'): Transaction {
  const { tr, schema } = state
  if (where === 'end') tr.setSelection(Selection.atEnd(state.doc))
  const type = (schema === plainSchema ? plainSchema : richSchema).nodes.merge_tag
  const kept = tr.storedMarks ?? tr.selection.$from.marks()
  return tr.replaceSelectionWith(type.create({ tag }, null, kept), false)
}

/**
 * Changes only what differs, so that the cursor and what is composed elsewhere stay. Its meta `outside` is true.
 *
 * @returns undefined if nothing differs
 */
export function differenceTo(state: EditorState, wanted: Node): Transaction | undefined {
  const { doc, tr } = state
  const start = doc.content.findDiffStart(wanted.content)
  const end = doc.content.findDiffEnd(wanted.content)
  if (start === null || !end) return undefined
  const overlap = Math.max(0, start - Math.min(end.a, end.b))
  const slice = wanted.slice(start, end.b + overlap)
  const change = tr.replace(start, end.a + overlap, slice).setMeta('outside', true)
  return change.doc.eq(wanted)
    ? change
    : state.tr.replaceWith(0, doc.content.size, wanted.content).setMeta('outside', true)
}

export function stateOf(state: EditorState): TextState {
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
export function linkTo(href: string | undefined): Command {
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
