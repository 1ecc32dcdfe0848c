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
import type { Listing, Page } from '../http/pagination.js'
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
  return { items: await findContactsBySeq(db, seqs), total }
}
