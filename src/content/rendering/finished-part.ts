/**
 * Plans one body part of a relayed mail: the footer and tracking its recipients get.
 *
 * Called by the delivery threads for each part a reader sees (`mail/relay/readable-parts.ts`). The author's content is not a template
 * and stays unchanged, except for `{{unsubscribe_url}}` and related tags if the compliance footer was requested. Only ASCII is added
 * to HTML, which is valid in any charset. Pure. Never throws.
 */
import { complianceFooter, complianceText, neededFooter } from '../footer/compliance-footer.js'
import { AT_START, passValue, placeAt, readOn } from '../merge/html-place.js'
import type { MergeNode, MergePlace, MergeTemplate } from '../merge/merge-tree.js'
import { parseTemplate } from '../merge/parse-template.js'
import { trackTemplate } from '../tracking/track-template.js'
import { foldConstants } from './fold-constants.js'
import { brandTags, type MailBrand, type Merging } from './merging.js'

export interface FinishedPart {
  readonly template: MergeTemplate
  readonly hasUnsubscribeLink: boolean
}

export interface HtmlPlace {
  /** The mail's main part, which gets the footer. */
  readonly isMain: boolean
  /** The first HTML part, which gets the pixel. */
  readonly isFirst: boolean
}

/** The only tags replaced in relayed mail; `{{first_name}}` is literal text there. */
const MANAGED_TAG =
  /(\{\{\s*(?:unsubscribe_url|preferences_url|company_name|company_address)\s*(?:\|[\x20-\x7a|~]{0,900})?\}\})/

/** @param charactersOf decodes a piece whose characters are octets of another charset */
export function planFinishedHtml(
  html: string,
  { brand, hasFooter, tracking }: Merging,
  { isMain, isFirst }: HtmlPlace,
  charactersOf: (piece: string) => string,
): FinishedPart {
  const nodes = hasFooter && isMain ? footedHtml(html, brand, charactersOf) : [html]
  const template: MergeTemplate = { place: 'html', nodes, names: [] }
  const clicks = tracking?.clicks
  const tracked = trackTemplate(template, {
    opens: isFirst && tracking?.opens === true,
    ...(clicks && { clicks }),
  })
  return {
    template: { ...tracked, nodes: tracked.nodes.flatMap(node => asMeant(node, charactersOf)) },
    hasUnsubscribeLink: nodes.some(isUnsubscribeLink),
  }
}

/**
 * The words added to a plain text, including what its own tags may insert.
 *
 * @param text decoded
 * @param language of the mail, two letters
 */
export function wordsForText(text: string, { brand }: Merging, language: string): string {
  const own = MANAGED_TAG.test(text) ? `${brand.companyName}${brand.companyAddress}` : ''
  return complianceText(text, brand, language) + own
}

/**
 * @param text the main text as it is in the mail
 * @param characters the same, decoded
 * @param written converts added words to the text's charset
 */
export function planFinishedText(
  text: string,
  characters: string,
  { brand }: Merging,
  language: string,
  written: (words: string) => string,
): FinishedPart {
  const footer = complianceText(characters, brand, language)
  const lineEnd = !text.includes('\n') || text.includes('\r\n') ? '\r\n' : '\n'
  const isEnded = text === '' || text.endsWith('\n')
  // Preceded by an empty line; keeps whether the text ended with a line break.
  const lines = `${isEnded ? '' : '\n'}\n${footer}${isEnded ? '\n' : ''}`.replaceAll('\n', lineEnd)
  const nodes = [
    ...authored(text, brand, 'text', written),
    ...(footer === '' ? [] : parseTemplate(lines, 'text').nodes.map(node => inForm(node, written))),
  ]
  return {
    template: { place: 'text', nodes, names: [] },
    hasUnsubscribeLink: nodes.some(isUnsubscribeLink),
  }
}

function footedHtml(
  html: string,
  brand: MailBrand,
  charactersOf: (piece: string) => string,
): readonly MergeNode[] {
  const { at, added } = complianceFooter(html, brand, neededFooter(charactersOf(html), brand, false))
  const footer = foldConstants(parseTemplate(added, 'html'), brandTags(brand)).nodes
  return [
    ...authored(html.slice(0, at), brand, 'html', inAscii),
    ...footer.map(node => inForm(node, inAscii)),
    ...authored(html.slice(at), brand, 'html', inAscii),
  ]
}

/** The author's text, with the tags we fill in. */
function authored(
  source: string,
  brand: MailBrand,
  place: MergePlace,
  written: (words: string) => string,
): readonly MergeNode[] {
  let cursor = AT_START
  const known = new Map<string, readonly MergeNode[]>()
  return source.split(MANAGED_TAG).flatMap((piece, index): readonly MergeNode[] => {
    if (index % 2 === 0) {
      if (place === 'html') cursor = readOn(cursor, piece)
      return piece === '' ? [] : [piece]
    }
    const here = placeAt(cursor)
    cursor = passValue(cursor)
    const name = `${here} ${piece}`
    const nodes = known.get(name) ?? managed(piece, brand, place, here).map(node => inForm(node, written))
    known.set(name, nodes)
    return nodes
  })
}

function managed(
  tag: string,
  brand: MailBrand,
  place: MergePlace,
  here: ReturnType<typeof placeAt>,
): readonly MergeNode[] {
  const { nodes, ...template } = parseTemplate(tag, place)
  const placed = nodes.map(node =>
    place === 'html' && typeof node !== 'string' && node.kind === 'value' ? { ...node, place: here } : node,
  )
  return foldConstants({ ...template, nodes: placed }, brandTags(brand)).nodes
}

function inForm(node: MergeNode, written: (words: string) => string): MergeNode {
  return typeof node === 'string' ? written(node) : node
}

/** For markup and already escaped text. */
function inAscii(html: string): string {
  // eslint-disable-next-line no-control-regex -- ASCII is what this is about
  return html.replace(/[^\x00-\x7f]/gu, character => `&#${character.codePointAt(0) ?? 0};`)
}

/** Decodes the target of a URL with non-ASCII octets. If it also has character references, the two cannot be told apart: not tracked. */
function asMeant(node: MergeNode, charactersOf: (piece: string) => string): readonly MergeNode[] {
  if (typeof node === 'string' || node.kind !== 'link' || node.url === undefined) return [node]
  const url = charactersOf(node.url)
  if (url === node.url) return [node]
  const hasReference = node.written.some(piece => typeof piece === 'string' && piece.includes('&#'))
  return hasReference ? node.written : [{ ...node, url }]
}

function isUnsubscribeLink(node: MergeNode): boolean {
  return (
    typeof node !== 'string' &&
    node.kind === 'value' &&
    node.lookup.of === 'root' &&
    node.lookup.name === 'unsubscribe_url'
  )
}
