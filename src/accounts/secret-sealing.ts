/**
 * Checks `secrets.key` against the database at start, and seals plain secrets once a key is set.
 *
 * All secrets are sealed in one transaction, so the server's own show whether the database is sealed. A command beside a running server
 * never seals, because that server still expects plain values; only processes allowed to migrate the schema do.
 * Fails: `SecretKeyError`, whose text names the configuration key and never contains a secret.
 */
import { readFileSync } from 'node:fs'
import { parseSecretKey, type SecretKeySource } from '../config/schema/secret-key.js'
import type { Queries } from '../db/database.js'
import type { Services } from '../db/services.js'
import { isSealed, plainBox, secretBox, type SecretBox } from './secret-box.js'
import { findNewestSecret, withSecureDelete, sealSecrets } from './secret-store.js'

export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError'
}

export interface SealingParts extends Pick<Services, 'database' | 'random'> {
  readonly source: SecretKeySource | undefined
  readonly maySeal: boolean
  /** Seals the secrets of other stores, in the same transaction. */
  readonly sealOthers: (db: Queries, box: SecretBox) => Promise<void>
}

/** @returns the box for all stores of secrets @throws SecretKeyError */
export async function openSecretBox(parts: SealingParts): Promise<SecretBox> {
  const { database, random, source, maySeal, sealOthers } = parts
  const known = await findNewestSecret(database.reader)
  const hasSeals = known !== undefined && isSealed(known.value)
  if (!source) {
    if (hasSeals) throw new SecretKeyError('the secrets in the database are sealed: set secrets.key')
    return plainBox
  }
  const box = secretBox(readSecretKey(source), random)
  if (hasSeals) assertOpens(box, known)
  else if (!maySeal) return plainBox
  if (maySeal)
    await database.write(tx =>
      withSecureDelete(tx.db, database.dialect, async () => {
        await sealSecrets(tx.db, box)
        await sealOthers(tx.db, box)
      }),
    )
  return box
}

function assertOpens(box: SecretBox, { value, place }: { value: string; place: string }): void {
  try {
    box.open(value, place)
  } catch {
    throw new SecretKeyError(
      'secrets.key is not the key that the secrets in the database were sealed with: restore the original key',
    )
  }
}

/** @returns 32 bytes @throws SecretKeyError */
export function readSecretKey(source: SecretKeySource): Buffer {
  if ('bytes' in source) return source.bytes
  const key = parseSecretKey(readKeyFile(source.file).trim())
  if (!key) throw new SecretKeyError(`secrets.key: ${source.file} does not hold 32 bytes in base64`)
  return key
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    throw new SecretKeyError(`secrets.key: ${file} cannot be read (${why})`)
  }
}
