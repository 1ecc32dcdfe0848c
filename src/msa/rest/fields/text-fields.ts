/**
 * Validates subject, html, text and tags beyond what the schema checks: control characters, and size in octets.
 *
 * Called by `content-fields.ts`. Unpaired surrogates were already rejected when the request was parsed. Pure.
 * Fails: AppError validation_error with the field's path, and no_content.
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
