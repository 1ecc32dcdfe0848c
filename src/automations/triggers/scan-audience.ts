/** Goes through the numbers of an audience's contacts in bounded pieces: for triggers that look at all of it. Pure. */
import { contactsOf, type Audience, type SeqRange } from '../../audience/audience-store.js'

/** Numbers of a piece: a few milliseconds of reading in a thread of its own. */
const PIECE = 5_000

/** Contacts of one transaction. */
export const ENTRANTS_AT_ONCE = 200

/** @param from the first number that is looked at */
export function* piecesFrom(
  audience: Pick<Audience, 'number' | 'lastContact'>,
  from: number,
): Generator<SeqRange> {
  const { first } = contactsOf(audience.number)
  const end = first + audience.lastContact
  for (let start = Math.max(first, from); start <= end; start += PIECE)
    yield { first: start, last: Math.min(end, start + PIECE - 1) }
}

export function* inGroups<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += size) yield all.slice(start, start + size)
}
