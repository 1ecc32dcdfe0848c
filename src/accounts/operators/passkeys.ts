/**
 * Passkeys of operators (WebAuthn): registered in a session, then enough to sign in, without an email address or a password.
 *
 * The authenticator verifies its user (PIN, fingerprint), so a passkey counts as two factors. It signs a challenge that works once, for the
 * host and origin of `public_url`; a counter that does not grow is a copied authenticator. Attestation is neither requested nor checked.
 * The library is loaded at first use. Standard: WebAuthn Level 2, §7.
 */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { APPLIANCE } from '../../core/owner.js'
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import type { Database, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity } from '../../events/activity-store.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import type { Login } from '../login-guard.js'
import { hashToken } from './access.js'
import { insertChallenge, takeChallenge, type Challenge, type ChallengeKind } from './challenge-store.js'
import {
  deletePasskey,
  findOperator,
  findPasskey,
  insertPasskey,
  listPasskeys,
  updatePasskey,
  type Operator,
  type Passkey,
} from './operator-store.js'
import { hasIdentity } from './identity-store.js'
import { deletePasskeySessions, noteConfirmed } from './session-store.js'
import {
  attempting,
  failed,
  newSessionToken,
  openSession,
  type Client,
  type SignedIn,
  type SignInParts,
} from './sign-in.js'

export type PasskeyParts = Pick<Services, 'database' | 'clock' | 'random' | 'hostname' | 'publicUrl'>

const CHALLENGE_MS = 5 * 60_000
const MAX_PASSKEYS = 20

const library = () => import('@simplewebauthn/server')

/** Options for `navigator.credentials.create`. */
export async function proposePasskey(
  parts: PasskeyParts,
  { id, email, name }: OperatorPrincipal,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await library()
  const known = await listPasskeys(parts.database.reader, id)
  if (known.length >= MAX_PASSKEYS)
    throw new AppError('limit_reached', `an operator has at most ${MAX_PASSKEYS} passkeys; remove one first`)
  return generateRegistrationOptions({
    rpName: parts.hostname,
    rpID: hostOf(parts),
    userName: email,
    userDisplayName: name || email,
    userID: Uint8Array.from(Buffer.from(id)),
    challenge: await newChallenge(parts, 'register', id),
    timeout: CHALLENGE_MS,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    excludeCredentials: known.map(passkey => ({ id: passkey.id, transports: [...passkey.transports] })),
  })
}

/** @throws AppError validation_error, duplicate */
export async function registerPasskey(
  parts: PasskeyParts,
  acting: OperatorPrincipal,
  asked: string,
  response: RegistrationResponseJSON,
): Promise<Passkey> {
  const name = readName(asked)
  const challenge = await takenChallenge(parts, 'register', response)
  if (challenge?.operatorId !== acting.id)
    throw refusedPasskey('its challenge is unknown, used or expired; start again')
  const { verifyRegistrationResponse } = await library()
  const { registrationInfo } = await verifyRegistrationResponse({
    response,
    ...expected(parts, challenge),
    requireUserVerification: true,
  }).catch((error: unknown) => {
    throw refusedPasskey(messageOf(error))
  })
  if (!registrationInfo) throw refusedPasskey('its signature is invalid')
  const { credential } = registrationInfo
  const passkey: Passkey = {
    id: credential.id,
    operatorId: acting.id,
    name,
    publicKey: Buffer.from(credential.publicKey).toString('base64url'),
    counter: credential.counter,
    transports: (response.response.transports ?? []).slice(0, 10),
    createdAt: parts.clock.now(),
    lastUsedAt: null,
  }
  await parts.database.write(async tx => {
    if (!(await insertPasskey(tx.db, passkey)))
      throw new AppError('duplicate', 'this passkey is registered already')
    await record(parts, tx, acting, 'operator.passkey_added', name)
  })
  return passkey
}

