/**
 * Plans a relayed mail that gets a footer or tracking: which octets stay, and what is rendered per recipient.
 *
 * Made in the delivery threads once per content (`mta/render.ts`). Attachments, signed or encrypted parts and all octets outside the
 * additions are unchanged. Pure.
 * Standards: RFC 2046 §5.1, RFC 2045 §5.1 (charset); RFC 2369 §2 (one List-Unsubscribe, so ours replaces the author's if the mail
 * has our link).
 * Never throws; mail that cannot be parsed is sent unchanged. Linear in the length of the message.
 */
import { languageOf } from '../footer/compliance-footer.js'
import type { MergeTemplate } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { renderTemplate, type RenderBounds } from '../merge/render-template.js'
import { planFinishedHtml, planFinishedText, wordsForText, type FinishedPart } from './finished-part.js'
import type { Merging } from './merging.js'
import { safeLabelValue } from '../../mail/mime/header-fields.js'
import { readMediaType, writeMediaType } from '../../mail/mime/media-type.js'
import type { MimeEntity } from '../../mail/mime/mime-structure.js'
import {
  decodePiece,
  encodePartText,
  needsUtf8Label,
  readPartText,
  makeExtensible,
  type PartText,
} from '../../mail/relay/part-text.js'
import { readReadableParts, type ReadablePart } from '../../mail/relay/readable-parts.js'

/** What is rendered for one recipient. */
export interface OwnTexts {
  readonly values: MergeValues
  /** List-Unsubscribe fields, each with its CRLF. */
  readonly unsubscribeFields: () => string
}

/** In order: octets that stay, and functions that render the rest. */
export type RelayedPlan = readonly (Buffer | ((own: OwnTexts) => Buffer))[]

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
    const { template, hasUnsubscribeLink } = planFinishedHtml(
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
    const words = wordsForText(characters, this.merging, language)
    const { part, written } = makeExtensible(words, read)
    const { template, hasUnsubscribeLink }: FinishedPart = planFinishedText(
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
  const put = ({ values }: OwnTexts): Buffer => {
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
  const put = ({ unsubscribeFields }: OwnTexts) => Buffer.from(unsubscribeFields(), 'latin1')
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
