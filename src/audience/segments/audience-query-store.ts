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
import { hasAny, isWithAny, LIST_MEMBERS } from '../pair-store.js'
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
  readonly unsubscribed: number
  /** Of those who are subscribed. */
  readonly bounced: number
}

const NOBODY: Estimate = { count: 0, mailable: 0, unsubscribed: 0, bounced: 0 }

export async function estimate(db: Queries, who: Who, asking: Asking, mayGoOn: Patience): Promise<Estimate> {
  const meant = await whereOf(db, who, asking)
  if (!meant) return NOBODY
  const { audience, where } = meant
  const { addresses, domains } = await countSuppressions(db, asking.workspaceId)
  const isMailable = sql.join(
    [sql`subscribed = 1 and is_bounced = 0`, ...(domains === 0 ? [] : [isOfOtherDomain(db, asking)])],
    sql` and `,
  )
  const counted = await eachPiece(piecesOf(audience), mayGoOn, async piece => {
    const { rows } = await sql<Estimate>`
      select count(*) as count, coalesce(sum(case when ${isMailable} then 1 else 0 end), 0) as mailable,
        coalesce(sum(1 - subscribed), 0) as unsubscribed,
        coalesce(sum(case when subscribed = 1 and is_bounced = 1 then 1 else 0 end), 0) as bounced
      from ${allContacts(db)} where ${sql.join(where(piece), sql` and `)}`.execute(db)
    return rows[0] ?? NOBODY
  })
  const sum = (of: (one: Estimate) => number) => counted.reduce((total, one) => total + of(one), 0)
  const mailable = sum(one => one.mailable)
  const suppressed =
    mailable === 0 || addresses === 0 ? 0 : await countSuppressed(db, meant, isMailable, asking, mayGoOn)
  return {
    count: sum(one => one.count),
    mailable: mailable - suppressed,
    unsubscribed: sum(one => one.unsubscribed),
    bounced: sum(one => one.bounced),
  }
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
  return sql<boolean>`${domainOf(db, sql`email`)} not in (
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

/** What becomes of a contact that a mailing means. */
export type Fate = 'mailable' | 'unsubscribed' | 'bounced' | 'suppressed'

export interface MeantContact {
  /** Its number. */
  readonly seq: number
  readonly fate: Fate
}

/** Contacts of a range of numbers, in their order, each with whether marketing may be mailed to it. @param range of few thousand */
export async function contactsMeant(
  db: Queries,
  who: Who,
  asking: Asking,
  range: SeqRange,
): Promise<readonly MeantContact[]> {
  const meant = await whereOf(db, who, asking)
  if (!meant) return []
  const { rows } = await sql<MeantContact>`
    select seq, case when subscribed = 0 then 'unsubscribed' when is_bounced = 1 then 'bounced'
      when exists (select 1 from suppressions where workspace_id = ${asking.workspaceId}
        and suppressions.email in (contacts.email, ${domainOf(db, sql`contacts.email`)})) then 'suppressed'
      else 'mailable' end as fate
    from ${allContacts(db)} where ${sql.join(meant.where(range), sql` and `)} order by seq`.execute(db)
  return rows
}

/** `@` and the domain of an address. */
function domainOf(db: Queries, email: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`substr(${email}, ${sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')}(${email}, '@'))`
}

/** Conditions, or those who were put into a list. */
export type Who = Group | { readonly list: number }

/** @returns undefined where there has never been a contact */
async function whereOf(db: Queries, who: Who, asking: Asking): Promise<Meant | undefined> {
  const audience = await findAudience(db, asking.workspaceId)
  if (!audience) return undefined
  const conditions =
    'list' in who ? membersOf(who.list) : await conditionsOf(db, audience.number, who, asking)
  const where = (range: SeqRange, reach: Reach = 'all') => [
    sql<boolean>`seq between ${range.first} and ${range.last}`,
    sql<boolean>`deleted_at is null`,
    conditions(range, reach),
  ]
  return { audience, where }
}

function membersOf(list: number) {
  return (range: SeqRange, reach: Reach) =>
    reach === 'all' ? isWithAny(LIST_MEMBERS, [list], range) : hasAny(LIST_MEMBERS, [list])
}
