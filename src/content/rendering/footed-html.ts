/**
 * The HTML of a content with the compliance footer each recipient needs.
 *
 * Whether a mail shows an unsubscribe link and an address is read from its rendered HTML (`footer/visible-html.ts`), once per distinct
 * outcome of the content's conditions, loops and unescaped values: a small template renders to a key that is equal for equal outcomes. Part
 * of a mail's plan (`mail-plan.ts`).
 * Fails: MergeError if the HTML cannot be parsed, or exceeds the rendering limits for a recipient.
 */
import { createHash } from 'node:crypto'
import {
  caseOf,
  complianceFooter,
  hasAddress,
  FOOTER_PLACES,
  type FooterCase,
  type FooterPlace,
} from '../footer/compliance-footer.js'
import { mayHide, readVisibleHtml, unsubscribeMark, type VisibleHtml } from '../footer/visible-html.js'
import { mapLeaves, type MergeNode, type MergeTemplate, type ValueNode } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { hasTags, templateOf } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'
import { foldConstants } from './fold-constants.js'
import { brandTags, type MailBrand } from './merging.js'

/** Cached decisions; further ones are recomputed for each mail. */
const MAX_CACHED = 256
export interface FooterDecision {
  readonly kind: FooterCase
  readonly place: FooterPlace
}

/** @param T the plan made from the HTML with its footer */
export class FootedHtml<T> {
  private readonly html: string
  private readonly brand: MailBrand
  private readonly plan: (template: MergeTemplate) => T
  private readonly mark: string
  /** Without a footer; the mark replaces the unsubscribe URL. */
  private readonly marked: MergeTemplate
  /** Renders to the outcome key; undefined if the outcome is the same for everybody. */
  private readonly outcomes: MergeTemplate | undefined
  private readonly decisions = new Map<string, FooterDecision>()
  private readonly plans = new Map<string, T>()
  /** The HTML with the footer that was last asked for. */
  private last: { readonly name: string; readonly template: MergeTemplate } | undefined

  /** @param plan called once per distinct footer */
  constructor(html: string, brand: MailBrand, plan: (template: MergeTemplate) => T) {
    this.html = html
    this.brand = brand
    this.plan = plan
    this.mark = unsubscribeMark(html)
    this.marked = this.marking(this.fold(parse(html)))
    this.outcomes = outcomesOf(this.marked)
    // Finds a content that cannot be planned before its first mail.
    if (!this.outcomes) this.for({ system: {} })
  }

  for(values: MergeValues): T {
    const { kind, place } = this.decide(values)
    const name = `${kind} ${place}`
    const known = this.plans.get(name)
    if (known !== undefined) return known
    const plan = this.plan(this.footed({ kind, place }))
    this.plans.set(name, plan)
    this.last = undefined
    return plan
  }

  private decide(values: MergeValues): FooterDecision {
    const outcome = this.outcomes ? shortened(renderTemplate(this.outcomes, values)) : ''
    const known = this.decisions.get(outcome)
    if (known) return known
    const decision = this.judge(values)
    if (this.decisions.size < MAX_CACHED) this.decisions.set(outcome, decision)
    return decision
  }

  private judge(values: MergeValues): FooterDecision {
    const { html, brand } = this
    const kind = html.includes('unsubscribe_url')
      ? caseOf(this.see(this.marked, values), brand, html)
      : 'added'
    const mayBeHidden = this.outcomes !== undefined || mayHide(html)
    if (kind === 'kept' || !mayBeHidden) return { kind, place: 'end' }
    const place = FOOTER_PLACES.find(one => {
      const seen = this.see(this.marking(this.footed({ kind, place: one })), values, true)
      return kind === 'added' ? seen.hasUnsubscribeLink : hasAddress(seen.text, brand, html)
    })
    return { kind, place: place ?? 'end' }
  }

  private see(template: MergeTemplate, { tracking: _, ...values }: MergeValues, isOurs = false): VisibleHtml {
    return readVisibleHtml(renderTemplate(template, values), this.mark, isOurs)
  }

