/** Faults in the URL of a link. Pure. Never throws. */
import { schemeOf } from '../merge/url-scheme.js'
import { followedUrl } from '../tracking/followed-url.js'

export type LinkFault = 'link_empty' | 'link_broken'

/** @param written the attribute's value */
export function faultOfLink(written: string): LinkFault | undefined {
  const text = written.trim()
  if (text === '' || text === '#' || /^https?:\/*$/i.test(text)) return 'link_empty'
  const url = followedUrl(written)
  if (url !== undefined) return URL.canParse(url) ? undefined : 'link_broken'
  const scheme = schemeOf(text)
  return scheme === undefined || scheme === 'http' || scheme === 'https' ? 'link_broken' : undefined
}
