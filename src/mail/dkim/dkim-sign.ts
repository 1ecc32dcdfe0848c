/**
 * Signs messages with DKIM: prepends one DKIM-Signature field per key.
 *
 * Canonicalization works on octets: white space is SP and TAB only, unlike `\s` in regular expressions.
 * Throws an Error for a message that cannot be signed (see `assertSignable`) or has no From, and `UnusableKeyError` for a bad key. Errors
 * never contain key material.
 * Standards: RFC 6376 (DKIM, relaxed/relaxed), RFC 8463 (Ed25519), RFC 8301 (rsa-sha256 is the only RSA).
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { trimEnd } from '../../core/trim.js'
import { MAX_LINE_OCTETS } from '../mime/transfer-encoding.js'

export const DKIM_ALGORITHMS = ['rsa', 'ed25519'] as const

export interface DkimKey {
  /** Signing domain (`d=`), A-labels. */
  readonly domain: string
  /** `s=`: the record is at `<selector>._domainkey.<domain>`. */
  readonly selector: string
  readonly algorithm: (typeof DKIM_ALGORITHMS)[number]
  /** PKCS#8 PEM. */
  readonly privateKey: string
}

/**
 * Where signatures are computed, which is most of a message's CPU time: in the libuv `pool`, which keeps a main thread responsive, or
 * synchronously in the `caller`'s thread, which saves a worker the thread hop.
 */
export type SigningThread = 'pool' | 'caller'

/** The message is fine and can be sent once the operator has replaced the key. */
export class UnusableKeyError extends Error {
  override readonly name = 'UnusableKeyError'
}

/**
 * Over-signed, so that adding one breaks the signature (RFC 6376 §5.4.2, §8.15): every field a reader or mail client
 * acts on.
 */
const OVERSIGNED_FIELDS = [
  'From',
  'Subject',
  'To',
  'Date',
  'Message-ID',
  'Cc',
  'Reply-To',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
] as const

/** Signed if present (RFC 6376 §5.4.1); lists and forwarders may legitimately add them. */
const SIGNED_FIELDS = ['Sender', 'In-Reply-To', 'References', 'List-Id', 'Feedback-ID'] as const

/** RFC 6376 §3.3, RFC 8463 §3. */
const ALGORITHM_TAGS = { rsa: 'rsa-sha256', ed25519: 'ed25519-sha256' } as const

/** RFC 5322 §2.1.1: recommended maximum. */
const FOLD_AT = 78

/**
 * @param message complete, 7-bit (the header may be UTF-8), CRLF line endings, no line over 998 octets
 * @param keys one signature each, in this order from the top
 * @param signedAt for `t=`, ms since epoch UTC
 * @param unsigned header fields, each with CRLF, inserted between signatures and message and not covered; ASCII
 * @param knownBody the canonical body, if the caller knows it and that it can be signed
 * @returns the signed message; the input if there are neither keys nor fields
 */
export async function signMessage(
  message: Buffer,
  keys: readonly DkimKey[],
  signedAt: number,
  place: SigningThread = 'pool',
  unsigned = '',
  knownBody?: Buffer,
): Promise<Buffer> {
  if (keys.length === 0) return prepend(unsigned, message)
  const { fields, body } = splitMessage(message)
  const header = message.subarray(0, message.length - body.length)
  assertCharset(knownBody === undefined ? message : header)
  assertLines(header)
  const hash = createHash('sha256')
  if (knownBody === undefined) canonicalizeBody(body, piece => hash.update(piece))
  else hash.update(knownBody)
  const { names, canonical } = selectFields(fields)
  const bodyHash = hash.digest('base64')
  const signatures = await Promise.all(
    keys.map(async key => {
      const field = signatureField(key, signedAt, names, bodyHash)
      const signature = await signText(canonical + canonicalField(field), key, place)
      return `${foldBase64(field, signature)}\r\n`
    }),
  )
  return prepend(signatures.join('') + unsigned, message)
}

function prepend(fields: string, message: Buffer): Buffer {
  return fields === '' ? message : Buffer.concat([Buffer.from(fields, 'latin1'), message])
}

