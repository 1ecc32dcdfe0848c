/**
 * Parses the merge language: `{{name|fallback|format}}`, `{{{key}}}`, `#if`, `#unless`, `#each`, `else`, nested.
 *
 * Runs when a template or body is submitted, so that its author gets errors with line and column, and once per content before
 * rendering. Pure. Linear in the length of the source.
 * Throws MergeError at the first fault.
 */
import { AT_START, passValue, placeAt, type HtmlCursor } from './html-place.js'
import { mergeErrorAt } from './merge-error.js'
import type { Expression, Lookup, MergeNode, MergePlace, MergeTemplate, ValueNode } from './merge-tree.js'
import { Fault, quoted, readExpression, readLookup, readValue } from './read-expression.js'
import { splitTags, type Piece } from './split-tags.js'
import { UrlAttributes } from './url-attributes.js'

export const MERGE_BOUNDS = {
  /** Nesting depth of blocks. */
  depth: 20,
  /** Tags per source. */
  tags: 10_000,
} as const

type Tag = Extract<Piece, { kind: 'tag' }>

/** An unclosed block. */
interface OpenBlock {
  readonly kind: 'if' | 'unless' | 'each'
  readonly tag: Tag
  readonly condition: Expression | undefined
  readonly list: Lookup | undefined
  readonly first: MergeNode[]
  second: MergeNode[] | undefined
  /** `{{else if}}`: closed together with the enclosing block. */
  readonly isElseIf: boolean
  /** Position in the HTML where it starts, and so where each branch starts. */
  readonly cursor: HtmlCursor
}

export function parseTemplate(source: string, place: MergePlace): MergeTemplate {
  return new Parser(source, place).parse()
}

class Parser {
  private readonly source: string
  private readonly place: MergePlace
  private readonly names = new Set<string>()
  private readonly nodes: MergeNode[] = []
  private readonly open: OpenBlock[] = []
  private readonly urls = new UrlAttributes()
  private cursor: HtmlCursor = AT_START

  constructor(source: string, place: MergePlace) {
    this.source = source
    this.place = place
  }

  parse(): MergeTemplate {
    let tags = 0
    for (const piece of splitTags(this.source))
      if (piece.kind === 'text') this.addText(piece.text)
      else if (++tags > MERGE_BOUNDS.tags)
        throw this.fault(piece, `there are more than ${MERGE_BOUNDS.tags} tags`)
      else this.readTag(piece)
    this.urls.endList(this.nodes)
    const unclosed = this.open.findLast(({ isElseIf }) => !isElseIf)
    if (unclosed) throw this.fault(unclosed.tag, `this #${unclosed.kind} has no {{/${unclosed.kind}}}`)
    return { place: this.place, nodes: this.nodes, names: [...this.names] }
  }

  private addText(text: string): void {
    if (this.place === 'html') this.cursor = this.urls.addText(this.list, this.cursor, text)
    else this.add(text)
  }

  private add(node: MergeNode): void {
    this.urls.add(this.list, node)
  }

  /** The node list at the current position. */
  private get list(): MergeNode[] {
    const block = this.open.at(-1)
    return block ? (block.second ?? block.first) : this.nodes
  }

  private readTag(tag: Tag): void {
    // HTML editors write the `>` of a comparison as a character reference.
    const inner = this.place === 'html' ? readReferences(tag.inner) : tag.inner
    try {
      if (tag.isRaw) this.readRaw(inner)
      else if (inner.startsWith('#')) this.openBlock(tag, inner)
      else if (inner.startsWith('/')) this.closeBlock(tag, inner.slice(1).trim())
      else if (/^else(\s|$)/.test(inner)) this.readElse(tag, inner.slice('else'.length).trim())
      else this.addValue(readValue(inner, this.isInLoop))
    } catch (error) {
      throw error instanceof Fault ? this.fault(tag, error.message) : error
    }
  }

  private addValue(value: ReturnType<typeof readValue>): void {
    this.note(value.lookup)
    this.put({ kind: 'value', ...value, place: this.place === 'html' ? placeAt(this.cursor) : 'plain' })
  }

