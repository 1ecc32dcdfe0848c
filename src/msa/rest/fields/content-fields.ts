/**
 * Validates the content of one message, single or of a batch, and its total size.
 *
 * Called by `send-email.ts` and `batch-messages.ts` before anything is stored. Content that passes can always be composed, so that
 * no accepted mail turns out to be unbuildable. Pure. Fails: AppError validation_error with the field's path, and no_content.
 */
import { hasTags } from '../../../content/rendering/mail-plan.js'
import { formatSize } from '../../../core/units.js'
import type { HeaderField } from '../../../mail/compose/compose.js'
import type { AttachmentFacts } from '../../../messages/content-store.js'
import { readableName, requireReadable, type KnownReadable } from '../../merged-content.js'
import { readAttachments, type DecodedFields } from './attachment-fields.js'
import { invalidField } from './field-fault.js'
import { readHeaderFields } from './header-fields.js'
import { readSubject, readTags, readTexts } from './text-fields.js'

/** A message's content in its stored form. */
export interface ContentFields {
  readonly subject: string
  readonly html?: string
  readonly text?: string
  readonly tags?: readonly string[]
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly AttachmentFacts[]
}

export interface ReadContent {
  readonly content: ContentFields
  /** All attachments' octets, concatenated. */
  readonly attached: Buffer | undefined
}

/**
 * @param messageLimit limit of the encoded message, octets
 * @param readable results of sources already parsed; this message's are added
 */
export function readContentFields(
  body: DecodedFields,
  messageLimit: number,
  readable: KnownReadable = new Map(),
): ReadContent {
  const subject = readSubject(body.subject)
  requireReadable(subject, 'subject', 'subject')
  const headers = readHeaderFields(body.headers ?? {})
  const tags = readTags(body.tags ?? [])
  const attachments = readAttachments(body.attachments ?? [])
  const texts = readTexts(body)
  for (const field of ['html', 'text'] as const) {
    const source = texts[field]
    if (source === undefined || !hasTags(source)) continue
    const known = readable.get(readableName(field, source))
    if (typeof known === 'string') throw invalidField(field, `${field}: ${known}`)
    if (known === undefined) requireReadable(source, field, field)
    readable.set(readableName(field, source), null)
  }
  const content = {
    subject,
    ...texts,
    ...(tags.length === 0 ? {} : { tags }),
    ...(headers.length === 0 ? {} : { headers }),
    ...(attachments ? { attachments: attachments.facts } : {}),
  }
  const read = { content, attached: attachments?.octets }
  refuseTooLarge(read, messageLimit)
  return read
}

/** Size as sent: base64 makes 78 characters, line break included, of 57 octets; text is counted unencoded. */
function refuseTooLarge({ content, attached }: ReadContent, messageLimit: number): void {
  if (!attached) return
  const { html = '', text = '' } = content
  const size = Math.ceil(attached.length / 57) * 78 + Buffer.byteLength(html) + Buffer.byteLength(text)
  if (size > messageLimit)
    throw invalidField(
      'attachments',
      `the message must have at most ${formatSize(messageLimit)}, attachments encoded; it has ${formatSize(size)}`,
    )
}
