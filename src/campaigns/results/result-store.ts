/**
 * SQL for listing a campaign's recipients with their contact and delivery times.
 *
 * For `Database.slowReader`: indexed, but a page may lie deep.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { RecipientStatus, LeftOutReason } from '../expansion/recipient-store.js'

export interface ShownRecipient {
  /** Null if the contact was erased. */
  readonly contactId: string | null
  readonly email: string | null
  readonly status: RecipientStatus
  readonly reason: LeftOutReason | null
  readonly messageId: string | null
  readonly handedAt: number | null
  readonly deliveredAt: number | null
  readonly openedAt: number | null
  readonly clickedAt: number | null
  readonly bouncedAt: number | null
  readonly complainedAt: number | null
}

/** In order of contact creation. @param all total number of recipients */
export async function listRecipients(
  db: Queries,
  campaign: number,
  all: number,
  status: RecipientStatus | undefined,
  { limit, offset, after }: Page,
): Promise<Listing<ShownRecipient>> {
  const isMeant = status === undefined ? sql`1 = 1` : sql`status = ${status}`
  const total = after?.total ?? (status === undefined ? all : await countWith(db, campaign, status))
  if (!after && offset >= total) return { items: [], total }
  const isBehind = after ? sql`contact > ${after.position('number')[0]}` : sql`1 = 1`
  const { rows } = await sql<ShownRecipient & { contact: number }>`
    select page.contact as contact, contacts.id as "contactId", coalesce(messages.recipient, contacts.email) as email,
      page.status as status, page.reason as reason, page.message_id as "messageId",
      messages.created_at as "handedAt", messages.delivered_at as "deliveredAt", messages.opened_at as "openedAt",
      messages.clicked_at as "clickedAt", messages.bounced_at as "bouncedAt", messages.complained_at as "complainedAt"
    from (select contact, status, reason, message_id from campaign_recipients
      where campaign = ${campaign} and ${isMeant} and ${isBehind} order by contact limit ${limit + 1} offset ${offset}) as page
    left join contacts on contacts.seq = page.contact
    left join messages on messages.id = page.message_id
    order by page.contact`.execute(db)
  const items = rows.slice(0, limit)
  return { items, total, end: items.slice(-1).map(({ contact }) => contact), hasMore: rows.length > limit }
}

async function countWith(db: Queries, campaign: number, status: RecipientStatus): Promise<number> {
  const { total } = await db
    .selectFrom('campaign_recipients')
    .select(e => e.fn.countAll<number>().as('total'))
    .where('campaign', '=', campaign)
    .where('status', '=', status)
    .executeTakeFirstOrThrow()
  return total
}
