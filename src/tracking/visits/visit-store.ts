/** SQL of counting visits: the counted position in the journal, and delivery times of messages. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import type { JournalPosition } from './visit-journal.js'

interface VisitPlaceRow {
  /** Always 1: there is one journal. */
  id: number
  file: number
  octets: number
}

declare module '../../db/tables.js' {
  interface Tables {
    visit_places: VisitPlaceRow
  }
}

export async function findCountedPosition(db: Queries): Promise<JournalPosition> {
  const row = await db.selectFrom('visit_places').select(['file', 'octets']).executeTakeFirst()
  return row ?? { file: 0, octets: 0 }
}

/** Call it in the transaction that counts the visits. */
export async function saveCountedPosition(db: Queries, { file, octets }: JournalPosition): Promise<void> {
  await db
    .insertInto('visit_places')
    .values({ id: 1, file, octets })
    .onConflict(conflict => conflict.column('id').doUpdateSet({ file, octets }))
    .execute()
}

const selectMoments = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('messages').select(['id', 'delivered_at', 'sent_at']).where('id', 'in', ids),
)

/** Delivery time by message id, or the time of the first attempt if not yet delivered. */
export async function findDeliveryMoments(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number | null>> {
  const moments = new Map<string, number | null>()
  for (const list of inLists(ids))
    for (const row of (await selectMoments(db, { ids: list })).rows)
      moments.set(row.id, row.delivered_at ?? row.sent_at)
  return moments
}

/** Longer HTML is judged by its beginning. */
const MAX_HTML = 262_144

/** @returns the beginning of the HTML with its merge tags; undefined if there is none or it was pruned */
export async function findHtmlSource(db: Queries, messageId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(sql<string | null>`substr(message_contents.html, 1, ${sql.lit(MAX_HTML)})`.as('html'))
    .where('messages.id', '=', messageId)
    .executeTakeFirst()
  return row?.html ?? undefined
}
