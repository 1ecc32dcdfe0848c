/**
 * Reads the attachments of a message: base64 in the forms that clients write, names that mean nothing to a file system, and a
 * media type, which the name tells where it is left out.
 *
 * Called by `content-fields.ts`. Pure. Standards: RFC 4648 §4, §5 (base64, base64url), RFC 2183 §2.3 (a file name is one
 * component of a path), RFC 2046 §5.1, §5.2 (types that carry other parts).
 * Fails: AppError validation_error with the field's path.
 */
import { given } from '../../../core/given.js'
import { lookup } from 'mime-types'
import { toUSVString } from 'node:util'
import type { AttachmentFacts } from '../../../messages/content-store.js'
import { invalidField, refuseControls } from './field-fault.js'
import type { MessageFields } from '../send-schema.js'

export interface ReadAttachments {
  readonly facts: readonly AttachmentFacts[]
  /** Of all of them, one after the other. */
  readonly octets: Buffer
}

type AttachmentField = NonNullable<MessageFields['attachments']>[number]

/** What is said of octets of which nothing is known. */
const ANYTHING = 'application/octet-stream'

const CONTENT_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(?:; ?[a-z0-9-]{1,32}=(?:[a-z0-9!#$&^_.+-]{1,64}|"[a-z0-9 !#$&^_.+/:-]{0,64}")){0,4}$/i

/** They are made of parts, which a file is not; of messages only a whole one is known. */
const CONTAINER = /^(?:multipart|message)\/(?!rfc822(?:;|$))/i

/** Characters that change the order in which others are shown: `invoice<U+202E>fdp.exe` reads as `invoiceexe.pdf`. */
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export function readAttachments(fields: readonly AttachmentField[]): ReadAttachments | undefined {
  if (fields.length === 0) return undefined
  const read = fields.map((field, index) => readAttachment(field, `attachments.${index}`))
  const [only, ...others] = read.map(({ octets }) => octets)
  const octets = only && others.length === 0 ? only : Buffer.concat(read.map(({ octets }) => octets))
  return { facts: read.map(({ facts }) => facts), octets }
}

function readAttachment(field: AttachmentField, path: string): { facts: AttachmentFacts; octets: Buffer } {
  const filename = readFilename(field.filename, `${path}.filename`)
  const contentType = readContentType(field.content_type, filename, `${path}.content_type`)
  const contentId = field.content_id?.replace(/^<(.*)>$/s, '$1')
  if (contentId !== undefined && !/^[\x21\x23-\x3b\x3d\x3f-\x7e]{1,200}$/.test(contentId))
    throw invalidField(
      `${path}.content_id`,
      `${path}.content_id must be 1 to 200 ASCII characters without spaces`,
    )
  const octets = decodeBase64(field.content, `${path}.content`)
  const named = { filename, contentType, ...given({ contentId }) }
  return { facts: { ...named, size: octets.length }, octets }
}

/** What a client's own paths leave of a name: `C:\files\report.pdf` is `report.pdf`. */
function readFilename(text: string, path: string): string {
  refuseControls(text, path)
  const name = toUSVString(text).replace(BIDI_CONTROLS, '').trim().split(/[/\\]/).at(-1)?.trim() ?? ''
  if (/^\.{0,2}$/.test(name)) throw invalidField(path, `${path} is no file name`)
  return name
}

function readContentType(given: string | undefined, filename: string, path: string): string {
  if (given === undefined || given === '') return typeOfName(filename)
  if (!CONTENT_TYPE.test(given)) throw invalidField(path, `${path} is no media type, e.g. application/pdf`)
  if (CONTAINER.test(given))
    throw invalidField(path, `${path} is no type of a file; of messages message/rfc822 can be attached`)
  return given
}

function typeOfName(filename: string): string {
  const type = filename.includes('.') && lookup(filename)
  return type === false || CONTAINER.test(type) ? ANYTHING : type
}

/** Line breaks and spaces are passed over, padding may be missing; Node's own decoder would take anything at all. */
function decodeBase64(text: string, path: string): Buffer {
  const plain = decodePlain(text)
  if (plain) return plain
  const compact = /\s/.test(text) ? text.replace(/\s+/g, '') : text
  const isPadded = compact.endsWith('=')
  const digits = isPadded ? compact.replace(/={1,2}$/, '') : compact
  if (/^data:/i.test(text)) throw invalidField(path, `${path} is a data: URL; give what follows its comma`)
  // One digit more than whole octets take, or half a padding, is the sign of a text that was cut off.
  const isWhole = isPadded ? compact.length % 4 === 0 : digits.length % 4 !== 1
  if (!isWhole || !/^[A-Za-z0-9+/_-]*$/.test(digits)) throw invalidField(path, `${path} is not base64`)
  return Buffer.from(digits, 'base64')
}

/**
 * What nearly everybody sends, without a look at each character, which takes long where there are millions: the decoder passes
 * over what is no digit, so that as many octets as all digits make are the proof that all are digits.
 */
function decodePlain(text: string): Buffer | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  if (digits % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined
  // Of a wider character the decoder sees a part.
  if (Buffer.byteLength(text) !== text.length) return undefined
  const octets = Buffer.from(text, 'base64')
  return octets.length === Math.floor((digits * 3) / 4) ? octets : undefined
}
