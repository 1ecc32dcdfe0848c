/**
 * Reads a message's attachments: octets, safe file names, and media types, which default to that of the name's extension.
 *
 * Called by `content-fields.ts`. Pure. Standards: RFC 2183 §2.3 (a file name is one component of a path), RFC 2046 §5.1, §5.2
 * (container types).
 * Fails: AppError validation_error with the field's path.
 */
import { given } from '../../../core/given.js'
import { lookup } from 'mime-types'
import { toUSVString } from 'node:util'
import type { AttachmentFacts } from '../../../messages/content-store.js'
import { decodeBase64, decodeLongBase64, isLongBase64 } from './base64-field.js'
import { invalidField, refuseControls } from './field-fault.js'
import type { MessageFields } from '../send-schema.js'

export interface ReadAttachments {
  readonly facts: readonly AttachmentFacts[]
  /** All attachments' octets, concatenated. */
  readonly octets: Buffer
}

type AttachmentField = NonNullable<MessageFields['attachments']>[number]
/** Long content is already decoded. */
type DecodedField = Omit<AttachmentField, 'content'> & { readonly content: string | Buffer }
/** A message whose long attachments are decoded. */
export type DecodedFields = Omit<MessageFields, 'attachments'> & {
  readonly attachments?: readonly DecodedField[]
}

/** Type of unknown content. */
const ANYTHING = 'application/octet-stream'

const CONTENT_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(?:; ?[a-z0-9-]{1,32}=(?:[a-z0-9!#$&^_.+-]{1,64}|"[a-z0-9 !#$&^_.+/:-]{0,64}")){0,4}$/i

/** Types made of parts, which a file is not; message/rfc822 is the exception. */
const CONTAINER = /^(?:multipart|message)\/(?!rfc822(?:;|$))/i

/** Characters that reorder displayed text: `invoice<U+202E>fdp.exe` reads as `invoiceexe.pdf`. */
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Decodes long content, yielding to the event loop, and leaves the rest to `readAttachments`. */
export async function withLongDecoded<F extends MessageFields>(body: F): Promise<F & DecodedFields> {
  const { attachments = [] } = body
  if (!attachments.some(({ content }) => isLongBase64(content))) return body
  const decoded: DecodedField[] = []
  for (const [index, { content, ...field }] of attachments.entries()) {
    const isLong = isLongBase64(content)
    decoded.push({
      ...field,
      content: isLong ? await decodeLongBase64(content, `attachments.${index}.content`) : content,
    })
  }
  return { ...body, attachments: decoded }
}

export function readAttachments(fields: readonly DecodedField[]): ReadAttachments | undefined {
  if (fields.length === 0) return undefined
  const read = fields.map((field, index) => readAttachment(field, `attachments.${index}`))
  const [only, ...others] = read.map(({ octets }) => octets)
  const octets = only && others.length === 0 ? only : Buffer.concat(read.map(({ octets }) => octets))
  return { facts: read.map(({ facts }) => facts), octets }
}

function readAttachment(field: DecodedField, path: string): { facts: AttachmentFacts; octets: Buffer } {
  const filename = readFilename(field.filename, `${path}.filename`)
  const contentType = readContentType(field.content_type, filename, `${path}.content_type`)
  const contentId = field.content_id?.replace(/^<(.*)>$/s, '$1')
  if (contentId !== undefined && !/^[\x21\x23-\x3b\x3d\x3f-\x7e]{1,200}$/.test(contentId))
    throw invalidField(
      `${path}.content_id`,
      `${path}.content_id must be 1 to 200 ASCII characters without spaces`,
    )
  const { content } = field
  const octets = typeof content === 'string' ? decodeBase64(content, `${path}.content`) : content
  const named = { filename, contentType, ...given({ contentId }) }
  return { facts: { ...named, size: octets.length }, octets }
}

/** Removes the client's path: `C:\files\report.pdf` becomes `report.pdf`. */
function readFilename(text: string, path: string): string {
  refuseControls(text, path)
  const name = toUSVString(text).replace(BIDI_CONTROLS, '').trim().split(/[/\\]/).at(-1)?.trim() ?? ''
  if (/^\.{0,2}$/.test(name)) throw invalidField(path, `${path} is not a file name`)
  return name
}

function readContentType(given: string | undefined, filename: string, path: string): string {
  if (given === undefined || given === '') return typeOfName(filename)
  if (!CONTENT_TYPE.test(given)) throw invalidField(path, `${path} is not a media type, e.g. application/pdf`)
  if (CONTAINER.test(given))
    throw invalidField(path, `${path} must not be a multipart or message type other than message/rfc822`)
  return given
}

function typeOfName(filename: string): string {
  const type = filename.includes('.') && lookup(filename)
  return type === false || CONTAINER.test(type) ? ANYTHING : type
}
