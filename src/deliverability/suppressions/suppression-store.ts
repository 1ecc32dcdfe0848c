/**
 * SQL of suppressions: addresses, or whole domains as `@example.com`, that a workspace no longer mails.
 *
 * Checked when mail is accepted and before each delivery attempt.
 */
import { createHash } from 'node:crypto'
import type { Generated, Insertable } from 'kysely'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { inLists, inPieces, statement } from '../../db/statement.js'
import type { Listing, Page } from '../../http/pagination.js'

export const SUPPRESSION_REASONS = ['hard_bounce', 'complaint', 'unsubscribe', 'manual'] as const
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]
/** `all` stops all mail; `marketing` stops marketing mail only. */
export const SUPPRESSION_SCOPES = ['all', 'marketing'] as const
export type SuppressionScope = (typeof SUPPRESSION_SCOPES)[number]

interface SuppressionRow {
  seq: Generated<number>
  workspace_id: string
  email: string
  reason: SuppressionReason
  scope: SuppressionScope
  source_message_id: string | null
  created_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    suppressions: SuppressionRow
  }
}

export interface Suppression {
  readonly workspaceId: string
  /** Normalized; `@example.com` for a whole domain. */
  readonly email: string
  readonly reason: SuppressionReason
  readonly scope: SuppressionScope
  readonly sourceMessageId: string | null
  readonly createdAt: number
}