/** @returns names for `h=`, and the canonical fields in that order, each with CRLF */
function selectFields(fields: readonly string[]): { names: string[]; canonical: string } {
  const present = new Map<string, string[]>()
  for (const field of fields) {
    const name = fieldName(field)
    const others = present.get(name)
    if (others) others.push(field)
    else present.set(name, [field])
  }
  // RFC 6376 §5.4: From must be signed.
  if (!present.has('from')) throw new Error('not signable: the message has no From field')
  const names: string[] = []
  let canonical = ''
  const select = (name: string): void => {
    // Repeated fields are signed from the last to the first (RFC 6376 §5.4.2).
    for (const field of present.get(name.toLowerCase())?.toReversed() ?? []) {
      names.push(name)
      canonical += `${canonicalField(field)}\r\n`
    }
  }
  for (const name of OVERSIGNED_FIELDS) {
    select(name)
    names.push(name)
  }
  SIGNED_FIELDS.forEach(select)
  return { names, canonical }
}

/** The field with an empty `b=`, folded, without CRLF: what the signature covers (RFC 6376 §3.5, §3.7). */
function signatureField(key: DkimKey, signedAt: number, names: readonly string[], bodyHash: string): string {
  const lines = [
    `DKIM-Signature: v=1; a=${ALGORITHM_TAGS[key.algorithm]}; c=relaxed/relaxed;`,
    `d=${key.domain};`,
    `s=${key.selector}; t=${Math.floor(signedAt / 1000)};`,
    ...foldNames(names),
    `bh=${bodyHash};`,
    'b=',
  ]
  return lines.join('\r\n\t')
}

/** RFC 6376 §3.5 allows folding after each colon of `h=`. */
function foldNames(names: readonly string[]): string[] {
  const lines: string[] = []
  let line = 'h='
  names.forEach((name, index) => {
    const piece = index < names.length - 1 ? `${name}:` : `${name};`
    // One column is the TAB of the folded line.
    if (line.length + piece.length > FOLD_AT - 1) {
      lines.push(line)
      line = ''
    }
    line += piece
  })
  return [...lines, line]
}

/** Fills in `b=`, whose white space is ignored (RFC 6376 §3.5). */
function foldBase64(field: string, signature: string): string {
  const pieces = signature.match(/.{1,75}/g) ?? []
  return field + pieces.join('\r\n\t')
}

async function signText(text: string, key: DkimKey, place: SigningThread): Promise<string> {
  const privateKey = parsedKey(key)
  const octets = Buffer.from(text, 'latin1')
  // RFC 8463 §3: Ed25519 signs the SHA-256 of the text.
  const digest = key.algorithm === 'rsa' ? 'sha256' : null
  const input = key.algorithm === 'rsa' ? octets : createHash('sha256').update(octets).digest()
  const signature =
    place === 'caller' ? sign(digest, input, privateKey) : await signInPool(digest, input, privateKey)
  return signature.toString('base64')
}

const signInPool = promisify<string | null, Buffer, KeyObject, Buffer>(sign)

/** LRU of parsed keys by PEM: parsing costs more than signing. */
const parsedKeys = new Map<string, KeyObject>()
const MAX_PARSED_KEYS = 1_000

function parsedKey(key: DkimKey): KeyObject {
  const parsed = parsedKeys.get(key.privateKey) ?? parseKey(key)
  if (parsed.asymmetricKeyType !== key.algorithm)
    throw new UnusableKeyError(`DKIM key ${key.selector} of ${key.domain} is not of type ${key.algorithm}`)
  parsedKeys.delete(key.privateKey)
  parsedKeys.set(key.privateKey, parsed)
  const oldest = parsedKeys.keys().next()
  if (parsedKeys.size > MAX_PARSED_KEYS && !oldest.done) parsedKeys.delete(oldest.value)
  return parsed
}

function parseKey(key: DkimKey): KeyObject {
  try {
    return createPrivateKey(key.privateKey)
  } catch {
    // The original error could contain key material.
    throw new UnusableKeyError(`DKIM key ${key.selector} of ${key.domain} cannot be read`)
  }
}

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SP = 0x20

interface MessageParts {
  /** In order, folded as written, without the terminating CRLF. Octets as latin1 strings. */
  readonly fields: readonly string[]
  /** Everything after the empty line; a view of the message. */
  readonly body: Buffer
}

/**
 * Throws unless the message will arrive unchanged: relays that re-encode 8-bit text, repair bare line endings or break long lines would
 * break the signature (RFC 6376 §5.3). A UTF-8 header (RFC 6532) is safe: servers that cannot transmit it reject the message (RFC 6531
 * §3.5).
 */
export function assertSignable(message: Buffer): void {
  assertCharset(message)
  assertLines(message)
}

function assertLines(octets: Buffer): void {
  let lineStart = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    // A single comparison for nearly every octet.
    if (octet > CR || (octet !== CR && octet !== LF)) continue
    if (octet === LF || octets[at + 1] !== LF) throw bareLineEnd()
    if (at - lineStart > MAX_LINE_OCTETS) throw longLine()
    at++
    lineStart = at + 1
  }
  if (octets.length - lineStart > MAX_LINE_OCTETS) throw longLine()
}

