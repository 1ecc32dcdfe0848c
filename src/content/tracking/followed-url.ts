/**
 * Where a link leads whose URL stands in an attribute as somebody wrote it, as browsers find that out.
 *
 * Called by `track-template.ts` for what leads everybody to the same place, and while rendering for all other. Pure.
 * Standards: HTML Living Standard §13.2.5.72 (character references), URL Standard §4.4 (what is dropped before it is parsed).
 * Fails: never throws.
 */

/** Of the two thousand named references those that are met in URLs. */
const NAMED = new Map([
  ['amp', '&'],
  ['AMP', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])

/** References that end without `;`, of which the two thousand have these. */
const UNENDED: ReadonlySet<string> = new Set(
  (
    'AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave Iuml LT Ntilde ' +
    'Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring ' +
    'atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc ' +
    'iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn ' +
    'pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml'
  ).split(' '),
)

/**
 * @param written the attribute's value, with its character references
 * @returns undefined for what is no http(s) URL, and where a reference in it is none of the usual ones: it leads where it led
 */
export function followedUrl(written: string): string | undefined {
  const decoded = written.includes('&') ? withoutReferences(written) : written
  if (decoded === undefined) return undefined
  // eslint-disable-next-line no-control-regex -- control characters are what browsers drop
  const url = decoded.replace(/^[\x00-\x20]+|[\x00-\x20]+$/g, '').replace(/[\t\n\r]/g, '')
  if (!/^https?:\/\/[^/?#\\]/i.test(url)) return undefined
  return url.includes(' ') ? url.replaceAll(' ', '%20') : url
}

/** A `&` that begins a parameter begins no reference: in an attribute what ends without `;` before a letter, digit or `=` is none. */
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

/** Where browsers read another character than the number says, none. */
function characterOf(code: number): string | undefined {
  const isItself = (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && (code < 0xd800 || code > 0xdfff))
  return isItself && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** What a workspace adds to the URLs of its mail, e.g. `utm_source`; empty where there is none. */
export type UrlParameters = Readonly<Record<string, string>>

/** Those that the URL has already stay as they are; what it had stays as it was written. */
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
