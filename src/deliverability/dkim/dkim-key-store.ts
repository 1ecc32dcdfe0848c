/** SQL of DKIM keys in their course: switching, renewing, sealing, and what the zone publishes. */
import type { Queries } from '../../db/database.js'
import { keyContext, type Domain, type KeyPairText, type Selector, type KeyCipher } from '../domains/domain-store.js'

/** The standby keys of a domain become active, the active ones retiring. */
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

/** A key that nobody needs any more, on a selector that can have another one. */
export interface RetiredKey extends Pick<Selector, 'name' | 'algorithm'>, Pick<Domain, 'domain'> {
  readonly id: string
  readonly domainId: string
}

/** Those whose time has come, longest ago first; of one domain where given. Removed domains keep theirs. */
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
    .$if(domainId !== undefined, query => query.where('domain_id', '=', domainId ?? ''))
    .orderBy('retire_at')
    .limit(limit)
    .execute()
}

/** @returns false where somebody else was first */
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

/** What was found of a domain's records, to be changed in part. */
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
 * Every key whose record has to be found: of all domains there are, sandboxes aside, and of those removed since then.
 *
 * @returns by domain and selector
 */
export async function listPublishedKeys(db: Queries, removedSince: number): Promise<PublishedKey[]> {
  return publishedKeys(db, removedSince).orderBy('domains.domain').orderBy('selector').execute()
}

/** The same of one selector; what is not to be found is not there. */
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

/** How a private key begins that is not sealed. */
const PEM = '-----BEGIN'

/** Rows of one statement, with ten values each. */
const ROWS_AT_ONCE = 50

/**
 * Seals the private keys that are not.
 *
 * The table is emptied and filled again: a change in place would leave what once stood in the free parts of its pages.
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
