/** SQL of the contacts in a segment at its last scan, from which a `segment_entered` trigger finds the new ones. */
import type { Queries } from '../../db/database.js'
import { inLists, inPieces, statement } from '../../db/statement.js'
import type { SeqRange } from '../../audience/audience-store.js'

declare module '../../db/tables.js' {
  interface Tables {
    /** Both are `seq`s. */
    automation_members: { automation: number; contact: number }
  }
}

/** Numbers of contacts, ascending. */
export async function listMembers(
  db: Queries,
  automation: number,
  { first, last }: SeqRange,
): Promise<number[]> {
  const rows = await db
    .selectFrom('automation_members')
    .select('contact')
    .where('automation', '=', automation)
    .where('contact', '>=', first)
    .where('contact', '<=', last)
    .orderBy('contact')
    .execute()
  return rows.map(({ contact }) => contact)
}

const insertRows = statement(
  (db, { rows }: { readonly rows: readonly { automation: number; contact: number }[] }) =>
    db
      .insertInto('automation_members')
      .values(rows)
      .onConflict(conflict => conflict.doNothing())
      .returning('contact'),
)

/** @returns those that were added */
export async function addMembers(
  db: Queries,
  automation: number,
  contacts: readonly number[],
): Promise<number[]> {
  const added: number[] = []
  const rows = contacts.map(contact => ({ automation, contact }))
  for (const piece of inPieces(rows))
    added.push(...(await insertRows(db, { rows: piece })).rows.map(({ contact }) => contact))
  return added
}

export async function removeMembers(
  db: Queries,
  automation: number,
  contacts: readonly number[],
): Promise<void> {
  for (const list of inLists(contacts))
    await db
      .deleteFrom('automation_members')
      .where('automation', '=', automation)
      .where('contact', 'in', list)
      .execute()
}
