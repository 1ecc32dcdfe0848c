/**
 * One certificate from an ACME server, from the account to the chain.
 *
 * Called by `renewal.ts`, which says when. Shows its proofs in `challenges.ts` for as long as they are looked for; keeps nothing itself.
 * Standards: RFC 8555 §7.3 (account), §7.4 (order, finalization), §7.5 (authorizations), §8 (challenges); RFC 9773 §5 (`replaces`).
 * Fails: rejects with an AcmeError where the server refuses or finds a proof wrong, with an Error in words where it takes too long or its
 * certificate is none of what was ordered; an order that is left behind expires by itself.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import Type, { type Static } from 'typebox'
import type { Clock } from '../../world/time/clock.js'
import { makeCertificateKey, makeCertificateRequest } from '../../world/tls/certificate-request.js'
import type { PemPair } from '../../world/tls/self-signed-certificate.js'
import { dnsProof, type AccountKey } from './account-key.js'
import { AcmeError, problemText, type AcmeConnection, type Problem } from './acme-connection.js'
import type { Challenges, Withdraw } from './challenges.js'

export interface OrderRequest {
  readonly connection: AcmeConnection
  readonly key: AccountKey
  readonly clock: Clock
  readonly challenges: Challenges
  readonly challenge: 'http' | 'dns'
  /** DNS names, at least one. */
  readonly names: readonly string[]
  /** Mail address of whoever is told of trouble. */
  readonly contact: string | undefined
  /** The certificate that this one follows, as RFC 9773 §4.1 names it. */
  readonly replaces: string | undefined
  readonly stopping: AbortSignal
}

const Account = Type.Object({ status: Type.Optional(Type.String()) })
const Order = Type.Object({
  status: Type.String(),
  authorizations: Type.Array(Type.String(), { maxItems: 100 }),
  finalize: Type.String(),
  certificate: Type.Optional(Type.String()),
  error: Type.Optional(
    Type.Object({ type: Type.Optional(Type.String()), detail: Type.Optional(Type.String()) }),
  ),
})
type Order = Static<typeof Order>
const Challenge = Type.Object({
  type: Type.String(),
  url: Type.String(),
  status: Type.String(),
  token: Type.Optional(Type.String()),
  error: Type.Optional(
    Type.Object({ type: Type.Optional(Type.String()), detail: Type.Optional(Type.String()) }),
  ),
})
const Authorization = Type.Object({
  status: Type.String(),
  identifier: Type.Object({ value: Type.String() }),
  challenges: Type.Array(Challenge, { maxItems: 20 }),
})

const CHALLENGE_TYPES = { http: 'http-01', dns: 'dns-01' } as const
/** RFC 8555 §8: base64url; a path it becomes part of. */
const TOKEN = /^[A-Za-z0-9_-]{16,256}$/
/** Between two looks, where the server names no time, and the most that it may name. */
const LOOK_MS = 2_000
const LONGEST_LOOK_MS = 60_000
const LONGEST_WAIT_MS = 10 * 60_000

/** @returns the certificate with its chain and its key, and the URL of the account */
export async function orderCertificate(request: OrderRequest): Promise<PemPair & { account: string }> {
  const account = await ensureAccount(request)
  const { order, url } = await placeOrder(request)
  const shown: Withdraw[] = []
  try {
    for (const authorization of order.authorizations) await prove(request, authorization, shown)
  } finally {
    for (const withdraw of shown) withdraw()
  }
  const ready = order.status === 'valid' ? order : await waitFor(request, url, ['ready', 'valid'])
  return { ...(await finalize(request, url, ready)), account }
}

/** The one that the key has, or a new one (RFC 8555 §7.3). */
async function ensureAccount({ connection, contact }: OrderRequest): Promise<string> {
  if (connection.account !== undefined) return connection.account
  const wanted = {
    termsOfServiceAgreed: true,
    ...(contact === undefined ? {} : { contact: [`mailto:${contact}`] }),
  }
  const { location } = await connection.post(connection.directory.newAccount, wanted, Account)
  if (location === undefined) throw new Error('the ACME server made an account without an address')
  connection.account = location
  return location
}

