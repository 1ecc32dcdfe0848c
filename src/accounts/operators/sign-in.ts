/**
 * Signs operators in: password, then TOTP or a recovery code if enabled; or a one-time link. Passkeys and OpenID Connect have their own files.
 *
 * Each step issues a new session token, so a token planted in a browser never becomes a session (session fixation). Wrong passwords, codes and
 * passkeys count against account and address in `LoginGuard`, from before they are checked; an unknown account takes as long and fails with the
 * same message as a known one.
 */
import { AppError } from '../../core/errors.js'
import { APPLIANCE } from '../../core/owner.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity } from '../../events/activity-store.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import type { Random } from '../../world/random.js'
import type { Attempt, Login, LoginGuard } from '../login-guard.js'
import type { SecretBox } from '../secret-box.js'
import { hashToken, isExpired, SESSION_LIFETIME } from './access.js'
import { noSuchLink, openInvitedAccount } from './invitations.js'
import {
  findOperator,
  totpPlace,
  updateOperator,
  useRecoveryCode,
  useTotpStep,
  type Operator,
} from './operator-store.js'
import type { Passwords } from './password.js'
import {
  deleteSession,
  findSession,
  insertSession,
  noteConfirmed,
  takeLink,
  type LinkKind,
  type Session,
  type SignInMethod,
} from './session-store.js'
import { hashRecoveryCode, matchTotp } from './totp.js'

export interface SignInParts extends Pick<Services, 'database' | 'clock' | 'random' | 'log' | 'newId'> {
  readonly box: SecretBox
  readonly passwords: Passwords
  readonly guard: LoginGuard
}

/** Where a sign-in comes from. */
export interface Client {
  /** IP address. */
  readonly peer: string
  readonly userAgent: string
}

export interface SignedIn {
  /** For the cookie; stored as a hash only. */
  readonly token: string
  readonly operator: Operator
  /** The session is useless until `withCode` has succeeded. */
  readonly needsCode: boolean
}

const TOKEN_BYTES = 32

/** @throws AppError unauthorized, rate_limited, unavailable */
export async function signInWithPassword(
  parts: SignInParts,
  { email, password }: { readonly email: string; readonly password: string },
  client: Client,
): Promise<SignedIn> {
  const login = { account: email.toLowerCase(), password }
  return attempting(parts, client, login, async attempt => {
    const operator = await findOperator(parts.database.reader, { email })
    const stored = operator?.passwordHash ?? undefined
    const isRight = await parts.passwords.matches(stored, password)
    if (!operator || stored === undefined || !isRight)
      throw await failed(parts, client, attempt, operator ? 'wrong password' : 'unknown account', operator)
    const needsCode = operator.totpSecret !== null
    const passwordHash = parts.passwords.isOutdated(stored) ? await parts.passwords.hash(password) : undefined
    const token = await parts.database.write(async tx => {
      // The password may have been changed or reset while it was hashed.
      const current = await findOperator(tx.db, { id: operator.id })
      if (current?.passwordHash !== stored || current.totpSecret !== operator.totpSecret) return undefined
      if (passwordHash !== undefined) await updateOperator(tx.db, operator.id, { passwordHash })
      return openSession(parts, tx, operator, { method: 'password', isPending: needsCode, client })
    })
    if (token === undefined) {
      await attempt.release()
      return signInWithPassword(parts, { email, password }, client)
    }
    // Until the code is right, the failures before stay counted.
    if (needsCode) await attempt.release()
    else await attempt.succeeded()
    return { token, operator, needsCode }
  })
}

/**
 * Completes a sign-in by password.
 *
 * @param pending token of the session that waits for the code
 * @param code of the authenticator app, or a recovery code
 * @throws AppError unauthorized, rate_limited
 */
