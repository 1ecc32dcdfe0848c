/**
 * The signature at the end of a backup file: shows whether the file was changed since it was made.
 *
 * One line of fixed length after the last page, which SQLite ignores: an HMAC of everything before it, with a key derived from
 * `secrets.key`, or a plain hash where none is set, which finds damage and no forgery. Checked before SQLite opens the file, since a
 * database brings views and triggers that act when it is read or written.
 * Standards: RFC 2104 (HMAC), FIPS 180-4 (SHA-256). Fails: Errors that say what is wrong, without the file's name; as reading does.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { appendFileSync, fstatSync, openSync, readSync, closeSync } from 'node:fs'

const MARK = 'postroad-backup-signature:1'
const LINE_OCTETS = 160
const LINE = new RegExp(`^\\n${MARK} (hmac-sha256|sha256) ([0-9a-f]{16}) ([0-9a-f]{64}) *\\n$`)
const NO_KEY = '0'.repeat(16)
const READ_AT_ONCE = 1 << 20

export interface CheckedBackup {
  /** Octets of the database, without the signature. */
  readonly octets: number
  /** Whether a key vouches for it; otherwise nothing shows who wrote it. */
  readonly isSigned: boolean
}

/** @param secretKey `secrets.key`, 32 bytes; undefined if none is set */
export function signBackup(file: string, secretKey: Uint8Array | undefined): void {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    appendFileSync(file, lineOf(digest(descriptor, size, secretKey), secretKey))
  } finally {
    closeSync(descriptor)
  }
}

/** The size of the database in a backup, its signature unchecked. */
export function octetsOfBackup(descriptor: number): number {
  return readLine(descriptor).octets
}

/** @throws Error if it was changed, or if its signature cannot be checked */
export function checkBackup(descriptor: number, secretKey: Uint8Array | undefined): CheckedBackup {
  const { octets, algorithm, keyId, expected } = readLine(descriptor)
  if (algorithm === undefined)
    throw new Error('it has no signature: it is incomplete, no backup, or one made by an older version')
  const isSigned = algorithm === 'hmac-sha256'
  if (isSigned && secretKey === undefined)
    throw new Error('it is signed, and secrets.key, which it was signed with, is not set')
  if (!isSigned && secretKey !== undefined)
    throw new Error(
      'it is not signed: secrets.key was not set where it was made, or the signature was removed',
    )
  if (isSigned && keyId !== keyIdOf(secretKey))
    throw new Error('it is signed with another secrets.key than the one that is set here')
  if (!timingSafeEqual(Buffer.from(digest(descriptor, octets, secretKey)), Buffer.from(expected)))
    throw new Error(
      isSigned
        ? 'it was changed since it was made: its signature does not match'
        : 'it is damaged: its checksum does not match',
    )
  return { octets, isSigned }
}

interface SignatureLine {
  readonly octets: number
  readonly algorithm: string | undefined
  readonly keyId: string
  readonly expected: string
}

function readLine(descriptor: number): SignatureLine {
  const { size } = fstatSync(descriptor)
  const octets = size - LINE_OCTETS
  const line = Buffer.alloc(LINE_OCTETS)
  const read = octets < 0 ? 0 : readSync(descriptor, line, 0, LINE_OCTETS, octets)
  const [, algorithm, keyId = '', expected = ''] = LINE.exec(line.toString('latin1', 0, read)) ?? []
  return { octets: algorithm === undefined ? size : octets, algorithm, keyId, expected }
}

function lineOf(hash: string, secretKey: Uint8Array | undefined): string {
  const algorithm = secretKey ? 'hmac-sha256' : 'sha256'
  return `\n${MARK} ${algorithm} ${keyIdOf(secretKey)} ${hash}`.padEnd(LINE_OCTETS - 1) + '\n'
}

function digest(descriptor: number, octets: number, secretKey: Uint8Array | undefined): string {
  const hash = secretKey ? createHmac('sha256', signingKey(secretKey)) : createHash('sha256')
  const piece = Buffer.allocUnsafe(READ_AT_ONCE)
  for (let at = 0; at < octets;) {
    const read = readSync(descriptor, piece, 0, Math.min(READ_AT_ONCE, octets - at), at)
    if (read === 0) throw new Error('it became shorter while it was read')
    hash.update(piece.subarray(0, read))
    at += read
  }
  return hash.digest('hex')
}

/** Derived, since the secret itself is an encryption key. */
function signingKey(secretKey: Uint8Array): Buffer {
  return createHmac('sha256', secretKey).update('postroad backup signature').digest()
}

/** Tells another key from a changed file. */
function keyIdOf(secretKey: Uint8Array | undefined): string {
  if (!secretKey) return NO_KEY
  return createHmac('sha256', secretKey)
    .update('postroad backup key id')
    .digest('hex')
    .slice(0, NO_KEY.length)
}
