/**
 * The plan of a mail: everything its recipients share, computed once per content.
 *
 * Made by the delivery threads (`plan-cache.ts`): adds the compliance footer, parses merge tags, evaluates constants, derives text
 * from HTML. Pure.
 * Fails: MergeError, on planning if a source cannot be parsed (which `submit` rejects), on rendering if values exceed the limits.
 */
import { given } from '../../core/given.js'
import type { MaybeEncoded } from '../../mail/compose/compose.js'
import { dateTags } from '../merge/date-tags.js'
import type { MergePlace, MergeTemplate } from '../merge/merge-tree.js'
import type { MergeValues, TrackedUrls } from '../merge/merge-values.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'
import { renderEncoded } from './encode-template.js'
import { foldConstants } from './fold-constants.js'
import { FootedHtml } from './footed-html.js'
import { brandTags, type MailBrand, type Merging, type OwnValues } from './merging.js'
import { trackTemplate } from '../tracking/track-template.js'
import { TextFromHtml } from './text-from-html.js'

/** As the author wrote it. */
export interface MailSource {
  readonly subject: string
  readonly html?: string
  readonly text?: string
}

/** Plan of html and text, shared by mails that differ only in subject. */
export interface BodyPlan {
  /** By recipient, whose values decide which footer is needed. */
  readonly html: { for(values: MergeValues): HtmlPlan } | undefined
  /** The author's text; if absent, text is derived from the html. */
  readonly text: MergeTemplate | undefined
  /** Whether it contains an unsubscribe link. */
  readonly hasUnsubscribeLink: boolean
}

export interface HtmlPlan {
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
  /** The mail as a web page. */
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

/** Predicts `isEmptied` before delivery. @param values data, and the contact as far as it is known */
export function comesOutEmpty(
  written: string,
  brand: MailBrand,
  values: Pick<MergeValues, 'data' | 'contact'>,
): boolean {
  if (!hasTags(written)) return false
  const system = systemTags(brand, 0, { unsubscribeUrl: '-', preferencesUrl: '-', viewUrl: '-' })
  return isEmptied(written, renderTemplate(toTemplate(written, 'subject'), { ...values, system }))
}

/** Whether the source may contain merge tags. */
export function hasTags(source: string | undefined): boolean {
  return source?.includes('{{') ?? false
}

export function planSubject(subject: string, { brand }: Merging): MergeTemplate {
  return foldConstants(toTemplate(subject, 'subject'), brandTags(brand))
}

export function planBody({ html, text }: Omit<MailSource, 'subject'>, merging: Merging): BodyPlan {
  const { brand, hasFooter } = merging
  const constants = brandTags(brand)
  const fold = (template: MergeTemplate) => foldConstants(template, constants)
  const written = text === undefined ? undefined : fold(toTemplate(text, 'text'))
  const plan = (template: MergeTemplate) => planHtml(template, merging)
  const hasLink = (template: MergeTemplate | undefined) =>
    template?.names.includes('unsubscribe_url') ?? false
  if (html === undefined) return { html: undefined, text: written, hasUnsubscribeLink: hasLink(written) }
  if (hasFooter) return { html: new FootedHtml(html, brand, plan), text: written, hasUnsubscribeLink: true }
  const filled = fold(toTemplate(html, 'html'))
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

/** For delivery: pre-encoded where possible. */
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

function toTemplate(source: string, place: MergePlace): MergeTemplate {
  return hasTags(source) ? parseTemplate(source, place) : { place, nodes: [source], names: [] }
}

function cut(subject: string): string {
  if (subject.length <= MAX_SUBJECT) return subject
  // Do not cut a surrogate pair in half.
  return subject.slice(0, MAX_SUBJECT).replace(/[\ud800-\udbff]$/, '')
}
