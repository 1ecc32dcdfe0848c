/**
 * Creates, changes, revokes and authenticates API keys.
 *
 * A key is a prefix and 40 random base62 characters (238 bits). That much entropy needs no slow hash: its SHA-256 is stored. The prefix is
 * informational; the row says whether it is a sandbox key.
 */
import { hash as digest } from 'node:crypto'
import { AppError } from '../core/errors.js'
import { readName } from '../core/names.js'
import { TtlCache } from '../core/ttl-cache.js'
import { watchOf } from '../db/changes.js'
import type { Database, Tx } from '../db/database.js'
import type { Actor } from '../core/actor.js'
import type { Services } from '../db/services.js'
import { recordActivity, type Changes } from '../events/activity-store.js'
import { PERMISSIONS, type Authenticate, type Permission, type Principal } from '../http/principal.js'
import type { Clock } from '../world/time/clock.js'
import type { Random } from '../world/random.js'
import {
  findKey,
  insertApiKey,
  noteKeysUsed,
  revokeApiKey,
  updateApiKey,
  type ApiKey,
  type FoundKey,
} from './key-store.js'
import { findWorkspace } from './workspace-store.js'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 40

const SENDING_ACCESS: readonly Permission[] = ['email:send', 'email:read', 'smtp:send']

/** Named sets of permissions: the key types of `GET /api-key/permissions`. */
const BUNDLES: Readonly<Record<string, readonly string[] | undefined>> = {
  full_access: ['*'],
  sending_access: SENDING_ACCESS,
}

export interface NewKey {
  readonly workspaceId: string
  readonly name: string
  readonly isSandbox: boolean
  /** Default: full access. Exactly the sending permissions: type `sending_access`. */
  readonly permissions?: readonly string[]
  /** Per minute, 0 = unlimited. */
  readonly rateLimit: number
  readonly emailRateLimit: number
}

export const DEFAULT_KEY_LIMITS = { rateLimit: 100, emailRateLimit: 100 }

export type KeyParts = Pick<Services, 'database' | 'clock' | 'random' | 'newId'>

/**
 * @returns the row and the plain key, which is shown once and never stored
 * @throws AppError not_found (workspace), validation_error (permission names, limits)
 */
export async function createKey(
  parts: KeyParts,
  wanted: NewKey,
  actor: Actor,
): Promise<{ row: ApiKey; key: string }> {
  const permissions = checkPermissions(wanted.permissions)
  checkLimits(wanted)
  const name = readName(wanted.name)
  const key = (wanted.isSandbox ? 'ts_test_' : 'ts_live_') + randomBase62(parts.random)
  const row: ApiKey = {
    id: parts.newId(),
    workspaceId: wanted.workspaceId,
    name,
    hash: hashKey(key),
    hint: `${key.slice(0, 8)}...${key.slice(-4)}`,
    type: keyType(permissions),
    permissions,
    isSandbox: wanted.isSandbox,
    rateLimit: wanted.rateLimit,
    emailRateLimit: wanted.emailRateLimit,
    createdAt: parts.clock.now(),
    revokedAt: null,
    lastUsedAt: null,
  }
  await parts.database.write(async tx => {
    if (!(await findWorkspace(tx.db, wanted.workspaceId)))
      throw new AppError('not_found', `no workspace ${wanted.workspaceId}`)
    await insertApiKey(tx.db, row)
    await record(tx, actor, row.createdAt, row, 'api_key.created')
  })
  return { row, key }
}

/** Mail scheduled with a key. Implemented by message intake. */
export interface ScheduledMail {
  count(key: ApiKey): Promise<number>
  /** @returns how many messages were cancelled */
  cancel(key: ApiKey): Promise<number>
}

/**
 * Takes effect at once, in the running server too. Mail that was accepted with the key is not affected.
 *
 * @throws AppError not_found (unknown or already revoked)
 */
export async function revokeKey(
  { database, clock }: Pick<KeyParts, 'database' | 'clock'>,
  id: string,
  actor: Actor,
): Promise<void> {
  const now = clock.now()
  await database.write(async tx => {
    const found = await findKey(tx.db, { id })
    if (!found || !(await revokeApiKey(tx.db, id, now)))
      throw new AppError('not_found', `no unrevoked key ${id}`)
    tx.changed('keys')
    await record(tx, actor, now, found.key, 'api_key.revoked')
  })
}

export type KeyChanges = Partial<Pick<NewKey, 'name' | 'permissions' | 'rateLimit' | 'emailRateLimit'>>

/** Takes effect at once, in the running server too. @throws AppError not_found (unknown or revoked), validation_error */
export async function changeKey(
  { database, clock }: Pick<KeyParts, 'database' | 'clock'>,
  id: string,
  { permissions: names, ...changes }: KeyChanges,
  actor: Actor,
): Promise<ApiKey> {
  const permissions = names && checkPermissions(names)
  checkLimits(changes)
  const named = changes.name === undefined ? {} : { name: readName(changes.name) }
  return database.write(async tx => {
    const found = await findKey(tx.db, { id })
    if (!found || found.key.revokedAt !== null) throw new AppError('not_found', `no unrevoked key ${id}`)
    const key = {
      ...found.key,
      ...changes,
      ...named,
      ...(permissions ? { permissions, type: keyType(permissions) } : {}),
    }
    await updateApiKey(tx.db, key)
    tx.changed('keys')
    await record(tx, actor, clock.now(), key, 'api_key.changed', changesBetween(found.key, key))
    return key
  })
}