async function placeOrder({
  connection,
  names,
  replaces,
}: OrderRequest): Promise<{ order: Order; url: string }> {
  const identifiers = names.map(value => ({ type: 'dns', value }))
  const place = async (more: object) => {
    const { body, location } = await connection.post(
      connection.directory.newOrder,
      { identifiers, ...more },
      Order,
    )
    if (location === undefined) throw new Error('the ACME server made an order without an address')
    return { order: body, url: location }
  }
  if (replaces === undefined) return place({})
  try {
    return await place({ replaces })
  } catch (error) {
    // Replaced already, or not known there: a certificate is wanted all the same (RFC 9773 §5).
    const isAboutThat = error instanceof AcmeError && ['alreadyReplaced', 'malformed'].includes(error.type)
    if (!isAboutThat) throw error
    return place({})
  }
}

/** Shows the proof for one name and waits until the server has seen it. */
async function prove(request: OrderRequest, url: string, shown: Withdraw[]): Promise<void> {
  const { connection, key, challenges, challenge: kind } = request
  const { body: authorization } = await connection.post(url, undefined, Authorization)
  if (authorization.status === 'valid') return
  const name = authorization.identifier.value
  const challenge = authorization.challenges.find(({ type }) => type === CHALLENGE_TYPES[kind])
  const { token = '' } = challenge ?? {}
  if (!challenge || !TOKEN.test(token))
    throw new Error(`the ACME server offers no usable ${CHALLENGE_TYPES[kind]} for ${name}`)
  const proof = key.keyAuthorization(token)
  shown.push(kind === 'http' ? challenges.showFile(token, proof) : challenges.showText(dnsProof(proof)))
  await connection.post(challenge.url, {}, Challenge)
  await poll(request, `the proof for ${name}`, async () => {
    const { body, retryAfterMs } = await connection.post(url, undefined, Authorization)
    if (body.status === 'valid') return 'done'
    if (body.status === 'pending') return retryAfterMs
    const fault = body.challenges.find(({ error }) => error !== undefined)?.error
    throw refusal(`the proof for ${name} was not accepted`, body.status, fault)
  })
}

async function finalize(request: OrderRequest, url: string, order: Order): Promise<PemPair> {
  const { connection, names, clock } = request
  const pair = await makeCertificateKey()
  const csr = makeCertificateRequest(names, pair).toString('base64url')
  await connection.post(order.finalize, { csr }, Order)
  const { certificate } = await waitFor(request, url, ['valid'])
  if (certificate === undefined) throw new Error('the ACME server ended the order without a certificate')
  const cert = await connection.download(certificate)
  const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  assertOrdered({ cert, key }, names, clock.now())
  return { cert, key }
}

async function waitFor(request: OrderRequest, url: string, wanted: readonly string[]): Promise<Order> {
  const { connection } = request
  let order: Order | undefined
  await poll(request, 'the order', async () => {
    const { body, retryAfterMs } = await connection.post(url, undefined, Order)
    order = body
    if (wanted.includes(body.status)) return 'done'
    if (body.status === 'invalid') throw refusal('the order was refused', body.status, body.error)
    return retryAfterMs
  })
  return order as Order
}

/** @param look says `done`, or for how long to wait at least, where the server said so */
async function poll(
  { clock, stopping }: OrderRequest,
  what: string,
  look: () => Promise<'done' | number | undefined>,
): Promise<void> {
  const startedAt = clock.monotonic()
  for (;;) {
    const again = await look()
    if (again === 'done') return
    if (stopping.aborted) throw new Error('the server stops')
    if (clock.monotonic() - startedAt > LONGEST_WAIT_MS)
      throw new Error(`the ACME server did not come to an end with ${what} within 10 minutes`)
    await clock.sleep(Math.min(Math.max(again ?? LOOK_MS, LOOK_MS / 2), LONGEST_LOOK_MS), stopping)
  }
}

function refusal(what: string, status: string, fault: Problem | undefined): AcmeError {
  const type = (fault?.type ?? '').replace(/^.*:/, '') || status
  return new AcmeError(type, `${what}: ${fault ? problemText(fault) : status}`, 0)
}

/** @throws Error where what came is not what was ordered */
function assertOrdered({ cert, key }: PemPair, names: readonly string[], now: number): void {
  const certificate = new X509Certificate(cert)
  const other = names.find(name => certificate.checkHost(name) === undefined)
  if (other !== undefined) throw new Error(`the certificate that came is not for ${other}`)
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('the certificate that came is for another key')
  if (Date.parse(certificate.validTo) <= now) throw new Error('the certificate that came is over')
}
