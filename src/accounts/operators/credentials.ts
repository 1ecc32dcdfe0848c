/** Operators change their own credentials: password, TOTP, recovery codes, tokens. Each change is recorded in the activity log. */
import type { Actor } from '../../core/actor.js'
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import { APPLIANCE } from '../../core/owner.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { OPERATOR_TOKEN_PREFIX, type OperatorPrincipal } from '../../http/operator.js'
import type { Clock } from '../../world/time/clock.js'
import type { Random } from '../../world/random.js'
import { randomBase62 } from '../keys.js'
import type { SecretBox } from '../secret-box.js'
import { hashToken } from './access.js'
import { findOperator, replaceRecoveryCodes, totpPlace, updateOperator } from './operator-store.js'
import { isWithinRole } from './privileges.js'
import { PASSWORD_LENGTH, type Passwords } from './password.js'
import type { Role } from '../../http/roles.js'
import {
  deleteLinks,
  deleteSession,
  deleteSessions,
  deleteToken,
  insertToken,
  listTokens,
  type OperatorToken,
} from './session-store.js'
import {
  base32,
  fromBase32,
  hashRecoveryCode,
  matchTotp,
  newRecoveryCodes,
  newTotpSecret,
  totpUrl,
} from './totp.js'

const MAX_TOKENS = 100

export interface CredentialParts extends Pick<Services, 'database' | 'clock' | 'random' | 'newId'> {
  readonly box: SecretBox
  readonly passwords: Passwords
}

/** Ends all other sessions and invalidates open links. @throws AppError validation_error */
export async function changePassword(
  { database, clock, passwords }: Pick<CredentialParts, 'database' | 'clock' | 'passwords'>,
  { id, email, credential, actor }: Pick<OperatorPrincipal, 'id' | 'email' | 'credential' | 'actor'>,
  password: string,
): Promise<void> {
  checkPassword(password, email)
  const passwordHash = await passwords.hash(password)
  await database.write(async tx => {
    await updateOperator(tx.db, id, { passwordHash })
    await deleteLinks(tx.db, id)
    await deleteSessions(tx.db, id, credential.kind === 'session' ? credential.id : undefined)
    await record(clock, tx, actor, 'operator.password_changed', email)
  })
}

/** Length is what matters (NIST SP 800-63B §3.1.1); a password made of the address is the first one tried. */
function checkPassword(password: string, email: string): void {
  const { minLength, maxLength } = PASSWORD_LENGTH
  if (password.length < minLength || password.length > maxLength)
    throw new AppError('validation_error', `a password has ${minLength} to ${maxLength} characters`, {
      path: 'password',
    })
  const isGuessable =
    password.toLowerCase().includes(email) || new Set(password).size < 5 || /^(.{1,4})\1+$/.test(password)
  if (isGuessable)
    throw new AppError('validation_error', 'this password is easy to guess; choose another', {
      path: 'password',
    })
}

/** A new secret for an authenticator app. Nothing is stored until `enableTotp`. */
export function proposeTotp(random: Random, issuer: string, email: string): { secret: string; url: string } {
  const secret = newTotpSecret(random)
  return { secret: base32(secret), url: totpUrl(secret, issuer, email) }
}

/**
 * Enables TOTP, or replaces its secret.
 *
 * @param secret from `proposeTotp`, base32
 * @param code a current code, which shows that the app has the secret
 * @returns new recovery codes, shown once
 * @throws AppError validation_error
 */
export async function enableTotp(
  { database, clock, random, box }: CredentialParts,
  operatorId: string,
  secret: string,
  code: string,
  actor: Actor,
): Promise<string[]> {
  const bytes = fromBase32(secret)
  const step = bytes && matchTotp(bytes, code, clock.now(), 0)
  if (!bytes || step === undefined)
    throw new AppError('validation_error', 'the code does not match; check the clock of the phone', {
      path: 'code',
    })
  const codes = newRecoveryCodes(random)
  await database.write(async tx => {
    const totpSecret = box.seal(bytes.toString('base64'), totpPlace(operatorId))
    await updateOperator(tx.db, operatorId, { totpSecret, totpStep: step })
    await replaceRecoveryCodes(tx.db, operatorId, codes.map(hashRecoveryCode))
    await record(clock, tx, actor, 'operator.totp_enabled', actor.name ?? operatorId)
  })
  return codes
}

export async function disableTotp(
  { database, clock }: Pick<CredentialParts, 'database' | 'clock'>,
  operatorId: string,
  actor: Actor,
): Promise<void> {
  await database.write(async tx => {
    await updateOperator(tx.db, operatorId, { totpSecret: null, totpStep: 0 })
    await replaceRecoveryCodes(tx.db, operatorId, [])
    await record(clock, tx, actor, 'operator.totp_disabled', actor.name ?? operatorId)
  })
}

