/**
 * SQL of those whom conditions mean: how many, how many of them may be mailed, and who.
 *
 * For `Database.slowReader`, which also bounds the time that a statement takes.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, dialectOf, findAudience } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import { readPage } from '../contacts/contact-page-store.js'
import { readingOf } from '../paging.js'
import { compileConditions, type Asking } from './conditions-store.js'
import type { Group } from './read-conditions.js'

export interface Estimate {
  readonly count: number
  /** Subscribed, not bounced, and neither suppressed nor unsubscribed. */
  readonly mailable: number
}

const NONE: Estimate = { count: 0, mailable: 0 }

export async function estimate(db: Queries, group: Group, asking: Asking): Promise<Estimate> {
  const where = await conditionsOf(db, group, asking)
  if (!where) return NONE
  const { workspaceId } = asking
  const address = sql`(workspace_id = ${workspaceId})`
  const { rows: entries } = await sql<{ domains: number; all: number }>`
    select count(*) as "all", coalesce(sum(case when email like '@%' then 1 else 0 end), 0) as domains
    from suppressions where ${address}`.execute(db)
  const [known] = entries
  // As `@example.com`. Of the few addresses with another @, in quotes, it is not the domain.
  const domain = sql`substr(email, ${sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')}(email, '@'))`
  const isMailable = sql.join(
    [
      sql`subscribed = 1 and is_bounced = 0`,
      ...((known?.all ?? 0) === 0
        ? []
        : [sql`email not in (select email from suppressions where ${address})`]),
      ...((known?.domains ?? 0) === 0
        ? []
        : [sql`${domain} not in (select email from suppressions where ${address} and email like '@%')`]),
    ],
    sql` and `,
  )
  const { rows } = await sql<Estimate>`
    select count(*) as count, coalesce(sum(case when ${isMailable} then 1 else 0 end), 0) as mailable
    from contacts where ${sql.join(where, sql` and `)}`.execute(db)
  return rows[0] ?? NONE
}

export async function countMatching(db: Queries, group: Group, asking: Asking): Promise<number> {
  const where = await conditionsOf(db, group, asking)
  return where ? count(db, where) : 0
}

/** Newest first. */
export async function listMatching(
  db: Queries,
  group: Group,
  asking: Asking,
  page: Page,
): Promise<Listing<Contact>> {
  const where = await conditionsOf(db, group, asking)
  if (!where) return { items: [], total: 0 }
  const total = await count(db, where)
  return { items: await readPage(db, where, readingOf(page, total)), total }
}

async function count(db: Queries, where: readonly RawBuilder<boolean>[]): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from contacts where ${sql.join(where, sql` and `)}`.execute(db)
  return rows[0]?.total ?? 0
}

async function conditionsOf(db: Queries, group: Group, asking: Asking) {
  const audience = await findAudience(db, asking.workspaceId)
  if (!audience) return undefined
  const { first, last } = contactsOf(audience.number)
  return [
    sql<boolean>`seq between ${first} and ${last}`,
    sql<boolean>`deleted_at is null`,
    await compileConditions(db, group, asking),
  ]
}
