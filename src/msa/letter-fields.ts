/**
 * Checks the fields of one message, single or of a batch, that a schema cannot check: what can be written into a header,
 * sizes in octets, attachments.
 *
 * Called by `send-email.ts` and `batch-letters.ts` before anything is stored. Pure. Fails: AppError validation_error with the
 * field's path, and no_content.
 */
import { AppError } from '../core/errors.js'
import { formatSize } from '../core/units.js'
import { normalizedAddress, parseAddress, readAddress } from '../mail/address.js'
import { headerFault, type Addressees, type HeaderField } from '../mail/compose.js'
import { hasHeaderBreak, stripTags } from '../mail/header-text.js'
import type { AttachmentFacts } from '../queue/content-store.js'
import type { MessageFields } from './send-schema.js'

/** The content of a message as it is stored. */
export interface LetterFields {
  readonly subject: string
  readonly html?: string
  readonly text?: string
  readonly tags?: readonly string[]
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly AttachmentFacts[]
  /** Of all attachments, one after the other. */
  readonly attached?: Buffer
}

const BODY_BYTES = 256 * 1_024

/** @param messageLimit octets of the message, everything encoded */
export function readLetterFields(body: MessageFields, messageLimit: number): LetterFields {
  const subject = readSubject(body.subject)
  const headers = readHeaders(body.headers ?? {})
  body.tags?.forEach((tag, index) => refuseControls(tag, `tags.${index}`))
  const attachments = (body.attachments ?? []).map(readAttachment)
  const content = readContent(body)
  const letter = {
    subject,
    ...content,
    ...(body.tags === undefined || body.tags.length === 0 ? {} : { tags: body.tags }),
    ...(headers.length === 0 ? {} : { headers }),
    ...(attachments.length === 0
      ? {}
      : {
          attachments: attachments.map(({ facts }) => facts),
          attached: Buffer.concat(attachments.map(({ octets }) => octets)),
        }),
  }
  refuseTooLarge(letter, messageLimit)
  return letter
}

function readSubject(text: string): string {
  if (hasHeaderBreak(text)) throw invalid('subject', 'subject contains line breaks or control characters')
  return stripTags(text)
}

/** Empty text is no content. */
function readContent(body: MessageFields): { html?: string; text?: string } {
  const content: { html?: string; text?: string } = {}
  for (const field of ['html', 'text'] as const) {
    const value = body[field]
    if (value === undefined || value === '') continue
    if (Buffer.byteLength(value) > BODY_BYTES) throw invalid(field, `${field} must have at most 256 KB`)
    content[field] = value
  }
  if (content.html === undefined && content.text === undefined && body.template_id === undefined)
    throw new AppError('no_content', 'give html, text or template_id')
  return content
}

/** Fields that the server or the servers on the way write; all `List-Unsubscribe`, `Content-`, `Resent-` ones are as well. */
const OWNED = new Set(
  (
    'from sender reply-to to cc bcc subject date message-id mime-version return-path received received-spf ' +
    'dkim-signature domainkey-signature authentication-results delivered-to errors-to ' +
    'disposition-notification-to feedback-id x-postroad-id'
  ).split(' '),
)
const OWNED_FAMILY = /^(?:list-unsubscribe|content-|resent-|arc-|x-postroad-)/

function readHeaders(headers: Readonly<Record<string, string>>): HeaderField[] {
  const seen = new Set<string>()
  return Object.entries(headers).map(([name, value]) => {
    const path = `headers.${name}`
    const lower = name.toLowerCase()
    if (OWNED.has(lower) || OWNED_FAMILY.test(lower))
      throw invalid(path, `the header ${name} is set by the server`)
    if (seen.has(lower)) throw invalid(path, `the header ${name} is given twice`)
    seen.add(lower)
    const fault = headerFault({ name, value })
    if (fault !== undefined) throw invalid(path, fault)
    return { name, value }
  })
}

type AttachmentField = NonNullable<MessageFields['attachments']>[number]