export async function signInWithCode(
  parts: SignInParts,
  pending: string,
  code: string,
  client: Client,
): Promise<SignedIn> {
  const now = parts.clock.now()
  const session = await findSession(parts.database.reader, hashToken(pending))
  const operator = session && (await findOperator(parts.database.reader, { id: session.operatorId }))
  if (!session?.isPending || !operator || now - session.createdAt >= SESSION_LIFETIME.pendingMs)
    throw new AppError('unauthorized', 'the sign-in has expired; start again')
  return attempting(parts, client, codeLogin(operator, code), async attempt => {
    const token = await parts.database.write(async tx => {
      if (!(await useCode(parts, tx, operator, code))) return undefined
      // Gone if the account was reset meanwhile.
      if (!(await deleteSession(tx.db, operator.id, session.id))) return undefined
      return openSession(parts, tx, operator, { method: session.method, isPending: false, client })
    })
    if (token === undefined) throw await failed(parts, client, attempt, 'wrong code', operator)
    await attempt.succeeded()
    return { token, operator, needsCode: false }
  })
}

/** Every link works once. @throws AppError unauthorized, rate_limited, conflict (an invitation whose account exists) */
export async function signInWithLink(
  parts: SignInParts,
  link: string,
  client: Client,
): Promise<SignedIn & { readonly kind: LinkKind }> {
  const now = parts.clock.now()
  const tokenHash = hashToken(link)
  // It cannot be guessed; counting failures keeps them from flooding the database.
  const login: Login = { account: `link ${tokenHash}`, password: tokenHash, isAccountSecret: true }
  return attempting(parts, client, login, async attempt => {
    const signedIn = await parts.database.write(async tx => {
      const found = await takeLink(tx.db, tokenHash, now)
      if (found?.isMailed) await updateOperator(tx.db, found.operatorId, { provedAt: now })
      const operator = found
        ? await findOperator(tx.db, { id: found.operatorId })
        : await openInvitedAccount(parts, tx, tokenHash, client.peer)
      if (!operator) return undefined
      const isPending = operator.totpSecret !== null
      const token = await openSession(parts, tx, operator, { method: 'link', isPending, client })
      return { token, operator, needsCode: isPending, kind: found?.kind ?? 'invitation' }
    })
    if (!signedIn) {
      await attempt.failed()
      throw noSuchLink()
    }
    await attempt.release()
    return signedIn
  })
}

/**
 * Proves again who is signed in, for sensitive actions.
 *
 * @param proof the password or, without one, a code
 * @returns the session's new token, so that a stolen one gains nothing
 * @throws AppError unauthorized, rate_limited
 */
export async function confirmSignIn(
  parts: SignInParts,
  acting: OperatorPrincipal,
  proof: { readonly password: string } | { readonly code: string },
  client: Client,
): Promise<string> {
  const operator = await findOperator(parts.database.reader, { id: acting.id })
  if (!operator) throw new AppError('unauthorized', 'the account no longer exists')
  const login =
    'password' in proof
      ? { account: operator.email, password: proof.password }
      : codeLogin(operator, proof.code)
  return attempting(parts, client, login, async attempt => {
    const isPassword =
      'password' in proof &&
      (await parts.passwords.matches(operator.passwordHash ?? undefined, proof.password))
    const token = newSessionToken(parts.random)
    const isConfirmed = await parts.database.write(async tx => {
      if ('password' in proof ? !isPassword : !(await useCode(parts, tx, operator, proof.code))) return false
      return noteConfirmed(tx.db, acting.credential.id, hashToken(token), parts.clock.now())
    })
    if (!isConfirmed) {
      const reason = 'password' in proof ? 'wrong password' : 'wrong code'
      throw await failed(parts, client, attempt, reason, operator)
    }
    await attempt.succeeded()
    return token
  })
}

export interface Opening {
  readonly method: SignInMethod
  /** A code is still missing. */
  readonly isPending: boolean
  readonly client: Client
  /** When the operator proved who they are, ms; default: now. */
  readonly confirmedAt?: number
  readonly passkeyId?: string
}

/**
 * Stores a new session in the caller's transaction, as the last step of any way to sign in.
 *
 * @returns its token
 */
