/**
 * SQL that scans all contacts of an audience, newest first, in concurrent pieces of some ten thousand contacts.
 *
 * For `Database.slowReader`, whose threads share the pieces. Pieces are short so that other reads run in between, and because a running
 * SQLite statement cannot be cancelled: timeouts apply between pieces. Each piece is a snapshot of its own; contacts never move between
 * pieces. Fails: AppError unavailable on timeout.
 */
import { sql, type RawBuilder } from 'kysely'
import { AppError } from '../core/errors.js'
import { must } from '../core/must.js'
import { dialectOf, type Queries } from '../db/database.js'
import { isBehind, isUpTo, type KeysetOrder } from '../db/listing.js'
import type { Listing, Page, Position } from '../http/pagination.js'
import type { Clock } from '../world/time/clock.js'
import { contactsOf, type SeqRange } from './audience-store.js'
import type { Contact } from './contacts/contact.js'
import { findContactsBySeq } from './contacts/contact-store.js'

/** Contacts per piece, unless the audience would need too many pieces. */
const PIECE_CONTACTS = 65_536
const MAX_PIECES = 64
/** Rule count that `PIECE_CONTACTS` is sized for; more rules make pieces proportionally smaller. */
const PIECE_RULES = 3
/** Pieces read concurrently; one per reader thread. */
const AT_ONCE = 2
/** Timeout of a whole scan. */
export const SCAN_LIMIT_MS = 5_000

/** @throws AppError unavailable after the timeout */
export type Patience = () => void

export function patience(clock: Pick<Clock, 'monotonic'>): Patience {
  const since = clock.monotonic()
  return () => {
    if (clock.monotonic() - since <= SCAN_LIMIT_MS) return
    const seconds = SCAN_LIMIT_MS / 1_000
    throw new AppError(
      'unavailable',
      `finding these contacts takes longer than ${seconds} s; use fewer rules or words`,
      {
        retryAfterMs: 30_000,
      },
    )
  }
}

/** Conditions on the table `contacts`, limited to a range of live contacts. */
export type Where = (range: SeqRange) => readonly RawBuilder<boolean>[]

/** Splits an audience into pieces, newest first. @param rules evaluated per contact */
export function piecesOf(
  audience: { readonly number: number; readonly lastContact: number },
  rules = 1,
): SeqRange[] {
  const { first } = contactsOf(audience.number)
  const size =
    rules <= PIECE_RULES
      ? Math.max(PIECE_CONTACTS, Math.ceil((audience.lastContact + 1) / MAX_PIECES))
      : Math.ceil((PIECE_CONTACTS * PIECE_RULES) / rules)
  const pieces: SeqRange[] = []
  for (let start = 0; start <= audience.lastContact; start += size)
    pieces.unshift({ first: first + start, last: first + start + size - 1 })
  return pieces
}

/**
 * `contacts` for statements that visit every live contact of a range. On SQLite along the narrow index of live contacts: most
 * conditions need no more of `contacts`, whose rows are wide.
 */
export function liveContacts(db: Queries): RawBuilder<unknown> {
  return dialectOf(db) === 'sqlite' ? sql`contacts indexed by contacts_live` : sql`contacts`
}

/** Reads every piece. @returns results in the order of the pieces */
export async function eachPiece<P, T>(
  pieces: readonly P[],
  checkTimeout: Patience,
  ask: (piece: P) => Promise<T>,
): Promise<T[]> {
  const answers: T[] = []
  let next = 0
  const line = async () => {
    while (next < pieces.length) {
      const at = next++
      checkTimeout()
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
  checkTimeout: Patience,
): Promise<Counted[]> {
  return eachPiece(pieces, checkTimeout, async piece => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from ${liveContacts(db)} where ${sql.join(where(piece), sql` and `)}`.execute(
      db,
    )
    return { piece, count: must(rows[0], 'the count').count }
  })
}

/** A page of the matching contacts, newest first, and their number. Only pieces with rows of the page are read twice. */
export async function listFromPieces(
  db: Queries,
  pieces: readonly SeqRange[],
  where: Where,
  { limit, offset }: Page,
  checkTimeout: Patience,
): Promise<Listing<Contact>> {
  const counted = await countPieces(db, pieces, where, checkTimeout)
  const total = counted.reduce((sum, { count }) => sum + count, 0)
  const seqs: number[] = []
  let passed = 0
  for (const { piece, count } of counted) {
    const skipped = Math.max(0, offset - passed)
    passed += count
    const wanted = Math.min(limit - seqs.length, count - skipped)
    if (wanted <= 0) continue
    checkTimeout()
    const { rows } = await sql<{ seq: number }>`
      select seq from ${liveContacts(db)} where ${sql.join(where(piece), sql` and `)}
      order by seq desc limit ${wanted} offset ${skipped}`.execute(db)
    seqs.push(...rows.map(({ seq }) => seq))
  }
  const last = seqs.at(-1)
  return { items: await findContactsBySeq(db, seqs), total, end: last === undefined ? undefined : [last] }
}

/** Default order of contact lists. */
export const NEWEST_FIRST: KeysetOrder = { columns: ['seq'], kinds: ['number'], direction: 'desc' }

/** Contacts per statement of a walk: few at first, since that fills most pages. */
const FIRST_STEP = 2_048
const MAX_STEP = 32_768

export interface Walk {
  readonly audience: number
  readonly order: KeysetOrder
  /** Conditions on each contact. */
  readonly where: readonly RawBuilder<boolean>[]
  /** Conditions that the index of the order covers, so that other contacts are never read. */
  readonly within?: readonly RawBuilder<boolean>[]
}

/**
 * Matching contacts along the index of an order, starting after a position; reads no more than a page needs.
 *
 * @param after undefined: from the start @param offset matching contacts to skip
 * @returns numbers and positions, at most `limit`
 */
export async function walkContacts(
  db: Queries,
  { audience, order, where, within = [] }: Walk,
  after: Position | undefined,
  { limit, offset }: Pick<Page, 'limit' | 'offset'>,
  checkTimeout: Patience,
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
  const from = isBySeq ? liveContacts(db) : indexedBy(db, order)
  const found: { readonly seq: number; readonly position: Position }[] = []
  let [passed, at, step] = [0, after, FIRST_STEP]
  while (found.length < limit) {
    checkTimeout()
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
    step = Math.min(step * 4, MAX_STEP)
  }
  return found
}

/** Otherwise SQLite may choose a partial index, e.g. that of bounced contacts, and sort. */
function indexedBy(db: Queries, { columns: [column = ''] }: KeysetOrder): RawBuilder<unknown> {
  if (dialectOf(db) === 'postgres') return sql`contacts`
  return sql`contacts indexed by ${sql.ref(`contacts_by_${column.replace(/_at$/, '')}`)}`
}

/** The page at a cursor, or the first one if it is uncounted. @param where conditions on each contact */
export async function listFromCursor(
  db: Queries,
  walk: Walk,
  { limit, after }: Page,
  checkTimeout: Patience,
): Promise<Listing<Contact>> {
  const position = after?.position(...walk.order.kinds)
  const found = await walkContacts(db, walk, position, { limit: limit + 1, offset: 0 }, checkTimeout)
  const shown = found.slice(0, limit)
  return {
    items: await findContactsBySeq(
      db,
      shown.map(({ seq }) => seq),
    ),
    total: after?.total ?? found.length,
    end: shown.at(-1)?.position,
    hasMore: found.length > limit,
  }
}
