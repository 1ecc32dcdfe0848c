/** Warnings about a rendered mail's display in mail clients. Pure. Never throws. */
import { Parser } from 'htmlparser2'
import { hasMoreTags } from '../../mail/compose/plain-text.js'

export const CONTENT_WARNINGS = ['clipped', 'image_without_alt', 'link_without_url'] as const

export interface ContentWarning {
  readonly code: (typeof CONTENT_WARNINGS)[number]
  readonly count: number
}

/** Gmail hides what exceeds it behind a link, octets. */
const CLIPPED_ABOVE = 102 * 1_024

/** The parser is quadratic in nested tags; mail with more is not read. */
const MAX_TAGS = 12_000

/** @param html rendered, with its footer */
export function contentWarnings(html: string): ContentWarning[] {
  let images = 0
  let links = 0
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'img' && attributes['alt'] === undefined) images++
      if (name === 'a' && attributes['href']?.trim() === '') links++
    },
  })
  if (!hasMoreTags(html, MAX_TAGS)) parser.end(html)
  const found: ContentWarning[] = [
    { code: 'clipped', count: Buffer.byteLength(html) > CLIPPED_ABOVE ? 1 : 0 },
    { code: 'image_without_alt', count: images },
    { code: 'link_without_url', count: links },
  ]
  return found.filter(({ count }) => count > 0)
}
