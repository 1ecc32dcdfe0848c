/**
 * SQL of the names that nodes have published: in DNS records of customers and in mail, where they outlive a change of configuration or of
 * machine. They go along when a database is copied.
 */
import type { Queries } from '../db/database.js'

/** `hostname`: each node's own. The others have to be the same on every node. */
export const PURPOSES = ['hostname', 'reports', 'return_path', 'dkim_zone', 'public_url'] as const
export type Purpose = (typeof PURPOSES)[number]

/** In lower case. */
export type PublishedNames = Readonly<Record<Purpose, string>>

interface PublishedNameRow {
  node: string
  purpose: string
  name: string
  used_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    published_names: PublishedNameRow
  }
}

export interface PublishedName {
  /** Hostname of the node. */
  readonly node: string
  readonly purpose: Purpose
  readonly name: string
  /** Start of the last run that used it, ms since epoch UTC. */
  readonly usedAt: number
}

/** Only configurations add names, so there are few; this many are read. */
const MAX_NAMES = 1_000

/** To be called at each start of a node. */
export async function recordPublishedNames(
  db: Queries,
  node: string,
  names: PublishedNames,
  now: number,
): Promise<void> {
  const rows = PURPOSES.map(purpose => ({ node, purpose, name: names[purpose], used_at: now }))
  await db
    .insertInto('published_names')
    .values(rows)
    .onConflict(conflict => conflict.columns(['node', 'purpose', 'name']).doUpdateSet({ used_at: now }))
    .execute()
}

/** Latest first. */
export async function listPublishedNames(db: Queries): Promise<PublishedName[]> {
  const rows = await db
    .selectFrom('published_names')
    .select(['node', 'purpose', 'name', 'used_at'])
    .orderBy('used_at', 'desc')
    .orderBy('node')
    .orderBy('purpose')
    .orderBy('name')
    .limit(MAX_NAMES)
    .execute()
  return rows.flatMap(({ used_at: usedAt, ...row }) => {
    const purpose = PURPOSES.find(one => one === row.purpose)
    return purpose === undefined ? [] : [{ ...row, purpose, usedAt }]
  })
}
