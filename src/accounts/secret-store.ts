/**
 * The appliance's own secrets, versioned: the newest signs, all of them verify, so that a rotation breaks nothing
 * that is under way.
 */
import type { Database, Queries } from '../db/database.js'

export type SecretName = 'return_path'

interface SecretRow {
  name: SecretName
  version: number
  /** Base64. */
  value: string
  created_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    secrets: SecretRow
  }
}

export interface VersionedSecret {
  /** From 1. */
  readonly version: number
  readonly secret: Buffer
}

/** All versions, newest first. */
export async function readSecrets(db: Queries, name: SecretName): Promise<VersionedSecret[]> {
  const rows = await db
    .selectFrom('secrets')
    .selectAll()
    .where('name', '=', name)
    .orderBy('version', 'desc')
    .execute()
  return rows.map(row => ({ version: row.version, secret: Buffer.from(row.value, 'base64') }))
}

/** Makes the first version where there is none. @param fresh 32 random bytes */
export async function ensureSecret(
  database: Database,
  name: SecretName,
  fresh: Buffer,
  now: number,
): Promise<VersionedSecret[]> {
  await database.write(tx =>
    tx.db
      .insertInto('secrets')
      .values({ name, version: 1, value: fresh.toString('base64'), created_at: now })
      .onConflict(conflict => conflict.doNothing())
      .execute(),
  )
  return readSecrets(database.reader, name)
}
