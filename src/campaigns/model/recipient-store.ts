/**
 * SQL of campaign recipients: one row per contact, with the status of its mail.
 *
 * One row per contact and campaign: this is what prevents mailing anybody twice after a restart. Rows refer to contacts by number and copy
 * nothing from them. Every status change updates the campaign's counts in the same transaction (`campaign-store.ts`).
 */
import { sql, type Generated, type RawBuilder, type Selectable } from 'kysely'
import type { SeqRange } from '../../audience/audience-store.js'
import type { Standing } from '../../audience/contacts/consent.js'
import type { Reach } from '../../audience/segments/conditions-store.js'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { inLists, inPieces, statement, type Rows } from '../../db/statement.js'
import type { Flag } from '../../db/tables.js'
import type { Progress } from './campaign.js'

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
  'left_list',
  'invalid',
  'duplicate',
  'empty_subject',
] as const
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number]

interface RecipientRow {
  campaign: number
  contact: number
  status: RecipientStatus
  reason: LeftOutReason | null
  message_id: string | null
  has_opened: Flag
  has_clicked: Flag
  /** Ms since epoch UTC; null: at once. */
  due_at: Generated<number | null>
  variant: Generated<number | null>
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_recipients: RecipientRow
  }
}

const insertPending = statement(
  (_, { rows }: Rows) =>
    sql`insert into campaign_recipients (campaign, contact, status) values ${sql.join(
      rows.map(row => sql`(${sql.join(row)}, 'pending')`),
    )}`,
)

/** @param contacts contact numbers, ascending */
export async function insertRecipients(
  db: Queries,
  campaign: number,
  contacts: readonly number[],
): Promise<void> {
  const rows = contacts.map(contact => [campaign, contact])
  for (const piece of inPieces(rows)) await insertPending(db, { rows: piece })
}

const insertDue = statement(
  (_, { rows }: Rows) =>
    sql`insert into campaign_recipients (campaign, contact, due_at, status) values ${sql.join(
      rows.map(row => sql`(${sql.join(row)}, 'pending')`),
    )}`,
)

/** @param recipients contact numbers, ascending, and when the mail of each is due, ms since epoch UTC */
export async function insertDueRecipients(
  db: Queries,
  campaign: number,
  recipients: readonly (readonly [contact: number, dueAt: number])[],
): Promise<void> {
  const rows = recipients.map(([contact, dueAt]) => [campaign, contact, dueAt])
  for (const piece of inPieces(rows)) await insertDue(db, { rows: piece })
}

/** Total number of recipient rows, from the counts by status. */
export function countRows({
  pending,
  queued,
  done,
  skipped,
  cancelled,
}: Omit<Progress, 'recipients'>): number {
  return pending + queued + done + skipped + cancelled
}

/** A pending recipient with the current data of the contact. */
export interface WaitingRecipient extends Standing {
  readonly contact: number
  /** Id and address are null if the contact was deleted. */
  readonly id: string | null
  readonly email: string | null
}

const selectWaiting = (waiting: RawBuilder<unknown>) =>
  sql`select waiting.contact as contact, contacts.id as id, contacts.email as email, contacts.subscribed as subscribed,
      contacts.is_suspended as is_suspended, contacts.is_bounced as is_bounced
    from (${waiting}) as waiting
    left join contacts on contacts.seq = waiting.contact and contacts.deleted_at is null
    order by waiting.contact`

const selectPending = statement((_, { campaign, limit }: { campaign: number; limit: number }) =>
  selectWaiting(sql`select contact from campaign_recipients where campaign = ${campaign} and status = 'pending'
    order by contact limit ${limit}`),
)

const selectDue = statement((_, { campaign, limit, now }: { campaign: number; limit: number; now: number }) =>
  selectWaiting(sql`select contact from campaign_recipients
      where campaign = ${campaign} and status = 'pending' and due_at <= ${now}
      order by due_at, contact limit ${limit}`),
)

const selectPendingOf = statement(
  (_, { campaign, variant, limit }: { campaign: number; variant: number; limit: number }) =>
    selectWaiting(sql`select contact from campaign_recipients
      where campaign = ${campaign} and variant = ${variant} and status = 'pending' order by contact limit ${limit}`),
)

interface WaitingRow {
  contact: number
  id: string | null
  email: string | null
  subscribed: Flag | null
  is_suspended: Flag | null
  is_bounced: Flag | null
}

/** @param variant only those in the sample of an A/B test who get this one */
export async function nextPending(
  db: Queries,
  campaign: number,
  limit: number,
  variant?: number,
): Promise<WaitingRecipient[]> {
  const { rows } =
    variant === undefined
      ? await selectPending(db, { campaign, limit })
      : await selectPendingOf(db, { campaign, variant, limit })
  return (rows as WaitingRow[]).map(waitingFromRow)
}

/** Pending recipients whose mail is due, of a campaign with due times; longest due first. */
export async function nextDuePending(
  db: Queries,
  campaign: number,
  limit: number,
  now: number,
): Promise<WaitingRecipient[]> {
  return ((await selectDue(db, { campaign, limit, now })).rows as WaitingRow[]).map(waitingFromRow)
}