/** @returns codes that replace all earlier ones, shown once @throws AppError conflict without TOTP */
export async function renewRecoveryCodes(
  { database, clock, random }: Pick<CredentialParts, 'database' | 'clock' | 'random'>,
  operatorId: string,
  actor: Actor,
): Promise<string[]> {
  const codes = newRecoveryCodes(random)
  await database.write(async tx => {
    const operator = await findOperator(tx.db, { id: operatorId })
    if (operator === undefined || operator.totpSecret === null)
      throw new AppError('conflict', 'recovery codes replace codes of an authenticator app; enable one first')
    await replaceRecoveryCodes(tx.db, operatorId, codes.map(hashRecoveryCode))
    await record(clock, tx, actor, 'operator.recovery_codes_renewed', operator.email)
  })
  return codes
}

export interface CreatedToken {
  readonly row: OperatorToken
  /** Only its hash is stored. */
  readonly token: string
}

export interface NewToken {
  readonly name: string
  /** Default: all of its operator's permissions. */
  readonly role?: Role
  /** Default: never. */
  readonly expiresAt?: number
}

/**
 * @param acting a token creates tokens with no wider role and no longer life than its own
 * @returns the row and the plain token, `pa_` and 40 random base62 characters, shown once
 * @throws AppError forbidden, validation_error (expiry), not_found (operator)
 */
export async function createToken(
  { database, clock, random, newId }: Pick<CredentialParts, 'database' | 'clock' | 'random' | 'newId'>,
  operatorId: string,
  { name: asked, role, expiresAt }: NewToken,
  acting: OperatorPrincipal,
): Promise<CreatedToken> {
  const name = readName(asked)
  const now = clock.now()
  if (expiresAt !== undefined && expiresAt <= now)
    throw new AppError('validation_error', 'expires_at is in the past', { path: 'expires_at' })
  const token = `${OPERATOR_TOKEN_PREFIX}${randomBase62(random)}`
  const row: OperatorToken = {
    id: newId(),
    tokenHash: hashToken(token),
    operatorId,
    name,
    hint: `${OPERATOR_TOKEN_PREFIX}...${token.slice(-4)}`,
    role: role ?? null,
    createdAt: now,
    lastUsedAt: null,
    expiresAt: expiresAt ?? null,
  }
  await database.write(async tx => {
    const operator = await findOperator(tx.db, { id: operatorId })
    if (!operator) throw new AppError('not_found', `no operator ${operatorId}`)
    if (role !== undefined && !operator.grants.some(grant => isWithinRole(role, grant.role)))
      throw new AppError(
        'forbidden',
        `${operator.email} has no role that includes ${role}; give a role that it has, or less`,
        { path: 'role' },
      )
    const tokens = await listTokens(tx.db, operatorId)
    if (tokens.length >= MAX_TOKENS)
      throw new AppError('limit_reached', `an operator has at most ${MAX_TOKENS} tokens; revoke one first`)
    if (acting.credential.kind === 'token')
      requireNoWider(
        row,
        tokens.find(({ id }) => id === acting.credential.id),
      )
    await insertToken(tx.db, row)
    const details = { name, role: row.role }
    await record(clock, tx, acting.actor, 'operator_token.created', operator.email, details)
  })
  return { row, token }
}

/** @throws AppError not_found */
export async function revokeToken(
  { database, clock }: Pick<CredentialParts, 'database' | 'clock'>,
  { id, email, actor }: OperatorPrincipal,
  tokenId: string,
): Promise<void> {
  await database.write(async tx => {
    if (!(await deleteToken(tx.db, id, tokenId))) throw new AppError('not_found', `no token ${tokenId}`)
    await record(clock, tx, actor, 'operator_token.revoked', email)
  })
}

/** @throws AppError forbidden */
function requireNoWider(wanted: OperatorToken, own: OperatorToken | undefined): void {
  if (!own) throw new AppError('forbidden', 'a token can only create tokens for its own operator')
  if (!isWithinRole(wanted.role, own.role))
    throw new AppError(
      'forbidden',
      `this token is limited to the role ${own.role ?? ''}; give that role or less`,
    )
  const outlives = own.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > own.expiresAt)
  if (outlives)
    throw new AppError(
      'forbidden',
      'a token cannot create one that expires later than itself; give expires_at',
    )
}

/** @param sessionId default: all but the one of the request @throws AppError not_found */
export async function endOwnSessions(
  { database, clock }: Pick<CredentialParts, 'database' | 'clock'>,
  { id, email, credential, actor }: Pick<OperatorPrincipal, 'id' | 'email' | 'credential' | 'actor'>,
  sessionId?: string,
): Promise<void> {
  await database.write(async tx => {
    if (sessionId === undefined) await deleteSessions(tx.db, id, credential.id)
    else if (!(await deleteSession(tx.db, id, sessionId)))
      throw new AppError('not_found', `no session ${sessionId}`)
    await record(clock, tx, actor, 'operator.signed_out', email)
  })
}

async function record(
  clock: Clock,
  tx: Tx,
  actor: Actor,
  action: Activity['action'],
  subject: string,
  details: NonNullable<Activity['details']> = {},
): Promise<void> {
  const createdAt = clock.now()
  await recordActivity(tx, { workspaceId: APPLIANCE, actor }, createdAt, { action, subject, details })
}