export async function openSession(
  { clock, random, newId }: Pick<SignInParts, 'clock' | 'random' | 'newId'>,
  tx: Tx,
  operator: Operator,
  { method, isPending, client, confirmedAt, passkeyId }: Opening,
): Promise<string> {
  const now = clock.now()
  const token = newSessionToken(random)
  const session: Session = {
    id: newId(),
    tokenHash: hashToken(token),
    operatorId: operator.id,
    method,
    isPending,
    confirmedAt: confirmedAt ?? now,
    seenAt: now,
    createdAt: now,
    peer: client.peer,
    userAgent: client.userAgent.slice(0, 300),
    passkeyId: passkeyId ?? null,
  }
  await insertSession(tx.db, session)
  if (!isPending) {
    await updateOperator(tx.db, operator.id, { lastSignInAt: now })
    await recordActivity(
      tx,
      {
        workspaceId: APPLIANCE,
        actor: { type: 'operator', id: operator.id, name: operator.email, peer: client.peer },
      },
      now,
      { action: 'operator.signed_in', subject: operator.email, details: { method } },
    )
  }
  return token
}

export function newSessionToken(random: Random): string {
  return random.bytes(TOKEN_BYTES).toString('base64url')
}

/** Ends the session of the token, if there is one. */
export async function signOut({ database, clock }: Pick<SignInParts, 'database' | 'clock'>, token: string) {
  const session = await findSession(database.reader, hashToken(token))
  if (!session || isExpired(session, clock.now())) return
  await database.write(tx => deleteSession(tx.db, session.operatorId, session.id))
}

/** Marks the code as used in the transaction. @returns false if it is wrong or used */
async function useCode(
  { box, clock }: Pick<SignInParts, 'box' | 'clock'>,
  tx: Tx,
  operator: Operator,
  code: string,
): Promise<boolean> {
  if (operator.totpSecret === null) return false
  if (!/^\d{6}$/.test(code.replace(/\s/g, '')))
    return useRecoveryCode(tx.db, operator.id, hashRecoveryCode(code))
  const secret = Buffer.from(box.open(operator.totpSecret, totpPlace(operator.id)), 'base64')
  const step = matchTotp(secret, code.replace(/\s/g, ''), clock.now(), operator.totpStep)
  return step !== undefined && (await useTotpStep(tx.db, operator.id, step))
}

/** Codes are counted apart from passwords. */
function codeLogin({ email }: Operator, code: string): Login {
  return { account: `code of ${email}`, password: code }
}

/**
 * Reserves an attempt at what a client may guess, and then checks it. The check says how the attempt ended, unless it throws something else
 * than `failed` returns, e.g. because the database is away: then it does not count.
 *
 * @throws AppError rate_limited
 */
export async function attempting<T>(
  { guard }: Pick<SignInParts, 'guard'>,
  { peer }: Client,
  login: Login,
  check: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const attempt = await guard.reserve(peer, login)
  if (typeof attempt === 'number') throw locked(attempt)
  const state = { hasEnded: false }
  const once =
    <R>(end: () => Promise<R>) =>
    () => {
      state.hasEnded = true
      return end()
    }
  try {
    return await check({
      failed: once(() => attempt.failed()),
      succeeded: once(() => attempt.succeeded()),
      release: once(() => attempt.release()),
    })
  } finally {
    if (!state.hasEnded) await attempt.release()
  }
}

/**
 * Leaves the attempt counted and logs it. Failures of locked accounts and throttled addresses are not logged, so guessing cannot flood the log.
 *
 * @param account undefined if unknown: what was typed instead of an address may be a password
 */
export async function failed(
  { log }: Pick<SignInParts, 'log'>,
  { peer }: Client,
  attempt: Attempt,
  reason: 'unknown account' | 'wrong password' | 'wrong code' | 'passkey rejected',
  account: Pick<Operator, 'email'> | undefined,
): Promise<AppError> {
  const { throttledForMs, lockedOut } = await attempt.failed()
  if (throttledForMs > 0) return locked(throttledForMs)
  log.warn('sign-in failed', { account: account?.email, peer, reason, lockedOut })
  return new AppError(
    'unauthorized',
    reason === 'passkey rejected'
      ? 'the passkey was not accepted; start again'
      : 'wrong email address, password or code',
  )
}

function locked(waitMs: number): AppError {
  return new AppError('rate_limited', 'too many failed sign-ins; try again later', { retryAfterMs: waitMs })
}
