/**
 * SQL of domain denials: bounces based on a single DNS lookup, until it is confirmed or discredited.
 *
 * Written by the event consumer `bounces`, judged by `confirm-denials.ts`, deleted by retention.
 */
import { sql, type Generated } from 'kysely'
import type { Queries } from '../../db/database.js'
import { deleteOldest } from '../../db/retention.js'
import { inLists, inPieces } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'

export type DenialVerdict = 'counts' | 'discredited'

interface DomainDenialRow {
  seq: Generated<number>
  domain: string
  denied_at: number
  workspace_id: string
  email: string
  message_id: string
  is_ours: Flag
  verdict: DenialVerdict | null
}

declare module '../../db/tables.js' {
  interface Tables {
    domain_denials: DomainDenialRow
  }
}

export interface DomainDenial {
  readonly domain: string
  readonly deniedAt: number
  readonly workspaceId: string
  readonly email: string
  readonly messageId: string
  /** Our own resolver said so; otherwise another server did. */
  readonly isOurs: boolean
}

export interface StoredDenial extends DomainDenial {
  readonly seq: number
}

/** One per message; repeats are ignored. */
export async function insertDenials(db: Queries, denials: readonly DomainDenial[]): Promise<void> {
  const rows = denials.map(denial => ({
    domain: denial.domain,
    denied_at: denial.deniedAt,
    workspace_id: denial.workspaceId,
    email: denial.email,
    message_id: denial.messageId,
    is_ours: flag(denial.isOurs),
    verdict: null,
  }))
  for (const piece of inPieces(rows))
    await db
      .insertInto('domain_denials')
      .values([...piece])
      .onConflict(conflict => conflict.column('message_id').doNothing())
      .execute()
}

/** Oldest first. @param before ms since epoch UTC */
export async function listUnjudged(db: Queries, before: number, limit: number): Promise<StoredDenial[]> {
  const rows = await db
    .selectFrom('domain_denials')
    .selectAll()
    .where('verdict', 'is', null)
    .where('denied_at', '<', before)
    .orderBy('denied_at')
    .limit(limit)
    .execute()
  return rows.map(denialFromRow)
}

/** Distinct domains denied in a period, whatever their verdict; counts up to `most`. */
export async function countDenied(db: Queries, from: number, until: number, most: number): Promise<number> {
  const { rows } = await sql<{ domains: number | string }>`
    select count(*) as domains from (
      select distinct domain from domain_denials where denied_at >= ${from} and denied_at < ${until} limit ${most}
    ) as denied`.execute(db)
  return Number(rows[0]?.domains ?? 0)
}

export async function setVerdict(
  db: Queries,
  seqs: readonly number[],
  verdict: DenialVerdict,
): Promise<void> {
  for (const list of inLists(seqs))
    await db.updateTable('domain_denials').set({ verdict }).where('seq', 'in', list).execute()
}

/** Credible denials of a domain, oldest first. */
export async function listCredible(
  db: Queries,
  domain: string,
  from: number,
  limit: number,
): Promise<StoredDenial[]> {
  const rows = await db
    .selectFrom('domain_denials')
    .selectAll()
    .where('domain', '=', domain)
    .where('denied_at', '>=', from)
    .where('verdict', '=', 'counts')
    .orderBy('denied_at')
    .limit(limit)
    .execute()
  return rows.map(denialFromRow)
}

export function deleteDenialsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'domain_denials', key: 'seq', time: 'denied_at' }, before, limit)
}

function denialFromRow(row: Omit<DomainDenialRow, 'seq'> & { seq: number }): StoredDenial {
  return {
    seq: row.seq,
    domain: row.domain,
    deniedAt: row.denied_at,
    workspaceId: row.workspace_id,
    email: row.email,
    messageId: row.message_id,
    isOurs: row.is_ours === 1,
  }
}
