/**
 * Which scheme a URL in an HTML attribute has, as browsers find it, and whether mail may have it.
 *
 * Called for merged values and finished attributes (`render-template.ts`) and for the URLs of blocks (`blocks/read-structure.ts`). Pure.
 * Standards: URL Standard §4.4 (leading control characters and spaces, and all tabs and line breaks, are removed), HTML Living Standard
 * §13.2.5.72 (character references). Fails: never throws.
 */

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
