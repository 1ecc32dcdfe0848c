/** SQL of API keys. Only the SHA-256 of a key is stored, so a key cannot be shown again. */
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'
import { keysetPage, type Listed, type PageOf } from '../db/listing.js'
import { flag, type Flag } from '../db/tables.js'
import type { Permission, Principal } from '../http/principal.js'

interface ApiKeyRow {
  id: string
  workspace_id: string
  name: string
  key_hash: string
  key_hint: string
  type: string
  permissions: string
  is_sandbox: Flag
  rate_limit: number
  email_rate_limit: number
  created_at: number
  revoked_at: number | null
  last_used_at: number | null
}

declare module '../db/tables.js' {
  interface Tables {
    api_keys: ApiKeyRow
  }
}

export interface ApiKey {
  readonly id: string
  /** The live workspace, for a sandbox key too. */
  readonly workspaceId: string
  readonly name: string
  /** SHA-256 of the whole key, lower-case hex. */
  readonly hash: string
  /** Prefix and last four characters, for recognising a key: `ts_live_...x7Qa`. */
  readonly hint: string
  readonly type: Principal['keyType']
  readonly permissions: readonly (Permission | '*')[]
  readonly isSandbox: boolean
  readonly rateLimit: number
  readonly emailRateLimit: number
  readonly createdAt: number
  readonly revokedAt: number | null
  /** Accurate to a minute. */
  readonly lastUsedAt: number | null
}

export async function insertApiKey(db: Queries, key: ApiKey): Promise<void> {
  await db
    .insertInto('api_keys')
    .values({
      id: key.id,
      workspace_id: key.workspaceId,
      name: key.name,
      key_hash: key.hash,
      key_hint: key.hint,
      type: key.type,
      permissions: JSON.stringify(key.permissions),
      is_sandbox: flag(key.isSandbox),
      rate_limit: key.rateLimit,
      email_rate_limit: key.emailRateLimit,
      created_at: key.createdAt,
      revoked_at: key.revokedAt,
      last_used_at: key.lastUsedAt,
    })
    .execute()
}

export interface FoundKey {
  readonly key: ApiKey
  readonly hasWorkspace: boolean
  /** Owner of the data it acts on: the workspace or its sandbox. */
  readonly actsIn: string
}

/** A key, revoked or not, and whether its workspace still exists. */
export async function findKey(
  db: Queries,
  by: { readonly hash: string } | { readonly id: string },
): Promise<FoundKey | undefined> {
  const row = await db
    .selectFrom('api_keys')
    .leftJoin('workspaces', 'workspaces.id', 'api_keys.workspace_id')
    .leftJoin('sandboxes', 'sandboxes.workspace_id', 'api_keys.workspace_id')
    .selectAll('api_keys')
    .select([
      'workspaces.id as found_workspace',
      'workspaces.deleted_at as workspace_deleted_at',
      'sandboxes.id as sandbox_id',
    ])
    .$call(query =>
      'hash' in by ? query.where('key_hash', '=', by.hash) : query.where('api_keys.id', '=', by.id),
    )
    .executeTakeFirst()
  if (!row) return undefined
  const key = fromRow(row)
  const actsIn = key.isSandbox ? row.sandbox_id : key.workspaceId
  return {
    key,
    // A sandbox key without a sandbox has no data it may access.
    hasWorkspace: row.found_workspace !== null && row.workspace_deleted_at === null && actsIn !== null,
    actsIn: actsIn ?? '',
  }
}

/** Oldest first. @param workspaceId undefined: the keys of all workspaces */
export function listApiKeys(
  db: Queries,
  workspaceId: string | undefined,
  page: PageOf,
): Promise<Listed<ApiKey>> {
  const matching = db
    .selectFrom('api_keys')
    .$if(workspaceId !== undefined, query =>
      query.where('workspace_id', '=', must(workspaceId, 'workspaceId')),
    )
  return keysetPage(matching, { columns: ['id'], kinds: ['text'], direction: 'asc' }, page, fromRow)
}

export async function noteKeysUsed(db: Queries, ids: readonly string[], now: number): Promise<void> {
  await db.updateTable('api_keys').set({ last_used_at: now }).where('id', 'in', ids).execute()
}

export async function updateApiKey(db: Queries, key: ApiKey): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({
      name: key.name,
      type: key.type,
      permissions: JSON.stringify(key.permissions),
      rate_limit: key.rateLimit,
      email_rate_limit: key.emailRateLimit,
    })
    .where('id', '=', key.id)
    .execute()
}

/** @returns whether an unrevoked key had this id */
export async function revokeApiKey(db: Queries, id: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

function fromRow(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    hash: row.key_hash,
    hint: row.key_hint,
    type: row.type as ApiKey['type'],
    permissions: JSON.parse(row.permissions) as ApiKey['permissions'],
    isSandbox: row.is_sandbox === 1,
    rateLimit: row.rate_limit,
    emailRateLimit: row.email_rate_limit,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  }
}
