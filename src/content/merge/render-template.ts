/**
 * Renders a parsed merge template for one recipient. Steps and output are limited, so that no template or data can block a thread. Pure.
 * Throws MergeError if a limit is exceeded; nothing else, whatever the values.
 */
import { escapeHtml } from '../../core/escape-html.js'
import { encodeForPlace, escapeForPlace, escapeForSubject } from './escape-value.js'
import {
  MergeError,
  type Comparison,
  type Expression,
  type Format,
  type LinkNode,
  type MergeNode,
  type MergePlace,
  type MergeTemplate,
  type Operand,
  type ValueNode,
} from './merge-tree.js'
import {
  findRawValue,
  findValue,
  isTrue,
  textOf,
  type LoopIteration,
  type MergeValues,
  type TrackedUrls,
} from './merge-values.js'
import { checkedUrl, settled } from './url-scheme.js'

export interface RenderBounds {
  /** Tags and loop iterations evaluated. */
  readonly steps: number
  /** UTF-16 units of output. */
  readonly units: number
}

/** Low enough to try a rendering on the request thread: a few milliseconds. */
export const RENDER_BOUNDS: RenderBounds = { steps: 20_000, units: 1_024 * 1_024 }

/** Not `display:none`, since some clients do not load hidden images. */
const PIXEL_LOOKS = 'width="1" height="1" alt="" style="display:block;border:0;width:1px;height:1px"'

/** Receives the output in pieces. Literal text arrives as the template's own string. */
interface RenderSink {
  put(text: string): void
}

export function renderTemplate(
  template: MergeTemplate,
  values: MergeValues,
  bounds: RenderBounds = RENDER_BOUNDS,
): string {
  const sink = new WholeText()
  renderInto(sink, template, values, bounds)
  return sink.text
}

export function renderInto(
  sink: RenderSink,
  { nodes, place }: MergeTemplate,
  values: MergeValues,
  bounds: RenderBounds = RENDER_BOUNDS,
): void {
  new Rendering(sink, values, bounds, place).write(nodes, undefined)
}

class WholeText implements RenderSink {
  text = ''

  put(text: string): void {
    this.text += text
  }
}

class Rendering {
  private sink: RenderSink
  private units = 0
  private steps = 0
  /** Escaped prefix of this message's links. */
  private clickUrl: string | undefined
  private readonly values: MergeValues
  private readonly bounds: RenderBounds
  private readonly of: MergePlace

  constructor(sink: RenderSink, values: MergeValues, bounds: RenderBounds, of: MergePlace) {
    this.sink = sink
    this.values = values
    this.bounds = bounds
    this.of = of
  }

  write(nodes: readonly MergeNode[], turn: LoopIteration | undefined): void {
    for (const node of nodes) {
      if (typeof node === 'string') {
        this.put(node)
        continue
      }
      this.step()
      if (node.kind === 'value') this.put(this.textFor(node, turn))
      else if (node.kind === 'choice')
        this.write(this.holds(node.expression, turn) ? node.whenTrue : node.whenFalse, turn)
      else if (node.kind === 'url') this.put(checkedUrl(this.textOf(node.parts, turn), node.holds))
      else if (node.kind === 'link') this.writeLink(node, turn)
      else if (node.kind === 'pixel') this.writePixel()
      else {
        const list = findValue(node.list, this.values, turn)
        const items = Array.isArray(list) ? (list as readonly unknown[]) : []
        if (items.length === 0) this.write(node.whenEmpty, turn)
        for (const [index, item] of items.entries()) {
          this.step()
          this.write(node.body, { item, index, count: items.length })
        }
      }
    }
  }

  private writeLink({ written, url }: LinkNode, turn: LoopIteration | undefined): void {
    const { tracking } = this.values
    if (!tracking) {
      this.write(written, turn)
      return
    }
    if (url !== undefined) {
      const part = tracking.shared(url)
      if (part === undefined) this.write(written, turn)
      else this.putLink(tracking, part)
      return
    }
    const own = this.textOf(written, turn)
    const part = tracking.own(own)
    if (part === undefined) this.put(own)
    else this.putLink(tracking, part)
  }

