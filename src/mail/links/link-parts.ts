/**
 * The link parts of click links as one delivery thread keeps them: a URL that many messages of a workspace have is signed once.
 *
 * Called for each link of each message. Bounded by the length of what is kept; where that is reached it begins anew. Fails: never
 * throws for a workspace whose id is a UUID.
 */
import { makeLinkPart } from './click-link.js'
import type { LinkKeys } from './link-keys.js'

/** UTF-16 units of URLs and parts: some ten thousand links. */
const MOST_UNITS = 4 * 1_024 * 1_024

export class LinkParts {
  private readonly keys: LinkKeys
  private readonly byWorkspace = new Map<string, Map<string, string | undefined>>()
  private units = 0

  constructor(keys: LinkKeys) {
    this.keys = keys
  }

  /** For a URL that others have as well. @returns undefined where clicks on it cannot be counted */
  shared(workspaceId: string, url: string): string | undefined {
    const known = this.byWorkspace.get(workspaceId)
    if (known?.has(url)) return known.get(url)
    const part = this.own(workspaceId, url)
    this.keep(workspaceId, url, part)
    return part
  }

  /** For a URL that one message has. */
  own(workspaceId: string, url: string): string | undefined {
    return makeLinkPart(this.keys, workspaceId, url)
  }

  private keep(workspaceId: string, url: string, part: string | undefined): void {
    this.units += url.length + (part?.length ?? 0) + workspaceId.length
    if (this.units > MOST_UNITS) {
      this.byWorkspace.clear()
      this.units = url.length
    }
    const known = this.byWorkspace.get(workspaceId)
    if (known) known.set(url, part)
    else this.byWorkspace.set(workspaceId, new Map([[url, part]]))
  }
}
