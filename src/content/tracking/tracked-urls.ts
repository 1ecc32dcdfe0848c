/**
 * Tracked link and pixel URLs of one message.
 *
 * Created for each message on rendering; used by `merge/render-template.ts`. Pure. Fails: as `links` does.
 */
import type { LinkPartCache } from '../../mail/links/click-link.js'
import { LINK_PATHS, type Links } from '../../mail/links/links.js'
import type { TrackedUrls } from '../merge/merge-values.js'
import { followedUrl, withParameters, type UrlParameters } from './followed-url.js'

export interface TrackedMessage {
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
