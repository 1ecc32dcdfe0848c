/**
 * The plan of a mail: everything its recipients share, computed once per content.
 *
 * Adds the compliance footer, parses merge tags, evaluates constants, derives text from HTML. Runs in the delivery threads. Pure.
 * Throws MergeError: on planning if a source cannot be parsed (which `submit` rejects), on rendering if values exceed the limits.
 */
import { given } from '../../core/given.js'
import type { MaybeEncoded } from '../../mail/compose/compose.js'
import {
  isPiece,
  MIN_PIECE_LENGTH,
  pieceOf,
  QuotedPrintableWriter,
  type EncodedPiece,
  type EncodedText,
} from '../../mail/compose/encoded-text.js'
import { plainTextOf } from '../../mail/compose/plain-text.js'
import { areShorterAsBase64, quoteText, type QuotedText } from '../../mail/compose/quoted-text.js'
import {
  mapLeaves,
  type HtmlPlace,
  type MergeNode,
  type MergeTemplate,
  type UrlNode,
  type ValueNode,
} from '../merge/merge-tree.js'
import type { MergeText } from '../merge/merge-text.js'
import { dateTags, type MergeValues, type TrackedUrls } from '../merge/merge-values.js'
import { templateOf } from '../merge/parse-template.js'
import { renderInto, renderTemplate } from '../merge/render-template.js'
import { trackTemplate } from '../tracking/track-template.js'
import { foldConstants } from './fold-constants.js'
import { FootedHtml } from './footed-html.js'
import { brandTags, type MailBrand, type Merging, type RecipientValues } from './merging.js'

export interface MailSource {
  readonly subject: string
  readonly html?: string
  readonly text?: string
}

/** Shared by mails that differ only in subject. */
export interface BodyPlan {
  /** By recipient, whose values decide which footer is needed. */
  readonly html: { for(values: MergeValues): HtmlPlan } | undefined
  /** The author's text; if absent, text is derived from the html. */
  readonly text: MergeTemplate | undefined
  readonly hasUnsubscribeLink: boolean
}

interface HtmlPlan {
  readonly template: MergeTemplate
  /** Links are redirected through this server; the text derived from it keeps the original ones. */
  readonly isTracked: boolean
  readonly text: TextFromHtml
}

export interface MailPlan {
  readonly subject: MergeTemplate
  readonly body: BodyPlan
}

/** Links of one message; each is generated on first access. */
export interface SubscriberLinks {
  readonly unsubscribeUrl: string
  readonly preferencesUrl: string
  readonly viewUrl: string
}

/** UTF-16 units; the same limit as in a request. */
const MAX_SUBJECT = 998

/** Why a mail is not sent whose subject rendered empty. */
export const EMPTY_SUBJECT = 'the subject is empty after merging'

/** Whether merging emptied the subject. One that was empty before merging is intended. */
export function isEmptied(written: string, filled: string): boolean {
  return filled.trim() === '' && written.trim() !== ''
}

/** Predicts `isEmptied` before delivery. @param values data, and the contact if known */
export function rendersEmpty(
  subject: MergeText,
  brand: MailBrand,
  values: Pick<MergeValues, 'data' | 'contact'>,
): boolean {
  if (!subject.hasTags) return false
  const system = systemTags(brand, 0, { unsubscribeUrl: '-', preferencesUrl: '-', viewUrl: '-' })
  return isEmptied(subject.source, renderTemplate(subject.template, { ...values, system }))
}

export function planSubject(subject: string, { brand }: Merging): MergeTemplate {
  return foldConstants(templateOf(subject, 'subject'), brandTags(brand))
}

export function planBody({ html, text }: Omit<MailSource, 'subject'>, merging: Merging): BodyPlan {
  const { brand, hasFooter } = merging
  const constants = brandTags(brand)
  const fold = (template: MergeTemplate) => foldConstants(template, constants)
  const written = text === undefined ? undefined : fold(templateOf(text, 'text'))
  const plan = (template: MergeTemplate) => planHtml(template, merging)
  const hasLink = (template: MergeTemplate | undefined) =>
    template?.names.includes('unsubscribe_url') ?? false
  if (html === undefined) return { html: undefined, text: written, hasUnsubscribeLink: hasLink(written) }
  if (hasFooter) return { html: new FootedHtml(html, brand, plan), text: written, hasUnsubscribeLink: true }
  const filled = fold(templateOf(html, 'html'))
  const planned = plan(filled)
  return {
    html: { for: () => planned },
    text: written,
    hasUnsubscribeLink: hasLink(filled) || hasLink(written),
  }
}

function planHtml(template: MergeTemplate, { tracking }: Merging): HtmlPlan {
  const tracked = tracking ? trackTemplate(template, tracking) : template
  return { template: tracked, isTracked: tracked !== template, text: new TextFromHtml(template) }
}

export function renderMail(plan: MailPlan, values: MergeValues): MailSource {
  const planned = plan.body.html?.for(values)
  const html = planned && renderTemplate(planned.template, values)
  const text = textOf(plan.body, planned, values, html, renderTemplate)
  return { subject: subjectOf(plan, values), ...given({ html, text }) }
}

