/**
 * Reads a message's attachments: octets, safe file names, and media types, which default to that of the name's extension.
 *
 * Content is base64 in the forms clients write: either alphabet, padded or not, with or without line breaks.
 * Standards: RFC 2183 §2.3 (a file name is one component of a path), RFC 2046 §5.1, §5.2 (container types), RFC 4648 §4, §5 (base64,
 * base64url), RFC 2045 §6.8 (lines). Throws AppError validation_error with the field's path.
 */
import { given } from '../../core/given.js'
import { lookup } from 'mime-types'
import { toUSVString } from 'node:util'
import type { AttachmentFacts } from '../../messages/content-store.js'
import { isInvitation } from '../../mail/compose/attachment-part.js'
import { readMediaType } from '../../mail/mime/media-type.js'
import { formatSize } from '../../core/units.js'
import { invalidField, refuseControls, type MessageFields } from './send-schema.js'
import type { AppError } from '../../core/errors.js'
import { nextTurn } from '../../world/time/clock.js'

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

/** RFC 2045 §5.1 without comments, names as RFC 6838 §4.2 restricts them; its length is bounded by the schema. */
const CONTENT_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(?:[ \t]*;[ \t]*[a-z0-9!#$%&'*+.^_`{|}~-]+=(?:[a-z0-9!#$%&'*+.^_`{|}~-]+|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"))*$/i
/** Method of a calendar object (RFC 5546 §1.4, RFC 5545 iana-token). */
const METHOD = /^[a-z0-9-]{1,32}$/i
/** Octets of an invitation: it is sent twice, as an alternative of the text and as a file. */
const MAX_INVITATION = 1_048_576

/** Types made of parts, which a file is not; message/rfc822 is the exception. */
const CONTAINER = /^(?:multipart|message)\/(?!rfc822(?:[ \t]*;|$))/i

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
  requireOneInvitation(read.map(({ facts }) => facts))
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
  const { value, parameters } = readMediaType(given)
  const names = parameters.map(([name]) => name)
  const twice = names.find((name, at) => names.indexOf(name) < at)
  if (twice !== undefined) throw invalidField(path, `${path} has the parameter ${twice} twice`)
  const method = parameters.find(([name]) => name === 'method')?.[1]
  if (value === 'text/calendar' && method !== undefined && !METHOD.test(method))
    throw invalidField(path, `${path} has a method that is no word, such as REQUEST`)
  return given
}

function requireOneInvitation(facts: readonly AttachmentFacts[]): void {
  const invitations = facts.flatMap((one, at) => (isInvitation(one) ? [{ at, size: one.size }] : []))
  const [first, second] = invitations
  if (second)
    throw invalidField(
      `attachments.${second.at}.content_type`,
      'a message has at most one calendar invitation (text/calendar with a method)',
    )
  if (first && first.size > MAX_INVITATION)
    throw invalidField(
      `attachments.${first.at}.content`,
      `a calendar invitation has at most ${formatSize(MAX_INVITATION)}`,
    )
}

function typeOfName(filename: string): string {
  const type = filename.includes('.') && lookup(filename)
  return type === false || CONTAINER.test(type) ? ANYTHING : type
}

/** Characters decoded before yielding: a few milliseconds. */
const AT_ONCE = 262_144

/** Ignores whitespace and missing padding, and rejects everything else, which Node's decoder would silently skip. */
export function decodeBase64(text: string, path: string): Buffer {
  const plain = decodePlain(text)
  if (plain) return plain
  const compact = /\s/.test(text) ? text.replace(/\s+/g, '') : text
  const isPadded = compact.endsWith('=')
  const digits = isPadded ? compact.replace(/={1,2}$/, '') : compact
  if (/^data:/i.test(text))
    throw invalidField(path, `${path} is a data: URL; send only the part after the comma`)
  // A leftover digit or incomplete padding means the text was truncated.
  const isWhole = isPadded ? compact.length % 4 === 0 : digits.length % 4 !== 1
  if (!isWhole || !/^[A-Za-z0-9+/_-]*$/.test(digits)) throw notBase64(path)
  return Buffer.from(digits, 'base64')
}

/**
 * Fast path for unbroken base64, without a regular expression over millions of characters: the decoder skips invalid characters, so
 * if the output has as many octets as the digits encode, all of them were digits.
 */
function decodePlain(text: string): Buffer | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  if (digits % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined
  // The decoder would read only the low bits of a wider character.
  if (Buffer.byteLength(text) !== text.length) return undefined
  const octets = Buffer.from(text, 'base64')
  return octets.length === Math.floor((digits * 3) / 4) ? octets : undefined
}

/** Whether to use `decodeLongBase64`. */
export function isLongBase64(text: string): boolean {
  return text.length > AT_ONCE
}

/** Same result and errors as `decodeBase64`. @throws AppError validation_error */
export async function decodeLongBase64(text: string, path: string): Promise<Buffer> {
  const octets = Buffer.allocUnsafe(Math.ceil((text.length * 3) / 4))
  let length = 0
  let waiting = ''
  for (let from = 0; from < text.length; from += AT_ONCE) {
    const read = decodeWhole(waiting + text.slice(from, from + AT_ONCE), path)
    waiting = read.rest
    length += read.octets.copy(octets, length)
    await nextTurn()
  }
  length += decodeBase64(waiting, path).copy(octets, length)
  return octets.subarray(0, length)
}

/** Decodes all whole groups but the last, which may be padded only if nothing follows it. */
function decodeWhole(text: string, path: string): { readonly octets: Buffer; readonly rest: string } {
  const end = Math.max(0, Math.floor(text.length / 4) - 1) * 4
  const piece = text.slice(0, end)
  const isCompact = !piece.includes('\n') && !piece.includes(' ')
  const octets = isCompact && !piece.includes('=') ? decodePlain(piece) : undefined
  if (octets) return { octets, rest: text.slice(end) }
  const compact = text.replace(/\s+/g, '')
  if (compact.length < text.length) return decodeWhole(compact, path)
  if (piece.includes('=')) throw notBase64(path)
  return { octets: decodeBase64(piece, path), rest: text.slice(end) }
}

function notBase64(path: string): AppError {
  return invalidField(path, `${path} is not base64`)
}
