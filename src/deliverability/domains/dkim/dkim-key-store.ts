/** SQL of the DKIM key life cycle: rotation, renewal, encryption, and what the zone publishes. */
import { must } from '../../../core/must.js'
import type { Queries } from '../../../db/database.js'
import { keyContext, type Domain, type KeyPairText, type Selector, type KeyCipher } from '../domain-store.js'

/** Makes the domain's standby keys active and its active keys retiring. */
export async function switchKeys(db: Queries, domainId: string, retireAt: number): Promise<void> {
  await db
    .updateTable('dkim_keys')
    .set({ state: 'retiring', retire_at: retireAt })
    .where('domain_id', '=', domainId)
    .where('state', '=', 'active')
    .execute()
  await db
    .updateTable('dkim_keys')
    .set({ state: 'active', replaced_at: null })
    .where('domain_id', '=', domainId)
    .where('state', '=', 'standby')
    .execute()
}

/** A retired key whose selector can get a new one. */
export interface RetiredKey extends Pick<Selector, 'name' | 'algorithm'>, Pick<Domain, 'domain'> {
  readonly id: string
  readonly domainId: string
}

/** Keys whose retirement has ended, longest ago first. Keys of removed domains are not renewed. */
export async function listRetired(
  db: Queries,
  now: number,
  limit: number,
  domainId?: string,
): Promise<RetiredKey[]> {
  return db
    .selectFrom('dkim_keys')
    .innerJoin('domains', 'domains.id', 'dkim_keys.domain_id')
    .select(['dkim_keys.id', 'domain_id as domainId', 'domains.domain', 'selector as name', 'algorithm'])
    .where('retire_at', '<=', now)
    .where('removed_at', 'is', null)
    .$if(domainId !== undefined, query => query.where('domain_id', '=', must(domainId, 'domainId')))
    .orderBy('retire_at')
    .limit(limit)
    .execute()
}

/** @returns false if it was already replaced */
export async function replaceRetired(
  db: Queries,
  id: string,
  key: KeyPairText,
  now: number,
  seal: KeyCipher,
): Promise<boolean> {
  const result = await db
    .updateTable('dkim_keys')
    .set({
      public_key: key.publicKey,
      private_key: seal.seal(key.privateKey, keyContext(id)),
      state: 'standby',
      created_at: now,
      replaced_at: now,
      retire_at: null,
    })
    .where('id', '=', id)
    .where('retire_at', '<=', now)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function changeFindings(
  db: Queries,
  domainId: string,
  change: (findings: Domain['findings']) => Domain['findings'],
): Promise<void> {
  const row = await db
    .selectFrom('domains')
    .select('findings')
    .where('id', '=', domainId)
    .executeTakeFirstOrThrow()
  const before = row.findings === null ? {} : (JSON.parse(row.findings) as Domain['findings'])
  await db
    .updateTable('domains')
    .set({ findings: JSON.stringify(change(before)) })
    .where('id', '=', domainId)
    .execute()
}

export type PublishedKey = Pick<Selector, 'name' | 'algorithm' | 'publicKey'> & Pick<Domain, 'domain'>

/**
 * All keys to publish: of existing domains except sandboxes, and of domains removed since `removedSince`.
 *
 * @returns sorted by domain and selector
 */
export async function listPublishedKeys(db: Queries, removedSince: number): Promise<PublishedKey[]> {
  return publishedKeys(db, removedSince).orderBy('domains.domain').orderBy('selector').execute()
}

export async function findPublishedKey(
  db: Queries,
  selector: string,
  removedSince: number,
): Promise<PublishedKey | undefined> {
  return publishedKeys(db, removedSince).where('selector', '=', selector).executeTakeFirst()
}

function publishedKeys(db: Queries, removedSince: number) {
  return db
    .selectFrom('dkim_keys')
    .innerJoin('domains', 'domains.id', 'dkim_keys.domain_id')
    .select(['selector as name', 'algorithm', 'public_key as publicKey', 'domains.domain'])
    .where('is_sandbox', '=', 0)
    .where(e => e.or([e('removed_at', 'is', null), e('removed_at', '>=', removedSince)]))
}

const PEM = '-----BEGIN'

const ROWS_AT_ONCE = 50

/**
 * Encrypts private keys that are stored in the clear.
 *
 * Deletes and reinserts all rows: an update in place would leave the plain text in free parts of the pages.
 */
export async function sealKeys(db: Queries, seal: KeyCipher): Promise<void> {
  const plain = await db
    .selectFrom('dkim_keys')
    .select('id')
    .where('private_key', 'like', `${PEM}%`)
    .limit(1)
    .executeTakeFirst()
  if (!plain) return
  const rows = await db.selectFrom('dkim_keys').selectAll().execute()
  await db.deleteFrom('dkim_keys').execute()
  const sealed = rows.map(row =>
    row.private_key.startsWith(PEM)
      ? { ...row, private_key: seal.seal(row.private_key, keyContext(row.id)) }
      : row,
  )
  for (let at = 0; at < sealed.length; at += ROWS_AT_ONCE)
    await db
      .insertInto('dkim_keys')
      .values(sealed.slice(at, at + ROWS_AT_ONCE))
      .execute()
}