/** For delivery: already in its transfer encoding where possible. */
export function renderFilled(plan: MailPlan, values: MergeValues): MaybeEncoded<MailSource> {
  const planned = plan.body.html?.for(values)
  const html = planned && renderEncoded(planned.template, values)
  const written = typeof html === 'string' ? html : undefined
  const text = textOf(plan.body, planned, values, written, renderEncoded)
  return { subject: subjectOf(plan, values), ...given({ html, text }) }
}

/** @param html the rendered html of the same values, if available as text */
function textOf<T>(
  { text }: BodyPlan,
  planned: HtmlPlan | undefined,
  values: MergeValues,
  html: string | undefined,
  render: (template: MergeTemplate, values: MergeValues) => T,
): T | string | undefined {
  if (text || !planned) return text && render(text, values)
  return planned.text.textFor(planned.isTracked ? undefined : html, values, render)
}

function subjectOf({ subject }: MailPlan, values: MergeValues): string {
  return cut(renderTemplate(subject, values))
}

/**
 * The merge values of one message.
 *
 * @param recipient address, whether or not it is a contact's
 * @param date of the mail, ms since epoch UTC
 */
export function valuesOf(
  { brand, data }: Merging,
  { contact, data: own }: RecipientValues,
  recipient: string,
  date: number,
  links: SubscriberLinks,
  tracking?: TrackedUrls,
): MergeValues {
  const shared = data && own ? { ...data, ...own } : (own ?? data)
  return {
    system: systemTags(brand, date, links),
    contact: contact ?? { email: recipient, firstName: null, lastName: null, attributes: {} },
    ...(shared && { data: shared }),
    ...(tracking && { tracking }),
  }
}

/** Getters, so that unused tags cost nothing. */
function systemTags(brand: MailBrand, date: number, links: SubscriberLinks): MergeValues['system'] {
  return {
    ...brandTags(brand),
    get unsubscribe_url() {
      return links.unsubscribeUrl
    },
    get preferences_url() {
      return links.preferencesUrl
    },
    get view_url() {
      return links.viewUrl
    },
    get current_year() {
      return dateTags(date, brand.timezone).current_year
    },
    get current_month() {
      return dateTags(date, brand.timezone).current_month
    },
    get current_date() {
      return dateTags(date, brand.timezone).current_date
    },
  }
}

function cut(subject: string): string {
  if (subject.length <= MAX_SUBJECT) return subject
  // Do not cut a surrogate pair in half.
  return subject.slice(0, MAX_SUBJECT).replace(/[\ud800-\udbff]$/, '')
}

/** Private use characters; HTML that contains one is converted for each mail. */
const [MARK, MARK_END] = ['\ue000', '\ue001']
const MARKS = /\ue000(\d+)\ue001/g

/** Cached outcomes; further ones are converted for each mail. */
const MAX_CACHED = 16

/**
 * The plain-text alternative of merged HTML.
 *
 * Converting HTML to text is the most expensive step of a mail, so it is done once for all recipients where possible: each value is
 * replaced by a mark, which then becomes a tag of a text template. Each outcome of the conditions has its own text, converted on first use.
 * Loops and unescaped values may contain any markup; then the rendered HTML is converted for each mail.
 */
class TextFromHtml {
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

interface Prepared {
  /** The template with its short texts copied. */
  readonly template: MergeTemplate
  /** Encoded texts, by the text. */
  readonly pieces: ReadonlyMap<string, EncodedPiece>
}

/** Null if base64 is shorter. */
const known = new WeakMap<MergeTemplate, Prepared | null>()

/**
 * Renders in the transfer encoding: literal text is encoded once per template instead of once per mail, from the first mail on, so that a
 * retry has the same octets. Mostly non-ASCII text is shorter in base64, which cannot be pre-encoded, and is returned as text.
 */
function renderEncoded(template: MergeTemplate, values: MergeValues): string | EncodedText {
  const prepared = preparedOf(template)
  if (!prepared) return renderTemplate(template, values)
  const encoder = new QuotedPrintableWriter(prepared.pieces)
  renderInto(encoder, prepared.template, values)
  return encoder.end()
}

function preparedOf(template: MergeTemplate): Prepared | null {
  const found = known.get(template)
  if (found !== undefined) return found
  const prepared = prepare(template)
  known.set(template, prepared)
  return prepared
}

function prepare({ nodes, ...template }: MergeTemplate): Prepared | null {
  const quotedTexts: QuotedText[] = []
  const pieces = new Map<string, EncodedPiece>()
  const copied = mapLeaves(nodes, leaf => {
    if (typeof leaf !== 'string') return leaf
    const quoted = quoteText(leaf)
    quotedTexts.push(quoted)
    if (leaf.length < MIN_PIECE_LENGTH || !isPiece(leaf)) return compact(leaf)
    pieces.set(leaf, pieceOf(quoted))
    return leaf
  })
  return areShorterAsBase64(quotedTexts) ? null : { template: { ...template, nodes: copied }, pieces }
}

/** A slice of a string with a wide character uses two octets per character, as does every mail it is copied into. */
function compact(text: string): string {
  // eslint-disable-next-line no-control-regex -- one octet each
  return /^[\x00-\xff]*$/.test(text) ? Buffer.from(text, 'latin1').toString('latin1') : text
}
