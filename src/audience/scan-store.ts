/**
 * SQL that looks at all contacts of an audience: in pieces of some ten thousand, several at once, newest first.
 *
 * For `Database.slowReader`, whose threads share the pieces. No statement takes long, so that other reads have their turn between
 * two, and a work that takes too long is ended between two as well: a statement in SQLite cannot be. What is counted is each
 * piece at its own moment; a contact stays in its piece.
 * Fails: AppError unavailable where it takes too long.
 */
import { sql, type RawBuilder } from 'kysely'
import { AppError } from '../core/errors.js'
import { dialectOf } from '../db/dialect.js'
import type { Queries } from '../db/database.js'
import { isBehind, isUpTo, type KeysetOrder } from '../db/listing.js'
import type { Listing, Page, Position } from '../http/pagination.js'
import type { Clock } from '../world/time/clock.js'
import { contactsOf, type SeqRange } from './audience-store.js'
import type { Contact } from './contacts/contact.js'
import { findContactsBySeq } from './contacts/contact-store.js'

/** Contacts of a piece, unless that were more than so many pieces. */
const PIECE_CONTACTS = 65_536
const MOST_PIECES = 64
/** Rules that such a piece is for. With more of them pieces are as much smaller, so that other reads have their turn as soon. */
const PIECE_RULES = 3
/** Pieces that are asked for at a time; as many as threads read. */
const AT_ONCE = 2
/** For all pieces together. */
export const SCAN_LIMIT_MS = 5_000

/** Ends what has gone on for too long. @throws AppError unavailable */
export type Patience = () => void

export function patience(clock: Pick<Clock, 'monotonic'>): Patience {
  const since = clock.monotonic()
  return () => {
    if (clock.monotonic() - since <= SCAN_LIMIT_MS) return
    const seconds = SCAN_LIMIT_MS / 1_000
    throw new AppError(
      'unavailable',
      `to find these contacts takes longer than ${seconds} s; ask with fewer rules or words`,
      {
        retryAfterMs: 30_000,
      },
    )
  }
}

/** Conditions on the table `contacts`, of which only those of a range are asked. */
export type Where = (range: SeqRange) => readonly RawBuilder<boolean>[]

/** The contacts that an audience has had so far, newest first. @param rules that are asked of each of them */
export function piecesOf(
  audience: { readonly number: number; readonly lastContact: number },
  rules = 1,
): SeqRange[] {
  const { first } = contactsOf(audience.number)
  const size =
    rules <= PIECE_RULES
      ? Math.max(PIECE_CONTACTS, Math.ceil((audience.lastContact + 1) / MOST_PIECES))
      : Math.ceil((PIECE_CONTACTS * PIECE_RULES) / rules)
  const pieces: SeqRange[] = []
  for (let start = 0; start <= audience.lastContact; start += size)
    pieces.unshift({ first: first + start, last: first + start + size - 1 })
  return pieces
}

/**
 * `contacts`, of which each row of a range is looked at: on SQLite along the table itself. An index would name the rows that are not
 * deleted, which most are, and each of them would be looked for in the table.
 */
export function allContacts(db: Queries): RawBuilder<unknown> {
  return dialectOf(db) === 'sqlite' ? sql`contacts not indexed` : sql`contacts`
}

/** Asks of each piece, in their order. @returns the answers, in their order as well */
export async function eachPiece<P, T>(
  pieces: readonly P[],
  mayGoOn: Patience,
  ask: (piece: P) => Promise<T>,
): Promise<T[]> {
  const answers: T[] = []
  let next = 0
  const line = async () => {
    while (next < pieces.length) {
      const at = next++
      mayGoOn()
      answers[at] = await ask(pieces[at] as P)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, line))
  return answers
}

export interface Counted {
  readonly piece: SeqRange
  readonly count: number
}

