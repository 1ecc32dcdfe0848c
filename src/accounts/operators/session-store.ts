/**
 * SQL of what authenticates an operator's requests: sessions (a cookie), tokens (`pa_...`, for scripts) and one-time links.
 *
 * Only SHA-256 hashes are stored. Each is looked up by its hash, so a lookup leaks nothing through its duration.
 */
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Role } from '../../http/roles.js'

interface SessionRow {
  id: string
  token_hash: string
  operator_id: string
  method: SignInMethod
  /** The password was right; a TOTP or recovery code is still missing. */
  is_pending: Flag
  /** When the operator last proved who they are. */
  confirmed_at: number
  seen_at: number
  created_at: number
  peer: string
  user_agent: string
  passkey_id: string | null
}

interface TokenRow {
  id: string
  token_hash: string
  operator_id: string
  name: string
  hint: string
  role: Role | null
  created_at: number
  last_used_at: number | null
  expires_at: number | null
}

interface LinkRow {
  token_hash: string
  operator_id: string
  kind: LinkKind
  expires_at: number
  is_mailed: Flag
}

declare module '../../db/tables.js' {
  interface Tables {
    operator_sessions: SessionRow
    operator_tokens: TokenRow
    operator_links: LinkRow
  }
}

export type SignInMethod = 'password' | 'passkey' | 'oidc' | 'link'
export type LinkKind = 'sign_in' | 'invitation' | 'reset'

export interface Session {
  readonly id: string
  readonly tokenHash: string
  readonly operatorId: string
  readonly method: SignInMethod
  readonly isPending: boolean
  readonly confirmedAt: number
  readonly seenAt: number
  readonly createdAt: number
  /** IP address that signed in. */
  readonly peer: string
  readonly userAgent: string
  /** The passkey that opened it. */
  readonly passkeyId: string | null
}

export interface OperatorToken {
  readonly id: string
  readonly tokenHash: string
  readonly operatorId: string
  readonly name: string
  readonly hint: string
  /** Limits the token to this role's permissions; null: all of its operator's. */
  readonly role: Role | null
  readonly createdAt: number
  readonly lastUsedAt: number | null
  readonly expiresAt: number | null
}

export interface SignInLink {
  readonly tokenHash: string
  readonly operatorId: string
  readonly kind: LinkKind
  readonly expiresAt: number
  /** Only the mailbox got it, so opening it proves the address. */
  readonly isMailed: boolean
}

export async function insertSession(db: Queries, session: Session): Promise<void> {
  await db
    .insertInto('operator_sessions')
    .values({
      id: session.id,
      token_hash: session.tokenHash,
      operator_id: session.operatorId,
      method: session.method,
      is_pending: flag(session.isPending),
      confirmed_at: session.confirmedAt,
      seen_at: session.seenAt,
      created_at: session.createdAt,
      peer: session.peer,
      user_agent: session.userAgent,
      passkey_id: session.passkeyId,
    })
    .execute()
}

export async function findSession(db: Queries, tokenHash: string): Promise<Session | undefined> {
  const row = await db
    .selectFrom('operator_sessions')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst()
  return row && sessionOf(row)
}

export async function findSessionById(db: Queries, id: string): Promise<Session | undefined> {
  const row = await db.selectFrom('operator_sessions').selectAll().where('id', '=', id).executeTakeFirst()
  return row && sessionOf(row)
}

/** Most recently used first. */
export async function listSessions(db: Queries, operatorId: string): Promise<Session[]> {
  const rows = await db
    .selectFrom('operator_sessions')
    .selectAll()
    .where('operator_id', '=', operatorId)
    .where('is_pending', '=', 0)
    .orderBy('seen_at', 'desc')
    .execute()
  return rows.map(sessionOf)
}

export async function noteSeen(db: Queries, id: string, now: number): Promise<void> {
  await db.updateTable('operator_sessions').set({ seen_at: now }).where('id', '=', id).execute()
}

