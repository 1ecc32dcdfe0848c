/**
 * Brings `secrets.key` and the database together at start: the right key opens what is sealed, plain secrets get sealed.
 *
 * Called when the appliance is opened. The appliance's own secrets tell how things stand: they are sealed in the same
 * transaction as everything else. A command beside a running server never seals what that server reads plain; that is
 * left to who may change the schema as well.
 * Fails: `SecretKeyError`, whose text names the configuration key and never holds a secret.
 */
import { readFileSync } from 'node:fs'
import { parseSecretKey, type SecretKeySource } from '../config/schema/secret-key.js'
import type { Database, Queries } from '../db/database.js'
import type { Random } from '../world/random.js'
import { isSealed, openShelf, secretBox, type SecretBox } from './secret-box.js'
import { findNewestSecret, overwriting, sealSecrets } from './secret-store.js'

/** The operator has to mend `secrets.key`. */
export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError'
}

export interface SealingParts {
  readonly database: Database
  readonly random: Random
  readonly source: SecretKeySource | undefined
  readonly maySeal: boolean
  /** Seals what other stores keep, in the transaction that seals the appliance's own secrets. */
  readonly sealOthers: (db: Queries, box: SecretBox) => Promise<void>
}

/** @returns the box that every store of secrets has to use. @throws SecretKeyError */
export async function openSecretBox(parts: SealingParts): Promise<SecretBox> {
  const { database, random, source, maySeal, sealOthers } = parts
  const known = await findNewestSecret(database.reader)
  const hasSeals = known !== undefined && isSealed(known.value)
  if (!source) {
    if (hasSeals) throw new SecretKeyError('the secrets in the database are sealed: set secrets.key')
    return openShelf
  }
  const box = secretBox(readSecretKey(source), random)
  if (hasSeals) assertOpens(box, known)
  else if (!maySeal) return openShelf
  if (maySeal)
    await database.write(tx =>
      overwriting(tx.db, database.dialect, async () => {
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
      'secrets.key is not the key that the secrets in the database were sealed with: set that one again',
    )
  }
}

function readSecretKey(source: SecretKeySource): Buffer {
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
