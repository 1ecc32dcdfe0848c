/**
 * Click links: `<message part>.<link part>`, which lead to a URL that stood in mail of that workspace and nowhere else.
 *
 * The link part holds the URL, `<header 3><MAC 12><URL>`, and is made once for all messages that have it; the message part is one
 * short token, the same for all links of a message. Both are bound to the workspace, so that nobody's link goes with anybody
 * else's message, and reading them asks no database. Pure.
 * Standards: RFC 2104 (HMAC-SHA256, truncated to 96 bits), RFC 3986 (URLs).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys } from './link-keys.js'
import { readMessageToken, workspaceTag } from './message-token.js'
import { HEADER_BYTES, readTokenBytes, tokenHeader } from './token-bytes.js'

const MAC_BYTES = 12
const URL_AT = HEADER_BYTES + MAC_BYTES
/** A longer one is left as it stands in the mail: as a click link it would be too long for some that handle it on its way. */
export const MAX_URL_OCTETS = 2_048

/** Where a click leads, and whose it was. */
export interface Click {
  readonly messageId: string
  /** As it stood in the mail. */
  readonly url: string
}

/**
 * @param url absolute, as it is meant (character references of HTML resolved)
 * @returns undefined where a click on it cannot be followed: another scheme than http(s), a control character or a space in it,
 *   no host, or too long
 */
export function makeLinkPart(keys: LinkKeys, workspaceId: string, url: string): string | undefined {
  const octets = Buffer.from(url)
  if (octets.length > MAX_URL_OCTETS || !isFollowable(url)) return undefined
  const key = keys.newest('link')
  const header = tokenHeader(key.version)
  const mac = macOf(key, header, workspaceTag(workspaceId), octets)
  return Buffer.concat([header, mac, octets]).toString('base64url')
}

/** @returns undefined where we made neither part, or not for each other */
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
