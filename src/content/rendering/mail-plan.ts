/**
 * The plan of a mail: what all of its recipients have in common, worked out once, so that little is left to do for each.
 *
 * Made by the delivery threads for each content (`plan-cache.ts`): the compliance footer is added, merge tags are parsed, what is
 * the same for everybody is filled in, text is made of HTML. Pure.
 * Fails: MergeError, for a source that cannot be parsed (which the door has refused) when it is planned, and for values that take
 * it past the bounds when it is rendered.
 */
import { given } from '../../core/given.js'
import type { Filled } from '../../mail/compose/compose.js'
import { complianceFooter } from '../footer/compliance-footer.js'
import { dateTags } from '../merge/date-tags.js'
import type { MergePlace, MergeTemplate } from '../merge/merge-tree.js'
import type { MergeValues, TrackedUrls } from '../merge/merge-values.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'
import { renderEncoded } from './encode-template.js'
import { foldConstants } from './fold-constants.js'
import { brandTags, type MailBrand, type Merging, type OwnValues } from './merging.js'
import { trackTemplate } from '../tracking/track-template.js'
import { TextFromHtml } from './text-from-html.js'

/** As it was written. */
export interface MailSource {
  readonly subject: string
  readonly html?: string
  readonly text?: string
}

/** Of html and text, which many mails share whose subjects differ. */
export interface BodyPlan {
  readonly html: MergeTemplate | undefined
  /** The html leads to us first; the text has the links that were written. */
  readonly isTracked: boolean
  readonly text: MergeTemplate | TextFromHtml | undefined
  /** Somebody can unsubscribe by a link in it. */
  readonly hasUnsubscribeLink: boolean
}

export interface MailPlan {
  readonly subject: MergeTemplate
  readonly body: BodyPlan
}

/** The links of one message; each is made when it is asked for. */
export interface SubscriberLinks {
  readonly unsubscribeUrl: string
  readonly preferencesUrl: string
  /** The mail in a browser. */
  readonly viewUrl: string
}

/** UTF-16 units; as long as a request may write one. */
const MOST_SUBJECT = 998

/** Why a mail is not sent whose subject is nothing but merge tags that came out empty. */
export const EMPTY_SUBJECT = 'the subject is empty after merging'

/** A subject that was written and is nothing once it is filled in. One that was empty from the start is its author's wish. */
export function isEmptied(written: string, filled: string): boolean {
  return filled.trim() === '' && written.trim() !== ''
}

/** The same before the mail leaves. @param values the contact, as far as it is known, and data */
export function comesOutEmpty(
  written: string,
  brand: MailBrand,
  values: Pick<MergeValues, 'data' | 'contact'>,
): boolean {
  if (!hasTags(written)) return false
  const system = systemTags(brand, 0, { unsubscribeUrl: '-', preferencesUrl: '-', viewUrl: '-' })
  return isEmptied(written, renderTemplate(toTemplate(written, 'subject'), { ...values, system }))
}

/** Whether there can be anything to fill in. */
export function hasTags(source: string | undefined): boolean {
  return source?.includes('{{') ?? false
}

export function planSubject(subject: string, { brand }: Merging): MergeTemplate {
  return foldConstants(toTemplate(subject, 'subject'), brandTags(brand))
}

export function planBody({ html, text }: Omit<MailSource, 'subject'>, merging: Merging): BodyPlan {
  const constants = brandTags(merging.brand)
  const fold = (template: MergeTemplate) => foldConstants(template, constants)
  const filled = html === undefined ? undefined : fold(footedTemplate(html, merging))
  const written = text === undefined ? undefined : fold(toTemplate(text, 'text'))
  const { tracking } = merging
  const tracked = filled && tracking ? trackTemplate(filled, tracking) : filled
  return {
    html: tracked,
    isTracked: tracked !== filled,
    text: written ?? (filled && new TextFromHtml(filled)),
    hasUnsubscribeLink: [filled, written].some(one => one?.names.includes('unsubscribe_url') ?? false),
  }
}

export function renderMail(plan: MailPlan, values: MergeValues): MailSource {
  const html = plan.body.html && renderTemplate(plan.body.html, values)
  const text = textOf(plan.body, values, html, renderTemplate)
  return { subject: subjectOf(plan, values), ...given({ html, text }) }
}

/** For delivery, with its texts encoded as far as that could be done ahead. */
export function renderFilled(plan: MailPlan, values: MergeValues): Filled<MailSource> {
  const html = plan.body.html && renderEncoded(plan.body.html, values)
  const written = typeof html === 'string' ? html : undefined
  const text = textOf(plan.body, values, written, renderEncoded)
  return { subject: subjectOf(plan, values), ...given({ html, text }) }
}

/** @param html the html for the same values, where that is there */
function textOf<T>(
  { text, isTracked }: BodyPlan,
  values: MergeValues,
  html: string | undefined,
  render: (template: MergeTemplate, values: MergeValues) => T,
): T | string | undefined {
  if (!(text instanceof TextFromHtml)) return text && render(text, values)
  return text.textFor(isTracked ? undefined : html, values, render)
}

function subjectOf({ subject }: MailPlan, values: MergeValues): string {
  return cut(renderTemplate(subject, values))
}

/**
 * What one message is filled from.
 *
 * @param recipient whom it is for, contact or not
 * @param date of the mail, ms since epoch UTC
 */
export function valuesOf(
  { brand, data }: Merging,
  { contact, data: own }: OwnValues,
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

/** Getters, for what nobody asks for costs nothing. */
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

function toTemplate(source: string, place: MergePlace): MergeTemplate {
  return hasTags(source) ? parseTemplate(source, place) : { place, nodes: [source], names: [] }
}

function footedTemplate(html: string, { hasFooter, brand }: Merging): MergeTemplate {
  const { at, added } = hasFooter ? complianceFooter(html, brand) : NO_FOOTER
  if (added === '') return toTemplate(html, 'html')
  if (hasTags(html)) return parseTemplate(html.slice(0, at) + added + html.slice(at), 'html')
  // The footer alone has tags, and stands where text does.
  const { nodes, names } = parseTemplate(added, 'html')
  return { place: 'html', nodes: [html.slice(0, at), ...nodes, html.slice(at)], names }
}

const NO_FOOTER = { at: 0, added: '' }

function cut(subject: string): string {
  if (subject.length <= MOST_SUBJECT) return subject
  // Half of a pair is no character.
  return subject.slice(0, MOST_SUBJECT).replace(/[\ud800-\udbff]$/, '')
}
