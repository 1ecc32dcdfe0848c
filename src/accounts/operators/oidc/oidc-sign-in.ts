/**
 * Signs operators in, or confirms them, through the OpenID provider.
 *
 * `beginRound` stores a round and sends the browser to the provider; `finishRound` takes it with the provider's answer. A round works once,
 * within 10 minutes, in the browser that began it: the state is stored as a hash, PKCE verifier and nonce are sealed, and a cookie binds the
 * browser, so that an attacker cannot sign a victim in to an account of the attacker's choice.
 * A sign-in counts as proof of who the person is from the moment that the provider reports (`auth_time`), or from now if it reports none; a
 * confirmation requires that moment, after its round began. The provider is trusted for second factors.
 * Refusals are results, and logged; nothing in them is secret.
 */
import { AppError } from '../../../core/errors.js'
import { given } from '../../../core/given.js'
import type { RoleGrant } from '../../../http/roles.js'
import type { Log } from '../../../world/log.js'
import type { Random } from '../../../world/random.js'
import { authenticateSession, hashToken, SESSION_LIFETIME } from '../access.js'
import { challengePlace, insertChallenge, takeChallenge } from '../challenge-store.js'
import { noteConfirmed } from '../session-store.js'
import { newSessionToken, openSession, type Client, type SignInParts } from '../sign-in.js'
import { rolesOfGroups } from './group-roles.js'
import { findIdentity } from '../identity-store.js'
import { ProviderError, type OpenIdProvider, type Person, type Round } from './provider.js'
import { settleAccount } from './settle-account.js'
import type { OidcSettings } from './settings.js'

export interface OidcParts extends Pick<SignInParts, 'database' | 'clock' | 'random' | 'newId' | 'box'> {
  readonly log: Log
  readonly provider: OpenIdProvider
  readonly settings: OidcSettings
}

/** Shown to the sign-in page; part of the API. */
export const REFUSALS = {
  cancelled: 'the provider reported an error, or the person cancelled',
  expired: 'the sign-in was begun in another browser, over 10 minutes ago, or was completed already',
  refused: "the provider's answer failed a check",
  unavailable: 'the provider gave no usable answer in time',
  no_role: "none of the person's groups gives a role",
  email_unverified: 'the provider names no verified email address',
  account_linked: 'the account with this address belongs to another person at the provider',
  not_recent: 'the provider did not confirm that the person has just proved who they are',
  other_account: 'the session has ended, or the person at the provider is not the one signed in',
} as const

export type Refusal = keyof typeof REFUSALS

/** How a round ends: with the token of a session, or refused. */
export type RoundEnd =
  | {
      readonly returnTo: string
      readonly token: string
      /** Credentials set up before the address was proved were removed. */
      readonly isAccessRemoved: boolean
    }
  | {
      readonly refusal: Refusal
      /** Of a confirmation; a refused sign-in leads to the sign-in page. */
      readonly returnTo: string | undefined
    }

export interface Begun {
  /** At the provider. */
  readonly url: string
  /** For the cookie that binds the browser. */
  readonly binding: string
}

/** Ms. */
export const ROUND_MS = 10 * 60_000
/** Difference allowed between the provider's clock and ours. */
const CLOCK_TOLERANCE_MS = 30_000

interface Kept {
  readonly nonce: string
  readonly verifier: string
  readonly returnTo: string
  /** Of a confirmation. */
  readonly sessionId?: string
}

interface Wanted {
  /** Path of the console to return to. */
  readonly returnTo: string
  /** Token of the session to confirm; absent: a sign-in. */
  readonly session?: string
}

/** A session lasts that long, and so does the proof that it rests on. */
const MAX_AGE_S = SESSION_LIFETIME.maxMs / 1_000

/** @throws AppError unauthorized (no session to confirm) */
export async function beginRound(
  parts: OidcParts,
  { returnTo, session }: Wanted,
  client: Client,
): Promise<Begun | { readonly refusal: Refusal }> {
  const { database, clock, random, box, provider } = parts
  const operator = session === undefined ? undefined : await authenticateSession(parts, session)
  const round: Round = { state: newSecret(random), nonce: newSecret(random), verifier: newSecret(random) }
  const binding = newSecret(random)
  try {
    const url = await provider.authorizationUrl(round, operator ? 0 : MAX_AGE_S)
    const challenge = hashToken(round.state)
    const kept: Kept = {
      nonce: round.nonce,
      verifier: round.verifier,
      returnTo,
      ...given({ sessionId: operator?.credential.id }),
    }
    await database.write(tx =>
      insertChallenge(tx.db, {
        challenge,
        kind: 'oidc',
        operatorId: operator?.id ?? null,
        browserHash: hashToken(binding),
        sealed: box.seal(JSON.stringify(kept), challengePlace(challenge)),
        expiresAt: clock.now() + ROUND_MS,
      }),
    )
    return { url, binding }
  } catch (error) {
    return { refusal: refused(parts, client, error) }
  }
}

/** The provider's callback, as the browser delivers it. */
export interface Returned {
  /** Query of the callback. */
  readonly answer: URLSearchParams
  /** Of the cookie that binds the browser. */
  readonly binding: string | undefined
  /** Of the session cookie. */
  readonly session: string | undefined
}