/** When the next pending recipient's mail is due; undefined if none is pending. */
export async function nextDueAt(db: Queries, campaign: number): Promise<number | undefined> {
  const { rows } = await sql<{ due_at: number }>`
    select due_at from campaign_recipients where campaign = ${campaign} and status = 'pending' and due_at is not null
    order by due_at limit 1`.execute(db)
  return rows[0]?.due_at
}

function waitingFromRow(row: WaitingRow): WaitingRecipient {
  return {
    contact: row.contact,
    id: row.id,
    email: row.email,
    isDeleted: row.id === null,
    isSubscribed: row.subscribed === 1,
    isSuspended: row.is_suspended === 1,
    isBounced: row.is_bounced === 1,
  }
}

/** Casts give each value its type; PostgreSQL would otherwise infer it from the first row. */
const integer = (value: unknown) => sql`cast(${value} as bigint)`
const text = (value: unknown) => sql`cast(${value} as text)`

const setHanded = statement(
  (_, { rows }: Rows) =>
    sql`update campaign_recipients set status = 'sent', message_id = handed.column3
      from (values ${sql.join(
        rows.map(
          ([campaign, contact, message]) =>
            sql`(${integer(campaign)}, ${integer(contact)}, ${text(message)})`,
        ),
      )}) as handed
      where campaign_recipients.campaign = handed.column1 and campaign_recipients.contact = handed.column2`,
)

/** @param messages message ids by contact number */
export async function markHanded(
  db: Queries,
  campaign: number,
  messages: readonly (readonly [contact: number, messageId: string])[],
): Promise<void> {
  const rows = messages.map(([contact, messageId]) => [campaign, contact, messageId])
  for (const piece of inPieces(rows)) await setHanded(db, { rows: piece })
}

export interface LeftOut {
  readonly contact: number
  readonly reason: LeftOutReason
  /** The skipped message's id, if it was logged. */
  readonly messageId: string | null
}

/** For short lists: one statement each. */
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
  /** In the sample of an A/B test. */
  readonly variant: number | null
}

const selectByMessage = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('campaign_recipients').selectAll().where('message_id', 'in', ids),
)

export async function findRecipientsOf(db: Queries, messageIds: readonly string[]): Promise<Recipient[]> {
  const found: Recipient[] = []
  for (const list of inLists(messageIds))
    for (const row of (await selectByMessage(db, { ids: list })).rows) found.push(recipientFromRow(row))
  return found
}

/** @returns the variant of an A/B test that a message is; null: it is not in a sample, or its recipient is no longer kept */
export async function findVariantOf(db: Queries, messageId: string): Promise<number | null> {
  const [recipient] = await findRecipientsOf(db, [messageId])
  return recipient?.variant ?? null
}

const setStates = statement(
  (_, { rows }: Rows) =>
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
)

/** Writes status, reason, and the opened and clicked flags. */
export async function updateRecipients(db: Queries, recipients: readonly Recipient[]): Promise<void> {
  const rows = recipients.map(({ campaign, contact, status, reason, hasOpened, hasClicked }) => [
    ...[campaign, contact, status, reason, hasOpened ? 1 : 0, hasClicked ? 1 : 0],
  ])
  for (const piece of inPieces(rows)) await setStates(db, { rows: piece })
}

/** Recipients with status `sent`, ordered by contact, after a given one. */
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

/** Condition on `contacts`: the contact is a recipient of the campaign with one of these statuses. */
export function isRecipient(campaign: number, statuses: readonly RecipientStatus[]) {
  const isAsked = sql`campaign = ${campaign} and status in (${sql.join(statuses)})`
  return ({ first, last }: SeqRange, reach: Reach) =>
    reach === 'all'
      ? sql<boolean>`seq in (select contact from campaign_recipients
          where ${isAsked} and contact between ${first} and ${last})`
      : sql<boolean>`exists (select 1 from campaign_recipients where ${isAsked} and contact = contacts.seq)`
}

/** Cancels pending recipients. @returns how many, at most `limit` */
export async function cancelPending(db: Queries, campaign: number, limit: number): Promise<number> {
  const result = await sql`
    update campaign_recipients set status = 'cancelled' where campaign = ${campaign} and contact in (
      select contact from campaign_recipients where campaign = ${campaign} and status = 'pending'
      order by contact limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Counts a campaign's queued mails without an attempt so far. Reads them all: for `Database.slowReader`. */
export async function countUntried(db: Queries, campaign: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from campaign_recipients
    inner join queue on queue.message_id = campaign_recipients.message_id
    where campaign = ${campaign} and status = 'sent' and queue.attempts = 0`.execute(db)
  return must(rows[0], 'the count').count
}

export function recipientFromRow(row: Selectable<RecipientRow>): Recipient {
  return {
    campaign: row.campaign,
    contact: row.contact,
    status: row.status,
    reason: row.reason,
    messageId: row.message_id,
    hasOpened: row.has_opened === 1,
    hasClicked: row.has_clicked === 1,
    variant: row.variant,
  }
}
