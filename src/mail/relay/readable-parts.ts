/**
 * Which parts of a finished message are what its reader is shown: the HTML and the plain text that a footer or tracking may go into.
 *
 * Called by submission, which tells the submitter where nothing will be added, and by the delivery threads. Attachments, messages in
 * the message and all that is signed or encrypted are no such parts; where something of what is shown is signed or encrypted, there is
 * no part at all. Pure.
 * Standards: RFC 2046 §5.1.3 (mixed, and what is unknown), §5.1.4 (alternative), RFC 2387 §3.2 (root of related), RFC 2183 §2
 * (attachments), RFC 1847, RFC 8551, RFC 3156.
 * Fails: never throws; a message beyond the bounds has no such parts. Linear.
 */
import { AppError } from '../../core/errors.js'
import { safeLabelValue } from '../mime/header-fields.js'
import { parameter, readMediaType } from '../mime/media-type.js'
import { readMimeStructure, type MimeEntity, type MimeRules } from '../mime/mime-structure.js'
import { decodeTransfer } from '../mime/transfer-encoding.js'
import { hasArmour, isProtectingType } from './protection.js'
import { MAX_HEADER_FIELDS, MAX_HEADER_OCTETS } from './relayed-header.js'

export interface ReadablePart {
  readonly entity: MimeEntity
  readonly kind: 'html' | 'plain'
  /** The mail itself, in one of its forms, and not a text that follows it. */
  readonly isMain: boolean
}

export interface ReadableMessage {
  readonly root: MimeEntity
  /** In the order in which they stand. */
  readonly parts: readonly ReadablePart[]
  /** Something of it is signed or encrypted by its author, and nothing may be changed. */
  readonly isProtected: boolean
}

const RULES: MimeRules = {
  isLenient: false,
  maxDepth: 50,
  maxParts: 2_000,
  maxHeaderOctets: MAX_HEADER_OCTETS,
  maxFields: MAX_HEADER_FIELDS,
  maxFieldsOfAll: 20_000,
  opens: type => type.startsWith('multipart/') && !isProtectingType(type),
}
/** Multiparts that are no text with what belongs to it. */
const CLOSED_TYPES: ReadonlySet<string> = new Set([
  'multipart/digest',
  'multipart/report',
  'multipart/form-data',
  'multipart/byteranges',
])
const ENCODINGS: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary', 'base64', 'quoted-printable'])

/**
 * @param message CRLF line ends only; its beginning will do
 * @returns undefined where its parts are beyond all bounds
 */
export function readReadableParts(message: Buffer): ReadableMessage | undefined {
  try {
    const root = readMimeStructure(message, RULES)
    const search = new PartCollector(message)
    search.visit(root, true)
    const { isProtected } = search
    return { root, parts: isProtected ? [] : search.parts, isProtected }
  } catch (error) {
    if (error instanceof AppError) return undefined
    throw error
  }
}

class PartCollector {
  readonly parts: ReadablePart[] = []
  isProtected = false
  private readonly message: Buffer

  constructor(message: Buffer) {
    this.message = message
  }

  /** @returns whether the main text was in it */
  visit(entity: MimeEntity, isMain: boolean): boolean {
    const { value } = entity.type
    if (isProtectingType(value)) this.isProtected = true
    if (isAttachment(entity)) return false
    if (value.startsWith('multipart/')) return this.visitMultipart(entity, isMain)
    const kind = value === 'text/html' ? 'html' : value === 'text/plain' ? 'plain' : undefined
    if (kind === undefined || !entity.hasBody || !ENCODINGS.has(entity.encoding)) return false
    this.isProtected ||= hasArmour(contentOf(this.message, entity))
    this.parts.push({ entity, kind, isMain })
    return isMain
  }

  private visitMultipart({ type, parts }: MimeEntity, isMain: boolean): boolean {
    if (CLOSED_TYPES.has(type.value)) return false
    if (type.value === 'multipart/related') {
      const root = rootOf(parts, parameter(type, 'start'))
      return root !== undefined && this.visit(root, isMain)
    }
    if (type.value === 'multipart/alternative')
      return parts.map(part => this.visit(part, isMain)).some(Boolean)
    // One text after the other: the first is the mail, what follows was added to it.
    let wasMain = false
    for (const part of parts) wasMain = this.visit(part, isMain && !wasMain) || wasMain
    return wasMain
  }
}

/** The content, its transfer encoding undone. */
export function contentOf(message: Buffer, { bodyStart, end, encoding }: MimeEntity): Buffer {
  return decodeTransfer(message.subarray(bodyStart, end), encoding)
}

function rootOf(parts: readonly MimeEntity[], start: string | undefined): MimeEntity | undefined {
  if (start === undefined) return parts[0]
  const id = start.trim()
  return (
    parts.find(({ fields }) =>
      fields.some(field => field.name === 'content-id' && safeLabelValue(field).trim() === id),
    ) ?? parts[0]
  )
}

/** What has a name is a file, whatever its disposition says: no mail program names the text of a mail. */
function isAttachment({ fields, type }: MimeEntity): boolean {
  if (parameter(type, 'name') !== undefined) return true
  const field = fields.find(({ name }) => name === 'content-disposition')
  if (!field) return false
  const disposition = readMediaType(safeLabelValue(field))
  return disposition.value === 'attachment' || parameter(disposition, 'filename') !== undefined
}
