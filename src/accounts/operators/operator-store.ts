/**
 * SQL of operators: the people who run the appliance, their roles, and what they sign in with.
 *
 * Email addresses are stored in lower case and unique. TOTP secrets are sealed; passwords and recovery codes are stored as hashes.
 */
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { statement } from '../../db/statement.js'
import { isSealed, type SecretBox } from '../secret-box.js'
import type { RoleGrant, Role } from '../../http/roles.js'

interface OperatorRow {
  id: string
  email: string
  name: string
  password_hash: string | null
  totp_secret: string | null
  /** Time step of the last accepted code, so that it cannot be replayed. */
  totp_step: number
  created_at: number
  last_sign_in_at: number | null
  proved_at: number | null
}

interface OperatorRoleRow {
  operator_id: string
  workspace_id: string
  role: Role
  given_by: RoleSource
}

interface RecoveryCodeRow {
  operator_id: string
  code_hash: string
}

interface PasskeyRow {
  /** Credential id, base64url. */
  id: string
  operator_id: string
  name: string
  /** COSE key, base64url. */
  public_key: string
  counter: number
  /** JSON array. */
  transports: string
  created_at: number
  last_used_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    operators: OperatorRow
    operator_roles: OperatorRoleRow
    operator_recovery_codes: RecoveryCodeRow
    operator_passkeys: PasskeyRow
  }
}

/** `operator`: by hand; `oidc`: by the groups of an OpenID provider. */
export type RoleSource = 'operator' | 'oidc'

export interface HeldRole extends RoleGrant {
  /** Absent: by hand. */
  readonly givenBy?: 'oidc'
}

export interface Operator {
  readonly id: string
  readonly email: string
  readonly name: string
  /** PHC string; null: no password. */
  readonly passwordHash: string | null
  /** Sealed base64; null: no TOTP. */
  readonly totpSecret: string | null
  readonly totpStep: number
  readonly createdAt: number
  readonly lastSignInAt: number | null
  /**
   * When it was proved that the account is in the hands of the address's holder: by opening a link that was mailed there, or by an identity
   * provider. Null: never, or not since the last link that was handed over.
   */
  readonly provedAt: number | null
  /** At most one in a workspace. */
  readonly grants: readonly HeldRole[]
}

