/**
 * Plans a relayed mail that gets a footer or tracking: which octets stay, and what is rendered per recipient.
 *
 * Runs once per content in the delivery threads. Attachments, signed or encrypted parts and all octets outside the additions are unchanged.
 * The author's content is not a template, except for `{{unsubscribe_url}}` and related tags if the compliance footer was requested. Only
 * ASCII is added to HTML, which is valid in any charset. Pure.
 * Standards: RFC 2046 §5.1, RFC 2045 §5.1 (charset); RFC 2369 §2 (one List-Unsubscribe, so ours replaces the author's if the mail has our
 * link). Never throws; mail that cannot be parsed is sent unchanged. Linear in the length of the message.
 */
import { safeLabelValue } from '../../mail/mime/header-fields.js'
import { readMediaType, writeMediaType } from '../../mail/mime/media-type.js'
import type { MimeEntity } from '../../mail/mime/mime-structure.js'
import {
  decodePiece,
  encodePartText,
  makeExtensible,
  needsUtf8Label,
  type PartText,
  type ReadablePart,
  readPartText,
  readReadableParts,
} from '../../mail/relay/readable-parts.js'
import { complianceFooter, complianceText, languageOf, neededFooter } from '../footer/compliance-footer.js'
import { AT_START, passValue, placeAt, readOn } from '../merge/html-place.js'
import type { MergeNode, MergePlace, MergeTemplate } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate, type RenderBounds } from '../merge/render-template.js'
import { trackTemplate } from '../tracking/track-template.js'
import { foldConstants } from './fold-constants.js'
import { brandTags, type MailBrand, type Merging } from './merging.js'

export interface RecipientTexts {
  readonly values: MergeValues
  /** List-Unsubscribe fields, each with its CRLF. */
  readonly unsubscribeFields: () => string
}

/** In order: octets that stay, and functions that render the rest. */
export type RelayedPlan = readonly (Buffer | ((own: RecipientTexts) => Buffer))[]

interface Edit {
  readonly start: number
  readonly end: number
  readonly put: RelayedPlan[number]
}

interface PlannedPart {
  readonly edits: readonly Edit[]
  readonly hasUnsubscribeLink: boolean
}

/** A relayed mail has no loops, and its own size is already bounded. */
const NO_BOUNDS: RenderBounds = { steps: Infinity, units: Infinity }
const NOTHING = Buffer.alloc(0)

/** @param isMarketing adds List-Unsubscribe fields even without an unsubscribe link */
export function planRelayed(message: Buffer, merging: Merging, isMarketing: boolean): RelayedPlan {
  const readable = readReadableParts(message)
  if (!readable || readable.isProtected) return [message]
  const parts = new PartPlanner(message, merging).plan(readable.parts)
  const hasLink = parts.some(({ hasUnsubscribeLink }) => hasUnsubscribeLink)
  const edits = [...parts.flatMap(part => part.edits), ...fieldEdits(readable.root, hasLink, isMarketing)]
  return cut(message, edits)
}

class PartPlanner {
  private readonly message: Buffer
  private readonly merging: Merging

  constructor(message: Buffer, merging: Merging) {
    this.message = message
    this.merging = merging
  }

  plan(parts: readonly ReadablePart[]): PlannedPart[] {
    const first = parts.find(({ kind }) => kind === 'html')
    const html = first && readPartText(this.message, first.entity)
    const language = languageOf(html?.text ?? '')
    return parts.flatMap(part => {
      const read = part === first ? html : readPartText(this.message, part.entity)
      if (!read) return []
      return part.kind === 'html'
        ? [this.planHtml(part, read, part === first)]
        : this.planText(part, read, language)
    })
  }

  private planHtml({ entity, isMain }: ReadablePart, read: PartText, isFirst: boolean): PlannedPart {
    const { template, hasUnsubscribeLink } = planHtmlPart(
      read.text,
      this.merging,
      { isMain, isFirst },
      piece => decodePiece(piece, read),
    )
    return { edits: partEdits(entity, read, template, ''), hasUnsubscribeLink }
  }

  private planText({ entity, isMain }: ReadablePart, read: PartText, language: string): PlannedPart[] {
    if (!isMain || !this.merging.hasFooter) return []
    const characters = decodePiece(read.text, read)
    const words = addedWords(characters, this.merging, language)
    const { part, written } = makeExtensible(words, read)
    const { template, hasUnsubscribeLink }: PlannedText = planTextPart(
      part.text,
      characters,
      this.merging,
      language,
      written,
    )
    return [{ edits: partEdits(entity, part, template, words), hasUnsubscribeLink }]
  }
}

/** @param words added words, which may not be ASCII */
function partEdits(entity: MimeEntity, part: PartText, template: MergeTemplate, words: string): Edit[] {
  const { nodes } = template
  // Unchanged: no tags found, nothing added.
  if (nodes.length <= 1 && nodes.every(node => node === part.text)) return []
  const { bodyStart, end, start } = entity
  const isWhole = start === 0
  const put = ({ values }: RecipientTexts): Buffer => {
    const octets = encodePartText(renderTemplate(template, values, NO_BOUNDS), part, entity)
    // Encoded base64 may lack the message's final line break.
    return isWhole && octets.at(-1) !== 0x0a ? Buffer.concat([octets, Buffer.from('\r\n')]) : octets
  }
  return [{ start: bodyStart, end, put }, ...(needsUtf8Label(part, words) ? [labelEdit(entity)] : [])]
}

