/**
 * A scripted ACME server on the loopback: RFC 8555 as far as a client of it sees, with a CA of its own, and whatever a test has go wrong.
 *
 * It takes nothing on trust: signatures, nonces and URLs of requests are checked, proofs are really fetched (by HTTP, from the port that the
 * test names) or looked up (as the test says), and requests for certificates are read by what `openssl`'s library in Node makes of the key.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  verify,
  type KeyObject,
} from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { authorityKeyIdentifier, subjectAltNames } from '../../src/world/tls/der.js'
import { signCertificate } from '../../src/world/tls/self-signed-certificate.js'

export interface AcmeServerOptions {
  /** Where proofs are fetched, whatever the name. */
  readonly httpPort?: () => number
  /** Names whose files the CA cannot reach. */
  readonly unreachable?: readonly string[]
  /** TXT records of `_acme-challenge.` and the name. */
  readonly lookUp?: (name: string) => Promise<readonly string[]>
  readonly now: () => number
  /** Retry-After of orders and authorizations that are not finished, in seconds; for orders alone 3 by default. */
  readonly retryAfter?: number
}

/** Changed by the test on the way. */
export interface Script {
  /** So many good nonces are refused. */
  badNonces: number
  /** The next orders are refused with this problem. */
  refuseOrders: { type: string; detail: string; retryAfter?: string } | undefined
  /** Accounts are not known any more. */
  forgetsAccounts: boolean
  /** Names of the certificate, instead of those ordered. */
  certifies: readonly string[] | undefined
  lifetimeMs: number
  /** The window of RFC 9773; undefined: there is no such thing. */
  renewalWindow: { start: number; end: number } | undefined
  /** Answers that are no ACME. */
  speaksHtml: boolean
  /** How often an order is looked at before it is done. */
  delays: number
}

export interface AcmeServer extends Script {
  readonly directory: string
  /** E.g. `POST new-order`, without what was refused for its nonce. */
  readonly asked: string[]
  readonly issued: { names: readonly string[]; pem: string; replaces: unknown }[]
  readonly contacts: unknown[]
  /** Proofs as they were fetched. */
  readonly proofs: string[]
}

interface Order {
  id: number
  names: string[]
  proved: Set<string>
  status: string
  error?: unknown
  certificate?: string
  replaces: unknown
  looks: number
}

interface Signed {
  url: string
  payload: Record<string, unknown> | undefined
  thumbprint: string
  account: string | undefined
}

