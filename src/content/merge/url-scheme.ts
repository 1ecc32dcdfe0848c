/**
 * Detects the scheme of a URL in an HTML attribute the way browsers do, and whether mail may use it.
 *
 * Applied to author's URLs on parsing, to merged values and to finished attributes. Pure. Never throws.
 * Standards: URL Standard §4.4 (leading control characters and spaces, and all tabs and line breaks, are removed), HTML Living Standard
 * §13.2.5.72 (character references).
 */

import type { UrlKind } from './merge-tree.js'

const ALLOWED: ReadonlySet<string> = new Set(['http', 'https', 'mailto', 'tel', 'sms', 'cid'])
/** Schemes that run scripts or open a document supplied by the sender: refused even if written by the author. */
const REFUSED: ReadonlySet<string> = new Set(['javascript', 'vbscript', 'livescript', 'data', 'blob', 'file'])

/** @returns lower case; undefined for a relative URL. Ignores control characters and spaces anywhere. */
export function schemeOf(url: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- browsers drop control characters of a URL
  return /^([a-z][a-z0-9+.-]*):/i.exec(url.replace(/[\x00-\x20]+/g, ''))?.[1]?.toLowerCase()
}

export function hasRefusedScheme(url: string): boolean {
  const scheme = schemeOf(url)
  return scheme !== undefined && !ALLOWED.has(scheme)
}

/** @returns the scheme of an author's URL if it is refused; other schemes, such as those of apps, are allowed */
export function refusedScheme(url: string): string | undefined {
  const scheme = schemeOf(url)
  return scheme !== undefined && REFUSED.has(scheme) ? scheme : undefined
}

export const NO_URL = '#'

/** @param written a finished attribute value, with character references @returns the value, or a replacement if it is refused */
export function checkedUrl(written: string, holds: UrlKind): string {
  const text = withoutReferences(written)
  switch (holds) {
    case 'url':
      return hasRefusedScheme(text) ? NO_URL : written
    case 'list':
      return text.split(/[\s,]+/).some(isScript) ? '' : written
    case 'refresh':
      return isScript(text.replace(/^\s*[\d.]*\s*[;,]?\s*(url\s*=\s*)?["']?/i, '')) ? '' : written
  }
}

function isScript(url: string): boolean {
  return refusedScheme(url) !== undefined && !/^\s*data:image\//i.test(url)
}

/** Encodes part of a URL so that no scheme can form across parts. @param isFirst it starts the URL */
export function settled(text: string, isFirst: boolean): string {
  if (!isFirst) return text.replace(/^[^/?#]*/, head => head.replaceAll(':', '%3A'))
  return text === '' || /[/?#:]/.test(text) ? text : `./${text}`
}

/** Whether an author's URL prefix fixes the scheme, whatever values follow. */
export function isSettled(written: string): boolean {
  const text = withoutReferences(written)
  const scheme = schemeOf(text)
  return /[/?#:]/.test(text) && !(scheme !== undefined && /^(java|vb|live)script$/.test(scheme))
}

const NAMED: Readonly<Record<string, string>> = { colon: ':', tab: '\t', newline: '\n' }

/** Decodes the character references that can spell a scheme. */
function withoutReferences(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,8})|#([0-9]{1,8})|(colon|tab|newline));?/gi,
    (_, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return NAMED[name.toLowerCase()] ?? ''
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : ''
    },
  )
}
