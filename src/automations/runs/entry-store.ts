/**
 * SQL of automation entries: permanent where each contact may enter once, otherwise counted per hour.
 *
 * An automation can trigger itself, for example by removing and adding a tag. The hourly limit stops such a loop from filling the
 * database.
 */
import type { Queries } from '../../db/database.js'
import { inPieces, statement } from '../../db/statement.js'

interface EntryRow {
  automation: number
  contact_id: string
  /** Hours since epoch UTC; `entries` counts this hour only. */
  hour: number
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

/** For automations each contact may enter once. @returns ids of contacts that had not entered before */
export async function recordFirstEntries(
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
 * For automations a contact may enter repeatedly.
 *
 * @param times number of new entries by contact id
 * @returns entries in this hour by contact id, including the new ones
 */
export async function recordEntries(
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
