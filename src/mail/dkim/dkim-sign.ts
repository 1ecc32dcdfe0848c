/**
 * DKIM signatures: puts one DKIM-Signature field per key in front of a finished message.
 *
 * Called by the delivery agent, last before SMTP. Signs what it is given and changes nothing in it; never reads DNS.
 * Standards: RFC 6376 (DKIM, relaxed/relaxed), RFC 8463 (Ed25519), RFC 8301 (rsa-sha256 is the only RSA).
 * Fails: plain Errors for a message outside the signer's domain (see `assertSignable`) and one without From, an
 * `UnusableKeyError` for a key; key material is in none of them.
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
 * Where the arithmetic of a signature runs, most of what a message costs: in the `pool` of the process (four threads,
 * which is what a main thread that has others to serve wants), or on the `caller`'s own thread, which spares a thread made
 * for this work the way there and back.
 */
export type SigningThread = 'pool' | 'caller'

/** A key that cannot be used: the message is right, and goes out once the operator has mended the key. */
export class UnusableKeyError extends Error {
  override readonly name = 'UnusableKeyError'
}

/**
 * Named once more than they occur, so that a field added on the way breaks the signature (RFC 6376 §5.4.2, §8.15):
 * everything a reader or a mail client acts on.
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

/** Signed where they occur (RFC 6376 §5.4.1); lists and forwarders may rightly add one. */
const SIGNED_FIELDS = ['Sender', 'In-Reply-To', 'References', 'List-Id', 'Feedback-ID'] as const

/** RFC 6376 §3.3, RFC 8463 §3. */
const ALGORITHM_TAGS = { rsa: 'rsa-sha256', ed25519: 'ed25519-sha256' } as const

/** RFC 5322 §2.1.1: lines should not be longer than this. */
const FOLD_AT = 78

/**
 * @param message complete, 7-bit (the header may be UTF-8), CRLF line ends, no line over 998 octets
 * @param keys one signature each, in this order from the top
 * @param signedAt becomes `t=`, ms since epoch UTC
 * @param unsigned header fields, each with its CRLF, that come between signatures and message and are not covered; ASCII
 * @param knownBody the canonical form of the body, where whoever made the message knows it, and that it can be signed
 * @returns the signed message; the message itself when there is neither key nor field
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

/**
 * Chooses the fields to sign.
 *
 * @returns names for `h=`, and the canonical fields in that order, each with its CRLF
 */
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
    // A name that stands several times means the last field, then the one before it (RFC 6376 §5.4.2).
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

/** The field with an empty `b=`, folded, without CRLF at its end: what the signature covers (RFC 6376 §3.5, §3.7). */
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

/** RFC 6376 §3.5 allows folding white space after each colon of `h=`. */
function foldNames(names: readonly string[]): string[] {
  const lines: string[] = []
  let line = 'h='
  names.forEach((name, index) => {
    const piece = index < names.length - 1 ? `${name}:` : `${name};`
    // One column is the TAB that the line will begin with.
    if (line.length + piece.length > FOLD_AT - 1) {
      lines.push(line)
      line = ''
    }
    line += piece
  })
  return [...lines, line]
}

/** Fills in `b=`; white space inside its value counts for nothing (RFC 6376 §3.5). */
function foldBase64(field: string, signature: string): string {
  const pieces = signature.match(/.{1,75}/g) ?? []
  return field + pieces.join('\r\n\t')
}

async function signText(text: string, key: DkimKey, place: SigningThread): Promise<string> {
  const privateKey = parsedKey(key)
  const octets = Buffer.from(text, 'latin1')
  // RFC 8463 §3: Ed25519 signs the SHA-256 of the text, not the text.
  const digest = key.algorithm === 'rsa' ? 'sha256' : null
  const input = key.algorithm === 'rsa' ? octets : createHash('sha256').update(octets).digest()
  const signature =
    place === 'caller' ? sign(digest, input, privateKey) : await signInPool(digest, input, privateKey)
  return signature.toString('base64')
}

const signInPool = promisify<string | null, Buffer, KeyObject, Buffer>(sign)

/** Parsing a PEM costs more than signing with it. Least recently used first; keyed by PEM, which rotation changes. */
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
    // The cause is left out: it belongs to key material.
    throw new UnusableKeyError(`DKIM key ${key.selector} of ${key.domain} cannot be read`)
  }
}
