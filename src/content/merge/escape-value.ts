/**
 * Escapes merged values for their place in a mail, so that a value cannot become markup, an attribute, a header field or a script link.
 * Pure. Never throws.
 * Standards: HTML Living Standard §13.1.2.3 (attributes), RFC 3986 §2 (percent-encoding).
 */
import { toUSVString } from 'node:util'
import { escapeHtml } from '../../core/escape-html.js'
import { stripTags } from '../../mail/mime/write-header-field.js'
import type { HtmlPlace } from './merge-tree.js'
import { hasRefusedScheme, NO_URL } from './url-scheme.js'

export function escapeForPlace(text: string, place: HtmlPlace): string {
  const encoded = encodeForPlace(text, place)
  // Unquoted, so characters that would end the value become character references.
  return place === 'tag'
    ? escapeHtml(encoded).replace(/[\s=`]/g, character => `&#${character.charCodeAt(0)};`)
    : escapeHtml(encoded)
}

/** Encodes for the URL place only, without HTML escaping, so that text made from HTML has the same links. */
export function encodeForPlace(text: string, place: HtmlPlace): string {
  switch (place) {
    case 'url start':
      return encodeUrl(hasRefusedScheme(text) ? NO_URL : text.trim())
    case 'url path':
      return encodeUrl(text)
    case 'url query':
      return encodeQueryValue(text)
    case 'url value':
      return encodeURIComponent(toUSVString(text)).replaceAll("'", '%27')
    case 'text':
    case 'attribute':
    case 'tag':
      return text
  }
}

/** Encodes characters that are invalid in URLs and leaves delimiters alone. */
function encodeUrl(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters stand in no URL
  return toUSVString(text).replace(/[\x00-\x20"<>\\^`{|}\x7f]|[^\x00-\x7f]+/g, encodeURIComponent)
}

/** Encodes one query value; existing percent-encoding is not encoded again. */
function encodeQueryValue(text: string): string {
  return toUSVString(text)
    .split(/(%[0-9A-Fa-f]{2})/)
    .map((piece, index) => (index % 2 === 1 ? piece : encodeURIComponent(piece).replaceAll("'", '%27')))
    .join('')
}

export function escapeForSubject(text: string): string {
  // eslint-disable-next-line no-control-regex -- what would end the header field is what this is for
  return stripTags(text).replace(/[\x00-\x1f\x7f]+/g, ' ')
}