function labelEdit({ fields, type, start, headerEnd }: MimeEntity): Edit {
  const field = fields.find(({ name }) => name === 'content-type')
  const media = field ? readMediaType(safeLabelValue(field)) : type
  const label = writeMediaType('Content-Type', {
    value: type.value,
    parameters: [...media.parameters.filter(([name]) => !/^charset(\*|$)/.test(name)), ['charset', 'utf-8']],
  })
  const hasVersion = start > 0 || fields.some(({ name }) => name === 'mime-version')
  const put = Buffer.from(`${label}\r\n${hasVersion ? '' : 'MIME-Version: 1.0\r\n'}`, 'latin1')
  return field
    ? { start: start + field.start, end: start + field.end, put }
    : { start: headerEnd, end: headerEnd, put }
}

/** If the mail has our unsubscribe link, the author's own field would bypass it. */
function fieldEdits({ fields, headerEnd }: MimeEntity, hasLink: boolean, isMarketing: boolean): Edit[] {
  const own = fields.filter(({ name }) => name === 'list-unsubscribe' || name === 'list-unsubscribe-post')
  if (!hasLink && (!isMarketing || own.length > 0)) return []
  const put = ({ unsubscribeFields }: RecipientTexts) => Buffer.from(unsubscribeFields(), 'latin1')
  return [
    ...own.map(({ start, end }) => ({ start, end, put: NOTHING })),
    { start: headerEnd, end: headerEnd, put },
  ]
}

function cut(message: Buffer, edits: Edit[]): RelayedPlan {
  if (edits.length === 0) return [message]
  edits.sort((one, other) => one.start - other.start || one.end - other.end)
  const plan: RelayedPlan[number][] = []
  let at = 0
  for (const { start, end, put } of edits) {
    plan.push(message.subarray(at, start), put)
    at = end
  }
  plan.push(message.subarray(at))
  return plan
}

interface PlannedText {
  readonly template: MergeTemplate
  readonly hasUnsubscribeLink: boolean
}

interface HtmlPlace {
  /** The mail's main part, which gets the footer. */
  readonly isMain: boolean
  /** The first HTML part, which gets the pixel. */
  readonly isFirst: boolean
}

/** The only tags replaced in relayed mail; `{{first_name}}` is literal text there. */
const MANAGED_TAG =
  /(\{\{\s*(?:unsubscribe_url|preferences_url|company_name|company_address)\s*(?:\|[\x20-\x7a|~]{0,900})?\}\})/

/** @param charactersOf decodes a piece whose characters are octets of another charset */
export function planHtmlPart(
  html: string,
  { brand, hasFooter, tracking }: Merging,
  { isMain, isFirst }: HtmlPlace,
  charactersOf: (piece: string) => string,
): PlannedText {
  const nodes = hasFooter && isMain ? footedHtml(html, brand, charactersOf) : [html]
  const template: MergeTemplate = { place: 'html', nodes, names: [] }
  const clicks = tracking?.clicks
  const tracked = trackTemplate(template, {
    opens: isFirst && tracking?.opens === true,
    ...(clicks && { clicks }),
  })
  return {
    template: { ...tracked, nodes: tracked.nodes.flatMap(node => withDecodedUrl(node, charactersOf)) },
    hasUnsubscribeLink: nodes.some(isUnsubscribeLink),
  }
}

/**
 * The words added to a plain text, including what its own tags may insert.
 *
 * @param text decoded
 * @param language of the mail, two letters
 */
function addedWords(text: string, { brand }: Merging, language: string): string {
  const own = MANAGED_TAG.test(text) ? `${brand.companyName}${brand.companyAddress}` : ''
  return complianceText(text, brand, language) + own
}

/**
 * @param text the main text as stored in the mail
 * @param characters the same, decoded
 * @param written converts added words to the text's charset
 */
function planTextPart(
  text: string,
  characters: string,
  { brand }: Merging,
  language: string,
  written: (words: string) => string,
): PlannedText {
  const footer = complianceText(characters, brand, language)
  const lineEnd = !text.includes('\n') || text.includes('\r\n') ? '\r\n' : '\n'
  const isEnded = text === '' || text.endsWith('\n')
  // Preceded by an empty line; keeps whether the text ended with a line break.
  const lines = `${isEnded ? '' : '\n'}\n${footer}${isEnded ? '\n' : ''}`.replaceAll('\n', lineEnd)
  const nodes = [
    ...authored(text, brand, 'text', written),
    ...(footer === '' ? [] : parseTemplate(lines, 'text').nodes.map(node => encoded(node, written))),
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
    ...footer.map(node => encoded(node, inAscii)),
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
    const nodes = known.get(name) ?? managed(piece, brand, place, here).map(node => encoded(node, written))
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

function encoded(node: MergeNode, written: (words: string) => string): MergeNode {
  return typeof node === 'string' ? written(node) : node
}

function inAscii(html: string): string {
  // eslint-disable-next-line no-control-regex -- ASCII is what this is about
  return html.replace(/[^\x00-\x7f]/gu, character => `&#${character.codePointAt(0) ?? 0};`)
}

/** Decodes the target of a URL with non-ASCII octets. If it also has character references, it is not tracked. */
function withDecodedUrl(node: MergeNode, charactersOf: (piece: string) => string): readonly MergeNode[] {
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
