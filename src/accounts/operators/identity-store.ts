/** SQL of identities: accounts of an OpenID provider, each linked to one operator. */
import type { Queries } from '../../db/database.js'

interface IdentityRow {
  issuer: string
  subject: string
  operator_id: string
}

declare module '../../db/tables.js' {
  interface Tables {
    operator_identities: IdentityRow
  }
}

/** An account of an OpenID provider. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

/** @returns id of the operator that the account is linked to */
export async function findIdentity(db: Queries, { issuer, subject }: Identity): Promise<string | undefined> {
  const row = await db
    .selectFrom('operator_identities')
    .select('operator_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row?.operator_id
}

/** Whether the operator is linked to any account of the provider. */
export async function hasIdentity(db: Queries, operatorId: string, issuer: string): Promise<boolean> {
  const row = await db
    .selectFrom('operator_identities')
    .select('subject')
    .where('operator_id', '=', operatorId)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  return row !== undefined
}

export async function insertIdentity(db: Queries, operatorId: string, identity: Identity): Promise<void> {
  await db
    .insertInto('operator_identities')
    .values({ issuer: identity.issuer, subject: identity.subject, operator_id: operatorId })
    .execute()
}

export async function deleteIdentities(db: Queries, operatorId: string): Promise<void> {
  await db.deleteFrom('operator_identities').where('operator_id', '=', operatorId).execute()
}
