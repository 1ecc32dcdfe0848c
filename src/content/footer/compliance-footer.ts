/**
 * The footer that every HTML mail needs: who sent it, from where, and how to have no more of it.
 *
 * Called once per content, before the merge language is parsed: what is added holds merge tags, which are filled for each
 * recipient. What the author wrote stays octet for octet. Pure.
 * Source: the contract's table "Compliance footer"; an address is there where the text has `{{company_address}}` or the
 * workspace's own address. Both count only where a reader sees them.
 * Fails: never throws; linear in the length of the HTML.
 */
import { escapeHtml } from '../merge/escape-value.js'
import { MergeError } from '../merge/merge-error.js'
import { splitTags } from '../merge/split-tags.js'
import { findEndOfBody, findStartOfBody, type EndOfBody } from './find-end-of-body.js'
import type { FooterTexts } from './footer-texts.js'
import { de } from './languages/de.js'
import { en } from './languages/en.js'
import { es } from './languages/es.js'
import { fr } from './languages/fr.js'
import { mayHide, readVisibleHtml, unsubscribeMark, type VisibleHtml } from './visible-html.js'

const LANGUAGES: Readonly<Record<string, FooterTexts>> = { de, en, es, fr }

export interface Brand {
  /** Empty where there is none. */
  readonly companyName: string
  readonly companyAddress: string
  /** Whether a line at the very end says what sent the mail. */
  readonly attribution: boolean
}

const ATTRIBUTION = 'Sent with Postroad'

/** `kept`: the author's footer is whole. `completed`: it had no address. `added`: there was no unsubscribe link that can be seen. */
export type FooterCase = 'kept' | 'completed' | 'added'

/** In the order in which they are tried: at the start where something in the mail hides what stands at its end. */
export const FOOTER_PLACES = ['end', 'start'] as const
export type FooterPlace = (typeof FOOTER_PLACES)[number]

export interface NeededFooter {
  readonly kind: FooterCase
  readonly place: FooterPlace
  /** What stands between double braces are tags and blocks of ours. */
  readonly isTemplate: boolean
}

const UNSUBSCRIBE_TAG = /\{\{\s*unsubscribe_url\s*(\|[^{}]{0,1000})?\}\}/g
const ADDRESS_TAG = /\{\{\s*company_address\s*(\|[^{}]{0,1000})?\}\}/g

/** @param source the HTML before its tags were filled in */
export function caseOf({ hasUnsubscribeLink, text }: VisibleHtml, brand: Brand, source: string): FooterCase {
  if (!hasUnsubscribeLink) return 'added'
  return hasAddress(text, brand, source) ? 'kept' : 'completed'
}

/** @param text that a reader sees. Where the workspace has no address, a tag for it is all that can be asked for. */
export function hasAddress(text: string, { companyAddress }: Brand, source: string): boolean {
  const address = squeezed(companyAddress)
  return address === '' ? source.search(ADDRESS_TAG) >= 0 : squeezed(text).includes(address)
}

/** Of HTML that is the same for everybody, but for tags that are filled in. */
export function footerCase(html: string, brand: Brand): FooterCase {
  return html.includes('unsubscribe_url') ? caseOf(seenOf(html, brand), brand, html) : 'added'
}

export function addComplianceFooter(html: string, brand: Brand): string {
  const { at, added } = complianceFooter(html, brand, neededFooter(html, brand, true))
  return html.slice(0, at) + added + html.slice(at)
}

/** The footer of HTML that is the same for everybody. */
export function neededFooter(html: string, brand: Brand, isTemplate: boolean): NeededFooter {
  const kind = footerCase(html, brand)
  if (kind === 'kept' || !mayHide(html)) return { kind, place: 'end', isTemplate }
  const place = FOOTER_PLACES.find(one => {
    const { at, added } = complianceFooter(html, brand, { kind, place: one, isTemplate })
    const seen = seenOf(html.slice(0, at) + added + html.slice(at), brand, true)
    return kind === 'added' ? seen.hasUnsubscribeLink : hasAddress(seen.text, brand, html)
  })
  return { kind, place: place ?? 'end', isTemplate }
}

function seenOf(html: string, { companyAddress }: Brand, isOurs = false): VisibleHtml {
  const mark = unsubscribeMark(html)
  const filled = html.replace(UNSUBSCRIBE_TAG, mark).replace(ADDRESS_TAG, () => escapeHtml(companyAddress))
  return readVisibleHtml(filled, mark, isOurs)
}

/** @returns what is added, which has merge tags and may be empty, and before which index of `html` */
export function complianceFooter(
  html: string,
  brand: Brand,
  { kind, place, isTemplate }: NeededFooter,
): { readonly at: number; readonly added: string } {
  const added = footerFor(kind, html, brand)
  if (added === '') return { at: html.length, added }
  if (place === 'start') {
    const at = findStartOfBody(html)
    return { at: isTemplate && !isOutsideOfBlocks(html.slice(0, at)) ? 0 : at, added }
  }
  const { at, hiding } = isTemplate ? endOfMail(html) : findEndOfBody(html)
  return { at, added: hiding.map(name => `</${name}>`).join('') + added }
}

