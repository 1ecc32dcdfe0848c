/**
 * Finds the original message of a bounce or complaint: in its own part, or quoted after the text.
 *
 * Returns undefined if nothing of it was returned.
 * Standards: RFC 3462 §2 (message/rfc822, text/rfc822-headers), RFC 6533 §6 (global forms), RFC 5322 §3.6.4 (Message-ID).
 */
import { given } from '../../core/given.js'
import { readHeaderSection, readMessageHeader, type HeaderSection } from '../mime/header-fields.js'
import type { MimePart } from './mime-part.js'
import type { ReturnedOriginal } from './returned-mail.js'

const MAX_FIELDS = 100
const MAX_LINES = 10_000

/** Lines that precede the original or its header. */
const MARKERS: readonly RegExp[] = [
  /^-{2,} ?(?:below (?:this|the next) line|enclosed|this|attached) is a copy of (?:the|your) (?:original )?message.{0,60}$/i,
  /^[|=*-]{2}[\s|=*-]{0,80}(?:the )?(?:original|returned|unsent|undelivered|rejected) (?:message|mail|e-mail)(?: (?:text|headers?|body|info|information))?(?: (?:follows|is|below|as follows))?\s?[.:]?[\s|=*-]{0,80}$/i,
  /^(?:the )?(?:original|returned|unsent|undelivered|rejected) (?:message|mail|e-mail)(?: (?:text|headers?|body|info|information))?(?: (?:follows?|below|as follows|is (?:below|attached)))?\s?[.:]$/i,
  /^(?:the )?(?:original|returned|unsent|undelivered) (?:message|mail|e-mail)(?: headers?)? follows$/i,
  /^[\s|=*-]{0,80}(?:message|mail) (?:text|header|headers|body|contents?)(?: of the (?:original|message))? ?(?:follows?|below)?\s?[.:]?[\s|=*-]{2,80}$/i,
  /^-{0,5}\s?(?:original )?message headers?(?: follow| follows)?[.:]?\s?-{0,5}$/i,
  /^-{2,} the header of the original message/i,
  /^included is a copy of the message header/i,
  /^below is a copy of (?:the|your) (?:original )?message/i,
  /^(?:the|your) (?:original |first \d{1,6} (?:bytes|lines) of the )?message (?:headers? )?(?:follows|reads|was:|is (?:attached|included) below)/i,
  /^(?:the )?first \d{1,6} (?:bytes|lines) of (?:the|your) (?:original )?message/i,
  /^original (?:mail|message) as follows/i,
  // Exchange and Outlook in other languages
  /^(?:en-t\u00eates (?:du|de) message d'origine|urspr\u00fcngliche nachrichtenkopfzeilen|encabezados de mensajes? originales|intestazioni del messaggio originale|cabe\u00e7alhos (?:originais da mensagem|da mensagem original)|oorspronkelijke berichtkoppen)/i,
]

/** Header fields added by mail systems; notices have none at the start of a line. */
const HEADER_LINE = /^(?:received|return-path|message-id|dkim-signature|delivered-to|x-originating-ip)\s?:/i

/**
 * Splits a text part into the notice and the original quoted after it.
 *
 * @param isFirst false for later parts, which may be just the original's header
 */
export function cutOriginal(
  text: string,
  isFirst = true,
): { readonly notice: string; readonly original?: string } {
  let at = 0
  let isEmptyBefore = true
  for (const line of text.split('\n', MAX_LINES)) {
    const isMarker = isMarkerLine(line)
    // A header without a marker line must follow an empty line.
    if (isMarker || (isEmptyBefore && (at > 0 || !isFirst) && HEADER_LINE.test(line))) {
      const original = text.slice(isMarker ? at + line.length + 1 : at)
      return { notice: text.slice(0, at), ...(original.trim() === '' ? {} : { original }) }
    }
    isEmptyBefore = line.trim() === ''
    at += line.length + 1
  }
  return { notice: text }
}

function isMarkerLine(line: string): boolean {
  // Cheap check first: every marker contains one of these words.
  if (
    line.length > 200 ||
    !/message|mail|header|copy|nachricht|mensaje|mensagem|messaggio|bericht/i.test(line)
  )
    return false
  const trimmed = line.trim()
  return MARKERS.some(marker => marker.test(trimmed))
}

const MESSAGE_TYPES: ReadonlySet<string> = new Set([
  'message/rfc822',
  'message/global',
  'text/rfc822-headers',
  'text/rfc822-header',
  'text/rfc822',
  'message/rfc822-headers',
  'message/global-headers',
])

export function isOriginalPart({ type }: MimePart): boolean {
  return MESSAGE_TYPES.has(type)
}

/** @param quoted text after the notice, if any */
export function readOriginal(
  parts: readonly MimePart[],
  quoted: string | undefined,
  outer: HeaderSection,
): ReturnedOriginal | undefined {
  const header = headerOfOriginal(parts, quoted)
  // Automatic replies refer to the original (RFC 3834 §3.1.5), as do bounces of large providers.
  const messageId =
    readMessageId(header?.raw('message-id') ?? '') ??
    readMessageId(outer.raw('in-reply-to')) ??
    readMessageId(
      outer
        .raw('references')
        .split(/\s(?=<)/)
        .at(-1) ?? '',
    )
  if (header === undefined && messageId === undefined) return undefined
  return {
    ...given({ messageId }),
    header: header?.toMap(MAX_FIELDS) ?? new Map<string, string>(),
  }
}

function headerOfOriginal(parts: readonly MimePart[], quoted: string | undefined): HeaderSection | undefined {
  for (const part of parts) {
    if (!isOriginalPart(part)) continue
    const header = readMessageHeader(part.text)
    if (header.size > 0) return header
  }
  const byQuote = quoted === undefined ? undefined : quotedHeader(quoted)
  if (byQuote) return byQuote
  // A header attached as plain text with a file name.
  for (const part of parts.slice(1)) {
    if (!/^(?:text\/plain|application\/octet-stream)$/.test(part.type)) continue
    const header = readMessageHeader(part.text)
    if (header.has('message-id') || (header.has('received') && header.has('from'))) return header
  }
  return undefined
}

/** Skips separators and remarks before the first field; removes indentation. */
function quotedHeader(quoted: string): HeaderSection | undefined {
  const lines = quoted.slice(0, 65_536).split('\n')
  const first = lines.findIndex(line => /^[ \t>]{0,8}[\w-]{2,40}\s?:/.test(line))
  if (first < 0 || first > 20) return undefined
  const indent = /^[ \t>]{0,8}/.exec(lines[first] ?? '')?.[0] ?? ''
  const moved = lines.slice(first).map(line => (line.startsWith(indent) ? line.slice(indent.length) : line))
  const end = moved.findIndex(line => line.trim() === '')
  const header = readHeaderSection(moved.slice(0, end < 0 ? undefined : end).join('\n'))
  return header.size > 0 ? header : undefined
}

/** Without angle brackets, which several systems omit. */
function readMessageId(value: string): string | undefined {
  const bracketed = /<\s{0,9}([^<>\s\p{Cc}]{1,998})\s{0,9}>/u.exec(value)?.[1]
  return bracketed ?? /^\s{0,9}([^<>\s\p{Cc}@]{1,998}@[^<>\s\p{Cc}@]{1,255})/u.exec(value)?.[1]
}
