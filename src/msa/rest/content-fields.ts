/**
 * Validates the content fields of one message. `read-message.ts` then checks the merge tags of html and text.
 *
 * Content that passes can always be composed, so no accepted mail turns out to be unbuildable. Unpaired surrogates were already rejected
 * when the request was parsed. Pure. Throws AppError validation_error with the field's path, and no_content.
 */
import { formatSize } from '../../core/units.js'
import { type HeaderField, headerFault } from '../../mail/compose/compose.js'
import { validText, type MergeText } from '../../content/merge/merge-text.js'
import type { AttachmentFacts } from '../../messages/content-store.js'
import { readAttachments, type DecodedFields } from './attachment-fields.js'
import { invalidField, refuseControls, BODY_OCTETS, type MessageFields } from './send-schema.js'
import { AppError } from '../../core/errors.js'
import { isInvitation } from '../../mail/compose/attachment-part.js'
import { hasHeaderBreak, stripTags } from '../../mail/mime/write-header-field.js'
import { toUSVString } from 'node:util'
import { isServerField } from '../../mail/server-fields.js'
import type { MergeData } from '../../content/rendering/merging.js'

export interface ReadContent {
  /** Its merge tags parsed. */
  readonly subject: MergeText
  readonly html?: string
  readonly text?: string
  /** Stored as they are. */
  readonly others: OtherFields
  /** All attachments' octets, concatenated. */
  readonly attached: Buffer | undefined
}

interface OtherFields {
  readonly tags?: readonly string[]
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly AttachmentFacts[]
}

/** @param messageLimit limit of the encoded message, octets */
export function readContentFields(body: DecodedFields, messageLimit: number): ReadContent {
  const subject = validText(readSubject(body.subject), 'subject', 'subject')
  const headers = readHeaderFields(body.headers ?? {})
  const tags = readTags(body.tags ?? [])
  const attachments = readAttachments(body.attachments ?? [])
  const texts = readTexts(body)
  const others = {
    ...(tags.length === 0 ? {} : { tags }),
    ...(headers.length === 0 ? {} : { headers }),
    ...(attachments ? { attachments: attachments.facts } : {}),
  }
  const read = { subject, ...texts, others, attached: attachments?.octets }
  refuseTooLarge(read, messageLimit)
  return read
}

/** Size as sent, an invitation twice: base64 makes 78 characters, line break included, of 57 octets; text is counted unencoded. */
function refuseTooLarge({ html = '', text = '', others, attached }: ReadContent, messageLimit: number): void {
  if (!attached) return
  const invitation = others.attachments?.find(isInvitation)?.size ?? 0
  const size =
    Math.ceil((attached.length + invitation) / 57) * 78 + Buffer.byteLength(html) + Buffer.byteLength(text)
  if (size > messageLimit)
    throw invalidField(
      'attachments',
      `the message must have at most ${formatSize(messageLimit)}, attachments encoded; it has ${formatSize(size)}`,
    )
}

export function readSubject(text: string): string {
  if (hasHeaderBreak(text))
    throw invalidField('subject', 'subject contains line breaks or control characters')
  const subject = stripTags(text)
  if (subject.trim() === '') throw invalidField('subject', 'subject is empty once its HTML tags are stripped')
  return subject
}

/** Removes duplicates. */
export function readTags(tags: readonly string[]): string[] {
  tags.forEach((tag, index) => refuseControls(tag, `tags.${index}`))
  return [...new Set(tags)]
}

/** Empty text counts as absent. */
export function readTexts(body: Pick<MessageFields, 'html' | 'text' | 'template_id'>): {
  html?: string
  text?: string
} {
  const content: { html?: string; text?: string } = {}
  for (const field of ['html', 'text'] as const) {
    const value = body[field]
    if (value === undefined || value === '') continue
    if (isLongerThan(BODY_OCTETS[field], value))
      throw invalidField(field, `${field} must have at most ${formatSize(BODY_OCTETS[field])} in UTF-8`)
    // RFC 5322 §4: NUL is not allowed in messages; some databases reject it too.
    if (value.includes('\0')) throw invalidField(field, `${field} contains a NUL character`)
    content[field] = value
  }
  if (content.html === undefined && content.text === undefined && body.template_id === undefined)
    throw new AppError('no_content', 'give html, text or template_id')
  return content
}

