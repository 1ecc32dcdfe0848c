/** SQL of counting visits: up to where the journal was counted, and when messages reached their hosts. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import type { JournalPlace } from './visit-journal.js'

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

export async function findCountedPlace(db: Queries): Promise<JournalPlace> {
  const row = await db.selectFrom('visit_places').select(['file', 'octets']).executeTakeFirst()
  return row ?? { file: 0, octets: 0 }
}

/** In the transaction that counts: each visit is counted once. */
export async function moveCountedPlace(db: Queries, { file, octets }: JournalPlace): Promise<void> {
  await db
    .insertInto('visit_places')
    .values({ id: 1, file, octets })
    .onConflict(conflict => conflict.column('id').doUpdateSet({ file, octets }))
    .execute()
}

const selectMoments = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('messages').select(['id', 'delivered_at', 'sent_at']).where('id', 'in', ids),
)

/** When each was delivered, as far as that is known yet, else begun. */
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

/** Characters that are read of a mail; longer HTML is judged by its beginning. */
const MOST_HTML = 262_144

/** @returns the beginning of the mail's HTML with its merge tags; undefined where it has none or is no longer kept */
export async function findWrittenHtml(db: Queries, messageId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(sql<string | null>`substr(message_contents.html, 1, ${sql.lit(MOST_HTML)})`.as('html'))
    .where('messages.id', '=', messageId)
    .executeTakeFirst()
  return row?.html ?? undefined
}