  private readRaw(inner: string): void {
    const lookup = readLookup(inner, this.isInLoop)
    this.note(lookup)
    this.put({ kind: 'value', lookup, fallback: '', format: 'text', place: 'unescaped' })
  }

  private put(node: ValueNode): void {
    this.urls.addValue(this.list, this.cursor, node)
    this.cursor = passValue(this.cursor)
  }

  private openBlock(tag: Tag, inner: string): void {
    const [, kind = '', rest = ''] = /^#\s*(\S*)\s*(.*)$/s.exec(inner) ?? []
    if (kind !== 'if' && kind !== 'unless' && kind !== 'each')
      throw new Fault(`unknown block ${quoted(`#${kind}`)}; blocks are #if, #unless and #each`)
    if (rest === '') throw new Fault(`#${kind} needs a ${kind === 'each' ? 'list' : 'condition'}`)
    this.push(tag, kind, rest, false)
  }

  private push(tag: Tag, kind: OpenBlock['kind'], of: string, isElseIf: boolean): void {
    if (this.open.length >= MERGE_BOUNDS.depth)
      throw new Fault(`blocks are nested more than ${MERGE_BOUNDS.depth} deep`)
    const list = kind === 'each' ? readLookup(of, this.isInLoop) : undefined
    const condition = kind === 'each' ? undefined : readExpression(of, this.isInLoop)
    if (list) this.note(list)
    for (const operand of [condition?.left, condition?.right?.operand])
      if (operand && 'lookup' in operand) this.note(operand.lookup)
    this.open.push({
      kind,
      tag,
      condition,
      list,
      first: [],
      second: undefined,
      isElseIf,
      cursor: this.cursor,
    })
  }

  private readElse(tag: Tag, rest: string): void {
    const block = this.open.at(-1)
    if (!block) throw new Fault('{{else}} is outside a block')
    if (block.second) throw new Fault(`this #${block.kind} already has an {{else}}`)
    this.urls.endList(block.first)
    block.second = []
    this.cursor = block.cursor
    if (rest === '') return
    const condition = /^if\s+(.+)$/s.exec(rest)?.[1]
    if (condition === undefined || block.kind === 'each')
      throw new Fault(`unexpected ${quoted(`else ${rest}`)}`)
    this.push(tag, 'if', condition, true)
  }

  private closeBlock(tag: Tag, kind: string): void {
    if (this.open.length === 0) throw new Fault(`{{/${kind}}} does not close any block`)
    const opener = this.open.findLast(({ isElseIf }) => !isElseIf)
    if (opener?.kind !== kind)
      throw this.fault(tag, `expected {{/${opener?.kind ?? ''}}}, found {{/${kind}}}`)
    for (let block = this.open.pop(); block; block = this.open.pop()) {
      this.urls.endList(block.second ?? block.first)
      this.add(toNode(block))
      if (!block.isElseIf) break
    }
  }

  private get isInLoop(): boolean {
    return this.open.some(({ kind, second }) => kind === 'each' && second === undefined)
  }

  private note(lookup: Lookup): void {
    if (lookup.of === 'root') this.names.add(lookup.name)
  }

  private fault(tag: Tag, reason: string) {
    return mergeErrorAt(this.source, tag.offset, reason)
  }
}

function toNode({ kind, condition, list, first, second = [] }: OpenBlock): MergeNode {
  if (list) return { kind: 'loop', list, body: first, whenEmpty: second }
  // A block other than a loop always has a condition.
  const expression = condition ?? { left: { literal: null } }
  return kind === 'unless'
    ? { kind: 'choice', expression, whenTrue: second, whenFalse: first }
    : { kind: 'choice', expression, whenTrue: first, whenFalse: second }
}

const REFERENCES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  '#39': "'",
  '#34': '"',
  nbsp: ' ',
}

function readReferences(inner: string): string {
  if (!inner.includes('&') && !inner.includes('\u00a0')) return inner
  return inner
    .replaceAll('\u00a0', ' ')
    .replace(/&(amp|lt|gt|quot|apos|nbsp|#39|#34);/g, (found, name: string) => REFERENCES[name] ?? found)
    .trim()
}