/** @returns false if the address has an entry, which is not changed */
export async function insertSuppression(db: Queries, suppression: Suppression): Promise<boolean> {
  const result = await db
    .insertInto('suppressions')
    .values(toRow(suppression))
    .onConflict(conflict => conflict.columns(['workspace_id', 'email']).doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** `widened`: the entry stopped marketing only and now stops everything. `known`: it already covers the scope and is unchanged. */
export type SuppressResult = 'added' | 'widened' | 'known'

/** For requests whose caller needs the result; `suppressAll` is for bulk. */
export async function suppressOrWiden(db: Queries, suppression: Suppression): Promise<SuppressResult> {
  if (await insertSuppression(db, suppression)) return 'added'
  if (suppression.scope !== 'all') return 'known'
  const { email, workspace_id: workspaceId, ...changes } = toRow(suppression)
  const result = await db
    .updateTable('suppressions')
    .set(changes)
    .where('workspace_id', '=', workspaceId)
    .where('email', '=', email)
    .where('scope', '=', 'marketing')
    .executeTakeFirst()
  return result.numUpdatedRows > 0n ? 'widened' : 'known'
}

const upsertRows = statement((db, { rows }: { rows: readonly Insertable<SuppressionRow>[] }) =>
  db
    .insertInto('suppressions')
    .values(rows)
    .onConflict(conflict =>
      conflict
        .columns(['workspace_id', 'email'])
        .doUpdateSet(e => ({
          reason: e.ref('excluded.reason'),
          scope: e.ref('excluded.scope'),
          source_message_id: e.ref('excluded.source_message_id'),
          created_at: e.ref('excluded.created_at'),
        }))
        .where('suppressions.scope', '=', 'marketing')
        .where('excluded.scope', '=', 'all'),
    ),
)

/** Adds entries. An existing entry is replaced only if it stops marketing and the new one stops everything. */
export async function suppressAll(db: Queries, suppressions: readonly Suppression[]): Promise<void> {
  // A statement may change a row only once.
  const strongest = new Map<string, Suppression>()
  for (const one of suppressions) {
    const key = `${one.workspaceId} ${one.email}`
    const other = strongest.get(key)
    if (!other || (other.scope === 'marketing' && one.scope === 'all')) strongest.set(key, one)
  }
  const rows = [...strongest.values()].map(toRow)
  for (const piece of inPieces(rows)) await upsertRows(db, { rows: piece })
}

export async function findSuppression(
  db: Queries,
  workspaceId: string,
  email: string,
): Promise<Suppression | undefined> {
  const row = await db
    .selectFrom('suppressions')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('email', 'in', [email, erasedEntry(email)])
    // `all` before `marketing`.
    .orderBy('scope')
    .executeTakeFirst()
  return row && fromRow(row)
}

const selectEntries = statement(
  (db, { workspaceId, emails }: { workspaceId: string; emails: readonly string[] }) => {
    const entries = db
      .selectFrom('suppressions')
      .select(['email', 'scope', 'reason', 'source_message_id', 'created_at'])
      .where('workspace_id', '=', workspaceId)
    const [first, second, third, ...others] = emails
    // Mail to one recipient: for an `in` list SQLite builds a temporary table, which is slower than three lookups.
    if (first !== undefined && second !== undefined && third !== undefined && others.length === 0)
      return entries
        .where('email', '=', first)
        .unionAll(entries.where('email', '=', second))
        .unionAll(entries.where('email', '=', third))
    return entries.where('email', 'in', emails)
  },
)

/**
 * Which of these addresses are suppressed.
 *
 * @param emails lower case
 * @param isMarketing whether entries with scope `marketing` count
 */
export async function findSuppressed(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
  isMarketing: boolean,
): Promise<Set<string>> {
  const entries = await entriesOf(db, workspaceId, emails)
  const isSuppressedBy = (entry: Entry | undefined) => entry && (entry.scope === 'all' || isMarketing)
  return new Set(
    emails.filter(
      email => isSuppressedBy(entries.get(email)) || isSuppressedBy(entries.get(domainEntry(email))),
    ),
  )
}

/** Reasons of the addresses' own entries; entries of whole domains are ignored. @param emails lower case */
export async function findReasons(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
): Promise<ReadonlyMap<string, SuppressionReason>> {
  const reasons = new Map<string, SuppressionReason>()
  const entries = await entriesOf(db, workspaceId, emails)
  for (const email of emails) {
    const entry = entries.get(email)
    if (entry) reasons.set(email, entry.reason)
  }
  return reasons
}

type Entry = Pick<Suppression, 'reason' | 'scope' | 'sourceMessageId' | 'createdAt'>

export interface AddressSuppressions {
  readonly own?: Entry
  readonly domain?: Entry
}

/** Addresses without entries are missing. @param emails lower case */
export async function findSuppressionsOf(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
): Promise<ReadonlyMap<string, AddressSuppressions>> {
  const entries = await entriesOf(db, workspaceId, emails)
  const standings = new Map<string, AddressSuppressions>()
  if (entries.size === 0) return standings
  for (const email of emails) {
    const standing = given({ own: entries.get(email), domain: entries.get(domainEntry(email)) })
    if (standing.own || standing.domain) standings.set(email, standing)
  }
  return standings
}

/** Entries of these addresses and their domains, by address or `@domain`. Erased addresses are found by their hash. */
async function entriesOf(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
): Promise<ReadonlyMap<string, Entry>> {
  const names = new Map<string, string>()
  for (const email of emails)
    names.set(email, email).set(domainEntry(email), domainEntry(email)).set(erasedEntry(email), email)
  const entries = new Map<string, Entry>()
  for (const list of inLists([...names.keys()]))
    for (const row of (await selectEntries(db, { workspaceId, emails: list })).rows) {
      const name = names.get(row.email) ?? row.email
      if (entries.get(name)?.scope === 'all') continue
      const { reason, scope, source_message_id: sourceMessageId, created_at: createdAt } = row
      entries.set(name, { reason, scope, sourceMessageId, createdAt })
    }
  return entries
}

/** Replaces an erased address, so that its suppression survives. */
export function erasedEntry(email: string): string {
  return `erased:${createHash('sha256').update(email).digest('hex')}`
}

/** Replaces the address by its hash. Of two entries, after an earlier erasure, the one that stops more is kept. @returns how many entries */
export async function eraseSuppressions(
  db: Queries,
  workspaceIds: readonly string[],
  email: string,
): Promise<number> {
  const of = (name: string) =>
    db
      .selectFrom('suppressions')
      .select('workspace_id')
      .where('workspace_id', 'in', workspaceIds)
      .where('email', '=', name)
  const hashed = of(erasedEntry(email))
  await db
    .deleteFrom('suppressions')
    .where('email', '=', erasedEntry(email))
    .where('scope', '=', 'marketing')
    .where('workspace_id', 'in', of(email).where('scope', '=', 'all'))
    .execute()
  const again = await db
    .deleteFrom('suppressions')
    .where('email', '=', email)
    .where('workspace_id', 'in', hashed)
    .executeTakeFirst()
  const changed = await db
    .updateTable('suppressions')
    .set({ email: erasedEntry(email) })
    .where('workspace_id', 'in', workspaceIds)
    .where('email', '=', email)
    .executeTakeFirst()
  return Number(again.numDeletedRows + changed.numUpdatedRows)
}

/** The domain entry that covers an address, e.g. `@example.com`. */
export function domainEntry(email: string): string {
  return email.slice(email.lastIndexOf('@'))
}

/** For a resubscribed person. @returns whether an unsubscribe entry existed; entries with other reasons are kept */
export async function deleteUnsubscribe(db: Queries, workspaceId: string, email: string): Promise<boolean> {
  const result = await db
    .deleteFrom('suppressions')
    .where('workspace_id', '=', workspaceId)
    .where('email', 'in', [email, erasedEntry(email)])
    .where('reason', '=', 'unsubscribe')
    .where('scope', '=', 'marketing')
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

export async function deleteSuppression(db: Queries, workspaceId: string, email: string): Promise<boolean> {
  const result = await db
    .deleteFrom('suppressions')
    .where('workspace_id', '=', workspaceId)
    .where('email', 'in', [email, erasedEntry(email)])
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

export interface SuppressionFilter {
  readonly reason?: SuppressionReason
  readonly scope?: SuppressionScope
  readonly email?: string
}

export async function listSuppressions(
  db: Queries,
  workspaceId: string,
  page: Page,
  filter: SuppressionFilter = {},
): Promise<Suppression[]> {
  const rows = await matching(db, workspaceId, filter)
    .selectAll()
    .orderBy('seq', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  return rows.map(fromRow)
}

export async function pageSuppressions(
  db: Queries,
  workspaceId: string,
  page: Page,
  filter: SuppressionFilter,
): Promise<Listing<Suppression>> {
  return newestFirst(matching(db, workspaceId, filter), page, fromRow)
}

/** All of a workspace, oldest first, in pages; includes entries added meanwhile. */
export async function* everySuppression(db: Queries, workspaceId: string): AsyncGenerator<Suppression[]> {
  for (let last = 0; ;) {
    const rows = await db
      .selectFrom('suppressions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('seq', '>', last)
      .orderBy('seq')
      .limit(1_000)
      .execute()
    const end = rows.at(-1)
    if (!end) return
    yield rows.map(fromRow)
    last = end.seq
  }
}

function matching(db: Queries, workspaceId: string, { reason, scope, email }: SuppressionFilter) {
  let query = db.selectFrom('suppressions').where('workspace_id', '=', workspaceId)
  if (reason !== undefined) query = query.where('reason', '=', reason)
  if (scope !== undefined) query = query.where('scope', '=', scope)
  if (email !== undefined) query = query.where('email', 'in', [email, erasedEntry(email)])
  return query
}

function toRow(suppression: Suppression): Insertable<SuppressionRow> {
  return {
    workspace_id: suppression.workspaceId,
    email: suppression.email,
    reason: suppression.reason,
    scope: suppression.scope,
    source_message_id: suppression.sourceMessageId,
    created_at: suppression.createdAt,
  }
}

function fromRow(row: Omit<SuppressionRow, 'seq'>): Suppression {
  return {
    workspaceId: row.workspace_id,
    email: row.email,
    reason: row.reason,
    scope: row.scope,
    sourceMessageId: row.source_message_id,
    createdAt: row.created_at,
  }
}
