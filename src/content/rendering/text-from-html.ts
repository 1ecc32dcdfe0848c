/**
 * The plain-text alternative of HTML that is filled in for each recipient.
 *
 * Turning HTML into text takes longer than everything else about a mail, so it is done once for all recipients wherever that
 * gives the same: with a mark in the place of each value, which then becomes a tag of a text template. Conditions choose between
 * texts of which each is made when it is first chosen; loops and unescaped values may hold any markup, and their text is
 * made of what was rendered.
 *
 * Part of a mail's plan (`mail-plan.ts`). Fails: MergeError where the text passes the bounds of rendering.
 */
import { plainTextOf } from '../../mail/compose/plain-text.js'
import { mapLeaves } from '../merge/map-nodes.js'
import type { HtmlPlace, MergeNode, MergeTemplate, UrlNode, ValueNode } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { renderTemplate } from '../merge/render-template.js'

/** Characters of a private use area, which nobody writes: HTML that has one has its text made each time. */
const [MARK, MARK_END] = ['\ue000', '\ue001']
const MARKS = /\ue000(\d+)\ue001/g

/** Of conditions that come out differently; more are made anew each time. */
const MOST_KEPT = 16

export class TextFromHtml {
  private readonly html: MergeTemplate
  /** Renders to how each condition that is met comes out. */
  private readonly outcomes: MergeTemplate | undefined
  private readonly texts = new Map<string, MergeTemplate>()

  constructor(html: MergeTemplate) {
    this.html = html
    this.outcomes = isMarkable(html.nodes) ? outcomesOf(html) : undefined
  }

  /**
   * @param rendered the HTML for the same values, where that is there
   * @param render renders the text's own template
   */
  textFor<T>(
    rendered: string | undefined,
    values: MergeValues,
    render: (template: MergeTemplate, values: MergeValues) => T,
  ): T | string {
    if (this.outcomes === undefined) return plainTextOf(rendered ?? renderTemplate(this.html, values))
    const chosen = this.outcomes.nodes.length === 0 ? '' : renderTemplate(this.outcomes, values)
    const known = this.texts.get(chosen)
    const text = known ?? textTemplate(this.html, chosen)
    if (known === undefined && this.texts.size < MOST_KEPT) this.texts.set(chosen, text)
    return render(text, values)
  }
}

/** Whether all it can become has its text in the same places. */
function isMarkable(nodes: readonly MergeNode[]): boolean {
  return nodes.every(node => {
    if (typeof node === 'string') return !node.includes(MARK)
    if (node.kind === 'value') return node.place !== 'unescaped' && !node.fallback.includes(MARK)
    if (node.kind === 'url') return isMarkable(node.parts)
    return node.kind === 'choice' && isMarkable(node.whenTrue) && isMarkable(node.whenFalse)
  })
}

/** Nothing but the conditions, which say `1` or `0` and go on with those inside of what they choose. */
function outcomesOf(html: MergeTemplate): MergeTemplate {
  const only = (nodes: readonly MergeNode[]): MergeNode[] =>
    nodes.flatMap(node =>
      typeof node === 'string' || node.kind !== 'choice'
        ? []
        : [{ ...node, whenTrue: ['1', ...only(node.whenTrue)], whenFalse: ['0', ...only(node.whenFalse)] }],
    )
  return { place: 'text', nodes: only(html.nodes), names: html.names }
}

/** @param chosen what `outcomesOf` renders to */
function textTemplate(html: MergeTemplate, chosen: string): MergeTemplate {
  const values: (ValueNode | UrlNode)[] = []
  let at = 0
  const marked = (nodes: readonly MergeNode[]): string => {
    let text = ''
    for (const node of nodes)
      if (typeof node === 'string') text += node
      else if (node.kind === 'value' || node.kind === 'url')
        text += `${MARK}${values.push(node) - 1}${MARK_END}`
      else if (node.kind === 'choice') text += marked(chosen[at++] === '1' ? node.whenTrue : node.whenFalse)
    return text
  }
  const pieces = plainTextOf(marked(html.nodes)).split(MARKS)
  const nodes = pieces.flatMap((piece, index): MergeNode[] => {
    if (index % 2 === 0) return piece === '' ? [] : [piece]
    const value = values[Number(piece)]
    return value === undefined ? [] : mapLeaves([value], inText)
  })
  return { place: 'text', nodes, names: html.names }
}

function inText(leaf: string | ValueNode): MergeNode {
  return typeof leaf === 'string' ? leaf : { ...leaf, place: placeInText(leaf.place) }
}

function placeInText(place: ValueNode['place']): ValueNode['place'] {
  const inUrl: readonly HtmlPlace[] = ['url start', 'url path', 'url query']
  return inUrl.some(one => one === place) ? place : 'plain'
}
