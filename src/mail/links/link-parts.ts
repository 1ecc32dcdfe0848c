/**
 * The link parts of click links as one delivery thread keeps them: a URL that many messages of a workspace have is signed once.
 *
 * Called for each link of each message. Bounded by the length of what is kept; where that is reached it begins anew. Fails: never
 * throws for a workspace whose id is a UUID.
 */
import { makeLinkPart } from './click-link.js'
import type { LinkKeys } from './link-keys.js'

/** UTF-16 units of URLs and parts: some ten thousand links. */
const MAX_CHARACTERS = 4 * 1_024 * 1_024

export class LinkPartCache {
  private readonly keys: LinkKeys
  private readonly byWorkspace = new Map<string, Map<string, string | undefined>>()
  private characters = 0

  constructor(keys: LinkKeys) {
    this.keys = keys
  }

  /** For a URL that others have as well. @returns undefined where clicks on it cannot be counted */
  getCached(workspaceId: string, url: string): string | undefined {
    const known = this.byWorkspace.get(workspaceId)
    if (known?.has(url)) return known.get(url)
    const part = this.create(workspaceId, url)
    this.add(workspaceId, url, part)
    return part
  }

  /** For a URL that one message has. */
  create(workspaceId: string, url: string): string | undefined {
    return makeLinkPart(this.keys, workspaceId, url)
  }

  private add(workspaceId: string, url: string, part: string | undefined): void {
    this.characters += url.length + (part?.length ?? 0) + workspaceId.length
    if (this.characters > MAX_CHARACTERS) {
      this.byWorkspace.clear()
      this.characters = url.length
    }
    const known = this.byWorkspace.get(workspaceId)
    if (known) known.set(url, part)
    else this.byWorkspace.set(workspaceId, new Map([[url, part]]))
  }
}