export async function acmeServer(
  t: { teardown(end: () => void): unknown },
  options: AcmeServerOptions,
): Promise<AcmeServer> {
  const { publicKey: caPublic, privateKey: caKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyId = createHash('sha1')
    .update(caPublic.export({ type: 'spki', format: 'der' }))
    .digest()
  const nonces = new Set<string>()
  const accounts = new Map<string, KeyObject>()
  const orders: Order[] = []
  const tokens = new Map<string, string>()
  const faults = new Map<string, unknown>()
  const http = createServer((request, response) => void serve(request, response))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  const base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const state: AcmeServer = {
    directory: `${base}/directory`,
    asked: [],
    issued: [],
    contacts: [],
    proofs: [],
    badNonces: 0,
    refuseOrders: undefined,
    forgetsAccounts: false,
    certifies: undefined,
    lifetimeMs: 90 * 86_400_000,
    renewalWindow: undefined,
    speaksHtml: false,
    delays: 1,
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const nonce = randomBytes(12).toString('base64url')
    nonces.add(nonce)
    response.setHeader('Replay-Nonce', nonce)
    const path = (request.url ?? '').slice(1)
    const answer = (status: number, body: unknown, headers: Record<string, string> = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
    }
    const refuse = (status: number, type: string, detail: string, headers = {}) =>
      answer(status, { type: `urn:ietf:params:acme:error:${type}`, detail }, headers)
    try {
      if (state.speaksHtml) return answer(200, '<html>')
      if (request.method === 'HEAD') return response.writeHead(200).end()
      if (request.method === 'GET') {
        state.asked.push(`GET ${path.split('/')[0] ?? ''}`)
        return answer(200, path === 'directory' ? directory() : window())
      }
      const signed = await readSigned(request)
      if (typeof signed === 'string') return refuse(400, signed, `the request is ${signed}`)
      state.asked.push(`POST ${path.split('/')[0] ?? ''}`)
      if (signed.url !== base + (request.url ?? ''))
        return refuse(403, 'unauthorized', 'another url is signed')
      return act(path, signed, answer, refuse)
    } catch (error) {
      return refuse(500, 'serverInternal', String(error))
    }
  }

  const directory = () => ({
    newNonce: `${base}/new-nonce`,
    newAccount: `${base}/new-account`,
    newOrder: `${base}/new-order`,
    ...(state.renewalWindow ? { renewalInfo: `${base}/renewal-info` } : {}),
  })
  const window = () => ({
    suggestedWindow: {
      start: new Date(state.renewalWindow?.start ?? 0).toISOString(),
      end: new Date(state.renewalWindow?.end ?? 0).toISOString(),
    },
  })

  async function readSigned(request: IncomingMessage): Promise<Signed | string> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    if (request.headers['content-type'] !== 'application/jose+json') return 'malformed'
    const jws = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, string>
    const decode = (text = '') => Buffer.from(text, 'base64url').toString()
    const header = JSON.parse(decode(jws['protected'])) as {
      nonce: string
      url: string
      alg: string
      kid?: string
      jwk?: Record<string, string>
    }
    if (header.kid !== undefined && state.forgetsAccounts) return 'accountDoesNotExist'
    const key = header.jwk
      ? createPublicKey({ key: header.jwk, format: 'jwk' })
      : accounts.get(header.kid ?? '')
    if (!key || header.alg !== 'ES256') return 'accountDoesNotExist'
    const isRight = verify(
      'sha256',
      Buffer.from(`${jws['protected'] ?? ''}.${jws['payload'] ?? ''}`),
      { key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(jws['signature'] ?? '', 'base64url'),
    )
    if (!isRight) return 'malformed'
    if (!nonces.delete(header.nonce)) return 'badNonce'
    if (state.badNonces > 0) {
      state.badNonces -= 1
      return 'badNonce'
    }
    const { crv, kty, x, y } = key.export({ format: 'jwk' })
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
    const payload =
      jws['payload'] === '' ? undefined : (JSON.parse(decode(jws['payload'])) as Record<string, unknown>)
    const account = header.kid ?? `${base}/account/${thumbprint}`
    if (header.jwk) accounts.set(account, key)
    return { url: header.url, payload, thumbprint, account }
  }

  type Answer = (status: number, body: unknown, headers?: Record<string, string>) => unknown
  type Refuse = (status: number, type: string, detail: string, headers?: Record<string, string>) => unknown

  function act(
    path: string,
    { payload, thumbprint, account = '' }: Signed,
    answer: Answer,
    refuse: Refuse,
  ): unknown {
    const [what = '', id = '', name = ''] = path.split('/')
    const order = orders[Number(id)]
    if (what === 'new-account') {
      if (payload?.['termsOfServiceAgreed'] !== true)
        return refuse(403, 'userActionRequired', 'agree to the terms')
      state.forgetsAccounts = false
      state.contacts.push(payload['contact'])
      return answer(201, { status: 'valid' }, { Location: account })
    }
    if (what === 'new-order') {
      if (state.refuseOrders) {
        const { type, detail, retryAfter } = state.refuseOrders
        return refuse(429, type, detail, retryAfter === undefined ? {} : { 'Retry-After': retryAfter })
      }
      const names = ((payload?.['identifiers'] ?? []) as { value: string }[]).map(({ value }) => value)
      const made: Order = {
        id: orders.length,
        names,
        proved: new Set(),
        status: 'pending',
        replaces: payload?.['replaces'],
        looks: 0,
      }
      orders.push(made)
      return answer(201, shown(made), { Location: `${base}/order/${made.id}` })
    }
    if (!order) return refuse(404, 'malformed', 'there is no such thing')
    if (what === 'order') {
      order.looks += 1
      if (order.status === 'processing' && order.looks > state.delays) order.status = 'valid'
      return answer(200, shown(order), { 'Retry-After': String(options.retryAfter ?? 3) })
    }
    if (what === 'authz') {
      const { retryAfter } = options
      const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }
      return answer(200, authorization(order, name), headers)
    }
    if (what === 'challenge') {
      const [type = '', of = ''] = name.split(':')
      void validate(order, type, of, thumbprint)
      return answer(200, { type, url: `${base}/${path}`, status: 'processing', token: tokenOf(order, of) })
    }
    if (what === 'certificate')
      return answer(200, order.certificate ?? '', { 'Content-Type': 'application/pem-certificate-chain' })
    if (order.status !== 'ready') return refuse(403, 'orderNotReady', `the order is ${order.status}`)
    issue(order, Buffer.from(payload?.['csr'] as string, 'base64url'))
    return answer(200, shown(order))
  }

  const tokenOf = (order: Order, name: string): string => {
    const key = `${order.id} ${name}`
    const token = tokens.get(key) ?? randomBytes(24).toString('base64url')
    tokens.set(key, token)
    return token
  }

  const shown = ({ id, names, status, error }: Order) => ({
    status,
    authorizations: names.map(name => `${base}/authz/${id}/${name}`),
    finalize: `${base}/finalize/${id}`,
    ...(error === undefined ? {} : { error }),
    ...(status === 'valid' ? { certificate: `${base}/certificate/${id}` } : {}),
  })

  function authorization(order: Order, name: string) {
    const fault = faults.get(`${order.id} ${name}`)
    const status = order.proved.has(name) ? 'valid' : fault === undefined ? 'pending' : 'invalid'
    return {
      status,
      identifier: { type: 'dns', value: name },
      challenges: ['http-01', 'dns-01', 'tls-alpn-01'].map(type => ({
        type,
        url: `${base}/challenge/${order.id}/${type}:${name}`,
        status,
        token: tokenOf(order, name),
        ...(fault === undefined ? {} : { error: fault }),
      })),
    }
  }

  async function validate(order: Order, type: string, name: string, thumbprint: string): Promise<void> {
    const wanted = `${tokenOf(order, name)}.${thumbprint}`
    const digest = createHash('sha256').update(wanted).digest('base64url')
    const right = type === 'dns-01' ? digest : wanted
    const found = await (
      type === 'dns-01' ? lookUp(name, digest) : fetchProof(name, tokenOf(order, name))
    ).catch(String)
    state.proofs.push(`${type} ${name} ${found}`)
    if (found === right) order.proved.add(name)
    else {
      faults.set(`${order.id} ${name}`, {
        type: 'urn:ietf:params:acme:error:unauthorized',
        detail: `the proof found for ${name} is wrong: ${found.slice(0, 60)}`,
      })
      order.status = 'invalid'
    }
    if (order.names.every(one => order.proved.has(one))) order.status = 'ready'
  }

  /** There may be others: several names can lead to one. */
  const lookUp = async (name: string, wanted: string) => {
    const found = (await options.lookUp?.(name)) ?? []
    return found.includes(wanted) ? wanted : found.join(' ')
  }

  async function fetchProof(name: string, token: string): Promise<string> {
    if (options.unreachable?.includes(name)) return 'nothing'
    const url = `http://127.0.0.1:${options.httpPort?.() ?? 0}/.well-known/acme-challenge/${token}`
    return (await fetch(url, { headers: { Host: name } })).text()
  }

  function issue(order: Order, csr: Buffer): void {
    const names = state.certifies ?? order.names
    const leaf = signCertificate({
      subject: names[0] ?? '',
      issuer: 'Scripted CA',
      publicKey: publicKeyOf(csr),
      extensions: [subjectAltNames(names), authorityKeyIdentifier(keyId)],
      from: options.now() - 3_600_000,
      until: options.now() - 3_600_000 + state.lifetimeMs,
      signer: caKey,
    })
    const ca = signCertificate({
      subject: 'Scripted CA',
      issuer: 'Scripted CA',
      publicKey: caPublic.export({ type: 'spki', format: 'der' }),
      extensions: [],
      from: 0,
      until: options.now() + 1e12,
      signer: caKey,
    })
    order.certificate = leaf + ca
    order.status = 'processing'
    order.looks = 0
    state.issued.push({ names, pem: leaf, replaces: order.replaces })
  }

  return state
}

/** Of a request for a certificate: SubjectPublicKeyInfo of P-256 has 91 octets and always begins so. */
function publicKeyOf(csr: Buffer): Buffer {
  const at = csr.indexOf(Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107', 'hex'))
  if (at < 0) throw new Error('the request holds no P-256 key')
  return csr.subarray(at, at + 91)
}