function bareLineEnd(): Error {
  return new Error('not signable: bare CR or LF in the message')
}

function longLine(): Error {
  return new Error('not signable: line longer than 998 octets')
}

function assertCharset(message: Buffer): void {
  if (!isAscii(message)) assertUtf8Header(message)
}

function assertUtf8Header(message: Buffer): void {
  const end = message.indexOf('\r\n\r\n')
  if (end < 0 || !isAscii(message.subarray(end))) throw new Error('not signable: the message is not 7-bit')
  if (!isUtf8(message.subarray(0, end)))
    throw new Error('not signable: the header is neither ASCII nor UTF-8')
}

/** Splits at the first empty line; without one the message is all header. */
export function splitMessage(message: Buffer): MessageParts {
  if (message[0] === CR && message[1] === LF) return { fields: [], body: message.subarray(2) }
  const end = message.indexOf('\r\n\r\n')
  const header = message.toString('latin1', 0, end < 0 ? message.length : end)
  return {
    fields: header.split(/\r\n(?![ \t])/).filter(field => field !== ''),
    body: end < 0 ? message.subarray(message.length) : message.subarray(end + 4),
  }
}

export function fieldName(field: string): string {
  const colon = field.indexOf(':')
  return trimEnd(field.slice(0, colon < 0 ? field.length : colon), ' \t').toLowerCase()
}

/**
 * Relaxed header canonicalization (RFC 6376 §3.4.2).
 *
 * @param field as returned by `splitMessage`
 * @returns `name:value`, without CRLF
 */
export function canonicalField(field: string): string {
  const value = field
    .slice(field.indexOf(':') + 1)
    .replaceAll('\r\n', '')
    .replace(/[ \t]+/g, ' ')
  const start = value.startsWith(' ') ? 1 : 0
  const end = value.endsWith(' ') ? -1 : undefined
  return `${fieldName(field)}:${value.slice(start, end)}`
}

/** With room for a line beyond what is passed on at once. */
const PIECE_OCTETS = 65_536
const canonical = Buffer.alloc(PIECE_OCTETS + MAX_LINE_OCTETS + 2)
const EMPTY_LINES = Buffer.alloc(PIECE_OCTETS, '\r\n')

/**
 * Relaxed body canonicalization (RFC 6376 §3.4.4). The only pass over the body of a long message, where a second one would cost as much as a
 * signature.
 *
 * @param put takes the canonical body in pieces, each valid only during the call
 * @throws Error if a line would not arrive unchanged
 */
export function canonicalizeBody(body: Buffer, put: (piece: Buffer) => void): void {
  const end = body.length
  /** Lines that are left out if no text follows. */
  let emptyLines = 0
  /** @returns whether the piece has text */
  const putPiece = (length: number): boolean => {
    let textEnd = length
    while (textEnd >= 2 && canonical[textEnd - 1] === LF && canonical[textEnd - 2] === CR) textEnd -= 2
    if (textEnd > 0) {
      for (; emptyLines > 0; emptyLines -= PIECE_OCTETS / 2) put(EMPTY_LINES.subarray(0, 2 * emptyLines))
      emptyLines = 0
      put(canonical.subarray(0, textEnd))
    }
    emptyLines += (length - textEnd) / 2
    return textEnd > 0
  }
  let hasText = false
  let length = 0
  let lineStart = 0
  for (let at = 0; at < end; at++) {
    const octet = body[at] as number
    // A single comparison for most octets.
    if (octet > SP) canonical[length++] = octet
    else if (octet === SP || octet === TAB) {
      while (at + 1 < end && (body[at + 1] === SP || body[at + 1] === TAB)) at++
      // White space at the end of a line or of the body is dropped.
      if (at + 1 < end && body[at + 1] !== CR) canonical[length++] = SP
    } else if (octet === CR) {
      if (body[at + 1] !== LF) throw bareLineEnd()
      if (at - lineStart > MAX_LINE_OCTETS) throw longLine()
      canonical[length++] = CR
      canonical[length++] = LF
      at++
      lineStart = at + 1
      if (length >= PIECE_OCTETS) {
        if (putPiece(length)) hasText = true
        length = 0
      }
    } else if (octet === LF) throw bareLineEnd()
    else canonical[length++] = octet
  }
  if (end - lineStart > MAX_LINE_OCTETS) throw longLine()
  if (putPiece(length) || hasText) put(EMPTY_LINES.subarray(0, 2))
}
