/**
 * Orders one certificate from an ACME server, from the account to the certificate chain.
 *
 * Called by `renewal.ts`, which decides when. Publishes challenge responses in `challenges.ts` during the order; stores nothing else.
 * Standards: RFC 8555 §7.3 (account), §7.4 (order, finalization), §7.5 (authorizations), §8 (challenges); RFC 9773 §5 (`replaces`).
 * Rejects with an AcmeError if the server refuses or a challenge fails, with an Error on timeout or if the certificate does not match the
 * order. Abandoned orders expire on the server.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import Type, { type Static } from 'typebox'
import type { Clock } from '../../world/time/clock.js'
import { makeCertificateKey, makeCertificateRequest } from '../../world/tls/certificate-request.js'
import type { PemPair } from '../../world/tls/self-signed-certificate.js'
import { dnsProof, type AccountKey } from './account-key.js'
import { AcmeError, problemText, type AcmeConnection, type Problem } from './acme-connection.js'
import type { ChallengeKind } from './challenge-store.js'
import { TOKEN, type Challenges } from './challenges.js'

export interface OrderRequest {
  readonly connection: AcmeConnection
  readonly key: AccountKey
  readonly clock: Clock
  readonly challenges: Challenges
  readonly challenge: ChallengeKind
  /** DNS names, at least one. */
  readonly names: readonly string[]
  /** Contact address for the CA. */
  readonly contact: string | undefined
  /** The certificate it replaces, by its RFC 9773 §4.1 identifier. */
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
/** Polling interval if the server names none, and the longest it may name. */
const POLL_MS = 2_000
const MAX_POLL_MS = 60_000
const MAX_WAIT_MS = 10 * 60_000

/** @returns certificate chain and key, and the URL of the account */
export async function orderCertificate(request: OrderRequest): Promise<PemPair & { account: string }> {
  const account = await ensureAccount(request)
  const { order, url } = await placeOrder(request)
  const shown: string[] = []
  try {
    for (const authorization of order.authorizations) await prove(request, authorization, shown)
  } finally {
    // Those that stay expire.
    await request.challenges.withdraw(shown).catch(() => {})
  }
  const ready = order.status === 'valid' ? order : await waitFor(request, url, ['ready', 'valid'])
  return { ...(await finalize(request, url, ready)), account }
}

/** The key's account, or a new one (RFC 8555 §7.3). */
async function ensureAccount({ connection, contact }: OrderRequest): Promise<string> {
  if (connection.account !== undefined) return connection.account
  const wanted = {
    termsOfServiceAgreed: true,
    ...(contact === undefined ? {} : { contact: [`mailto:${contact}`] }),
  }
  const { location } = await connection.post(connection.directory.newAccount, wanted, Account)
  if (location === undefined) throw new Error('the ACME server returned an account without a URL')
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
    if (location === undefined) throw new Error('the ACME server returned an order without a URL')
    return { order: body, url: location }
  }
  if (replaces === undefined) return place({})
  try {
    return await place({ replaces })
  } catch (error) {
    // Already replaced, or unknown there: order without `replaces` (RFC 9773 §5).
    const isAboutThat = error instanceof AcmeError && ['alreadyReplaced', 'malformed'].includes(error.type)
    if (!isAboutThat) throw error
    return place({})
  }
}

/** Completes the challenge for one name. @param shown tokens of the challenges that are published; adds one */
async function prove(request: OrderRequest, url: string, shown: string[]): Promise<void> {
  const { connection, key, challenges, challenge: kind } = request
  const { body: authorization } = await connection.post(url, undefined, Authorization)
  if (authorization.status === 'valid') return
  const name = authorization.identifier.value
  const challenge = authorization.challenges.find(({ type }) => type === CHALLENGE_TYPES[kind])
  const { token = '' } = challenge ?? {}
  if (!challenge || !TOKEN.test(token))
    throw new Error(`the ACME server offers no usable ${CHALLENGE_TYPES[kind]} for ${name}`)
  const proof = key.keyAuthorization(token)
  shown.push(token)
  await challenges.show({ token, kind, content: kind === 'http' ? proof : dnsProof(proof) })
  await connection.post(challenge.url, {}, Challenge)
  await poll(request, `the challenge for ${name}`, async () => {
    const { body, retryAfterMs } = await connection.post(url, undefined, Authorization)
    if (body.status === 'valid') return 'done'
    if (body.status === 'pending') return retryAfterMs
    const fault = body.challenges.find(({ error }) => error !== undefined)?.error
    throw refusal(`the challenge for ${name} failed`, body.status, fault)
  })
}

async function finalize(request: OrderRequest, url: string, order: Order): Promise<PemPair> {
  const { connection, names, clock } = request
  const pair = await makeCertificateKey()
  const csr = makeCertificateRequest(names, pair).toString('base64url')
  await connection.post(order.finalize, { csr }, Order)
  const { certificate } = await waitFor(request, url, ['valid'])
  if (certificate === undefined) throw new Error('the ACME server completed the order without a certificate')
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
    if (body.status === 'invalid') throw refusal('the order was rejected', body.status, body.error)
    return retryAfterMs
  })
  return order as Order
}

/** @param look returns `done`, or the minimum wait if the server gave one */
async function poll(
  { clock, stopping }: OrderRequest,
  what: string,
  look: () => Promise<'done' | number | undefined>,
): Promise<void> {
  const startedAt = clock.monotonic()
  for (;;) {
    const again = await look()
    if (again === 'done') return
    if (stopping.aborted) throw new Error('the server is stopping')
    if (clock.monotonic() - startedAt > MAX_WAIT_MS)
      throw new Error(`the ACME server did not finish ${what} within 10 minutes`)
    await clock.sleep(Math.min(Math.max(again ?? POLL_MS, POLL_MS / 2), MAX_POLL_MS), stopping)
  }
}

function refusal(what: string, status: string, fault: Problem | undefined): AcmeError {
  const type = (fault?.type ?? '').replace(/^.*:/, '') || status
  return new AcmeError(type, `${what}: ${fault ? problemText(fault) : status}`, 0)
}

/** @throws Error if the certificate does not match the order */
function assertOrdered({ cert, key }: PemPair, names: readonly string[], now: number): void {
  const certificate = new X509Certificate(cert)
  const other = names.find(name => certificate.checkHost(name) === undefined)
  if (other !== undefined) throw new Error(`the issued certificate is not for ${other}`)
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('the issued certificate is for another key')
  if (Date.parse(certificate.validTo) <= now) throw new Error('the issued certificate has expired')
}
