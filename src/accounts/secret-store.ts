/**
 * The server's own secrets, versioned: the newest signs, all verify, so a rotation does not invalidate mail and links in use. Sealed in
 * the database if `secrets.key` is set.
 */
import { sql } from 'kysely'
import type { Database, Dialect, Queries } from '../db/database.js'
import { isSealed, type SecretBox } from './secret-box.js'

/** `links`: signs and seals the links in mail. */
export type SecretName = 'return_path' | 'links'

interface SecretRow {
  name: SecretName
  version: number
  /** Base64, or sealed base64. */
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

/** All versions, newest first. @throws SealError */
export async function readSecrets(db: Queries, name: SecretName, box: SecretBox): Promise<VersionedSecret[]> {
  const rows = await db
    .selectFrom('secrets')
    .selectAll()
    .where('name', '=', name)
    .orderBy('version', 'desc')
    .execute()
  return rows.map(row => ({
    version: row.version,
    secret: Buffer.from(box.open(row.value, placeOf(row)), 'base64'),
  }))
}

/** Creates version 1 if no secret exists. @param fresh 32 random bytes. @throws SealError */
export async function ensureSecret(
  database: Database,
  name: SecretName,
  fresh: Buffer,
  now: number,
  box: SecretBox,
): Promise<VersionedSecret[]> {
  const value = box.seal(fresh.toString('base64'), placeOf({ name, version: 1 }))
  await database.write(tx =>
    tx.db
      .insertInto('secrets')
      .values({ name, version: 1, value, created_at: now })
      .onConflict(conflict => conflict.doNothing())
      .execute(),
  )
  return readSecrets(database.reader, name, box)
}

/** Returned unopened, to check whether secrets are sealed and with which key. */
export async function findNewestSecret(db: Queries): Promise<{ value: string; place: string } | undefined> {
  const row = await db
    .selectFrom('secrets')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('name')
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { value: row.value, place: placeOf(row) }
}

/** Overwrites whatever `work` deletes; SQLite otherwise leaves the old bytes in its file. */
export async function withSecureDelete<T>(db: Queries, dialect: Dialect, work: () => Promise<T>): Promise<T> {
  if (dialect !== 'sqlite') return work()
  await sql`pragma secure_delete = on`.execute(db)
  try {
    return await work()
  } finally {
    // Costs extra writes, which deletes from the queue must not pay.
    await sql`pragma secure_delete = off`.execute(db)
  }
}

/** Seals plain values. Empties and refills the table, so that no page keeps the old bytes. */
export async function sealSecrets(db: Queries, box: SecretBox): Promise<void> {
  const rows = await db.selectFrom('secrets').selectAll().execute()
  if (rows.every(row => isSealed(row.value))) return
  await db.deleteFrom('secrets').execute()
  const sealed = rows.map(row =>
    isSealed(row.value) ? row : { ...row, value: box.seal(row.value, placeOf(row)) },
  )
  await db.insertInto('secrets').values(sealed).execute()
}

function placeOf({ name, version }: Pick<SecretRow, 'name' | 'version'>): string {
  return `secrets/value/${name}/${version}`
}