  private footed(decision: FooterDecision): MergeTemplate {
    const name = `${decision.kind} ${decision.place}`
    if (this.last?.name !== name) this.last = { name, template: this.withFooter(decision) }
    return this.last.template
  }

  private withFooter({ kind, place }: FooterDecision): MergeTemplate {
    const { html, brand } = this
    const { at, added } = complianceFooter(html, brand, { kind, place, isTemplate: true })
    if (hasTags(html)) return this.fold(parse(html.slice(0, at) + added + html.slice(at)))
    if (added === '') return this.fold(parse(html))
    // Only the footer has tags, and it is inserted between elements.
    const { nodes, names } = parseFooter(added)
    return this.fold({ place: 'html', nodes: [html.slice(0, at), ...nodes, html.slice(at)], names })
  }

  private fold(template: MergeTemplate): MergeTemplate {
    return foldConstants(template, brandTags(this.brand))
  }

  private marking(template: MergeTemplate): MergeTemplate {
    return {
      ...template,
      nodes: mapLeaves(template.nodes, leaf => (isUnsubscribeUrl(leaf) ? this.mark : leaf)),
    }
  }
}

function isUnsubscribeUrl(leaf: string | ValueNode): boolean {
  return typeof leaf !== 'string' && leaf.lookup.of === 'root' && leaf.lookup.name === 'unsubscribe_url'
}

function parse(html: string): MergeTemplate {
  return templateOf(html, 'html')
}

/** Footers differ by brand, language and width only, so that those of one workspace are few. */
const footers = new Map<string, MergeTemplate>()
const MAX_FOOTERS = 200

function parseFooter(added: string): MergeTemplate {
  const known = footers.get(added)
  if (known) return known
  const template = parse(added)
  if (footers.size >= MAX_FOOTERS) footers.clear()
  footers.set(added, template)
  return template
}

function shortened(outcome: string): string {
  return outcome.length <= 100 ? outcome : createHash('sha256').update(outcome).digest('base64')
}

/**
 * Keeps only what affects visibility: conditions render `1` or `0`, loops one sign per iteration, unescaped values and those in styles and
 * tags their text, and values in links whether they are empty.
 */
function outcomesOf({ nodes }: MergeTemplate): MergeTemplate | undefined {
  const only = new Deciding().only(nodes)
  return only.length === 0 ? undefined : { place: 'text', nodes: only, names: [] }
}

class Deciding {
  /** The preceding markup, to detect a value inside a style. */
  private before = ''
  private isInLink = false

  only(nodes: readonly MergeNode[]): MergeNode[] {
    return nodes.flatMap((node): readonly MergeNode[] => {
      if (typeof node === 'string') {
        this.before = (this.before + node).slice(-2_000)
        const [begin, end] = [node.lastIndexOf('<a'), node.lastIndexOf('</a')]
        if (begin !== end) this.isInLink = begin > end
        return []
      }
      switch (node.kind) {
        case 'value':
          return this.value(node)
        case 'url':
          return this.only(node.parts)
        case 'choice':
          return [
            {
              ...node,
              whenTrue: ['1', ...this.only(node.whenTrue)],
              whenFalse: ['0', ...this.only(node.whenFalse)],
            },
          ]
        case 'loop':
          return [
            { ...node, body: ['+', ...this.only(node.body)], whenEmpty: ['-', ...this.only(node.whenEmpty)] },
          ]
        case 'link':
        case 'pixel':
          return []
      }
    })
  }

  private value(node: ValueNode): readonly MergeNode[] {
    const isWhole =
      node.place === 'unescaped' ||
      node.place === 'tag' ||
      /\sstyle\s*=\s*("[^"]*|'[^']*)$/i.test(this.before)
    if (isWhole) return ['(', node, ')']
    const isLinkText = this.isInLink && (node.place === 'text' || node.place === 'attribute')
    if (!isLinkText || node.fallback !== '') return []
    return [
      { kind: 'choice', expression: { left: { lookup: node.lookup } }, whenTrue: ['1'], whenFalse: ['0'] },
    ]
  }
}