/**
 * The same for plain text.
 *
 * @param language of the mail, two letters
 * @returns lines with merge tags, a line feed between them; empty where the text has all it needs
 */
export function complianceText(text: string, brand: Brand, language: string): string {
  const kind = text.search(UNSUBSCRIBE_TAG) < 0 ? 'added' : textHasAddress(text, brand) ? 'kept' : 'completed'
  const texts = LANGUAGES[language] ?? en
  return [
    ...(kind === 'added'
      ? [`${texts.unsubscribe}: {{unsubscribe_url}}`, `${texts.preferences}: {{preferences_url}}`]
      : []),
    ...(kind === 'kept' ? [] : [[brand.companyName, brand.companyAddress].filter(Boolean).join(', ')]),
    ...(brand.attribution ? [ATTRIBUTION] : []),
  ]
    .filter(line => line !== '')
    .join('\n')
}

/** Everybody gets it: where a condition or a tag is around the end of the body, it stands behind everything. */
function endOfMail(html: string): EndOfBody {
  const end = findEndOfBody(html)
  return !html.includes('{{') || isOutsideOfBlocks(html.slice(0, end.at)) ? end : { ...end, at: html.length }
}

function isOutsideOfBlocks(before: string): boolean {
  try {
    const tags = splitTags(before).filter(piece => piece.kind === 'tag')
    return (
      tags.filter(({ inner }) => inner.startsWith('#')).length ===
      tags.filter(({ inner }) => inner.startsWith('/')).length
    )
  } catch (error) {
    if (error instanceof MergeError) return false
    throw error
  }
}

function textHasAddress(text: string, brand: Brand): boolean {
  return text.search(ADDRESS_TAG) >= 0 || (brand.companyAddress !== '' && hasAddress(text, brand, text))
}

/** An address is the same on one line and on several, in capitals or not. */
function squeezed(text: string): string {
  return text
    .replace(/[\s,]+/g, ' ')
    .trim()
    .toLowerCase()
}

function footerFor(kind: FooterCase, html: string, brand: Brand): string {
  const { companyName, companyAddress, attribution } = brand
  const isNamed = companyName !== '' || companyAddress !== ''
  const texts = LANGUAGES[languageOf(html)] ?? en
  const links = [
    `<a href="{{unsubscribe_url}}" style="${LINK_STYLE}">${texts.unsubscribe}</a>`,
    `<a href="{{preferences_url}}" style="${LINK_STYLE}">${texts.preferences}</a>`,
  ]
  const lines = [
    ...(kind === 'kept' || !isNamed
      ? []
      : [`{{#if company_name}}{{company_name}}{{#if company_address}}, {{/if}}{{/if}}{{company_address}}`]),
    ...(kind === 'added' ? [links.join(' &nbsp;·&nbsp; ')] : []),
    ...(attribution ? [ATTRIBUTION] : []),
  ]
  return lines.length === 0 ? '' : table(lines, widthOf(html), directionOf(html))
}

/** A grey that can be read on white as on black, and no background: dark mode leaves both as they are. */
const TEXT_STYLE = 'font-family:Arial,Helvetica,sans-serif;font-size:12px;line-height:18px;color:#777777;'
const LINK_STYLE = 'color:#777777;text-decoration:underline;'

/** A table, since Outlook's engine gives nothing else a width; `max-width` is for all others. */
function table(lines: readonly string[], width: number, direction: 'ltr' | 'rtl'): string {
  return (
    `<table role="presentation" dir="${direction}" align="center" width="100%" cellpadding="0" cellspacing="0" border="0"` +
    ` style="max-width:${width}px;margin:0 auto;"><tr><td align="center" style="padding:24px 16px;${TEXT_STYLE}">` +
    `${lines.join('<br>')}</td></tr></table>`
  )
}

const USUAL_WIDTH = 600

/** The width of the mail's own column: what its outermost elements ask for most often, within reason. */
function widthOf(html: string): number {
  const counts = new Map<number, number>()
  for (const [, style, attribute] of html.matchAll(/max-width:\s*(\d{3,4})px|\swidth=["']?(\d{3,4})\b/gi)) {
    const width = Number(style ?? attribute)
    if (width >= 320 && width <= 1_000) counts.set(width, (counts.get(width) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? USUAL_WIDTH
}

function directionOf(html: string): 'ltr' | 'rtl' {
  return /<(html|body)\b[^<>]{0,2000}?\sdir\s*=\s*["']?rtl\b/i.test(html) ? 'rtl' : 'ltr'
}

/** Of the mail, two letters; English where it does not say. */
export function languageOf(html: string): string {
  return /<html\b[^<>]{0,2000}?\slang\s*=\s*["']?([a-z]{2})\b/i.exec(html)?.[1]?.toLowerCase() ?? 'en'
}
