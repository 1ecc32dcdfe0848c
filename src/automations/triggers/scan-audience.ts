/** Splits an audience into bounded ranges, for triggers that scan all contacts. Pure. */
import { contactsOf, type Audience, type SeqRange } from '../../audience/audience-store.js'

/** Contact numbers per range: a few milliseconds in a reader thread. */
const RANGE_SIZE = 5_000

/** Contacts entered per transaction. */
export const ENTER_BATCH_SIZE = 200

/** @param from lowest contact number, inclusive */
export function* rangesFrom(
  audience: Pick<Audience, 'number' | 'lastContact'>,
  from: number,
): Generator<SeqRange> {
  const { first } = contactsOf(audience.number)
  const end = first + audience.lastContact
  for (let start = Math.max(first, from); start <= end; start += RANGE_SIZE)
    yield { first: start, last: Math.min(end, start + RANGE_SIZE - 1) }
}

export function* chunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += size) yield all.slice(start, start + size)
}