export interface Passkey {
  readonly id: string
  readonly operatorId: string
  readonly name: string
  readonly publicKey: string
  readonly counter: number
  readonly transports: readonly string[]
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

/** @returns false if the address is taken */
export async function insertOperator(
  db: Queries,
  {
    id,
    email,
    name,
    createdAt,
    provedAt,
    grants,
  }: Pick<Operator, 'id' | 'email' | 'name' | 'createdAt' | 'provedAt' | 'grants'>,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('operators')
    .values({
      id,
      email,
      name,
      password_hash: null,
      totp_secret: null,
      totp_step: 0,
      created_at: createdAt,
      last_sign_in_at: null,
      proved_at: provedAt,
    })
    .onConflict(conflict => conflict.column('email').doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows !== 1n) return false
  for (const grant of grants) await putRole(db, id, grant)
  return true
}

const selectById = statement((db, { id }: { id: string }) => withRoles(db).where('operators.id', '=', id))

const selectByEmail = statement((db, { email }: { email: string }) =>
  withRoles(db).where('operators.email', '=', email),
)

export async function findOperator(
  db: Queries,
  by: { readonly id: string } | { readonly email: string },
): Promise<Operator | undefined> {
  const { rows } = await ('id' in by
    ? selectById(db, { id: by.id })
    : selectByEmail(db, { email: by.email.toLowerCase() }))
  return operatorsOf(rows)[0]
}

/** All, by address; an appliance has few. */
export async function listOperators(db: Queries): Promise<Operator[]> {
  return operatorsOf(await withRoles(db).execute())
}

/** One row for each role, and one for an operator who has none. */
function withRoles(db: Queries) {
  return db
    .selectFrom('operators')
    .leftJoin('operator_roles', 'operator_roles.operator_id', 'operators.id')
    .selectAll('operators')
    .select(['operator_roles.workspace_id', 'operator_roles.role', 'operator_roles.given_by'])
    .orderBy('operators.email')
    .orderBy('operator_roles.workspace_id')
}

export type OperatorChanges = Partial<
  Pick<Operator, 'name' | 'passwordHash' | 'totpSecret' | 'totpStep' | 'lastSignInAt' | 'provedAt'>
>

export async function updateOperator(db: Queries, id: string, changes: OperatorChanges): Promise<void> {
  const { name, passwordHash, totpSecret, totpStep, lastSignInAt, provedAt } = changes
  await db
    .updateTable('operators')
    .set({
      ...given({
        name,
        password_hash: passwordHash,
        totp_secret: totpSecret,
        totp_step: totpStep,
        last_sign_in_at: lastSignInAt,
        proved_at: provedAt,
      }),
    })
    .where('id', '=', id)
    .execute()
}

/** Marks a code as used. @returns false if it or a later one was used meanwhile */
export async function useTotpStep(db: Queries, id: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('operators')
    .set({ totp_step: step })
    .where('id', '=', id)
    .where('totp_step', '<', step)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Removes the account with everything it signs in with, except sessions, tokens and links (`session-store.ts`). */
export async function deleteOperator(db: Queries, id: string): Promise<void> {
  for (const table of [
    'operator_roles',
    'operator_recovery_codes',
    'operator_passkeys',
    'operator_identities',
  ] as const)
    await db.deleteFrom(table).where('operator_id', '=', id).execute()
  await db.deleteFrom('operators').where('id', '=', id).execute()
}

/** Replaces the operator's role in the workspace. */
export async function putRole(
  db: Queries,
  operatorId: string,
  { workspaceId, role, givenBy = 'operator' }: RoleGrant & { readonly givenBy?: RoleSource },
): Promise<void> {
  const held = { role, given_by: givenBy }
  await db
    .insertInto('operator_roles')
    .values({ operator_id: operatorId, workspace_id: workspaceId, ...held })
    .onConflict(conflict => conflict.columns(['operator_id', 'workspace_id']).doUpdateSet(held))
    .execute()
}

/** @returns whether there was one */
export async function deleteRole(db: Queries, operatorId: string, workspaceId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_roles')
    .where('operator_id', '=', operatorId)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** @param hashes replace all earlier codes */
export async function replaceRecoveryCodes(
  db: Queries,
  operatorId: string,
  hashes: readonly string[],
): Promise<void> {
  await db.deleteFrom('operator_recovery_codes').where('operator_id', '=', operatorId).execute()
  if (hashes.length > 0)
    await db
      .insertInto('operator_recovery_codes')
      .values(hashes.map(hash => ({ operator_id: operatorId, code_hash: hash })))
      .execute()
}

/** @returns false if it is unknown or used */
export async function useRecoveryCode(db: Queries, operatorId: string, hash: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_recovery_codes')
    .where('operator_id', '=', operatorId)
    .where('code_hash', '=', hash)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

export async function countRecoveryCodes(db: Queries, operatorId: string): Promise<number> {
  const { count } = await db
    .selectFrom('operator_recovery_codes')
    .select(e => e.fn.countAll<number>().as('count'))
    .where('operator_id', '=', operatorId)
    .executeTakeFirstOrThrow()
  return count
}

/** @returns false if the credential is registered already */
export async function insertPasskey(db: Queries, passkey: Passkey): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('operator_passkeys')
    .values({
      id: passkey.id,
      operator_id: passkey.operatorId,
      name: passkey.name,
      public_key: passkey.publicKey,
      counter: passkey.counter,
      transports: JSON.stringify(passkey.transports),
      created_at: passkey.createdAt,
      last_used_at: passkey.lastUsedAt,
    })
    .onConflict(conflict => conflict.column('id').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

export async function findPasskey(db: Queries, id: string): Promise<Passkey | undefined> {
  const row = await db.selectFrom('operator_passkeys').selectAll().where('id', '=', id).executeTakeFirst()
  return row && passkeyOf(row)
}

export async function listPasskeys(db: Queries, operatorId: string): Promise<Passkey[]> {
  const rows = await db
    .selectFrom('operator_passkeys')
    .selectAll()
    .where('operator_id', '=', operatorId)
    .orderBy('created_at')
    .execute()
  return rows.map(passkeyOf)
}

export async function updatePasskey(
  db: Queries,
  id: string,
  { counter, lastUsedAt }: Pick<Passkey, 'counter' | 'lastUsedAt'>,
): Promise<void> {
  await db
    .updateTable('operator_passkeys')
    .set({ counter, last_used_at: lastUsedAt })
    .where('id', '=', id)
    .execute()
}

/** All of the operator's. @returns how many */
export async function deletePasskeys(db: Queries, operatorId: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_passkeys')
    .where('operator_id', '=', operatorId)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** @returns whether the operator had it */
export async function deletePasskey(db: Queries, operatorId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_passkeys')
    .where('operator_id', '=', operatorId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Where a TOTP secret is stored, as `SecretBox` binds it. */
export function totpPlace(operatorId: string): string {
  return `operators/totp_secret/${operatorId}`
}

/** Seals plain secrets of a server that has just got a `secrets.key`. */
export async function sealTotpSecrets(db: Queries, box: SecretBox): Promise<void> {
  const rows = await db
    .selectFrom('operators')
    .select(['id', 'totp_secret'])
    .where('totp_secret', 'is not', null)
    .execute()
  for (const { id, totp_secret: secret } of rows)
    if (secret !== null && !isSealed(secret))
      await updateOperator(db, id, { totpSecret: box.seal(secret, totpPlace(id)) })
}

type RowWithRole = OperatorRow & { readonly [Column in keyof HeldRoleRow]: HeldRoleRow[Column] | null }
type HeldRoleRow = Omit<OperatorRoleRow, 'operator_id'>

function operatorsOf(rows: readonly RowWithRole[]): Operator[] {
  const found = new Map<string, Operator & { readonly grants: HeldRole[] }>()
  for (const row of rows) {
    const operator = found.get(row.id) ?? operatorOf(row)
    found.set(row.id, operator)
    const { workspace_id: workspaceId, role, given_by: givenBy } = row
    if (workspaceId === null || role === null) continue
    operator.grants.push(givenBy === 'oidc' ? { workspaceId, role, givenBy } : { workspaceId, role })
  }
  return [...found.values()]
}

function operatorOf(row: OperatorRow): Operator & { readonly grants: HeldRole[] } {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    passwordHash: row.password_hash,
    totpSecret: row.totp_secret,
    totpStep: row.totp_step,
    createdAt: row.created_at,
    lastSignInAt: row.last_sign_in_at,
    provedAt: row.proved_at,
    grants: [],
  }
}

function passkeyOf(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    operatorId: row.operator_id,
    name: row.name,
    publicKey: row.public_key,
    counter: row.counter,
    transports: JSON.parse(row.transports) as string[],
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  }
}
