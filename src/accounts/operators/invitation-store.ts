/** SQL of invitations: roles in a workspace that the holder of an address has not accepted yet. */
import type { Queries } from '../../db/database.js'
import type { Role, RoleGrant } from '../../http/roles.js'

interface InvitationRow {
  id: string
  email: string
  name: string
  workspace_id: string
  role: Role
  invited_by: string
  token_hash: string | null
  created_at: number
  expires_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    operator_invitations: InvitationRow
  }
}

export interface Invitation {
  readonly id: string
  /** In lower case. */
  readonly email: string
  /** Of the person, as the inviting operator wrote it. */
  readonly name: string
  readonly grant: RoleGrant
  /** Id of the operator. */
  readonly invitedBy: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** Replaces an earlier one to the same address and workspace, whose link then does not work any more. @returns its id */
export async function putInvitation(db: Queries, invitation: Invitation): Promise<string> {
  const { grant, invitedBy, createdAt, expiresAt, name } = invitation
  const offered = {
    name,
    role: grant.role,
    invited_by: invitedBy,
    token_hash: null,
    created_at: createdAt,
    expires_at: expiresAt,
  }
  const { id } = await db
    .insertInto('operator_invitations')
    .values({ id: invitation.id, email: invitation.email, workspace_id: grant.workspaceId, ...offered })
    .onConflict(conflict => conflict.columns(['workspace_id', 'email']).doUpdateSet(offered))
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** @returns false if the invitation is gone */
export async function setInvitationLink(db: Queries, id: string, tokenHash: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('operator_invitations')
    .set({ token_hash: tokenHash })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function findInvitation(db: Queries, id: string): Promise<Invitation | undefined> {
  const row = await db.selectFrom('operator_invitations').selectAll().where('id', '=', id).executeTakeFirst()
  return row && invitationOf(row)
}

/** @returns undefined if it is unknown or expired */
export async function findInvitationByLink(
  db: Queries,
  tokenHash: string,
  now: number,
): Promise<Invitation | undefined> {
  const row = await db
    .selectFrom('operator_invitations')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return row && invitationOf(row)
}

/** Those that have not expired, by address. */
export async function listInvitations(db: Queries, now: number): Promise<Invitation[]> {
  const rows = await db
    .selectFrom('operator_invitations')
    .selectAll()
    .where('expires_at', '>', now)
    .orderBy('email')
    .orderBy('id')
    .execute()
  return rows.map(invitationOf)
}

/** @returns whether it was there */
export async function deleteInvitation(db: Queries, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_invitations')
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

/** @returns how many, at most `limit` */
export async function deleteInvitationsBefore(db: Queries, now: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_invitations')
    .where('id', 'in', query =>
      query.selectFrom('operator_invitations').select('id').where('expires_at', '<', now).limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

function invitationOf(row: InvitationRow): Invitation {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    grant: { workspaceId: row.workspace_id, role: row.role },
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