/**
 * Also ends the sessions that it opened, except the one of the request.
 *
 * @param oidcIssuer of the provider by which operators can sign in, if there is one
 * @throws AppError not_found, conflict if nothing else is left to sign in with
 */
export async function removePasskey(
  parts: PasskeyParts,
  acting: OperatorPrincipal,
  id: string,
  oidcIssuer: string | undefined,
): Promise<void> {
  await parts.database.write(async tx => {
    const passkey = await findPasskey(tx.db, id)
    if (!passkey || !(await deletePasskey(tx.db, acting.id, id)))
      throw new AppError('not_found', `no passkey ${id}`)
    const operator = await findOperator(tx.db, { id: acting.id })
    const isLast =
      operator?.passwordHash === null &&
      (await listPasskeys(tx.db, acting.id)).length === 0 &&
      !(oidcIssuer !== undefined && (await hasIdentity(tx.db, acting.id, oidcIssuer)))
    if (isLast)
      throw new AppError(
        'conflict',
        'this passkey is all you can sign in with: set a password or add another passkey first',
      )
    await deletePasskeySessions(tx.db, acting.id, id, acting.credential.id)
    await record(parts, tx, acting, 'operator.passkey_removed', passkey.name)
  })
}

/** Options for `navigator.credentials.get`: any passkey of this host. */
export async function challengePasskey(parts: PasskeyParts): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({
    rpID: hostOf(parts),
    challenge: await newChallenge(parts, 'sign_in', null),
    timeout: CHALLENGE_MS,
    userVerification: 'required',
  })
}

/** @throws AppError unauthorized, rate_limited */
export async function signInWithPasskey(
  parts: SignInParts & PasskeyParts,
  response: AuthenticationResponseJSON,
  client: Client,
): Promise<SignedIn> {
  return attempting(parts, client, passkeyLogin(response), async attempt => {
    const used = await verifyPasskey(parts, response)
    const signedIn =
      used &&
      (await parts.database.write(async tx => {
        const operator = await findOperator(tx.db, { id: used.passkey.operatorId })
        if (!operator || !(await noteUsed(parts, tx, used))) return undefined
        const opening = { method: 'passkey', isPending: false, client, passkeyId: used.passkey.id } as const
        return { token: await openSession(parts, tx, operator, opening), operator, needsCode: false }
      }))
    if (!signedIn) {
      const owner = await ownerOf(parts.database, response.id)
      throw await failed(parts, client, attempt, 'passkey rejected', owner)
    }
    await attempt.succeeded()
    return signedIn
  })
}

/** As `confirmSignIn` does with a password. @returns the session's new token @throws AppError unauthorized, rate_limited */
export async function confirmWithPasskey(
  parts: SignInParts & PasskeyParts,
  acting: OperatorPrincipal,
  response: AuthenticationResponseJSON,
  client: Client,
): Promise<string> {
  return attempting(parts, client, passkeyLogin(response), async attempt => {
    const used = await verifyPasskey(parts, response)
    const token = newSessionToken(parts.random)
    const isConfirmed =
      used?.passkey.operatorId === acting.id &&
      (await parts.database.write(
        async tx =>
          (await noteUsed(parts, tx, used)) &&
          noteConfirmed(tx.db, acting.credential.id, hashToken(token), parts.clock.now()),
      ))
    if (!isConfirmed) throw await failed(parts, client, attempt, 'passkey rejected', acting)
    await attempt.succeeded()
    return token
  })
}

/** Passkeys cannot be guessed; counting their failures keeps them from flooding the log. */
function passkeyLogin({ id }: AuthenticationResponseJSON): Login {
  return { account: `passkey ${id}`, password: id, isAccountSecret: true }
}

async function ownerOf({ reader }: Database, passkeyId: string): Promise<Operator | undefined> {
  const passkey = await findPasskey(reader, passkeyId)
  return passkey && findOperator(reader, { id: passkey.operatorId })
}

interface UsedPasskey {
  readonly passkey: Passkey
  readonly counter: number
}

