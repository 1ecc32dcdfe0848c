/**
 * Brings a merged value into the form that its place in a mail takes, so that it cannot become markup, another attribute, another
 * header field, or a link that runs a script.
 *
 * Called by `render-template.ts` for every value. Pure. Fails: never throws.
 * Standards: HTML Living Standard §13.1.2.3 (attributes), RFC 3986 §2 (percent-encoding).
 */
import { toUSVString } from 'node:util'
import { stripTags } from '../../mail/compose/header-field.js'
import type { HtmlPlace } from './merge-tree.js'
import { hasRefusedScheme, NO_URL } from './url-scheme.js'

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '') : text
}

export function escapeForPlace(text: string, place: HtmlPlace): string {
  const encoded = encodeForPlace(text, place)
  // No quotes hold it: whatever ends an unquoted value is written as a character reference.
  return place === 'tag'
    ? escapeHtml(encoded).replace(/[\s=`]/g, character => `&#${character.charCodeAt(0)};`)
    : escapeHtml(encoded)
}

/** As far as the place alone asks for it, whatever it stands in: in text made of HTML a link is the link that the HTML has. */
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

/** Encodes what no URL holds; what means something in one stays as it is. */
function encodeUrl(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters stand in no URL
  return toUSVString(text).replace(/[\x00-\x20"<>\\^`{|}\x7f]|[^\x00-\x7f]+/g, encodeURIComponent)
}

/** One value of a query, whatever it holds; what is percent-encoded already is not encoded twice. */
function encodeQueryValue(text: string): string {
  return toUSVString(text)
    .split(/(%[0-9A-Fa-f]{2})/)
    .map((piece, index) => (index % 2 === 1 ? piece : encodeURIComponent(piece).replaceAll("'", '%27')))
    .join('')
}

/** Text for a subject: no tags, one line. */
export function escapeForSubject(text: string): string {
  // eslint-disable-next-line no-control-regex -- what would end the header field is what this is for
  return stripTags(text).replace(/[\x00-\x1f\x7f]+/g, ' ')
}
