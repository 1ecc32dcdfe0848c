/**
 * Token formats of links: signed message tokens and sealed tokens, and the octets they have in common.
 *
 * All tokens start with `<layout 1><key version 2>` and are base64url in URLs.
 * - Message token, 47 characters: `<header 3><message id 16><workspace tag 6><MAC 10>`. One HMAC provides the MACs of
 *   pixel, view and click tokens (80 bits each; every guess costs an attacker a request).
 * - Sealed token: `<header 3><nonce 12><ciphertext><tag 12>`. Contains everything needed to act without a database
 *   row. Equal content gives equal tokens (a retry sends the same mail).
 * Reading never throws; creating a token throws if an id is not a UUID or the content is too long.
 * Standards: RFC 4648 §5 (base64url without padding), RFC 9562 §4 (UUID), RFC 2104 (HMAC-SHA256),
 * NIST SP 800-38D (AES-256-GCM).
 */
import { isUuid } from '../../core/ids.js'
import { timingSafeEqual } from 'node:crypto'
import { SEAL_TAG_OCTETS, type LinkKeys, type LinkPurpose } from './link-keys.js'

/** First octet of every token. A new layout gets a new number; old ones remain readable. */
const LAYOUT = 1
/** Layout and key version. */
export const HEADER_BYTES = 3
export const UUID_BYTES = 16

/** @param keyVersion 0 to 65,535 */
export function tokenHeader(keyVersion: number): Buffer {
  return Buffer.from([LAYOUT, keyVersion >>> 8, keyVersion & 0xff])
}

export function uuidToBytes(uuid: string): Buffer {
  if (!isUuid(uuid)) throw new Error(`a link needs a UUID, not '${uuid}'`)
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

/** @param bytes the first 16 count @returns lower case, with hyphens */
export function bytesToUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

interface TokenBytes {
  readonly keyVersion: number
  /** Including the header. */
  readonly bytes: Buffer
}

/** @param least, @param most size in octets, header included @returns undefined if the text is not a valid token */
export function readTokenBytes(text: string, least: number, most: number): TokenBytes | undefined {
  // Checked first, so that everything below handles short text.
  if (text.length > Math.ceil((most * 4) / 3)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < least || bytes.length > most || bytes[0] !== LAYOUT) return undefined
  // The decoder ignores characters outside its alphabet and incomplete trailing bits; each token has one spelling.
  if (bytes.toString('base64url') !== text) return undefined
  return { keyVersion: bytes.readUInt16BE(1), bytes }
}

type MessageTokenKind = 'open' | 'click' | 'view'

const MAC_BYTES = 10
/** Offset of each kind's MAC in the HMAC. */
const MAC_AT: Readonly<Record<MessageTokenKind, number>> = { open: 0, click: 10, view: 20 }
/** The end of a workspace id, which is random. */
const TAG_BYTES = 6
const TAG_AT = HEADER_BYTES + UUID_BYTES
const NAME_BYTES = TAG_AT + TAG_BYTES
const TOKEN_BYTES = NAME_BYTES + MAC_BYTES

/** Binds links to a workspace, so that parts of different workspaces cannot be combined. */
export function workspaceTag(workspaceId: string): Buffer {
  return uuidToBytes(workspaceId).subarray(UUID_BYTES - TAG_BYTES)
}

/** The tokens of one message, sharing one HMAC. */
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

interface TokenMessage {
  readonly messageId: string
  readonly workspaceTag: Buffer
}

/** @returns undefined unless we made the token for this kind */
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
type SealedUse = 0 | 1

const NONCE_OCTETS = 12
const CONTENT_AT = HEADER_BYTES + NONCE_OCTETS
/** Enough for two ids, a timestamp and the longest address. */
const MAX_SEALED_OCTETS = 512

/**
 * The nonce is a MAC of the content, so equal content gives equal tokens and no nonce is used for different content.
 *
 * @param content at most `MAX_SEALED_OCTETS`; the token reveals its length
 */
export function sealToken(keys: LinkKeys, purpose: LinkPurpose, use: SealedUse, content: Buffer): string {
  if (content.length > MAX_SEALED_OCTETS) throw new Error(`a link cannot carry ${content.length} octets`)
  const key = keys.newest(purpose)
  const header = tokenHeader(key.version)
  const bound = boundOctets(header, use)
  const nonce = key.mac(Buffer.concat([bound, content])).subarray(0, NONCE_OCTETS)
  return Buffer.concat([header, nonce, key.seal(nonce, bound, content)]).toString('base64url')
}

/** @returns the content; undefined unless we sealed it for this use */
export function unsealToken(
  keys: LinkKeys,
  purpose: LinkPurpose,
  use: SealedUse,
  text: string,
): Buffer | undefined {
  const least = CONTENT_AT + SEAL_TAG_OCTETS
  const token = readTokenBytes(text, least, least + MAX_SEALED_OCTETS)
  const key = token && keys.find(purpose, token.keyVersion)
  if (!token || !key) return undefined
  const { bytes } = token
  const nonce = bytes.subarray(HEADER_BYTES, CONTENT_AT)
  return key.open(nonce, boundOctets(bytes.subarray(0, HEADER_BYTES), use), bytes.subarray(CONTENT_AT))
}

function boundOctets(header: Buffer, use: SealedUse): Buffer {
  return Buffer.concat([header, Buffer.from([use])])
}
