/**
 * Signs messages with DKIM: prepends one DKIM-Signature field per key.
 *
 * The last step before SMTP; changes nothing else. Throws an Error for a message that cannot be signed (see
 * `assertSignable`) or has no From, and `UnusableKeyError` for a bad key. Errors never contain key material.
 * Standards: RFC 6376 (DKIM, relaxed/relaxed), RFC 8463 (Ed25519), RFC 8301 (rsa-sha256 is the only RSA).
 */
import { createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import {
  assertSignable,
  canonicalBody,
  canonicalField,
  fieldName,
  headerOf,
  splitMessage,
} from './dkim-canonical.js'

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
 * Where signatures are computed, which is most of a message's CPU time: in the libuv `pool`, which keeps a main
 * thread responsive, or synchronously in the `caller`'s thread, which saves a worker the thread hop.
 */
export type SigningThread = 'pool' | 'caller'

/** The message is fine and can be sent once the operator has replaced the key. */
export class UnusableKeyError extends Error {
  override readonly name = 'UnusableKeyError'
}

/**
 * Listed once more than they occur, so that adding one breaks the signature (RFC 6376 §5.4.2, §8.15): every field a
 * reader or mail client acts on.
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
  assertSignable(knownBody === undefined ? message : headerOf(message))
  const { fields, body } = splitMessage(message)
  const { names, canonical } = selectFields(fields)
  const bodyHash = createHash('sha256')
    .update(knownBody ?? canonicalBody(body))
    .digest('base64')
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