export function countPieces(
  db: Queries,
  pieces: readonly SeqRange[],
  where: Where,
  mayGoOn: Patience,
): Promise<Counted[]> {
  return eachPiece(pieces, mayGoOn, async piece => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from ${allContacts(db)} where ${sql.join(where(piece), sql` and `)}`.execute(
      db,
    )
    return { piece, count: rows[0]?.count ?? 0 }
  })
}

/** A page of those that meet the conditions, newest first, and how many they are: only pieces that the page is in are read again. */
export async function listFromPieces(
  db: Queries,
  pieces: readonly SeqRange[],
  where: Where,
  { limit, offset }: Page,
  mayGoOn: Patience,
): Promise<Listing<Contact>> {
  const counted = await countPieces(db, pieces, where, mayGoOn)
  const total = counted.reduce((sum, { count }) => sum + count, 0)
  const seqs: number[] = []
  let passed = 0
  for (const { piece, count } of counted) {
    const skipped = Math.max(0, offset - passed)
    passed += count
    const wanted = Math.min(limit - seqs.length, count - skipped)
    if (wanted <= 0) continue
    mayGoOn()
    const { rows } = await sql<{ seq: number }>`
      select seq from ${allContacts(db)} where ${sql.join(where(piece), sql` and `)}
      order by seq desc limit ${wanted} offset ${skipped}`.execute(db)
    seqs.push(...rows.map(({ seq }) => seq))
  }
  const last = seqs.at(-1)
  return { items: await findContactsBySeq(db, seqs), total, end: last === undefined ? undefined : [last] }
}

/** The order of lists of contacts, newest first, where no other is asked for. */
export const NEWEST_FIRST: KeysetOrder = { columns: ['seq'], kinds: ['number'], direction: 'desc' }

/** Contacts that a statement of a walk looks at: few at first, since most pages are full by then. */
const FIRST_STEP = 2_048
const MOST_STEP = 32_768

export interface Walk {
  readonly audience: number
  readonly order: KeysetOrder
  /** What each contact is asked. */
  readonly where: readonly RawBuilder<boolean>[]
  /** Conditions that the index of the order serves: what does not meet them is not even looked at. */
  readonly within?: readonly RawBuilder<boolean>[]
}

/**
 * Contacts that meet the conditions, along the index of an order from a position on: no more of them are looked at than a page needs.
 *
 * @param after undefined: from the beginning @param offset of those that meet the conditions, so many are passed over
 * @returns their numbers with their positions, at most `limit`
 */
export async function walkContacts(
  db: Queries,
  { audience, order, where, within = [] }: Walk,
  after: Position | undefined,
  { limit, offset }: Pick<Page, 'limit' | 'offset'>,
  mayGoOn: Patience,
): Promise<readonly { readonly seq: number; readonly position: Position }[]> {
  const { first, last } = contactsOf(audience)
  const isBySeq = order.columns[0] === 'seq'
  const base = [
    isBySeq ? sql<boolean>`seq between ${first} and ${last}` : sql<boolean>`audience = ${audience}`,
    sql<boolean>`deleted_at is null`,
    ...within,
  ]
  const columns = sql.join(order.columns.map(column => sql.ref(column)))
  const by = sql.join(order.columns.map(column => sql`${sql.ref(column)} ${sql.raw(order.direction)}`))
  const from = isBySeq ? allContacts(db) : indexedBy(db, order)
  const found: { readonly seq: number; readonly position: Position }[] = []
  let [passed, at, step] = [0, after, FIRST_STEP]
  while (found.length < limit) {
    mayGoOn()
    const rest = [...base, ...(at ? [isBehind(order, at)] : [])]
    const { rows: ends } = await sql<Record<string, string | number>>`
      select ${columns} from ${isBySeq ? sql`contacts` : from} where ${sql.join(rest, sql` and `)}
      order by ${by} limit 1 offset ${step - 1}`.execute(db)
    const end = ends[0] && order.columns.map(column => ends[0]?.[column] ?? '')
    const inStep = [...rest, ...(end ? [isUpTo(order, end)] : []), ...where]
    const skipped = offset - passed
    const { rows } = await sql<Record<string, string | number> & { number: number }>`
      select seq as number, ${columns} from ${from} where ${sql.join(inStep, sql` and `)}
      order by ${by} limit ${skipped > 0 ? step : limit - found.length}`.execute(db)
    for (const row of rows.slice(skipped, skipped + limit - found.length))
      found.push({ seq: row.number, position: order.columns.map(column => row[column] ?? '') })
    passed += Math.min(Math.max(skipped, 0), rows.length)
    if (!end) break
    at = end
    step = Math.min(step * 4, MOST_STEP)
  }
  return found
}

/** SQLite would take an index of some contacts, e.g. of those who bounced, and sort them. */
function indexedBy(db: Queries, { columns: [column = ''] }: KeysetOrder): RawBuilder<unknown> {
  if (dialectOf(db) === 'postgres') return sql`contacts`
  return sql`contacts indexed by ${sql.ref(`contacts_by_${column.replace(/_at$/, '')}`)}`
}

/** A page of a list that a cursor led to. @param where what each contact is asked */
export async function listFromCursor(
  db: Queries,
  walk: Walk,
  { limit, after }: Page,
  mayGoOn: Patience,
): Promise<Listing<Contact>> {
  const position = after?.position(...walk.order.kinds)
  const found = await walkContacts(db, walk, position, { limit: limit + 1, offset: 0 }, mayGoOn)
  const shown = found.slice(0, limit)
  return {
    items: await findContactsBySeq(
      db,
      shown.map(({ seq }) => seq),
    ),
    total: after?.total ?? 0,
    end: shown.at(-1)?.position,
    hasMore: found.length > limit,
  }
}
