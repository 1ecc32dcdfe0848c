/**
 * Which links are tracked, and the tracked URLs of a message. Resolves link attributes as browsers do. Pure.
 *
 * Standards: HTML Living Standard §13.2.5.72 (character references), URL Standard §4.4 (characters removed before parsing).
 */
import { trimBoth } from '../../core/trim.js'
import type { LinkPartCache } from '../../mail/links/click-link.js'
import { LINK_PATHS, type Links } from '../../mail/links/links.js'
import type { TrackedUrls } from '../merge/merge-values.js'

/** The named references that occur in URLs, of about two thousand. */
const NAMED = new Map([
  ['amp', '&'],
  ['AMP', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])

/** Named references that are valid without `;`. */
const UNENDED: ReadonlySet<string> = new Set(
  (
    'AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave Iuml LT Ntilde ' +
    'Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring ' +
    'atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc ' +
    'iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn ' +
    'pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml'
  ).split(' '),
)

/** Which browsers drop at both ends of a URL. */
const CONTROLS_AND_SPACE = String.fromCharCode(...Array(0x21).keys())

/**
 * @param written the attribute's value, with its character references
 * @returns undefined if it is not an http(s) URL or has an uncommon character reference; such links are not tracked
 */
export function followedUrl(written: string): string | undefined {
  const decoded = written.includes('&') ? withoutReferences(written) : written
  if (decoded === undefined) return undefined
  const url = trimBoth(decoded, CONTROLS_AND_SPACE).replace(/[\t\n\r]/g, '')
  if (!/^https?:\/\/[^/?#\\]/i.test(url)) return undefined
  return url.includes(' ') ? url.replaceAll(' ', '%20') : url
}

/** In attributes, a reference without `;` that is followed by a letter, digit or `=` is literal text, such as a query parameter. */
function withoutReferences(written: string): string | undefined {
  const unknown: string[] = []
  const decoded = written.replace(
    /&(?:#(?:(\d{1,7})|x([0-9a-f]{1,6}));?|([a-z][a-z0-9]*)(;|(?![a-z0-9=;])))/gi,
    (found: string, decimal?: string, hex?: string, name?: string, end?: string) => {
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
      // `&utm_source=` is a parameter.
      if (name !== undefined && end !== ';' && !UNENDED.has(name)) return found
      const meant = name === undefined ? characterOf(code) : NAMED.get(name)
      if (meant === undefined) unknown.push(found)
      return meant ?? found
    },
  )
  return unknown.length === 0 ? decoded : undefined
}

/** @returns undefined for code points that browsers replace */
function characterOf(code: number): string | undefined {
  const isItself = (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && (code < 0xd800 || code > 0xdfff))
  return isItself && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** Query parameters a workspace adds to its links, e.g. `utm_source`; may be empty. */
export type UrlParameters = Readonly<Record<string, string>>

/** Adds parameters that the URL lacks, and leaves the rest of it unchanged. */
export function withParameters(url: string, parameters: UrlParameters): string {
  const hash = url.indexOf('#')
  const [before, fragment] = hash < 0 ? [url, ''] : [url.slice(0, hash), url.slice(hash)]
  const query = before.indexOf('?')
  const given = new URLSearchParams(query < 0 ? '' : before.slice(query))
  const added = Object.entries(parameters)
    .filter(([name]) => !given.has(name))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&')
  if (added === '') return url
  const joint = query < 0 ? '?' : /[?&]$/.test(before) ? '' : '&'
  return before + joint + added + fragment
}

interface TrackedMessage {
  readonly workspaceId: string
  readonly links: Links
  readonly parts: LinkPartCache
  /** Without a trailing slash. */
  readonly publicUrl: string
  readonly parameters: UrlParameters
}

export function trackedUrls({
  workspaceId,
  links,
  parts,
  publicUrl,
  parameters,
}: TrackedMessage): TrackedUrls {
  return {
    get pixelUrl() {
      return links.pixelUrl
    },
    get clickUrl() {
      return links.clickUrl
    },
    shared: url => (isOurs(url, publicUrl) ? undefined : parts.getCached(workspaceId, url)),
    own(written) {
      const url = followedUrl(written)
      if (url === undefined || isOurs(url, publicUrl)) return undefined
      return parts.create(workspaceId, withParameters(url, parameters))
    },
  }
}

/** Links to our own pages are not tracked: unsubscribing is not a click. */
function isOurs(url: string, publicUrl: string): boolean {
  return (
    url.startsWith(publicUrl) &&
    Object.values(LINK_PATHS).some(path => url.startsWith(path, publicUrl.length))
  )
}
