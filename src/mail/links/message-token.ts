/**
 * Tokens that name a message by its id, 40 characters in a URL: `<header 3><message id 16><MAC 11>`.
 *
 * Made for the pixel, the view in a browser and the head of a click link. They carry nothing but the id: what else is to be known
 * stands in the message's row, and where that was pruned nothing is left to be done. Pure.
 * Standard: RFC 2104 (HMAC-SHA256, here truncated to 88 bits: every guess costs the guesser a request).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys, LinkPurpose } from './link-keys.js'
import {
  bytesToUuid,
  HEADER_BYTES,
  readTokenBytes,
  tokenHeader,
  UUID_BYTES,
  uuidToBytes,
} from './token-bytes.js'

const MAC_BYTES = 11
const NAME_BYTES = HEADER_BYTES + UUID_BYTES
const TOKEN_BYTES = NAME_BYTES + MAC_BYTES
const NOTHING = Buffer.alloc(0)

/** @param bound signed with the id and not in the token: whoever reads it has to know it */
export function makeMessageToken(
  keys: LinkKeys,
  purpose: LinkPurpose,
  messageId: string,
  bound: Buffer = NOTHING,
): string {
  const key = keys.newest(purpose)
  const name = Buffer.concat([tokenHeader(key.version), uuidToBytes(messageId)], NAME_BYTES)
  return Buffer.concat([name, macOf(key, name, bound)], TOKEN_BYTES).toString('base64url')
}

/** @returns the message's id; undefined where we did not make the token for just that */
export function readMessageToken(
  keys: LinkKeys,
  purpose: LinkPurpose,
  text: string,
  bound: Buffer = NOTHING,
): string | undefined {
  const token = readTokenBytes(text, TOKEN_BYTES, TOKEN_BYTES)
  const key = token && keys.find(purpose, token.keyVersion)
  if (!token || !key) return undefined
  const name = token.bytes.subarray(0, NAME_BYTES)
  const isOurs = timingSafeEqual(token.bytes.subarray(NAME_BYTES), macOf(key, name, bound))
  return isOurs ? bytesToUuid(name.subarray(HEADER_BYTES)) : undefined
}

function macOf({ mac }: LinkKey, name: Buffer, bound: Buffer): Buffer {
  return createHmac('sha256', mac).update(name).update(bound).digest().subarray(0, MAC_BYTES)
}
