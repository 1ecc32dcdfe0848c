/**
 * SQL of who has entered which automation: for good, where each contact enters once; by the hour, where it may enter again and again.
 *
 * Called by `enter.ts`, in its transaction. What an automation itself does can be what starts it again (a tag that it takes away and
 * gives): the bound by the hour keeps such a circle from filling the database.
 */
import type { Queries } from '../../db/database.js'
import { inPieces, statement } from '../../db/statement.js'

interface EntryRow {
  automation: number
  contact_id: string
  /** Hours since epoch UTC; what is counted of an earlier one counts no more. */
  hour: number
  /** In that hour. */
  entries: number
}

declare module '../../db/tables.js' {
  interface Tables {
    automation_entries: EntryRow
  }
}

const HOUR_MS = 3_600_000

const insertNew = statement((db, { rows }: { readonly rows: readonly EntryRow[] }) =>
  db
    .insertInto('automation_entries')
    .values(rows)
    .onConflict(conflict => conflict.doNothing())
    .returning('contact_id'),
)

const addEntries = statement((db, { rows }: { readonly rows: readonly EntryRow[] }) =>
  db
    .insertInto('automation_entries')
    .values(rows)
    .onConflict(conflict =>
      conflict.columns(['automation', 'contact_id']).doUpdateSet(eb => ({
        hour: eb.ref('excluded.hour'),
        entries: eb
          .case()
          .when('automation_entries.hour', '=', eb.ref('excluded.hour'))
          .then(eb('automation_entries.entries', '+', eb.ref('excluded.entries')))
          .else(eb.ref('excluded.entries'))
          .end(),
      })),
    )
    .returning(['contact_id', 'entries']),
)

/** Notes who enters an automation that each contact enters once. @returns those who have not before */
export async function enterOnce(
  db: Queries,
  automation: number,
  contactIds: readonly string[],
  now: number,
): Promise<ReadonlySet<string>> {
  const rows = contactIds.map(id => rowOf(automation, id, 1, now))
  const fresh = new Set<string>()
  for (const piece of inPieces(rows))
    for (const { contact_id: id } of (await insertNew(db, { rows: piece })).rows) fresh.add(id)
  return fresh
}

/**
 * Notes who enters an automation that a contact may enter again.
 *
 * @param times how often each enters now, by its id
 * @returns how often each has entered in this hour, now included
 */
export async function countEntries(
  db: Queries,
  automation: number,
  times: ReadonlyMap<string, number>,
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const rows = [...times].map(([id, count]) => rowOf(automation, id, count, now))
  const counted = new Map<string, number>()
  for (const piece of inPieces(rows))
    for (const { contact_id: id, entries } of (await addEntries(db, { rows: piece })).rows)
      counted.set(id, entries)
  return counted
}

function rowOf(automation: number, contactId: string, entries: number, now: number): EntryRow {
  return { automation, contact_id: contactId, hour: Math.floor(now / HOUR_MS), entries }
}
