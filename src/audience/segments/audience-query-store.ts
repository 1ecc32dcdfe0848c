/**
 * SQL of those whom conditions mean: how many, how many of them may be mailed, and who.
 *
 * For `Database.slowReader`. All contacts are looked at, piece by piece (`scan-store.ts`). Fails: AppError unavailable where that takes too
 * long.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, dialectOf, findAudience, type Audience, type SeqRange } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import {
  allContacts,
  countPieces,
  eachPiece,
  listFromPieces,
  piecesOf,
  type Patience,
} from '../scan-store.js'
import { conditionsOf, type Asking, type Reach } from './conditions-store.js'
import type { Group } from './read-conditions.js'

export interface Estimate {
  readonly count: number
  /** Subscribed, not bounced, and neither suppressed nor unsubscribed. */
  readonly mailable: number
}

export async function estimate(
  db: Queries,
  group: Group,
  asking: Asking,
  mayGoOn: Patience,
): Promise<Estimate> {
  const meant = await whereOf(db, group, asking)
  if (!meant) return { count: 0, mailable: 0 }
  const { audience, where } = meant
  const { addresses, domains } = await countSuppressions(db, asking.workspaceId)
  const isMailable = sql.join(
    [sql`subscribed = 1 and is_bounced = 0`, ...(domains === 0 ? [] : [isOfOtherDomain(db, asking)])],
    sql` and `,
  )
  const counted = await eachPiece(piecesOf(audience), mayGoOn, async piece => {
    const { rows } = await sql<Estimate>`
      select count(*) as count, coalesce(sum(case when ${isMailable} then 1 else 0 end), 0) as mailable
      from ${allContacts(db)} where ${sql.join(where(piece), sql` and `)}`.execute(db)
    return rows[0] ?? { count: 0, mailable: 0 }
  })
  const sum = (of: (one: Estimate) => number) => counted.reduce((total, one) => total + of(one), 0)
  const mailable = sum(one => one.mailable)
  const suppressed =
    mailable === 0 || addresses === 0 ? 0 : await countSuppressed(db, meant, isMailable, asking, mayGoOn)
  return { count: sum(one => one.count), mailable: mailable - suppressed }
}

/** Suppressions that are gone through at a time. */
const SUPPRESSIONS_PER_PIECE = 20_000

/**
 * Of those who could be mailed, how many are suppressed by their address. Most suppressed addresses are of contacts that are
 * unsubscribed or bounced already, and they are few beside the contacts: to look for each of them is less work than to ask of each contact.
 */
async function countSuppressed(
  db: Queries,
  { audience, where }: Meant,
  isMailable: RawBuilder<unknown>,
  { workspaceId }: Asking,
  mayGoOn: Patience,
): Promise<number> {
  const all = contactsOf(audience.number)
  const counted = await eachPiece(await suppressionRanges(db, workspaceId), mayGoOn, async isInRange => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from contacts
      where audience = ${audience.number}
        and email in (select email from suppressions where workspace_id = ${workspaceId} and ${isInRange})
        and ${isMailable} and ${sql.join(where(all, 'some'), sql` and `)}`.execute(db)
    return rows[0]?.count ?? 0
  })
  return counted.reduce((total, count) => total + count, 0)
}

/** All addresses, in the order of their index. */
async function suppressionRanges(db: Queries, workspaceId: string): Promise<RawBuilder<boolean>[]> {
  const { rows } = await sql<{ email: string }>`
    select email from (
      select email, row_number() over (order by email) as number from suppressions where workspace_id = ${workspaceId}
    ) as numbered where number % ${sql.lit(SUPPRESSIONS_PER_PIECE)} = 0 order by email`.execute(db)
  const ends = rows.map(({ email }) => email)
  return [...ends, undefined].map((end, at) => {
    const start = ends[at - 1]
    return sql<boolean>`${start === undefined ? sql`1 = 1` : sql`email > ${start}`}
      and ${end === undefined ? sql`1 = 1` : sql`email <= ${end}`}`
  })
}

async function countSuppressions(db: Queries, workspaceId: string) {
  const { rows } = await sql<{ addresses: number; domains: number }>`
    select coalesce(sum(case when email like '@%' then 0 else 1 end), 0) as addresses,
      coalesce(sum(case when email like '@%' then 1 else 0 end), 0) as domains
    from suppressions where workspace_id = ${workspaceId}`.execute(db)
  return rows[0] ?? { addresses: 0, domains: 0 }
}

/** Entries are `@example.com`. Of the few addresses with another @, in quotes, it is not the domain. */
function isOfOtherDomain(db: Queries, { workspaceId }: Asking): RawBuilder<boolean> {
  const domain = sql`substr(email, ${sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')}(email, '@'))`
  return sql<boolean>`${domain} not in (
    select email from suppressions where workspace_id = ${workspaceId} and email like '@%')`
}

export async function countMatching(
  db: Queries,
  group: Group,
  asking: Asking,
  mayGoOn: Patience,
): Promise<number> {
  const meant = await whereOf(db, group, asking)
  if (!meant) return 0
  const counted = await countPieces(db, piecesOf(meant.audience), meant.where, mayGoOn)
  return counted.reduce((total, { count }) => total + count, 0)
}

/** Newest first. */
export async function listMatching(
  db: Queries,
  group: Group,
  asking: Asking,
  page: Page,
  mayGoOn: Patience,
): Promise<Listing<Contact>> {
  const meant = await whereOf(db, group, asking)
  if (!meant) return { items: [], total: 0 }
  return listFromPieces(db, piecesOf(meant.audience), meant.where, page, mayGoOn)
}

interface Meant {
  readonly audience: Audience
  /** @param reach whether all contacts of the range are looked at, or some that are known otherwise */
  readonly where: (range: SeqRange, reach?: Reach) => readonly RawBuilder<boolean>[]
}

/** @returns undefined where there has never been a contact */
async function whereOf(db: Queries, group: Group, asking: Asking): Promise<Meant | undefined> {
  const audience = await findAudience(db, asking.workspaceId)
  if (!audience) return undefined
  const conditions = await conditionsOf(db, audience.number, group, asking)
  const where = (range: SeqRange, reach: Reach = 'all') => [
    sql<boolean>`seq between ${range.first} and ${range.last}`,
    sql<boolean>`deleted_at is null`,
    conditions(range, reach),
  ]
  return { audience, where }
}
