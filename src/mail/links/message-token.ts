/**
 * Tokens that name a message by its id, 47 characters in a URL: `<header 3><message id 16><workspace tag 6><MAC 10>`.
 *
 * Made for the pixel, the view in a browser and the head of a click link; one HMAC gives the MACs of all three. They carry nothing
 * else: what is to be known stands in the message's row, and where that was pruned nothing is left to be done. Pure.
 * Standard: RFC 2104 (HMAC-SHA256, of which each kind has 80 bits: every guess costs the guesser a request).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { timingSafeEqual } from 'node:crypto'
import type { LinkKeys } from './link-keys.js'
import {
  bytesToUuid,
  HEADER_BYTES,
  readTokenBytes,
  tokenHeader,
  UUID_BYTES,
  uuidToBytes,
} from './token-bytes.js'

export type MessageTokenKind = 'open' | 'click' | 'view'

const MAC_BYTES = 10
/** Where in the HMAC the MAC of a kind begins; two octets are left over. */
const MAC_AT: Readonly<Record<MessageTokenKind, number>> = { open: 0, click: 10, view: 20 }
/** The end of a workspace's id, which is random. */
const TAG_BYTES = 6
const TAG_AT = HEADER_BYTES + UUID_BYTES
const NAME_BYTES = TAG_AT + TAG_BYTES
const TOKEN_BYTES = NAME_BYTES + MAC_BYTES

/** What links are bound to, so that none of one workspace goes with a message of another. */
export function workspaceTag(workspaceId: string): Buffer {
  return uuidToBytes(workspaceId).subarray(UUID_BYTES - TAG_BYTES)
}

/** The tokens of one message: asked for one by one, signed once. */
export class MessageTokens {
  private readonly name: Buffer
  private readonly digest: Buffer

  constructor(keys: LinkKeys, workspaceId: string, messageId: string) {
    const key = keys.newest('message')
    const parts = [tokenHeader(key.version), uuidToBytes(messageId), workspaceTag(workspaceId)]
    this.name = Buffer.concat(parts, NAME_BYTES)
    this.digest = key.mac(this.name)
  }

  token(kind: MessageTokenKind): string {
    return Buffer.concat([this.name, macIn(this.digest, kind)], TOKEN_BYTES).toString('base64url')
  }
}

export interface TokenMessage {
  readonly messageId: string
  readonly workspaceTag: Buffer
}

/** @returns undefined where we did not make the token for just that */
export function readMessageToken(
  keys: LinkKeys,
  kind: MessageTokenKind,
  text: string,
): TokenMessage | undefined {
  const token = readTokenBytes(text, TOKEN_BYTES, TOKEN_BYTES)
  const key = token && keys.find('message', token.keyVersion)
  if (!token || !key) return undefined
  const name = token.bytes.subarray(0, NAME_BYTES)
  const isOurs = timingSafeEqual(token.bytes.subarray(NAME_BYTES), macIn(key.mac(name), kind))
  if (!isOurs) return undefined
  return { messageId: bytesToUuid(name.subarray(HEADER_BYTES)), workspaceTag: name.subarray(TAG_AT) }
}

function macIn(digest: Buffer, kind: MessageTokenKind): Buffer {
  return digest.subarray(MAC_AT[kind], MAC_AT[kind] + MAC_BYTES)
}
