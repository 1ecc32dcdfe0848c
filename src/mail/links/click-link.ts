/**
 * Click links: `<message token>.<link part>`.
 *
 * The link part contains the URL, `<header 3><MAC 12><URL>`, and is created once for all messages of a workspace; the
 * message token is the same for all links of a message. Both are bound to the workspace, so that parts of different
 * workspaces cannot be combined. Reading them needs no database.
 * Standards: RFC 2104 (HMAC-SHA256, truncated to 96 bits), RFC 3986 (URLs). Creating one throws if an id is not a
 * UUID.
 */
import { timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys } from './link-keys.js'
import { HEADER_BYTES, readMessageToken, readTokenBytes, tokenHeader, workspaceTag } from './token.js'

const MAC_BYTES = 12
const URL_AT = HEADER_BYTES + MAC_BYTES
/** Longer URLs are not tracked: some software on the way could not handle the click link. */
export const MAX_URL_OCTETS = 2_048

export interface Click {
  readonly messageId: string
  /** As in the mail. */
  readonly url: string
}

/**
 * @param url absolute, with HTML character references resolved
 * @returns undefined if it cannot be tracked: not http(s), control characters or spaces, no host, or too long
 */
export function makeLinkPart(keys: LinkKeys, workspaceId: string, url: string): string | undefined {
  const octets = Buffer.from(url)
  if (octets.length > MAX_URL_OCTETS || !isFollowable(url)) return undefined
  const key = keys.newest('link')
  const header = tokenHeader(key.version)
  const mac = macOf(key, header, workspaceTag(workspaceId), octets)
  return Buffer.concat([header, mac, octets]).toString('base64url')
}

/** @returns undefined unless both parts are ours and belong together */
export function readClick(keys: LinkKeys, text: string): Click | undefined {
  const dot = text.indexOf('.')
  if (dot < 0) return undefined
  const message = readMessageToken(keys, 'click', text.slice(0, dot))
  if (!message) return undefined
  const url = readLinkPart(keys, text.slice(dot + 1), message.workspaceTag)
  return url === undefined ? undefined : { messageId: message.messageId, url }
}

function readLinkPart(keys: LinkKeys, text: string, tag: Buffer): string | undefined {
  const token = readTokenBytes(text, URL_AT, URL_AT + MAX_URL_OCTETS)
  const key = token && keys.find('link', token.keyVersion)
  if (!token || !key) return undefined
  const header = token.bytes.subarray(0, HEADER_BYTES)
  const octets = token.bytes.subarray(URL_AT)
  const isOurs = timingSafeEqual(token.bytes.subarray(HEADER_BYTES, URL_AT), macOf(key, header, tag, octets))
  return isOurs ? octets.toString('utf8') : undefined
}

function isFollowable(url: string): boolean {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return /^https?:\/\/[^/?#\\]/i.test(url) && !/[\u0000-\u0020\u007f]/.test(url)
}

function macOf(key: LinkKey, header: Buffer, tag: Buffer, url: Buffer): Buffer {
  return key.mac(Buffer.concat([header, tag, url])).subarray(0, MAC_BYTES)
}

/** UTF-16 units of URLs and parts: some ten thousand links. */
const MAX_CHARACTERS = 4 * 1_024 * 1_024

export class LinkPartCache {
  private readonly keys: LinkKeys
  private readonly byWorkspace = new Map<string, Map<string, string | undefined>>()
  private characters = 0

  constructor(keys: LinkKeys) {
    this.keys = keys
  }

  /** For a URL shared by many messages. @returns undefined if it cannot be tracked */
  getCached(workspaceId: string, url: string): string | undefined {
    const known = this.byWorkspace.get(workspaceId)
    if (known?.has(url)) return known.get(url)
    const part = this.create(workspaceId, url)
    this.add(workspaceId, url, part)
    return part
  }

  /** For a URL that occurs in one message only. */
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
