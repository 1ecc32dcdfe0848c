/**
 * Checks the content of one message, single or of a batch, as a schema cannot: subject, text and their size in octets; headers
 * and attachments have files of their own.
 *
 * Called by `send-email.ts` and `batch-letters.ts` before anything is stored. Whatever passes here can be composed: nothing that
 * was accepted may turn out to be unbuildable. Texts are of whole characters: whoever reads a request refuses half a surrogate
 * pair. Pure. Fails: AppError validation_error with the field's path, and no_content.
 */
import { AppError } from '../../core/errors.js'
import { formatSize } from '../../core/units.js'
import type { HeaderField } from '../../mail/compose/compose.js'
import { hasHeaderBreak, stripTags } from '../../mail/compose/header-text.js'
import type { AttachmentFacts } from '../../messages/content-store.js'
import { invalidField, refuseControls } from './field-fault.js'
import { readAttachments } from './letter-attachments.js'
import { readLetterHeaders } from './letter-headers.js'
import { BODY_OCTETS, type MessageFields } from './send-schema.js'

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

/** @param messageLimit octets of the message, everything encoded */
export function readLetterFields(body: MessageFields, messageLimit: number): LetterFields {
  const subject = readSubject(body.subject)
  const headers = readLetterHeaders(body.headers ?? {})
  const tags = readTags(body.tags ?? [])
  const attachments = readAttachments(body.attachments ?? [])
  const letter = {
    subject,
    ...readContent(body),
    ...(tags.length === 0 ? {} : { tags }),
    ...(headers.length === 0 ? {} : { headers }),
    ...(attachments ? { attachments: attachments.facts, attached: attachments.octets } : {}),
  }
  refuseTooLarge(letter, messageLimit)
  return letter
}

function readSubject(text: string): string {
  if (hasHeaderBreak(text))
    throw invalidField('subject', 'subject contains line breaks or control characters')
  const subject = stripTags(text)
  if (subject.trim() === '') throw invalidField('subject', 'subject is empty once its HTML tags are stripped')
  return subject
}

/** One that is given twice is given once. */
function readTags(tags: readonly string[]): string[] {
  tags.forEach((tag, index) => refuseControls(tag, `tags.${index}`))
  return [...new Set(tags)]
}

/** Empty text is no content. */
function readContent(body: MessageFields): { html?: string; text?: string } {
  const content: { html?: string; text?: string } = {}
  for (const field of ['html', 'text'] as const) {
    const value = body[field]
    if (value === undefined || value === '') continue
    if (isLongerThan(BODY_OCTETS[field], value))
      throw invalidField(field, `${field} must have at most ${formatSize(BODY_OCTETS[field])} in UTF-8`)
    // RFC 5322 §4: no message holds one, and some databases do not either.
    if (value.includes('\0')) throw invalidField(field, `${field} contains a NUL character`)
    content[field] = value
  }
  if (content.html === undefined && content.text === undefined && body.template_id === undefined)
    throw new AppError('no_content', 'give html, text or template_id')
  return content
}

/** Counts only where it can matter: a UTF-16 code unit has three octets at most. */
function isLongerThan(octets: number, text: string): boolean {
  return 3 * text.length > octets && Buffer.byteLength(text) > octets
}

/** Encoded as it leaves: base64 makes four octets of three and breaks lines; text is counted as it is. */
function refuseTooLarge({ html = '', text = '', attached }: LetterFields, messageLimit: number): void {
  if (!attached) return
  const size = Math.ceil(attached.length / 57) * 78 + Buffer.byteLength(html) + Buffer.byteLength(text)
  if (size > messageLimit)
    throw invalidField(
      'attachments',
      `the message must have at most ${formatSize(messageLimit)}, attachments encoded; it has ${formatSize(size)}`,
    )
}
