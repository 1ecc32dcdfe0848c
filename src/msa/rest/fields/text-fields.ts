/**
 * Reads subject, html, text and tags of a message, as far as a schema cannot: characters, and size in octets.
 *
 * Called by `content-fields.ts`. Texts are of whole characters: whoever reads a request refuses half a surrogate pair.
 * Pure. Fails: AppError validation_error with the field's path, and no_content.
 */
import { AppError } from '../../../core/errors.js'
import { formatSize } from '../../../core/units.js'
import { hasHeaderBreak, stripTags } from '../../../mail/compose/header-field.js'
import { invalidField, refuseControls } from './field-fault.js'
import { BODY_OCTETS, type MessageFields } from '../send-schema.js'

export function readSubject(text: string): string {
  if (hasHeaderBreak(text))
    throw invalidField('subject', 'subject contains line breaks or control characters')
  const subject = stripTags(text)
  if (subject.trim() === '') throw invalidField('subject', 'subject is empty once its HTML tags are stripped')
  return subject
}

/** One that is given twice is given once. */
export function readTags(tags: readonly string[]): string[] {
  tags.forEach((tag, index) => refuseControls(tag, `tags.${index}`))
  return [...new Set(tags)]
}

/** Empty text is no content. */
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
