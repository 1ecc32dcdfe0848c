/**
 * SQL of the recipients of campaigns: a row for each contact that a campaign was sent to, and how far its mail has come.
 *
 * A contact has one row in a campaign, which is what keeps anybody from being mailed twice, however often work is begun anew. Rows name
 * contacts by their number and hold no copy of what is known of them. Whoever changes a row's status changes the counts of its
 * campaign in the same transaction (`records/campaign-store.ts`).
 */
import { sql } from 'kysely'
import type { SeqRange } from '../../audience/audience-store.js'
import type { Reach } from '../../audience/segments/conditions-store.js'
import type { Queries } from '../../db/database.js'
import { compilable, inLists, inPieces, rowsStatement, statement } from '../../db/statement.js'
import type { Flag } from '../../db/tables.js'
import type { Progress } from '../records/campaign.js'

export const RECIPIENT_STATUSES = [
  'pending',
  'sent',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'failed',
  'skipped',
  'cancelled',
] as const
export type RecipientStatus = (typeof RECIPIENT_STATUSES)[number]

export const LEFT_OUT_REASONS = [
  'unsubscribed',
  'bounced',
  'suppressed',
  'deleted',
  'invalid',
  'duplicate',
  'empty_subject',
] as const
/** Why somebody was skipped. */
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number]

interface RecipientRow {
  campaign: number
  contact: number
  status: RecipientStatus
  reason: LeftOutReason | null
  message_id: string | null
  has_opened: Flag
  has_clicked: Flag
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_recipients: RecipientRow
  }
}

const insertPending = rowsStatement((db, rows) =>
  compilable(
    db,
    sql`insert into campaign_recipients (campaign, contact, status) values ${sql.join(
      rows.map(row => sql`(${sql.join(row)}, 'pending')`),
    )}`,
  ),
)

/** @param contacts their numbers, in order */
export async function insertRecipients(
  db: Queries,
  campaign: number,
  contacts: readonly number[],
): Promise<void> {
  const rows = contacts.map(contact => [campaign, contact])
  for (const piece of inPieces(rows)) await insertPending(db, piece)
}

/** How many recipients have a row: each is counted by its status. */
export function countRows({
  pending,
  queued,
  done,
  skipped,
  cancelled,
}: Omit<Progress, 'recipients'>): number {
  return pending + queued + done + skipped + cancelled
}

/** A recipient whose turn it is, with what is known of the contact now. */
export interface WaitingRecipient {
  readonly contact: number
  /** Id and address are null where the contact is deleted. */
  readonly id: string | null
  readonly email: string | null
  readonly isSubscribed: boolean
  /** Unsubscribed by a suppression alone. */
  readonly isSuspended: boolean
  readonly isBounced: boolean
}

const selectPending = statement((db, { campaign, limit }: { campaign: number; limit: number }) =>
  compilable(
    db,
    sql`select waiting.contact as contact, contacts.id as id, contacts.email as email, contacts.subscribed as subscribed,
        contacts.is_suspended as is_suspended, contacts.is_bounced as is_bounced
      from (select contact from campaign_recipients where campaign = ${campaign} and status = 'pending'
        order by contact limit ${limit}) as waiting
      left join contacts on contacts.seq = waiting.contact and contacts.deleted_at is null
      order by waiting.contact`,
  ),
)

/** The next of those who were not handed over. */
export async function nextPending(db: Queries, campaign: number, limit: number): Promise<WaitingRecipient[]> {
  const { rows } = await selectPending(db, { campaign, limit })
  return (
    rows as {
      contact: number
      id: string | null
      email: string | null
      subscribed: Flag | null
      is_suspended: Flag | null
      is_bounced: Flag | null
    }[]
  ).map(row => ({
    contact: row.contact,
    id: row.id,
    email: row.email,
    isSubscribed: row.subscribed === 1,
    isSuspended: row.is_suspended === 1,
    isBounced: row.is_bounced === 1,
  }))
}

/** Rows of a statement are told what each value is: a database would take the first one's word for all. */
const integer = (value: unknown) => sql`cast(${value} as bigint)`
const text = (value: unknown) => sql`cast(${value} as text)`

const setHanded = rowsStatement((db, rows) =>
  compilable(
    db,
    sql`update campaign_recipients set status = 'sent', message_id = handed.column3
      from (values ${sql.join(
        rows.map(
          ([campaign, contact, message]) =>
            sql`(${integer(campaign)}, ${integer(contact)}, ${text(message)})`,
        ),
      )}) as handed
      where campaign_recipients.campaign = handed.column1 and campaign_recipients.contact = handed.column2`,
  ),
)