function changesBetween(before: ApiKey, after: ApiKey): Changes {
  const shown = ({ name, permissions, rateLimit, emailRateLimit }: ApiKey) => ({
    name,
    permissions: permissions.join(', '),
    rate_limit: rateLimit,
    email_rate_limit: emailRateLimit,
  })
  const [old, next] = [shown(before), shown(after)]
  const names = Object.keys(next) as (keyof typeof next)[]
  return Object.fromEntries(
    names
      .filter(name => old[name] !== next[name])
      .map(name => [name, { before: old[name], after: next[name] }]),
  )
}

function checkLimits({ rateLimit, emailRateLimit }: Pick<KeyChanges, 'rateLimit' | 'emailRateLimit'>): void {
  for (const limit of [rateLimit, emailRateLimit])
    if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 0 || limit > 1_000_000_000))
      throw new AppError('validation_error', 'a rate limit is a whole number per minute, 0 for none')
}

function record(
  tx: Tx,
  actor: Actor,
  now: number,
  { id, workspaceId, name, hint, type, isSandbox }: ApiKey,
  action: `api_key.${string}`,
  changes: Changes = {},
): Promise<void> {
  return recordActivity(tx, { workspaceId, actor }, now, {
    action,
    subject: name,
    details: { id, hint, type, is_sandbox: isSandbox },
    changes,
  })
}

function checkPermissions(names: readonly string[] | undefined): readonly (Permission | '*')[] {
  if (names === undefined) return ['*']
  if (names.length === 0) throw new AppError('validation_error', 'name at least one permission')
  const known: readonly string[] = ['*', ...PERMISSIONS]
  const permissions = names.flatMap(name => BUNDLES[name] ?? [name])
  const unknown = permissions.filter(name => !known.includes(name))
  if (unknown.length > 0)
    throw new AppError(
      'validation_error',
      `unknown permission ${unknown.join(', ')}; known: ${[...Object.keys(BUNDLES), ...known].join(' ')}`,
      {
        path: 'permissions',
      },
    )
  return [...new Set(permissions)] as (Permission | '*')[]
}

function keyType(permissions: readonly string[]): ApiKey['type'] {
  if (permissions.includes('*')) return 'full_access'
  const isSending =
    permissions.length === SENDING_ACCESS.length && SENDING_ACCESS.every(name => permissions.includes(name))
  return isSending ? 'sending_access' : 'custom'
}

/** 40 characters, 238 bits. Rejects bytes of 248 and above, so that every character is equally likely. */
export function randomBase62(random: Random): string {
  let text = ''
  while (text.length < RANDOM_CHARACTERS)
    for (const byte of random.bytes(RANDOM_CHARACTERS))
      if (byte < 248 && text.length < RANDOM_CHARACTERS) text += BASE62.charAt(byte % 62)
  return text
}

function hashKey(key: string): string {
  return digest('sha256', key, 'hex')
}

/** Lifetime of a cached key, unless the database changes first. */
const REMEMBERED_MS = 1_000

/** `last used` is accurate to this, so that requests rarely write. */
const USED_EVERY_MS = 60_000
const MAX_NOTED = 10_000

/** Records when keys were last used: at most once a minute per key, one write for all keys used meanwhile. */
class KeyUses {
  private readonly database: Database
  private readonly clock: Clock
  private readonly notedAt = new Map<string, number>()
  private waiting: string[] = []
  private isWriting = false

  constructor(database: Database, clock: Clock) {
    this.database = database
    this.clock = clock
  }

  /** Never waits and never throws. */
  note(id: string): void {
    const now = this.clock.monotonic()
    const before = this.notedAt.get(id)
    if (before !== undefined && now - before < USED_EVERY_MS) return
    if (this.notedAt.size >= MAX_NOTED) this.notedAt.clear()
    this.notedAt.set(id, now)
    this.waiting.push(id)
    if (!this.isWriting) void this.write()
  }

  private async write(): Promise<void> {
    this.isWriting = true
    while (this.waiting.length > 0) {
      const ids = this.waiting.splice(0, 500)
      try {
        await this.database.write(tx => noteKeysUsed(tx.db, ids, this.clock.now()))
      } catch {
        // Noted again with the next use: the time is informative, and storage faults are reported elsewhere.
        for (const id of ids) this.notedAt.delete(id)
      }
    }
    this.isWriting = false
  }
}

/** Authenticates against the database, with a one-second cache. */
export function keyAuthenticator(database: Database, clock: Clock): Authenticate {
  const uses = new KeyUses(database, clock)
  const keys = new TtlCache<Principal>(
    watchOf(database.changes, clock, ['keys', 'workspaces']),
    REMEMBERED_MS,
  )
  return async token => {
    const hash = hashKey(token)
    const principal = await keys.get(hash, async () => usable(await findKey(database.reader, { hash })))
    uses.note(principal.keyId)
    return principal
  }
}

/** Looks a key up by id, without its secret, for trusted local use. @throws AppError unauthorized, workspace_not_found */
export function keyFinder(database: Database, clock: Clock): (id: string) => Promise<Principal> {
  const keys = new TtlCache<Principal>(
    watchOf(database.changes, clock, ['keys', 'workspaces']),
    REMEMBERED_MS,
  )
  return id => keys.get(id, async () => usable(await findKey(database.reader, { id })))
}

function usable(found: FoundKey | undefined): Principal {
  if (!found || found.key.revokedAt !== null)
    throw new AppError('unauthorized', 'the API key is unknown or revoked')
  if (!found.hasWorkspace) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
  return principalOf(found)
}

function principalOf({ key, actsIn }: FoundKey): Principal {
  return {
    keyId: key.id,
    keyName: key.name,
    actor: { type: 'api_key', id: key.id, name: key.name },
    workspaceId: actsIn,
    liveWorkspaceId: key.workspaceId,
    keyType: key.type,
    permissions: key.permissions,
    isSandbox: key.isSandbox,
    rateLimit: key.rateLimit,
    emailRateLimit: key.emailRateLimit,
  }
}
