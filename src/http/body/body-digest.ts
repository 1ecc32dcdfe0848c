/**
 * Digest of a body as canonical JSON, independent of the order of fields.
 *
 * Called by `idempotency.ts`. Computed in steps that yield to the event loop. Fails: never; the parser has limited the depth.
 */
import { createHash, type Hash } from 'node:crypto'
import type { LoopShare } from '../../world/time/loop-share.js'

/** Characters hashed per step, and the longest text serialized in one piece. */
const AT_ONCE = 65_536

/** @param value parsed JSON; undefined if the request has no body @returns SHA-256, base64url */
export async function bodyDigest(value: unknown, loop: LoopShare): Promise<string> {
  const hash = createHash('sha256')
  const pieces = canonicalPieces(value)
  while (await loop.run(() => hashSome(hash, pieces)));
  return hash.digest('base64url')
}

/** @returns whether more follows */
function hashSome(hash: Hash, pieces: Generator<string, void>): boolean {
  let text = ''
  let next = pieces.next()
  while (next.done !== true) {
    text += next.value
    if (text.length >= AT_ONCE) break
    next = pieces.next()
  }
  hash.update(text)
  return next.done !== true
}

function* canonicalPieces(value: unknown): Generator<string, void> {
  if (typeof value === 'string' && value.length > AT_ONCE) yield* textPieces(value)
  else if (Array.isArray(value)) yield* listPieces(value)
  else if (typeof value === 'object' && value !== null) yield* objectPieces(value as Record<string, unknown>)
  else if (value !== undefined) yield JSON.stringify(value)
}

/** Not JSON, but just as unambiguous. */
function* textPieces(text: string): Generator<string, void> {
  for (let from = 0; from < text.length; from += AT_ONCE)
    yield `+${JSON.stringify(text.slice(from, from + AT_ONCE))}`
}

function* listPieces(list: readonly unknown[]): Generator<string, void> {
  yield '['
  for (const entry of list) {
    yield* canonicalPieces(entry)
    yield ','
  }
  yield ']'
}

function* objectPieces(object: Readonly<Record<string, unknown>>): Generator<string, void> {
  yield '{'
  for (const name of Object.keys(object).sort()) {
    yield `${JSON.stringify(name)}:`
    yield* canonicalPieces(object[name])
    yield ','
  }
  yield '}'
}