export async function finishRound(
  parts: OidcParts,
  { answer, binding, session }: Returned,
  client: Client,
): Promise<RoundEnd> {
  const taken = await takeRound(parts, answer.get('state') ?? '', binding)
  if (!taken)
    return {
      refusal: refuse(parts, client, 'expired', 'the state is unknown, used, expired or of another browser'),
      returnTo: undefined,
    }
  const { kept, round, operatorId, begunAt } = taken
  const { returnTo } = kept
  const pageOfRefusal = operatorId === null ? undefined : returnTo
  try {
    const person = await parts.provider.redeem(round, answer)
    const result =
      operatorId === null
        ? await signIn(parts, person, client)
        : await confirm(parts, person, { ...kept, operatorId, begunAt, session }, client)
    if ('token' in result) return { returnTo, ...result }
    const refusal = refuse(parts, client, result.refusal, REFUSALS[result.refusal], person)
    return { refusal, returnTo: pageOfRefusal }
  } catch (error) {
    return { refusal: refused(parts, client, error), returnTo: pageOfRefusal }
  }
}

/** Deletes the round, whatever follows. */
async function takeRound({ database, clock, box }: OidcParts, state: string, binding: string | undefined) {
  const challenge = hashToken(state)
  const taken = await database.write(tx => takeChallenge(tx.db, 'oidc', challenge, clock.now()))
  if (taken?.sealed === undefined || binding === undefined || taken.browserHash !== hashToken(binding))
    return undefined
  const kept = JSON.parse(box.open(taken.sealed, challengePlace(challenge))) as Kept
  const round: Round = { state, nonce: kept.nonce, verifier: kept.verifier }
  return { kept, round, operatorId: taken.operatorId, begunAt: taken.expiresAt - ROUND_MS }
}

type Result = { readonly token: string; readonly isAccessRemoved: boolean } | { readonly refusal: Refusal }

async function signIn(parts: OidcParts, person: Person, client: Client): Promise<Result> {
  const { clock } = parts
  const grants = await grantsOf(parts, person)
  return parts.database.write(async tx => {
    let isAccessRemoved = false
    const onAccessRemoved = () => void (isAccessRemoved = true)
    const place = { peer: client.peer, onAccessRemoved }
    const operator = await settleAccount(parts, tx, person, grants, place)
    if (typeof operator === 'string') return { refusal: operator }
    const confirmedAt = Math.min(person.authenticatedAt ?? clock.now(), clock.now())
    const opening = { method: 'oidc', isPending: false, client, confirmedAt } as const
    return { token: await openSession(parts, tx, operator, opening), isAccessRemoved }
  })
}

interface Confirmed {
  readonly operatorId: string
  readonly sessionId?: string
  /** Token of the browser's session now. */
  readonly session: string | undefined
  readonly begunAt: number
}

async function confirm(
  parts: OidcParts,
  person: Person,
  { operatorId, sessionId, session, begunAt }: Confirmed,
  client: Client,
): Promise<Result> {
  const { authenticatedAt } = person
  if (authenticatedAt === undefined || authenticatedAt < begunAt - CLOCK_TOLERANCE_MS)
    return { refusal: 'not_recent' }
  const current = session === undefined ? undefined : await currentSession(parts, session)
  if (current === undefined || current !== sessionId) return { refusal: 'other_account' }
  const token = newSessionToken(parts.random)
  const grants = await grantsOf(parts, person)
  return parts.database.write(async (tx): Promise<Result> => {
    if ((await findIdentity(tx.db, person)) !== operatorId) return { refusal: 'other_account' }
    let isAccessRemoved = false
    const onAccessRemoved = () => void (isAccessRemoved = true)
    const place = { peer: client.peer, session: current, onAccessRemoved }
    const operator = await settleAccount(parts, tx, person, grants, place)
    if (typeof operator === 'string') return { refusal: operator }
    const isConfirmed = await noteConfirmed(tx.db, current, hashToken(token), parts.clock.now())
    return isConfirmed ? { token, isAccessRemoved } : { refusal: 'other_account' }
  })
}

async function currentSession(parts: OidcParts, token: string): Promise<string | undefined> {
  try {
    return (await authenticateSession(parts, token)).credential.id
  } catch (error) {
    if (error instanceof AppError && error.code === 'unauthorized') return undefined
    throw error
  }
}

async function grantsOf(
  { database, settings, log }: OidcParts,
  { groups }: Person,
): Promise<readonly RoleGrant[]> {
  const { grants, unknownWorkspaces } = await rolesOfGroups(database.reader, settings.roles, groups)
  if (unknownWorkspaces.length > 0)
    log.warn('role mapping ignored', { workspaces: unknownWorkspaces.join(', ').slice(0, 300) })
  return grants
}

function refused(parts: OidcParts, client: Client, error: unknown): Refusal {
  if (!(error instanceof ProviderError)) throw error
  return refuse(parts, client, error.kind, error.message)
}

function refuse(
  { log }: OidcParts,
  { peer }: Client,
  refusal: Refusal,
  reason: string,
  person?: Person,
): Refusal {
  const fields = { code: refusal, reason, peer, subject: person?.subject }
  if (refusal === 'unavailable') log.warn('identity provider unavailable', fields)
  else
    log.info('operator sign-in refused', {
      ...fields,
      ...(refusal === 'no_role' ? { groups: person?.groups.join(', ').slice(0, 300) } : {}),
    })
  return refusal
}

/** 256 bits; RFC 7636 §4.1 asks for at least that of a verifier. */
function newSecret(random: Random): string {
  return random.bytes(32).toString('base64url')
}
