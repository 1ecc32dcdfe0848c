/**
 * Click links: `<message part>.<link part>`, which lead to a URL that stood in the mail and nowhere else.
 *
 * The link part holds the URL and is made once for all recipients of a content; the message part is one short token, the same for
 * all links of a message. Both are bound to the content, so that the link of one mail goes with no message of another, and reading
 * them asks no database: `link part = <header 3><content tag 6><MAC 12><URL>`. Pure.
 * Standards: RFC 2104 (HMAC-SHA256, truncated to 96 bits), RFC 3986 (URLs).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys } from './link-keys.js'
import { makeMessageToken, readMessageToken } from './message-token.js'
import { HEADER_BYTES, readTokenBytes, tokenHeader, UUID_BYTES, uuidToBytes } from './token-bytes.js'

/** The end of a content's id, which is random. */
const TAG_BYTES = 6
const MAC_BYTES = 12
const TAGGED_BYTES = HEADER_BYTES + TAG_BYTES
const URL_AT = TAGGED_BYTES + MAC_BYTES
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
export function makeLinkPart(keys: LinkKeys, contentId: string, url: string): string | undefined {
  const octets = Buffer.from(url)
  if (octets.length > MAX_URL_OCTETS || !isFollowable(url)) return undefined
  const key = keys.newest('link')
  const tagged = Buffer.concat([tokenHeader(key.version), contentTag(contentId)])
  return Buffer.concat([tagged, macOf(key, tagged, octets), octets]).toString('base64url')
}

/** What stands before the dot in all links of a message. */
export function makeClickPart(keys: LinkKeys, messageId: string, contentId: string): string {
  return makeMessageToken(keys, 'click', messageId, contentTag(contentId))
}

/** @returns undefined where we made neither part, or not for each other */
export function readClick(keys: LinkKeys, text: string): Click | undefined {
  const dot = text.indexOf('.')
  if (dot < 0) return undefined
  const link = readLinkPart(keys, text.slice(dot + 1))
  if (!link) return undefined
  const messageId = readMessageToken(keys, 'click', text.slice(0, dot), link.tag)
  return messageId === undefined ? undefined : { messageId, url: link.url }
}

function readLinkPart(keys: LinkKeys, text: string): { tag: Buffer; url: string } | undefined {
  const token = readTokenBytes(text, URL_AT, URL_AT + MAX_URL_OCTETS)
  const key = token && keys.find('link', token.keyVersion)
  if (!token || !key) return undefined
  const tagged = token.bytes.subarray(0, TAGGED_BYTES)
  const octets = token.bytes.subarray(URL_AT)
  const isOurs = timingSafeEqual(token.bytes.subarray(TAGGED_BYTES, URL_AT), macOf(key, tagged, octets))
  return isOurs ? { tag: tagged.subarray(HEADER_BYTES), url: octets.toString('utf8') } : undefined
}

function isFollowable(url: string): boolean {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return /^https?:\/\/[^/?#\\]/i.test(url) && !/[\u0000-\u0020\u007f]/.test(url)
}

function contentTag(contentId: string): Buffer {
  return uuidToBytes(contentId).subarray(UUID_BYTES - TAG_BYTES)
}

function macOf({ mac }: LinkKey, tagged: Buffer, url: Buffer): Buffer {
  return createHmac('sha256', mac).update(tagged).update(url).digest().subarray(0, MAC_BYTES)
}
