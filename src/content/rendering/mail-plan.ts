/**
 * The plan of a mail: what all of its recipients have in common, worked out once, so that little is left to do for each.
 *
 * Made by the delivery threads for each content (`plan-cache.ts`): the compliance footer is added, merge tags are parsed, what is
 * the same for everybody is filled in, text is made of HTML. Pure.
 * Fails: MergeError, for a source that cannot be parsed (which the door has refused) when it is planned, and for values that take
 * it past the bounds when it is rendered.
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

/** As it was written. */
export interface MailSource {
  readonly subject: string
  readonly html?: string
  readonly text?: string
}

/** Of html and text, which many mails share whose subjects differ. */
export interface BodyPlan {
  /** By recipient, whose conditions decide which footer it needs. */
  readonly html: { for(values: MergeValues): HtmlPlan } | undefined
  /** As somebody wrote it; where it is absent, text is made of the html. */
  readonly text: MergeTemplate | undefined
  /** Somebody can unsubscribe by a link in it. */
  readonly hasUnsubscribeLink: boolean
}

export interface HtmlPlan {
  readonly template: MergeTemplate
  /** It leads to us first; the text made of it has the links that were written. */
  readonly isTracked: boolean
  readonly text: TextFromHtml
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

/** For delivery, with its texts encoded as far as that could be done ahead. */
export function renderFilled(plan: MailPlan, values: MergeValues): MaybeEncoded<MailSource> {
  const planned = plan.body.html?.for(values)
  const html = planned && renderEncoded(planned.template, values)
  const written = typeof html === 'string' ? html : undefined
  const text = textOf(plan.body, planned, values, written, renderEncoded)
  return { subject: subjectOf(plan, values), ...given({ html, text }) }
}

/** @param html the html for the same values, where that is there */
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

function cut(subject: string): string {
  if (subject.length <= MOST_SUBJECT) return subject
  // Half of a pair is no character.
  return subject.slice(0, MOST_SUBJECT).replace(/[\ud800-\udbff]$/, '')
}