/** @param tokenHash replaces the session's token @returns false if the session ended meanwhile */
export async function noteConfirmed(
  db: Queries,
  id: string,
  tokenHash: string,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('operator_sessions')
    .set({ token_hash: tokenHash, confirmed_at: now, seen_at: now })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** @returns whether the operator had it */
export async function deleteSession(db: Queries, operatorId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_sessions')
    .where('operator_id', '=', operatorId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** @param except id of a session that stays @returns how many */
export async function deleteSessions(db: Queries, operatorId: string, except = ''): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_sessions')
    .where('operator_id', '=', operatorId)
    .where('id', '!=', except)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/**
 * Only those that the passkey opened, or that some passkey opened before it was noted which.
 *
 * @param except id of a session that stays
 */
export async function deletePasskeySessions(
  db: Queries,
  operatorId: string,
  passkeyId: string,
  except: string,
): Promise<void> {
  await db
    .deleteFrom('operator_sessions')
    .where('operator_id', '=', operatorId)
    .where('method', '=', 'passkey')
    .where(e => e.or([e('passkey_id', '=', passkeyId), e('passkey_id', 'is', null)]))
    .where('id', '!=', except)
    .execute()
}

/** Only those signed in with the method. */
export async function deleteSessionsBy(db: Queries, operatorId: string, method: SignInMethod): Promise<void> {
  await db
    .deleteFrom('operator_sessions')
    .where('operator_id', '=', operatorId)
    .where('method', '=', method)
    .execute()
}

/** @returns how many, at most `limit` */
export async function deleteSessionsBefore(
  db: Queries,
  { seenBefore, createdBefore }: { readonly seenBefore: number; readonly createdBefore: number },
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_sessions')
    .where('id', 'in', query =>
      query
        .selectFrom('operator_sessions')
        .select('id')
        .where(e => e.or([e('seen_at', '<', seenBefore), e('created_at', '<', createdBefore)]))
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

export async function insertToken(db: Queries, token: OperatorToken): Promise<void> {
  await db
    .insertInto('operator_tokens')
    .values({
      id: token.id,
      token_hash: token.tokenHash,
      operator_id: token.operatorId,
      name: token.name,
      hint: token.hint,
      role: token.role,
      created_at: token.createdAt,
      last_used_at: token.lastUsedAt,
      expires_at: token.expiresAt,
    })
    .execute()
}

export async function findToken(db: Queries, tokenHash: string): Promise<OperatorToken | undefined> {
  const row = await db
    .selectFrom('operator_tokens')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst()
  return row && tokenOf(row)
}

export async function findTokenById(db: Queries, id: string): Promise<OperatorToken | undefined> {
  const row = await db.selectFrom('operator_tokens').selectAll().where('id', '=', id).executeTakeFirst()
  return row && tokenOf(row)
}

/** @param operatorId default: the tokens of all operators */
export async function listTokens(db: Queries, operatorId?: string): Promise<OperatorToken[]> {
  const rows = await db
    .selectFrom('operator_tokens')
    .selectAll()
    .$if(operatorId !== undefined, query => query.where('operator_id', '=', must(operatorId, 'operatorId')))
    .orderBy('id')
    .execute()
  return rows.map(tokenOf)
}

export async function noteTokenUsed(db: Queries, id: string, now: number): Promise<void> {
  await db.updateTable('operator_tokens').set({ last_used_at: now }).where('id', '=', id).execute()
}

/** @returns whether the operator had it */
export async function deleteToken(db: Queries, operatorId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_tokens')
    .where('operator_id', '=', operatorId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** @returns how many */
export async function deleteTokens(db: Queries, operatorId: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_tokens')
    .where('operator_id', '=', operatorId)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

export async function insertLink(db: Queries, link: SignInLink): Promise<void> {
  await db
    .insertInto('operator_links')
    .values({
      token_hash: link.tokenHash,
      operator_id: link.operatorId,
      kind: link.kind,
      expires_at: link.expiresAt,
      is_mailed: flag(link.isMailed),
    })
    .execute()
}

export async function findLink(db: Queries, tokenHash: string, now: number): Promise<SignInLink | undefined> {
  const row = await db
    .selectFrom('operator_links')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return row && linkOf(row)
}

/** Deletes the link, so that it works once. @returns undefined if it is unknown, used or expired */
export async function takeLink(db: Queries, tokenHash: string, now: number): Promise<SignInLink | undefined> {
  const row = await db
    .deleteFrom('operator_links')
    .where('token_hash', '=', tokenHash)
    .returningAll()
    .executeTakeFirst()
  if (!row || row.expires_at <= now) return undefined
  return linkOf(row)
}

export async function deleteLinks(db: Queries, operatorId: string): Promise<void> {
  await db.deleteFrom('operator_links').where('operator_id', '=', operatorId).execute()
}

/** Those that were mailed. */
export async function deleteMailedLinks(db: Queries, operatorId: string): Promise<void> {
  await db
    .deleteFrom('operator_links')
    .where('operator_id', '=', operatorId)
    .where('is_mailed', '=', 1)
    .execute()
}

/** Those that were not mailed. @returns how many */
export async function deleteHandedLinks(db: Queries, operatorId: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_links')
    .where('operator_id', '=', operatorId)
    .where('is_mailed', '=', 0)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** @returns how many, at most `limit` */
export async function deleteLinksBefore(db: Queries, now: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_links')
    .where('token_hash', 'in', query =>
      query.selectFrom('operator_links').select('token_hash').where('expires_at', '<', now).limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

function linkOf(row: LinkRow): SignInLink {
  return {
    tokenHash: row.token_hash,
    operatorId: row.operator_id,
    kind: row.kind,
    expiresAt: row.expires_at,
    isMailed: row.is_mailed === 1,
  }
}

function sessionOf(row: SessionRow): Session {
  return {
    id: row.id,
    tokenHash: row.token_hash,
    operatorId: row.operator_id,
    method: row.method,
    isPending: row.is_pending === 1,
    confirmedAt: row.confirmed_at,
    seenAt: row.seen_at,
    createdAt: row.created_at,
    peer: row.peer,
    userAgent: row.user_agent,
    passkeyId: row.passkey_id,
  }
}

function tokenOf(row: TokenRow): OperatorToken {
  return {
    id: row.id,
    tokenHash: row.token_hash,
    operatorId: row.operator_id,
    name: row.name,
    hint: row.hint,
    role: row.role,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
  }
}
