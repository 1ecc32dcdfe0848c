/** SQL of the appliance's own mail to operators: recipients, kinds of links, and results. No content and no link is stored. */
import type { Queries } from '../../db/database.js'
import { keysetPage } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'

interface AccountMailRow {
  id: string
  kind: AccountMailKind
  recipient: string
  operator_id: string | null
  invitation_id: string | null
  state: AccountMailState
  reason: string | null
  attempts: number
  next_attempt_at: number | null
  expires_at: number
  created_at: number
  finished_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    account_mails: AccountMailRow
  }
}

/** `invitation`, `reset` and `lost`, which people ask for themselves, bring a link to an account, `join` one to a role that the recipient may accept. */
export const ACCOUNT_MAIL_KINDS = ['invitation', 'reset', 'lost', 'join'] as const
export type AccountMailKind = (typeof ACCOUNT_MAIL_KINDS)[number]

export const ACCOUNT_MAIL_STATES = ['waiting', 'delivered', 'failed', 'cancelled'] as const
export type AccountMailState = (typeof ACCOUNT_MAIL_STATES)[number]

export interface AccountMail {
  readonly id: string
  readonly kind: AccountMailKind
  readonly recipient: string
  /** Null for `join`. */
  readonly operatorId: string | null
  /** Of `join`. */
  readonly invitationId: string | null
  readonly state: AccountMailState
  /** Of the last attempt. */
  readonly reason: string | null
  /** Begun. */
  readonly attempts: number
  readonly nextAttemptAt: number | null
  readonly expiresAt: number
  readonly createdAt: number
  readonly finishedAt: number | null
}

export type NewAccountMail = Pick<
  AccountMail,
  'id' | 'kind' | 'recipient' | 'operatorId' | 'invitationId' | 'expiresAt' | 'createdAt'
>

/** Due at once. */
export async function insertAccountMail(db: Queries, mail: NewAccountMail): Promise<void> {
  await db
    .insertInto('account_mails')
    .values({
      id: mail.id,
      kind: mail.kind,
      recipient: mail.recipient,
      operator_id: mail.operatorId,
      invitation_id: mail.invitationId,
      state: 'waiting',
      reason: null,
      attempts: 0,
      next_attempt_at: mail.createdAt,
      expires_at: mail.expiresAt,
      created_at: mail.createdAt,
      finished_at: null,
    })
    .execute()
}

/** Soonest first. */
export async function listDueAccountMails(db: Queries, now: number, limit: number): Promise<AccountMail[]> {
  const rows = await db
    .selectFrom('account_mails')
    .selectAll()
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(mailOf)
}

/** @returns undefined if none waits */
export async function soonestAccountMail(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom('account_mails')
    .select('next_attempt_at')
    .where('next_attempt_at', 'is not', null)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_attempt_at ?? undefined
}

/** Begins an attempt. @param until when it is due again if nothing is recorded @returns false if another process has begun it, or it was cancelled */
export async function claimAccountMail(db: Queries, mail: AccountMail, until: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('account_mails')
    .set({ attempts: mail.attempts + 1, next_attempt_at: until })
    .where('id', '=', mail.id)
    .where('state', '=', 'waiting')
    .where('attempts', '=', mail.attempts)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export interface AccountMailResult {
  readonly state: AccountMailState
  readonly reason: string | null
  /** Null: not to be tried again. */
  readonly nextAttemptAt: number | null
  readonly finishedAt: number | null
}

/** A mail that was cancelled meanwhile stays so. */
export async function recordAccountMail(
  db: Queries,
  id: string,
  { state, reason, nextAttemptAt, finishedAt }: AccountMailResult,
): Promise<void> {
  await db
    .updateTable('account_mails')
    .set({ state, reason, next_attempt_at: nextAttemptAt, finished_at: finishedAt })
    .where('id', '=', id)
    .where('state', '=', 'waiting')
    .execute()
}

/** Cancels what still waits. @param of the account or the invitation */
export async function cancelAccountMails(
  db: Queries,
  of: { readonly operatorId: string } | { readonly invitationId: string },
  now: number,
): Promise<void> {
  await db
    .updateTable('account_mails')
    .set({ state: 'cancelled', next_attempt_at: null, finished_at: now })
    .where('next_attempt_at', 'is not', null)
    .where(e =>
      'operatorId' in of ? e('operator_id', '=', of.operatorId) : e('invitation_id', '=', of.invitationId),
    )
    .execute()
}

/** The state of the latest mail of each invitation. */
export async function findInvitationMails(
  db: Queries,
  invitationIds: readonly string[],
): Promise<ReadonlyMap<string, AccountMailState>> {
  if (invitationIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('account_mails')
    .select(['invitation_id', 'state'])
    .where('kind', '=', 'join')
    .where('state', '!=', 'cancelled')
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const wanted = new Set(invitationIds)
  return new Map(
    rows.flatMap(({ invitation_id: id, state }) => (id !== null && wanted.has(id) ? [[id, state]] : [])),
  )
}

/** Newest first. */
export function listAccountMails(db: Queries, page: Page): Promise<Listing<AccountMail>> {
  const order = { columns: ['created_at', 'id'], kinds: ['number', 'text'], direction: 'desc' } as const
  return keysetPage(db.selectFrom('account_mails'), order, page, mailOf)
}

/** Those that do not wait. @returns how many, at most `limit` */
export async function deleteAccountMailsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('account_mails')
    .where('id', 'in', query =>
      query
        .selectFrom('account_mails')
        .select('id')
        .where('created_at', '<', before)
        .where('next_attempt_at', 'is', null)
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

function mailOf(row: AccountMailRow): AccountMail {
  return {
    id: row.id,
    kind: row.kind,
    recipient: row.recipient,
    operatorId: row.operator_id,
    invitationId: row.invitation_id,
    state: row.state,
    reason: row.reason,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}
