/**
 * Adds the compliance footer to HTML and text: who sent the mail, their postal address, and how to unsubscribe.
 *
 * Runs once per content, before merge tags are parsed: the footer contains tags that are filled in per recipient. The author's own content
 * is not changed. A mail has an address if a reader sees `{{company_address}}` or the workspace's address. Pure. Never throws; linear in
 * the length of the HTML.
 */
import { escapeHtml } from '../../core/escape-html.js'
import { MergeError } from '../merge/merge-tree.js'
import { splitTags } from '../merge/parse-template.js'
import {
  findEndOfBody,
  findStartOfBody,
  mayHide,
  readVisibleHtml,
  unsubscribeMark,
  type EndOfBody,
  type VisibleHtml,
} from './visible-html.js'

const ENGLISH = { unsubscribe: 'Unsubscribe', preferences: 'Email preferences' }
const LANGUAGES: Readonly<Record<string, typeof ENGLISH>> = {
  de: { unsubscribe: 'Abmelden', preferences: 'E-Mail-Einstellungen' },
  en: ENGLISH,
  es: { unsubscribe: 'Darse de baja', preferences: 'Preferencias de correo' },
  fr: { unsubscribe: 'Se désabonner', preferences: 'Préférences e-mail' },
}

interface Brand {
  /** Empty if unset. */
  readonly companyName: string
  readonly companyAddress: string
  readonly attribution: boolean
}

const ATTRIBUTION = 'Sent with Postroad'

/** `kept`: the author's footer is complete. `completed`: it lacked the address. `added`: it had no visible unsubscribe link. */
export type FooterCase = 'kept' | 'completed' | 'added'

/** In order of preference: the start is used if something in the mail hides its end. */
export const FOOTER_PLACES = ['end', 'start'] as const
export type FooterPlace = (typeof FOOTER_PLACES)[number]

interface NeededFooter {
  readonly kind: FooterCase
  readonly place: FooterPlace
  /** Merge tags and blocks in the source are ours to interpret. */
  readonly isTemplate: boolean
}

const UNSUBSCRIBE_TAG = /\{\{\s*unsubscribe_url\s*(\|[^{}]{0,1000})?\}\}/g
const ADDRESS_TAG = /\{\{\s*company_address\s*(\|[^{}]{0,1000})?\}\}/g

/** @param source the HTML before its tags were filled in */
export function caseOf({ hasUnsubscribeLink, text }: VisibleHtml, brand: Brand, source: string): FooterCase {
  if (!hasUnsubscribeLink) return 'added'
  return hasAddress(text, brand, source) ? 'kept' : 'completed'
}

/** @param text the visible text. If the workspace has no address, a tag for it is enough. */
export function hasAddress(text: string, { companyAddress }: Brand, source: string): boolean {
  const address = squeezed(companyAddress)
  return address === '' ? source.search(ADDRESS_TAG) >= 0 : squeezed(text).includes(address)
}

/** For HTML without conditions. */
export function footerCase(html: string, brand: Brand): FooterCase {
  return html.includes('unsubscribe_url') ? caseOf(visibleOf(html, brand), brand, html) : 'added'
}

export function addComplianceFooter(html: string, brand: Brand): string {
  const { at, added } = complianceFooter(html, brand, neededFooter(html, brand, true))
  return html.slice(0, at) + added + html.slice(at)
}

/** The footer of HTML without conditions. */
export function neededFooter(html: string, brand: Brand, isTemplate: boolean): NeededFooter {
  const kind = footerCase(html, brand)
  if (kind === 'kept' || !mayHide(html)) return { kind, place: 'end', isTemplate }
  const place = FOOTER_PLACES.find(one => {
    const { at, added } = complianceFooter(html, brand, { kind, place: one, isTemplate })
    const seen = visibleOf(html.slice(0, at) + added + html.slice(at), brand, true)
    return kind === 'added' ? seen.hasUnsubscribeLink : hasAddress(seen.text, brand, html)
  })
  return { kind, place: place ?? 'end', isTemplate }
}

function visibleOf(html: string, { companyAddress }: Brand, isOurs = false): VisibleHtml {
  const mark = unsubscribeMark(html)
  const filled = html.replace(UNSUBSCRIBE_TAG, mark).replace(ADDRESS_TAG, () => escapeHtml(companyAddress))
  return readVisibleHtml(filled, mark, isOurs)
}

/** @returns the footer, which contains merge tags and may be empty, and the index of `html` to insert it at */
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
 * The footer of a plain text.
 *
 * @param language of the mail, two letters
 * @returns lines with merge tags, separated by line feeds; empty if nothing is missing
 */
export function complianceText(text: string, brand: Brand, language: string): string {
  const kind = text.search(UNSUBSCRIBE_TAG) < 0 ? 'added' : textHasAddress(text, brand) ? 'kept' : 'completed'
  const texts = LANGUAGES[language] ?? ENGLISH
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

/** Every recipient must get the footer: if `</body>` is inside a block or tag, the footer goes to the very end. */
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

/** Ignores line breaks, commas, case, and whether an ampersand has spaces around it. */
function squeezed(text: string): string {
  return text
    .replace(/[\s,]+/g, ' ')
    .replace(/ ?& ?/g, ' & ')
    .trim()
    .toLowerCase()
}

function footerFor(kind: FooterCase, html: string, brand: Brand): string {
  const { companyName, companyAddress, attribution } = brand
  const isNamed = companyName !== '' || companyAddress !== ''
  const texts = LANGUAGES[languageOf(html)] ?? ENGLISH
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

/** This grey is legible on white and on black. Without a background colour, dark mode leaves it unchanged. */
const TEXT_STYLE = 'font-family:Arial,Helvetica,sans-serif;font-size:12px;line-height:18px;color:#777777;'
const LINK_STYLE = 'color:#777777;text-decoration:underline;'

/** A table, because Outlook ignores widths on anything else; `max-width` is for all other clients. */
function table(lines: readonly string[], width: number, direction: 'ltr' | 'rtl'): string {
  return (
    `<table role="presentation" dir="${direction}" align="center" width="100%" cellpadding="0" cellspacing="0" border="0"` +
    ` style="max-width:${width}px;margin:0 auto;"><tr><td align="center" style="padding:24px 16px;${TEXT_STYLE}">` +
    `${lines.join('<br>')}</td></tr></table>`
  )
}

const USUAL_WIDTH = 600

/** The mail's column width: the most frequent one in its markup, within 320 to 1,000 px. */
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

/** Two letters; English if the mail does not declare a language. */
export function languageOf(html: string): string {
  return /<html\b[^<>]{0,2000}?\slang\s*=\s*["']?([a-z]{2})\b/i.exec(html)?.[1]?.toLowerCase() ?? 'en'
}