/** Measures only if needed: a UTF-16 unit takes at most three octets. */
function isLongerThan(octets: number, text: string): boolean {
  return 3 * text.length > octets && Buffer.byteLength(text) > octets
}

/** Characters of a header field. */
const MAX_FIELD = 2_000
/** Of a thread's ids, those at each end are what mail programs sort by (RFC 5322 §3.6.4 lets the middle be dropped). */
const KEPT_REFERENCES = 10

export function readHeaderFields(headers: Readonly<Record<string, string>>): HeaderField[] {
  const seen = new Set<string>()
  return Object.entries(headers).map(([name, text]) => {
    const path = `headers.${name}`
    if (isServerField(name)) throw invalidField(path, `the header ${name} is set by the server`)
    const lower = name.toLowerCase()
    if (seen.has(lower)) throw invalidField(path, `the header ${name} is given twice`)
    seen.add(lower)
    const written = toUSVString(text)
    const isThread = lower === 'references'
    if (!isThread && written.length > MAX_FIELD)
      throw invalidField(path, `${path} must have at most ${MAX_FIELD} characters`)
    const value = isThread ? readReferences(written) : written
    const fault = headerFault({ name, value })
    if (fault !== undefined) throw invalidField(path, fault)
    return { name, value }
  })
}

function readReferences(text: string): string {
  if (text.length <= MAX_FIELD) return text
  const ids = text.split(/[ \t]+/).filter(id => id !== '')
  const kept =
    ids.length <= 2 * KEPT_REFERENCES
      ? ids
      : [...ids.slice(0, KEPT_REFERENCES), ...ids.slice(-KEPT_REFERENCES)]
  return kept.join(' ')
}

/** Characters of JSON; the same as the limit of html. */
const MAX_DATA = 256 * 1_024
/** Over all levels; 10,000 take a few milliseconds to check, and rendering is limited to 20,000 steps anyway. */
const MAX_VALUES = 10_000

/** @throws AppError validation_error */
export function readTemplateData({ template_data: data }: MessageFields): MergeData | undefined {
  if (data === undefined) return undefined
  const fault = findFault(data)
  if (fault !== undefined) throw invalidField('template_data', `template_data ${fault}`)
  return isEmpty(data) ? undefined : data
}

function isEmpty(data: MergeData): boolean {
  for (const _ in data) return false
  return true
}

const TOO_LARGE = `must have at most ${formatSize(MAX_DATA)} as JSON`
const TOO_MANY = `must have at most ${MAX_VALUES} values`

/** Stops at the limits, so that oversized data is neither traversed nor serialized. */
function findFault(data: MergeData): string | undefined {
  let [octets, values] = [MAX_DATA, MAX_VALUES]
  let hasNul = false
  const waiting: unknown[] = [data]
  while (waiting.length > 0) {
    const value = waiting.pop()
    octets -= 1
    if (typeof value === 'string') {
      octets -= value.length
      hasNul ||= value.includes('\0')
    } else if (typeof value === 'object' && value !== null) {
      const keys = Object.keys(value)
      values -= keys.length
      if (values < 0) return TOO_MANY
      for (const key of keys) {
        octets -= Array.isArray(value) ? 1 : key.length
        waiting.push((value as Record<string, unknown>)[key])
      }
    }
    if (octets < 0) return TOO_LARGE
  }
  // RFC 5322 §4: NUL is not allowed in messages.
  if (hasNul) return 'contains a NUL character'
  return JSON.stringify(data).length > MAX_DATA ? TOO_LARGE : undefined
}