const CONTENT_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(?:; ?[a-z0-9-]{1,32}=(?:[a-z0-9!#$&^_.+-]{1,64}|"[a-z0-9 !#$&^_.+/:-]{0,64}")){0,4}$/i

function readAttachment(
  { filename, content, content_type: contentType = 'application/octet-stream', content_id }: AttachmentField,
  index: number,
): { facts: AttachmentFacts; octets: Buffer } {
  const path = `attachments.${index}`
  refuseControls(filename, `${path}.filename`)
  if (!CONTENT_TYPE.test(contentType) || /^(?:multipart|message)\//i.test(contentType))
    throw invalid(`${path}.content_type`, `${path}.content_type is no media type that an attachment can have`)
  const contentId = content_id?.replace(/^<(.*)>$/s, '$1')
  if (contentId !== undefined && !/^[\x21\x23-\x3b\x3d\x3f-\x7e]{1,200}$/.test(contentId))
    throw invalid(`${path}.content_id`, `${path}.content_id must be 1 to 200 ASCII characters without spaces`)
  const octets = decodeBase64(content)
  if (!octets) throw invalid(`${path}.content`, `${path}.content is not base64`)
  const facts = {
    filename,
    contentType,
    ...(contentId === undefined ? {} : { contentId }),
    size: octets.length,
  }
  return { facts, octets }
}

/** RFC 4648 §4, line breaks allowed; Node's own decoder takes anything. */
function decodeBase64(text: string): Buffer | undefined {
  const compact = /[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, '') : text
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return undefined
  return Buffer.from(compact, 'base64')
}

/** Encoded as it leaves: base64 makes four octets of three and breaks lines; text is counted as it is. */
function refuseTooLarge({ html = '', text = '', attached }: LetterFields, messageLimit: number): void {
  if (!attached) return
  const size = Math.ceil(attached.length / 57) * 78 + Buffer.byteLength(html) + Buffer.byteLength(text)
  if (size > messageLimit)
    throw invalid(
      'attachments',
      `the message must have at most ${formatSize(messageLimit)}, attachments encoded; it has ${formatSize(size)}`,
    )
}

function refuseControls(text: string, path: string): void {
  if (hasHeaderBreak(text)) throw invalid(path, `${path} contains control characters`)
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}

/** Where a mail goes, as asked: every address once in the order to, cc, bcc. */
export interface Envelope {
  readonly recipients: readonly string[]
  /** Absent where each recipient sees itself alone. */
  readonly addressees?: Addressees
}

interface EnvelopeFields {
  readonly to: string | readonly string[]
  readonly cc?: string | readonly string[]
  readonly bcc?: string | readonly string[]
}

const MOST_RECIPIENTS = 100

/**
 * An invalid address fails the request where it stands alone; in a list it is skipped. Control characters always fail.
 *
 * @param isLenient skips an invalid address even where it stands alone, as in a batch
 */
export function readEnvelope({ to, cc = [], bcc = [] }: EnvelopeFields, isLenient = false): Envelope {
  const lists = [
    readList(to, 'to', isLenient),
    readList(cc, 'cc', isLenient),
    readList(bcc, 'bcc', isLenient),
  ] as const
  const recipients = lists.flat()
  if (recipients.length > MOST_RECIPIENTS)
    throw invalid('to', `to, cc and bcc must have at most ${MOST_RECIPIENTS} addresses together`)
  if (lists[1].length + lists[2].length === 0) return { recipients }
  return { recipients, addressees: { to: shown(lists[0]), cc: shown(lists[1]) } }
}

function readList(field: string | readonly string[], name: string, isLenient: boolean): readonly string[] {
  if (typeof field !== 'string') {
    field.forEach((text, index) => refuseControls(text, `${name}.${index}`))
    return field
  }
  refuseControls(field, name)
  const address = readAddress(field)
  if ('fault' in address && !isLenient) throw invalid(name, `${name} ${address.fault}`)
  return [field]
}

/** What is no address cannot stand in a header; what is named twice stands there once. */
function shown(texts: readonly string[]): string[] {
  const byName = new Map<string, string>()
  for (const text of texts) {
    const parsed = parseAddress(text)
    if (!parsed) continue
    const name = normalizedAddress(parsed.address)
    if (!byName.has(name)) byName.set(name, parsed.address)
  }
  return [...byName.values()]
}
