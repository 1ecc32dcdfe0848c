/**
 * The plain-text alternative of merged HTML.
 *
 * Converting HTML to text is the most expensive step of a mail, so it is done once for all recipients where possible: each value is
 * replaced by a mark, which then becomes a tag of a text template. Each outcome of the conditions has its own text, converted on
 * first use. Loops and unescaped values may contain any markup; then the rendered HTML is converted for each mail.
 *
 * Part of a mail's plan (`mail-plan.ts`). Fails: MergeError if the text exceeds the rendering limits.
 */
import { plainTextOf } from '../../mail/compose/plain-text.js'
import { mapLeaves } from '../merge/map-nodes.js'
import type { HtmlPlace, MergeNode, MergeTemplate, UrlNode, ValueNode } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { renderTemplate } from '../merge/render-template.js'

/** Private use characters; HTML that contains one is converted for each mail. */
const [MARK, MARK_END] = ['\ue000', '\ue001']
const MARKS = /\ue000(\d+)\ue001/g

/** Cached outcomes; further ones are converted for each mail. */
const MAX_CACHED = 16

export class TextFromHtml {
  private readonly html: MergeTemplate
  /** Renders to the outcomes of the conditions; undefined if each mail must be converted. */
  private readonly outcomes: MergeTemplate | undefined
  private readonly texts = new Map<string, MergeTemplate>()

  constructor(html: MergeTemplate) {
    this.html = html
    this.outcomes = isMarkable(html.nodes) ? outcomesOf(html) : undefined
  }

  /**
   * @param rendered the HTML of the same values, if available
   * @param render renders the text's template
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
    if (known === undefined && this.texts.size < MAX_CACHED) this.texts.set(chosen, text)
    return render(text, values)
  }
}

/** Whether values can be replaced by marks without affecting the conversion. */
function isMarkable(nodes: readonly MergeNode[]): boolean {
  return nodes.every(node => {
    if (typeof node === 'string') return !node.includes(MARK)
    if (node.kind === 'value') return node.place !== 'unescaped' && !node.fallback.includes(MARK)
    if (node.kind === 'url') return isMarkable(node.parts)
    return node.kind === 'choice' && isMarkable(node.whenTrue) && isMarkable(node.whenFalse)
  })
}

/** Keeps only conditions, each rendering `1` or `0` followed by those inside the chosen branch. */
function outcomesOf(html: MergeTemplate): MergeTemplate {
  const only = (nodes: readonly MergeNode[]): MergeNode[] =>
    nodes.flatMap(node =>
      typeof node === 'string' || node.kind !== 'choice'
        ? []
        : [{ ...node, whenTrue: ['1', ...only(node.whenTrue)], whenFalse: ['0', ...only(node.whenFalse)] }],
    )
  return { place: 'text', nodes: only(html.nodes), names: html.names }
}

/** @param chosen output of `outcomesOf` */
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
