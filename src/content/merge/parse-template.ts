/**
 * Parses the merge language: `{{name|fallback|format}}`, `{{{key}}}`, `#if`, `#unless`, `#each`, `else`, nested.
 *
 * Runs when a template or body is submitted, so that its author gets errors with line and column, and once per content before rendering.
 * Pure. Linear in the length of the source.
 * Throws MergeError at the first fault.
 */
import { AT_START, passValue, placeAt, UrlAttributes, type HtmlCursor } from './html-place.js'
import {
  COMPARISONS,
  FORMATS,
  mergeErrorAt,
  type Expression,
  type Format,
  type Lookup,
  type MergeNode,
  type MergePlace,
  type MergeTemplate,
  type Operand,
  type ValueNode,
} from './merge-tree.js'

export const MERGE_BOUNDS = {
  depth: 20,
  tags: 10_000,
} as const

type Tag = Extract<Piece, { kind: 'tag' }>

interface OpenBlock {
  readonly kind: 'if' | 'unless' | 'each'
  readonly tag: Tag
  readonly condition: Expression | undefined
  readonly list: Lookup | undefined
  readonly first: MergeNode[]
  second: MergeNode[] | undefined
  /** `{{else if}}`: closed together with the enclosing block. */
  readonly isElseIf: boolean
  /** Position in the HTML where each of its branches starts. */
  readonly cursor: HtmlCursor
}

export function parseTemplate(source: string, place: MergePlace): MergeTemplate {
  return new Parser(source, place).parse()
}

export function hasTags(source: string | undefined): boolean {
  return source?.includes('{{') ?? false
}

