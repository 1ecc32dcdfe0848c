/** What operators do with their own credentials: password, TOTP, recovery codes, tokens, sessions. */
import { AppError } from '../../core/errors.js'
import type { NewId } from '../../core/ids.js'
import type { Database } from '../../db/database.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import type { Clock } from '../../world/time/clock.js'
import type { Random } from '../../world/random.js'
import { randomBase62 } from '../keys.js'
import type { SecretBox } from '../secret-box.js'
import { hashToken } from './access.js'
import { findOperator, replaceRecoveryCodes, totpPlace, updateOperator } from './operator-store.js'
import { PASSWORD_LENGTH, type Passwords } from './password.js'
import type { Role } from '../../http/roles.js'
import { deleteLinks, deleteSessions, insertToken, type OperatorToken } from './session-store.js'
import {
  base32,
  fromBase32,
  hashRecoveryCode,
  matchTotp,
  newRecoveryCodes,
  newTotpSecret,
  totpUrl,
} from './totp.js'

export interface CredentialParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly newId: NewId
  readonly box: SecretBox
  readonly passwords: Passwords
}

/** Ends all other sessions and invalidates open links. @throws AppError validation_error */
export async function changePassword(
  { database, passwords }: Pick<CredentialParts, 'database' | 'passwords'>,
  { id, email, credential }: Pick<OperatorPrincipal, 'id' | 'email' | 'credential'>,
  password: string,
): Promise<void> {
  checkPassword(password, email)
  const passwordHash = await passwords.hash(password)
  await database.write(async tx => {
    await updateOperator(tx.db, id, { passwordHash })
    await deleteLinks(tx.db, id)
    await deleteSessions(tx.db, id, credential.kind === 'session' ? credential.id : undefined)
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
  })
  return codes
}

export async function disableTotp(
  { database }: Pick<CredentialParts, 'database'>,
  operatorId: string,
): Promise<void> {
  await database.write(async tx => {
    await updateOperator(tx.db, operatorId, { totpSecret: null, totpStep: 0 })
    await replaceRecoveryCodes(tx.db, operatorId, [])
  })
}

/** @returns codes that replace all earlier ones, shown once @throws AppError conflict without TOTP */
export async function renewRecoveryCodes(
  { database, random }: Pick<CredentialParts, 'database' | 'random'>,
  operatorId: string,
): Promise<string[]> {
  const codes = newRecoveryCodes(random)
  await database.write(async tx => {
    const operator = await findOperator(tx.db, { id: operatorId })
    if (operator === undefined || operator.totpSecret === null)
      throw new AppError('conflict', 'recovery codes replace codes of an authenticator app; enable one first')
    await replaceRecoveryCodes(tx.db, operatorId, codes.map(hashRecoveryCode))
  })
  return codes
}

export interface NewToken {
  readonly name: string
  /** Default: all of its operator's permissions. */
  readonly role?: Role
  /** Default: never. */
  readonly expiresAt?: number
}

/** @returns the row and the plain token, `pa_` and 40 random base62 characters, shown once */
export async function createToken(
  { database, clock, random, newId }: Pick<CredentialParts, 'database' | 'clock' | 'random' | 'newId'>,
  operatorId: string,
  { name, role, expiresAt }: NewToken,
): Promise<{ row: OperatorToken; token: string }> {
  const token = `pa_${randomBase62(random)}`
  const row: OperatorToken = {
    id: newId(),
    tokenHash: hashToken(token),
    operatorId,
    name,
    hint: `pa_...${token.slice(-4)}`,
    role: role ?? null,
    createdAt: clock.now(),
    lastUsedAt: null,
    expiresAt: expiresAt ?? null,
  }
  await database.write(tx => insertToken(tx.db, row))
  return { row, token }
}
