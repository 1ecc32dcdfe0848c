/**
 * A few declared routes served over real HTTP on the loopback, and a client that tells everything about the answer.
 *
 * The keys of these tests are their own permissions: `Bearer email:read` may read mail. See `keys` below.
 */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { AppError } from '../../../src/core/errors.js'
import { buildApp } from '../../../src/http/app.js'
import type { KeptAnswers, KeptRequest } from '../../../src/http/idempotency.js'
import type { Authenticate, Principal } from '../../../src/http/principal.js'
import type { Route } from '../../../src/http/route.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import type { HttpLimits } from '../../../src/world/net/http-connections.js'
import { listenHttp } from '../../../src/world/net/listen.js'

const principal: Principal = {
  keyId: 'k1',
  keyName: 'test',
  actor: { type: 'api_key', id: 'k1', name: 'test' },
  workspaceId: 'w1',
  liveWorkspaceId: 'w1',
  keyType: 'full_access',
  permissions: ['*'],
  isSandbox: false,
  rateLimit: 100,
  emailRateLimit: 100,
}

const keys: Readonly<Record<string, Principal>> = {
  all: principal,
  other_workspace: { ...principal, keyId: 'k6', workspaceId: 'w3' },
  reader: { ...principal, keyId: 'k2', permissions: ['email:read'] },
  slow: { ...principal, keyId: 'k3', rateLimit: 2 },
  slow_reader: { ...principal, keyId: 'k4', rateLimit: 1, permissions: ['email:read'] },
  unlimited: { ...principal, keyId: 'k5', rateLimit: 0 },
  neighbour: { ...principal, keyId: 'k7', workspaceId: 'w2', liveWorkspaceId: 'w2', rateLimit: 0 },
}

const authenticate: Authenticate = async token => {
  if (token === 'orphan') throw new AppError('workspace_not_found', "the key's workspace no longer exists")
  if (token === 'away')
    throw new AppError('unavailable', 'the database cannot be reached; try again in a few seconds', {
      retryAfterMs: 5_000,
    })
  if (token === 'broken') throw new Error('secret detail of the database')
  const found = keys[token]
  if (!found) throw new AppError('unauthorized', 'the API key is unknown or revoked')
  return found
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed JSON; undefined for an empty body. */
  readonly json: unknown
}

export interface ApiRequest {
  readonly method?: string
  readonly path: string
  /** Default `all`; null sends no Authorization. */
  readonly key?: string | null
  /** Text and bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Api {
  readonly port: number
  readonly clock: FakeClock
  readonly log: FakeLog
  readonly ask: (request: ApiRequest) => Promise<Answer>
}

/** @param kept by claim id */
export function answersInMemory(kept = new Map<string, KeptRequest>()): KeptAnswers {
  return {
    find: async ({ id }) => kept.get(id),
    reserve: async ({ id, bodyHash }) => void kept.set(id, { bodyHash, answer: undefined }),
    release: async ({ id }) => void kept.delete(id),
    keep: async ({ id, bodyHash }, answer) => void kept.set(id, { bodyHash, answer }),
  }
}

export async function serveRoutes(
  t: Test,
  routes: readonly Route[],
  options: { anonymousRateLimit?: number; keptAnswers?: KeptAnswers; limits?: Partial<HttpLimits> } = {},
): Promise<Api> {
  const clock = new FakeClock()
  const log = new FakeLog()
  let ids = 0
  const handler = buildApp(
    {
      clock,
      log,
      newId: () => `request-${++ids}`,
      authenticate,
      anonymousRateLimit: options.anonymousRateLimit ?? 60,
      keptAnswers: options.keptAnswers ?? answersInMemory(),
    },
    routes,
  )
  const limits = { connections: 1_000, connectionsPerAddress: 1_000, ...options.limits }
  const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, handler, limits, clock)
  t.teardown(() => listener.close(0))
  const { port } = listener.address
  return { port, clock, log, ask: request => ask(port, request) }
}

function ask(
  port: number,
  { method = 'GET', path, key = 'all', body, headers = {} }: ApiRequest,
): Promise<Answer> {
  const payload =
    body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      headers: {
        ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
        ...(payload === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(payload === undefined || 'Transfer-Encoding' in headers
          ? {}
          : { 'Content-Length': Buffer.byteLength(payload) }),
        ...headers,
      },
    })
    request.on('error', reject)
    request.on('response', response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: text === '' ? undefined : JSON.parse(text),
        })
      })
    })
    request.end(payload)
  })
}
