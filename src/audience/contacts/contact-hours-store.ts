/** SQL of the hours of the day at which contacts open and click: how often in each hour (UTC), visits by people only. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, inPieces, statement, type Rows } from '../../db/statement.js'

declare module '../../db/tables.js' {
  interface Tables {
    contact_hours: { contact: number; hour: number; visits: number }
  }
}

export interface HourCount {
  /** The contact's number. */
  readonly contact: number
  /** 0 to 23, UTC. */
  readonly hour: number
  readonly visits: number
}

/** @param at ms since epoch UTC @returns 0 to 23, UTC */
export function hourOf(at: number): number {
  return new Date(at).getUTCHours()
}

const addRows = statement(
  (_, { rows }: Rows) =>
    sql`insert into contact_hours (contact, hour, visits) values ${sql.join(rows.map(row => sql`(${sql.join(row)})`))}
      on conflict (contact, hour) do update set visits = contact_hours.visits + excluded.visits`,
)

/** @param counts each contact and hour at most once */
export async function addContactHours(db: Queries, counts: readonly HourCount[]): Promise<void> {
  const rows = counts.map(({ contact, hour, visits }) => [contact, hour, visits])
  for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
}

const selectHours = statement((db, { contacts }: { contacts: readonly number[] }) =>
  db.selectFrom('contact_hours').selectAll().where('contact', 'in', contacts),
)

/** The hour in which each contact visits most, the earliest of several. Contacts without a visit are omitted. */
export async function findUsualHours(
  db: Queries,
  contacts: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const most = new Map<number, HourCount>()
  for (const list of inLists(contacts))
    for (const row of (await selectHours(db, { contacts: list })).rows) {
      const best = most.get(row.contact)
      const isMore = !best || row.visits > best.visits || (row.visits === best.visits && row.hour < best.hour)
      if (isMore) most.set(row.contact, row)
    }
  return new Map([...most].map(([contact, { hour }]) => [contact, hour]))
}

export async function listContactHours(db: Queries, contact: number): Promise<HourCount[]> {
  return db.selectFrom('contact_hours').selectAll().where('contact', '=', contact).orderBy('hour').execute()
}
