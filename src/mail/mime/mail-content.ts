/**
 * The readable content of a mail: header fields, text, HTML and the list of attachments.
 *
 * Used by the admin API to show stored, captured and inbound mail. Leniently parsed and bounded, since inbound mail may be hostile; attached
 * messages stay attachments. The HTML is not cleaned: it may only be shown in a sandbox without scripts (`http/mail-page.ts`).
 * Standards: RFC 2045, RFC 2046 §5.1, RFC 2183 (disposition), RFC 2231 (file names), RFC 2392 (`cid:`). Never throws.
 */
import { cutOctets, decodeCharset } from './charset.js'
import { decodeUnknownText } from './encoded-word.js'
import { isFieldName, unfoldedValue, type HeaderField } from './header-fields.js'
import { parameter, readMediaType } from './media-type.js'
import { leavesOf, LENIENT, readMimeStructure, type MimeEntity } from './mime-structure.js'
import { decodeTransfer } from './transfer-encoding.js'

/** Octets of a text part as transmitted; the rest is not shown. */
const MAX_TEXT = 4 * 1_024 * 1_024
/** Octets of all images inside the HTML, as transmitted. */
const MAX_IMAGES = 16 * 1_024 * 1_024
const MAX_HEADERS = 500
/** Characters of one header field. */
const MAX_VALUE = 8_192
const MAX_NAME = 255

export interface MailContent {
  /** In order, as written but unfolded and decoded. */
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly text: string | undefined
  /** With the images it contains as `data:` URLs. */
  readonly html: string | undefined
  readonly attachments: readonly MailAttachment[]
}

export interface MailAttachment {
  /** '' if it has none. */
  readonly fileName: string
  /** Lower case, without parameters. */
  readonly mediaType: string
  /** Octets after decoding; of base64, to the nearest line. */
  readonly size: number
  /** Shown within the HTML. */
  readonly isInline: boolean
}

export function readMailContent(message: Buffer): MailContent {
  const entity = readMimeStructure(message, LENIENT)
  const leaves = leavesOf(entity)
  const text = leaves.find(leaf => isText(leaf, 'text/plain'))
  const html = leaves.find(leaf => isText(leaf, 'text/html'))
  const attached = leaves.filter(leaf => leaf !== text && leaf !== html)
  const written = html && readText(message, html)
  return {
    headers: entity.fields
      .filter(({ name }) => isFieldName(name))
      .slice(0, MAX_HEADERS)
      .map(headerOf),
    text: text && readText(message, text),
    html: written === undefined ? undefined : withImages(written, message, attached),
    attachments: attached.map(leaf => describeAttachment(leaf, written ?? '')),
  }
}

function headerOf({ raw }: HeaderField): { name: string; value: string } {
  return {
    name: raw.slice(0, raw.indexOf(':')).trim(),
    value: decodeUnknownText(cutOctets(unfoldedValue(raw), MAX_VALUE)),
  }
}

function isText(leaf: MimeEntity, type: string): boolean {
  const isAttached = /^\s*attachment\b/i.test(valueOf(leaf, 'content-disposition'))
  // A multipart without parts is mislabelled text.
  const isMislabelled = type === 'text/plain' && leaf.type.value.startsWith('multipart/')
  return !isAttached && (leaf.type.value === type || isMislabelled)
}

function readText(message: Buffer, leaf: MimeEntity): string {
  const octets = message.subarray(leaf.bodyStart, Math.min(leaf.end, leaf.bodyStart + MAX_TEXT))
  const decoded = decodeTransfer(octets, leaf.encoding)
  return decodeCharset(decoded, parameter(leaf.type, 'charset')).replace(/\r\n?/g, '\n')
}

function valueOf({ fields }: MimeEntity, name: string): string {
  const field = fields.find(each => each.name === name)
  return field ? unfoldedValue(field.raw) : ''
}

/** Of `<name@host>`; '' if there is none. */
function contentIdOf(leaf: MimeEntity): string {
  return valueOf(leaf, 'content-id').replace(/^<|>$/g, '')
}

function describeAttachment(leaf: MimeEntity, html: string): MailAttachment {
  const octets = leaf.end - leaf.bodyStart
  const id = contentIdOf(leaf)
  return {
    fileName: fileNameOf(leaf),
    mediaType: leaf.type.value,
    // 76 characters and a line ending for 57 octets.
    size: leaf.encoding === 'base64' ? Math.floor((octets * 57) / 78) : octets,
    isInline: id !== '' && html.includes(`cid:${id}`),
  }
}

function fileNameOf(leaf: MimeEntity): string {
  const disposition = readMediaType(valueOf(leaf, 'content-disposition'))
  const name = parameter(disposition, 'filename') ?? parameter(leaf.type, 'name') ?? ''
  return decodeUnknownText(percentDecoded(name))
    .replace(/\p{Cc}/gu, '')
    .slice(0, MAX_NAME)
}

/** RFC 2231 §4: `UTF-8''na%C3%AFve.txt`. */
function percentDecoded(name: string): string {
  const encoded = /^([\w-]{1,40})'[^']{0,40}'(.*)$/s.exec(name)?.[2]
  if (encoded === undefined) return name
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

/** Puts images that the HTML names by `cid:` into it. */
function withImages(html: string, message: Buffer, attached: readonly MimeEntity[]): string {
  if (!html.includes('cid:')) return html
  const images = new Map<string, string>()
  let octets = 0
  for (const leaf of attached) {
    const id = contentIdOf(leaf)
    const isImage = /^image\/[\w.+-]{1,40}$/.test(leaf.type.value)
    if (id === '' || !isImage || !html.includes(`cid:${id}`)) continue
    octets += leaf.end - leaf.bodyStart
    if (octets > MAX_IMAGES) break
    const image = decodeTransfer(message.subarray(leaf.bodyStart, leaf.end), leaf.encoding)
    images.set(id, `data:${leaf.type.value};base64,${image.toString('base64')}`)
  }
  let given = 0
  return html.replace(/cid:([^"'\s<>)]{1,998})/g, (whole, id: string) => {
    const image = images.get(id)
    // An image named thousands of times is put in as long as there is room.
    given += image?.length ?? 0
    return image === undefined || given > 2 * MAX_IMAGES ? whole : image
  })
}