/** @returns undefined if it is unknown or its signature, challenge, origin, host or user verification is wrong */
async function verifyPasskey(
  parts: PasskeyParts,
  response: AuthenticationResponseJSON,
): Promise<UsedPasskey | undefined> {
  const challenge = await takenChallenge(parts, 'sign_in', response)
  const passkey = challenge && (await findPasskey(parts.database.reader, response.id))
  if (!passkey) return undefined
  const { verifyAuthenticationResponse } = await library()
  const verification = await verifyAuthenticationResponse({
    response,
    ...expected(parts, challenge),
    credential: {
      id: passkey.id,
      publicKey: Uint8Array.from(Buffer.from(passkey.publicKey, 'base64url')),
      counter: passkey.counter,
    },
    requireUserVerification: true,
  }).catch(() => undefined)
  if (!verification?.verified) return undefined
  return { passkey, counter: verification.authenticationInfo.newCounter }
}

/** @returns false if the passkey was removed or used meanwhile */
async function noteUsed(
  { clock }: PasskeyParts,
  tx: Tx,
  { passkey, counter }: UsedPasskey,
): Promise<boolean> {
  const current = await findPasskey(tx.db, passkey.id)
  if (current?.counter !== passkey.counter) return false
  await updatePasskey(tx.db, passkey.id, { counter, lastUsedAt: clock.now() })
  return true
}

function expected({ publicUrl, hostname }: PasskeyParts, { challenge }: Challenge) {
  return {
    expectedChallenge: challenge,
    expectedOrigin: new URL(publicUrl).origin,
    expectedRPID: hostOf({ publicUrl, hostname }),
  }
}

function hostOf({ publicUrl }: Pick<PasskeyParts, 'publicUrl' | 'hostname'>): string {
  return new URL(publicUrl).hostname
}

async function newChallenge(
  { database, clock, random }: PasskeyParts,
  kind: ChallengeKind,
  operatorId: string | null,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = random.bytes(32)
  await database.write(tx =>
    insertChallenge(tx.db, {
      challenge: bytes.toString('base64url'),
      kind,
      operatorId,
      expiresAt: clock.now() + CHALLENGE_MS,
    }),
  )
  return Uint8Array.from(bytes)
}

/** The challenge that the authenticator signed; it cannot be used again, whatever the verdict. */
async function takenChallenge(
  { database, clock }: PasskeyParts,
  kind: ChallengeKind,
  { response }: { readonly response: { readonly clientDataJSON: string } },
): Promise<Challenge | undefined> {
  const signed = challengeIn(response.clientDataJSON)
  if (signed === undefined) return undefined
  return database.write(tx => takeChallenge(tx.db, kind, signed, clock.now()))
}

/** @returns undefined also if another site asked for it in a frame: the console is never shown in one (WebAuthn Level 3, §5.8.1) */
function challengeIn(clientData: string): string | undefined {
  try {
    const { challenge, crossOrigin, topOrigin } = JSON.parse(
      Buffer.from(clientData, 'base64url').toString(),
    ) as {
      challenge?: unknown
      crossOrigin?: unknown
      topOrigin?: unknown
    }
    const isFramed = topOrigin !== undefined || (crossOrigin !== undefined && crossOrigin !== false)
    return typeof challenge === 'string' && !isFramed ? challenge : undefined
  } catch {
    return undefined
  }
}

async function record(
  { clock }: PasskeyParts,
  tx: Tx,
  { actor, email }: OperatorPrincipal,
  action: 'operator.passkey_added' | 'operator.passkey_removed',
  name: string,
): Promise<void> {
  const details = { name }
  await recordActivity(tx, { workspaceId: APPLIANCE, actor }, clock.now(), {
    action,
    subject: email,
    details,
  })
}

function refusedPasskey(reason: string): AppError {
  return new AppError('validation_error', `the passkey was not accepted: ${reason}`, { path: 'response' })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it is malformed'
}