/** @param messages by the contact's number */
export async function markHanded(
  db: Queries,
  campaign: number,
  messages: readonly (readonly [contact: number, messageId: string])[],
): Promise<void> {
  const rows = messages.map(([contact, messageId]) => [campaign, contact, messageId])
  for (const piece of inPieces(rows)) await setHanded(db, piece)
}

export interface LeftOut {
  readonly contact: number
  readonly reason: LeftOutReason
  /** That of the row in the log, where there is one. */
  readonly messageId: string | null
}

/** Few at a time: those whom something happened to since the recipients were fixed. */
export async function markSkipped(db: Queries, campaign: number, skipped: readonly LeftOut[]): Promise<void> {
  for (const { contact, reason, messageId } of skipped)
    await db
      .updateTable('campaign_recipients')
      .set({ status: 'skipped', reason, message_id: messageId })
      .where('campaign', '=', campaign)
      .where('contact', '=', contact)
      .execute()
}

export interface Recipient {
  readonly campaign: number
  readonly contact: number
  readonly status: RecipientStatus
  readonly reason: LeftOutReason | null
  readonly messageId: string | null
  readonly hasOpened: boolean
  readonly hasClicked: boolean
}

const selectByMessage = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('campaign_recipients').selectAll().where('message_id', 'in', ids),
)

/** Whose messages these are. */
export async function findRecipientsOf(db: Queries, messageIds: readonly string[]): Promise<Recipient[]> {
  const found: Recipient[] = []
  for (const list of inLists(messageIds))
    for (const row of (await selectByMessage(db, { ids: list })).rows) found.push(recipientFromRow(row))
  return found
}

const setStates = rowsStatement((db, rows) =>
  compilable(
    db,
    sql`update campaign_recipients
      set status = changed.column3, reason = changed.column4,
        has_opened = changed.column5, has_clicked = changed.column6
      from (values ${sql.join(
        rows.map(
          ([campaign, contact, status, reason, opened, clicked]) =>
            sql`(${integer(campaign)}, ${integer(contact)}, ${text(status)}, ${text(reason)}, ${integer(opened)}, ${integer(clicked)})`,
        ),
      )}) as changed
      where campaign_recipients.campaign = changed.column1 and campaign_recipients.contact = changed.column2`,
  ),
)

/** Status, reason, and whether it was opened and clicked, as they are to be. */
export async function updateRecipients(db: Queries, recipients: readonly Recipient[]): Promise<void> {
  const rows = recipients.map(({ campaign, contact, status, reason, hasOpened, hasClicked }) => [
    ...[campaign, contact, status, reason, hasOpened ? 1 : 0, hasClicked ? 1 : 0],
  ])
  for (const piece of inPieces(rows)) await setStates(db, piece)
}

/** Of those who were handed over, after a contact, in their order. */
export async function listSent(
  db: Queries,
  campaign: number,
  after: number,
  limit: number,
): Promise<Recipient[]> {
  const rows = await db
    .selectFrom('campaign_recipients')
    .selectAll()
    .where('campaign', '=', campaign)
    .where('status', '=', 'sent')
    .where('contact', '>', after)
    .orderBy('contact')
    .limit(limit)
    .execute()
  return rows.map(recipientFromRow)
}

/** Whether a contact is a recipient of a campaign and has one of these statuses: a condition of the table `contacts`. */
export function isRecipient(campaign: number, statuses: readonly RecipientStatus[]) {
  const isAsked = sql`campaign = ${campaign} and status in (${sql.join(statuses)})`
  return ({ first, last }: SeqRange, reach: Reach) =>
    reach === 'all'
      ? sql<boolean>`seq in (select contact from campaign_recipients
          where ${isAsked} and contact between ${first} and ${last})`
      : sql<boolean>`exists (select 1 from campaign_recipients where ${isAsked} and contact = contacts.seq)`
}

/** Those who wait are not mailed any more. @returns how many, at most `limit` */
export async function cancelPending(db: Queries, campaign: number, limit: number): Promise<number> {
  const result = await sql`
    update campaign_recipients set status = 'cancelled' where campaign = ${campaign} and contact in (
      select contact from campaign_recipients where campaign = ${campaign} and status = 'pending'
      order by contact limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/**
 * How many of a campaign's mails wait for their first attempt, those that are tried again left out. Reads them all: for
 * `Database.slowReader`.
 */
export async function countUntried(db: Queries, campaign: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from campaign_recipients
    inner join queue on queue.message_id = campaign_recipients.message_id
    where campaign = ${campaign} and status = 'sent' and queue.attempts = 0`.execute(db)
  return rows[0]?.count ?? 0
}

export function recipientFromRow(row: RecipientRow): Recipient {
  return {
    campaign: row.campaign,
    contact: row.contact,
    status: row.status,
    reason: row.reason,
    messageId: row.message_id,
    hasOpened: row.has_opened === 1,
    hasClicked: row.has_clicked === 1,
  }
}
