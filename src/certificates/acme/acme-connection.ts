/**
 * Requests to an ACME server: directory, nonces, signatures, and error responses.
 *
 * Used by `order-certificate.ts` and `renewal-info.ts`; knows nothing of orders. Connects to the configured directory and the URLs it
 * lists.
 * Standards: RFC 8555 §6 (requests, nonces, errors), §7.1.1 (directory); RFC 7807 (problem documents).
 * Rejects with an AcmeError if the server refuses, an Error if the response is not ACME, or the connection's error. A rejected nonce is
 * replaced and the request retried (§6.5), a few times at most.
 */
import Type, { type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { HttpClient, HttpResponse } from '../../world/net/fetch.js'
import type { AccountKey } from './account-key.js'

/** An error response of the ACME server. */
export class AcmeError extends Error {
  override readonly name = 'AcmeError'
  /** Without `urn:ietf:params:acme:error:`, e.g. `rateLimited`. */
  readonly type: string
  readonly status: number
  readonly retryAfterMs: number | undefined

  constructor(type: string, message: string, status: number, retryAfterMs?: number) {
    super(message)
    this.type = type
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

const Directory = Type.Object({
  newNonce: Type.String(),
  newAccount: Type.String(),
  newOrder: Type.String(),
  renewalInfo: Type.Optional(Type.String()),
})

const Problem = Type.Object({
  type: Type.Optional(Type.String()),
  detail: Type.Optional(Type.String()),
  subproblems: Type.Optional(Type.Array(Type.Object({ detail: Type.Optional(Type.String()) }))),
})
export type Problem = Static<typeof Problem>

export interface AcmeParts {
  readonly http: HttpClient
  readonly now: () => number
  /** URL of the directory. */
  readonly directory: string
}

export interface AcmeAnswer<T> {
  readonly body: T
  /** URL of the created resource. */
  readonly location: string | undefined
  readonly retryAfterMs: number | undefined
}

const TIMEOUT_MS = 30_000
const MAX_OCTETS = 512 * 1_024
const MAX_NONCES = 8
const MAX_DETAIL_LENGTH = 500
const URN = 'urn:ietf:params:acme:error:'

export class AcmeConnection {
  readonly directory: Static<typeof Directory>
  private readonly parts: AcmeParts
  private readonly key: AccountKey
  private nonce: string | undefined
  /** URL of the account; once known, it signs requests as `kid`. */
  account: string | undefined

  private constructor(parts: AcmeParts, key: AccountKey, directory: Static<typeof Directory>) {
    this.parts = parts
    this.key = key
    this.directory = directory
  }

  static async open(parts: AcmeParts, key: AccountKey): Promise<AcmeConnection> {
    const answer = await send(parts, 'GET', parts.directory)
    return new AcmeConnection(parts, key, read(Directory, answer, parts))
  }

  /** @param payload undefined: POST-as-GET */
  async post<Schema extends TSchema>(
    url: string,
    payload: unknown,
    schema: Schema,
  ): Promise<AcmeAnswer<Static<Schema>>> {
    const answer = await this.postRaw(url, payload)
    return {
      body: read(schema, answer, this.parts),
      location: answer.headers['location'],
      retryAfterMs: retryAfterMs(answer, this.parts.now()),
    }
  }

  /** @returns body of any media type */
  async download(url: string): Promise<string> {
    return (await this.postRaw(url, undefined)).body.toString('utf8')
  }

  /** Unsigned GET. */
  async get<Schema extends TSchema>(url: string, schema: Schema): Promise<AcmeAnswer<Static<Schema>>> {
    const answer = await send(this.parts, 'GET', url)
    return {
      body: read(schema, answer, this.parts),
      location: undefined,
      retryAfterMs: retryAfterMs(answer, this.parts.now()),
    }
  }

  private async postRaw(url: string, payload: unknown): Promise<HttpResponse> {
    for (let nonces = 1; ; nonces++)
      try {
        const nonce = this.nonce ?? (await this.freshNonce())
        this.nonce = undefined
        const body = JSON.stringify(this.key.sign(url, nonce, this.account, payload))
        return await send(this.parts, 'POST', url, body, fresh => (this.nonce = fresh))
      } catch (error) {
        const isStale = error instanceof AcmeError && error.type === 'badNonce'
        if (!isStale || nonces === MAX_NONCES) throw error
      }
  }

  private async freshNonce(): Promise<string> {
    let nonce: string | undefined
    await send(this.parts, 'HEAD', this.directory.newNonce, undefined, fresh => (nonce = fresh))
    if (nonce === undefined) throw new Error(`${this.directory.newNonce} returned no nonce`)
    return nonce
  }
}

/** @throws AcmeError unless the response is 2xx */
async function send(
  parts: AcmeParts,
  method: 'GET' | 'HEAD' | 'POST',
  url: string,
  body?: string,
  onNonce: (nonce: string) => void = () => undefined,
): Promise<HttpResponse> {
  const answer = await parts.http.request({
    namedBy: 'operator',
    method,
    url,
    headers: {
      'User-Agent': 'Postroad',
      ...(body === undefined ? {} : { 'Content-Type': 'application/jose+json' }),
    },
    ...(body === undefined ? {} : { body }),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_OCTETS,
  })
  const nonce = answer.headers['replay-nonce']
  if (nonce !== undefined) onNonce(nonce)
  if (answer.status >= 200 && answer.status < 300) return answer
  throw errorOf(url, answer, parts.now())
}

function errorOf(url: string, answer: HttpResponse, now: number): AcmeError {
  const problem = problemOf(answer)
  const type = (problem?.type ?? '').replace(URN, '') || 'none'
  const said = problem ? problemText(problem) : `status ${answer.status}`
  return new AcmeError(type, `${hostOf(url)}: ${said}`, answer.status, retryAfterMs(answer, now))
}

function problemOf({ body }: HttpResponse): Problem | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'))
    return Value.Check(Problem, parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** One line, without control characters. */
export function problemText({ type = '', detail = '', subproblems = [] }: Problem): string {
  const details = [detail, ...subproblems.map(one => one.detail ?? '')].filter(one => one !== '')
  const text = `${type.replace(URN, '')}: ${details.join('; ')}`
  return text.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_DETAIL_LENGTH)
}

function read<Schema extends TSchema>(
  schema: Schema,
  { body }: HttpResponse,
  { directory }: AcmeParts,
): Static<Schema> {
  let parsed: unknown
  try {
    parsed = JSON.parse(body.toString('utf8'))
  } catch {
    throw new Error(`${hostOf(directory)} is not an ACME server: its response is not JSON`)
  }
  if (!Value.Check(schema, parsed))
    throw new Error(`${hostOf(directory)} is not an ACME server: its directory is incomplete (RFC 8555)`)
  return parsed
}

/** Seconds or a date (RFC 9110 §10.2.3). */
function retryAfterMs({ headers }: HttpResponse, now: number): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the ACME server'
}