  private putLink(tracking: TrackedUrls, part: string): void {
    this.put((this.clickUrl ??= escapeHtml(tracking.clickUrl)))
    this.put(part)
  }

  private textOf(nodes: readonly MergeNode[], turn: LoopIteration | undefined): string {
    const { sink, units } = this
    const whole = new WholeText()
    this.sink = whole
    this.write(nodes, turn)
    this.sink = sink
    this.units = units
    return whole.text
  }

  private writePixel(): void {
    const { tracking } = this.values
    if (tracking) this.put(`<img src="${escapeHtml(tracking.pixelUrl)}" ${PIXEL_LOOKS}>`)
  }

  private put(text: string): void {
    this.units += text.length
    if (this.units > this.bounds.units)
      throw new MergeError(`the output is longer than ${this.bounds.units} characters`)
    this.sink.put(text)
  }

  private step(): void {
    if (++this.steps > this.bounds.steps)
      throw new MergeError(`rendering takes more than ${this.bounds.steps} steps`)
  }

  private textFor(node: ValueNode, turn: LoopIteration | undefined): string {
    const text = this.escapedFor(node, turn)
    return node.isSettling ? settled(text, node.place === 'url start') : text
  }

  private escapedFor(
    { lookup, fallback, format, place }: ValueNode,
    turn: LoopIteration | undefined,
  ): string {
    if (place === 'unescaped') {
      const raw = withoutNul(textOf(findRawValue(lookup, this.values, turn)))
      if (raw === '') this.values.onEmpty?.(lookup)
      return this.plain(raw)
    }
    const found = withoutNul(textOf(findValue(lookup, this.values, turn)))
    const isEmpty = found.trim() === ''
    if (isEmpty && fallback === '') this.values.onEmpty?.(lookup)
    const text = applyFormat(isEmpty ? fallback : found, format)
    if (place === 'plain') return this.plain(text)
    return this.of === 'html' ? escapeForPlace(text, place) : encodeForPlace(text, place)
  }

  private plain(text: string): string {
    return this.of === 'subject' ? escapeForSubject(text) : text
  }

  private holds({ left, right }: Expression, turn: LoopIteration | undefined): boolean {
    const value = this.operand(left, turn)
    return right ? compare(value, right.comparison, this.operand(right.operand, turn)) : isTrue(value)
  }

  private operand(operand: Operand, turn: LoopIteration | undefined): unknown {
    return 'literal' in operand ? operand.literal : findValue(operand.lookup, this.values, turn)
  }
}

/** RFC 5322 §4: NUL is not allowed in messages. */
function withoutNul(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '') : text
}

function applyFormat(text: string, format: Format): string {
  switch (format) {
    case 'text':
      return text
    case 'uppercase':
      return text.toUpperCase()
    case 'lowercase':
      return text.toLowerCase()
    case 'capitalize':
      return capitalize(text)
  }
}

/** Capitalizes each word and keeps the rest (McDonald), unless the text is all capitals. */
function capitalize(text: string): string {
  const base = text === text.toUpperCase() ? text.toLowerCase() : text
  return base.replace(
    /(^|[\s-])(\p{L})/gu,
    (_, before: string, letter: string) => before + letter.toUpperCase(),
  )
}

/**
 * Strings that look like numbers compare as numbers, since template_data and imported attributes are often strings. Other values compare as
 * text; a missing value is empty text.
 */
function compare(left: unknown, comparison: Comparison, right: unknown): boolean {
  const [a, b] = sides(left, right)
  switch (comparison) {
    case '==':
      return a === b
    case '!=':
      return a !== b
    case '>':
      return a > b
    case '<':
      return a < b
    case '>=':
      return a >= b
    case '<=':
      return a <= b
  }
}

function sides(left: unknown, right: unknown): [number, number] | [string, string] {
  const numbers = [numberOf(left), numberOf(right)] as const
  if (numbers[0] !== undefined && numbers[1] !== undefined) return [numbers[0], numbers[1]]
  return [textOf(left), textOf(right)]
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : undefined
}
