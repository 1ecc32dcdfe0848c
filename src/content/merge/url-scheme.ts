/**
 * Which scheme a URL in an HTML attribute has, as browsers find it, and whether mail may have it.
 *
 * Called when templates are parsed (`url-attributes.ts`), for merged values and finished attributes (`render-template.ts`) and for the URLs of blocks (`blocks/read-structure.ts`). Pure.
 * Standards: URL Standard §4.4 (leading control characters and spaces, and all tabs and line breaks, are removed), HTML Living Standard
 * §13.2.5.72 (character references). Fails: never throws.
 */

import type { UrlKind } from './merge-tree.js'

/** Schemes that a merged value may bring. */
const ALLOWED: ReadonlySet<string> = new Set(['http', 'https', 'mailto', 'tel', 'sms', 'cid'])
/** Schemes that run a script or show a document of the sender's: refused even where an author wrote them. */
const REFUSED: ReadonlySet<string> = new Set(['javascript', 'vbscript', 'livescript', 'data', 'blob', 'file'])

/** @returns lower case, undefined for a relative URL. Control characters and spaces never count, whatever their place. */
export function schemeOf(url: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- browsers drop control characters of a URL
  return /^([a-z][a-z0-9+.-]*):/i.exec(url.replace(/[\x00-\x20]+/g, ''))?.[1]?.toLowerCase()
}

/** @returns the scheme of a merged URL that mail must not have */
export function hasRefusedScheme(url: string): boolean {
  const scheme = schemeOf(url)
  return scheme !== undefined && !ALLOWED.has(scheme)
}

/** @returns the scheme of a URL that an author wrote, where mail must not have it; apps have schemes of their own, which pass */
export function refusedScheme(url: string): string | undefined {
  const scheme = schemeOf(url)
  return scheme !== undefined && REFUSED.has(scheme) ? scheme : undefined
}

/** What a finished attribute is replaced by: nowhere, or nothing. */
export const NO_URL = '#'

/** @param written a finished attribute's value, with its character references @returns the same, or what stands in for a script */
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

/** Makes a part of a URL decide by itself that no scheme begins in it, or which. @param isFirst nothing stands before it */
export function settled(text: string, isFirst: boolean): string {
  if (!isFirst) return text.replace(/^[^/?#]*/, head => head.replaceAll(':', '%3A'))
  return text === '' || /[/?#:]/.test(text) ? text : `./${text}`
}

/** Whether the beginning of an author's URL leaves a merged value no say in its scheme. */
export function isSettled(written: string): boolean {
  const text = withoutReferences(written)
  const scheme = schemeOf(text)
  return /[/?#:]/.test(text) && !(scheme !== undefined && /^(java|vb|live)script$/.test(scheme))
}

const NAMED: Readonly<Record<string, string>> = { colon: ':', tab: '\t', newline: '\n' }

/** Those references with which a scheme can be written. */
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