/** As `parseTemplate`; text without tags is one literal and not scanned. */
export function templateOf(source: string, place: MergePlace): MergeTemplate {
  return hasTags(source) ? parseTemplate(source, place) : { place, nodes: [source], names: [] }
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
      else if (++tags > MERGE_BOUNDS.tags) throw this.fault(piece, `more than ${MERGE_BOUNDS.tags} tags`)
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
    const written = inner.slice(1).trim()
    const [kind = ''] = /^\S*/.exec(written) ?? []
    const rest = written.slice(kind.length).trim()
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
    if (!/^if\s/.test(rest) || block.kind === 'each') throw new Fault(`unexpected ${quoted(`else ${rest}`)}`)
    this.push(tag, 'if', rest.slice('if'.length).trim(), true)
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
  // Every block except a loop has a condition.
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

type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** `offset` of the first brace; `inner` is the trimmed text between the braces. */
  | { readonly kind: 'tag'; readonly inner: string; readonly isRaw: boolean; readonly offset: number }

/** A longer tag was never closed. UTF-16 units. */
const MAX_TAG_LENGTH = 1_000

/**
 * Splits a template into text and tags. `\{{` is a literal `{{`; `{{! ... }}` is a comment.
 *
 * @throws MergeError for an unclosed tag
 */
export function splitTags(source: string): Piece[] {
  const pieces: Piece[] = []
  let text = ''
  let at = 0
  for (;;) {
    const open = source.indexOf('{{', at)
    if (open < 0) break
    if (source[open - 1] === '\\' && open > at) {
      text += `${source.slice(at, open - 1)}{{`
      at = open + 2
      continue
    }
    const isRaw = source[open + 2] === '{'
    const end = isRaw ? '}}}' : '}}'
    const from = open + end.length
    const close = source.indexOf(end, from)
    if (close < 0 || close - from > MAX_TAG_LENGTH) throw mergeErrorAt(source, open, 'this tag is not closed')
    const inner = source.slice(from, close).trim()
    if (inner.includes('{{'))
      throw mergeErrorAt(source, open, 'this tag is not closed before the next one begins')
    text += source.slice(at, open)
    at = close + end.length
    if (inner.startsWith('!')) continue
    if (text !== '') pieces.push({ kind: 'text', text })
    text = ''
    pieces.push({ kind: 'tag', inner, isRaw, offset: open })
  }
  text += source.slice(at)
  if (text !== '') pieces.push({ kind: 'text', text })
  return pieces
}

/** A fault inside a tag, without its position. */
class Fault extends Error {}

interface ReadValue {
  readonly lookup: Lookup
  readonly fallback: string
  readonly format: Format
}

/** Levels of a dotted name. */
const MAX_STEPS = 20
/** Characters of operators, strings and markup, which names must not contain. */
// eslint-disable-next-line no-control-regex -- control characters are what no name holds
const NO_NAME = /[\x00-\x1f\x7f{}<>|"'`()=!&#^*~\\]/

/** `name`, `name|fallback`, `name|fallback|format`. @param isInLoop whether `this` and `@index` are valid */
function readValue(inner: string, isInLoop: boolean): ReadValue {
  const [name = '', fallback = '', format = '', ...more] = inner.split('|')
  if (more.length > 0) throw new Fault('a tag has at most a name, a fallback and a format')
  const asked = format.trim().toLowerCase()
  const known = asked === '' ? 'text' : FORMATS.find(one => one === asked)
  if (known === undefined)
    throw new Fault(`unknown format ${quoted(asked)}; formats are ${FORMATS.join(', ')}`)
  return { lookup: readLookup(name, isInLoop), fallback: fallback.trim(), format: known }
}

function readLookup(text: string, isInLoop: boolean): Lookup {
  const name = text.trim()
  if (name === '') throw new Fault('a name is missing')
  if (name.startsWith('@') || name === 'this' || name.startsWith('this.')) return readLoopName(name, isInLoop)
  if (NO_NAME.test(name)) throw new Fault(`${quoted(name)} is not a valid name`)
  const path = readPath(name)
  return { of: 'root', name, path }
}

function readLoopName(name: string, isInLoop: boolean): Lookup {
  if (!isInLoop) throw new Fault(`${quoted(name)} is only valid inside #each`)
  if (name === '@index' || name === '@first' || name === '@last')
    return { of: 'loop', variable: name === '@index' ? 'index' : name === '@first' ? 'first' : 'last' }
  if (name.startsWith('@'))
    throw new Fault(`unknown loop variable ${quoted(name)}; loops have @index, @first and @last`)
  if (NO_NAME.test(name)) throw new Fault(`${quoted(name)} is not a valid name`)
  return { of: 'this', path: readPath(name).slice(1) }
}

function readPath(name: string): string[] {
  const path = name.split('.')
  if (path.some(step => step.trim() === ''))
    throw new Fault(`${quoted(name)} is not a valid name: it has an empty part between dots`)
  if (path.length > MAX_STEPS) throw new Fault(`${quoted(name)} has more than ${MAX_STEPS} levels`)
  return path
}

/** No operand that is not in quotes has a character of an operator. */
const LEFT_OPERAND = /^(?:"[^"]*"|'[^']*'|[^"'=!<>]+)*/
const OPERATOR = /^(?:===|!==|==|!=|>=|<=|>|<|=)/

function readExpression(text: string, isInLoop: boolean): Expression {
  const [left = ''] = LEFT_OPERAND.exec(text) ?? []
  const [written] = OPERATOR.exec(text.slice(left.length)) ?? []
  if (written === undefined) return { left: readOperand(text, isInLoop) }
  const right = text.slice(left.length + written.length)
  const comparison = COMPARISONS.find(one => one === written)
  if (comparison === undefined)
    throw new Fault(`unknown comparison ${quoted(written)}; comparisons are ${COMPARISONS.join(' ')}`)
  return {
    left: readOperand(left, isInLoop),
    right: { comparison, operand: readOperand(right, isInLoop) },
  }
}

function readOperand(text: string, isInLoop: boolean): Operand {
  const written = text.trim()
  if (written === '') throw new Fault('a comparison needs a value on both sides')
  const string = /^"([^"]*)"$|^'([^']*)'$/.exec(written)
  if (string) return { literal: string[1] ?? string[2] ?? '' }
  if (/^-?\d+(\.\d+)?$/.test(written)) return { literal: Number(written) }
  if (written === 'true' || written === 'false') return { literal: written === 'true' }
  if (written === 'null') return { literal: null }
  return { lookup: readLookup(written, isInLoop) }
}

/** Quoted for an error message, truncated to 60 characters. */
function quoted(text: string): string {
  return `"${text.length > 60 ? `${text.slice(0, 60)}…` : text}"`
}
