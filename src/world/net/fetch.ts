/**
 * HTTP client over undici; the only place that sends HTTP requests.
 *
 * Never follows redirects and never decodes bodies; keeps connections only if asked to. Certificates are checked against the URL's
 * host (RFC 9110 §4.3.4), whatever address is dialled. Unless the operator named the host, the egress policy applies to the URL and to
 * every address that a connection is opened to.
 * Rejects with the socket or TLS error, code ETIMEDOUT, EADDRNOTPUBLIC or EURLREFUSED, or a TypeError for a URL that is not http(s).
 */
import { lookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Agent, buildConnector } from 'undici'
import type { Clock } from '../time/clock.js'
import {
  hostOf,
  findTargetFault,
  assertAllowed,
  PUBLIC_ONLY,
  type Named,
  type EgressPolicy,
  describeRefusal,
  EgressError,
} from './egress-policy.js'
import { ipVersion } from './ip-address.js'

/** Resolves a host name for a request. @param host ASCII, without trailing dot */
export type HostLookup = (host: string) => Promise<readonly string[]>

export interface HttpRequest extends Named {
  readonly method: string
  /** Absolute http or https URL. */
  readonly url: string
  /** Without Host and Content-Length. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** From the lookup to the last byte of the body, ms. */
  readonly timeoutMs: number
  /** Maximum body size; the connection is closed when more arrives. */
  readonly maxBytes: number
  /** IP address to dial instead of resolving the host. Host field, TLS server name and certificate check still use the URL. */
  readonly address?: string
  /** Unix socket to connect to instead of the URL's host. */
  readonly socketPath?: string
}

export interface HttpResponse {
  /** Any final status, including 3xx. */
  readonly status: number
  /** Lower-case names; repeated fields joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** The first `maxBytes` bytes, undecoded. */
  readonly body: Buffer
  /** Whether the body was longer. */
  readonly isTruncated: boolean
}

export interface HttpClient {
  request(request: HttpRequest): Promise<HttpResponse>
}

export interface OpenHttpClient extends HttpClient {
  /** Closes kept connections, and aborts requests that use one. */
  close(): void
}

export interface HttpClientOptions {
  /** PEM of certificate authorities to trust instead of the public ones. */
  readonly authorities?: string
  /** Default: the public Internet only. */
  readonly egress?: EgressPolicy
  /** Default: the system's lookup. */
  readonly lookUp?: HostLookup
  /** Called when the egress policy refused all addresses of a host. @param detail names one of them: for the operator only */
  readonly onRefused?: (host: string, detail: string) => void
  /** Connections are kept for other requests, except those to hosts named by the operator. */
  readonly keepsConnections?: boolean
}

const IDLE_MS = 10_000
/** Kept connections are replaced after this time, so that changes of DNS take effect. */
const MAX_AGE_MS = 60_000

export function openHttpClient(clock: Clock, options: HttpClientOptions = {}): OpenHttpClient {
  const { authorities, egress = PUBLIC_ONLY, lookUp = systemHostLookup, keepsConnections = false } = options
  const { onRefused } = options
  const dialling: Dialling = { egress, lookUp, authorities, onRefused }
  let kept: { readonly agent: Agent; readonly until: number } | undefined

  async function sendKept(request: HttpRequest): Promise<HttpResponse> {
    if (!kept || clock.monotonic() >= kept.until) {
      void kept?.agent.close()
      // Without a limit per host, which requests that hang would use up for everybody: callers bound how many they make.
      const pool = { connections: null, keepAliveTimeout: IDLE_MS, keepAliveMaxTimeout: IDLE_MS }
      kept = { agent: await openAgent(dialling, {}, pool), until: clock.monotonic() + MAX_AGE_MS }
    }
    return exchange(clock, kept.agent, request)
  }

  async function sendOnce(request: HttpRequest): Promise<HttpResponse> {
    const agent = await openAgent(dialling, request, { pipelining: 0 })
    try {
      return await exchange(clock, agent, request)
    } finally {
      void agent.destroy()
    }
  }

  return {
    async request(request) {
      const { namedBy, address, socketPath } = request
      const { protocol } = new URL(request.url)
      if (protocol !== 'http:' && protocol !== 'https:')
        throw new TypeError(`${protocol} is neither http: nor https:`)
      const fault = namedBy === 'operator' ? undefined : findTargetFault(request.url)
      if (fault !== undefined) throw Object.assign(new Error(`the URL ${fault}`), { code: 'EURLREFUSED' })
      // Others are not kept: they may lead where other requests must not go.
      const isShared = namedBy === undefined && address === undefined && socketPath === undefined
      if (!keepsConnections || !isShared) return sendOnce(request)
      try {
        return await sendKept(request)
      } catch (error) {
        // The server closed an idle connection before it saw the request; safe to retry (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
        if (!wasStale(error)) throw error
        return sendOnce(request)
      }
    },
    close() {
      void kept?.agent.destroy()
      kept = undefined
    },
  }
}

const systemHostLookup: HostLookup = host =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve(found.map(({ address }) => address))
    })
  })

interface Dialling {
  readonly egress: EgressPolicy
  readonly lookUp: HostLookup
  readonly authorities: string | undefined
  readonly onRefused: HttpClientOptions['onRefused'] | undefined
}

/** @param target the request, if the agent is for one only */
async function openAgent(
  { egress, lookUp, authorities, onRefused }: Dialling,
  target: Pick<HttpRequest, 'namedBy' | 'address' | 'socketPath'>,
  options: Agent.Options,
): Promise<Agent> {
  // Loaded with the first request: it is large, and many commands send none.
  const { default: undici } = await import('undici')
  const { address, socketPath } = target
  // Typed void, but it returns the socket, with which undici aborts requests that are still connecting.
  const dial: (...of: Parameters<buildConnector.connector>) => unknown = undici.buildConnector({
    allowH2: false,
    timeout: 0,
    lookup: filteredLookup(egress, target, lookUp),
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(socketPath === undefined ? {} : { socketPath }),
  })
  const connect = (to: buildConnector.Options, callback: buildConnector.Callback): unknown => {
    const name = hostOf(to.hostname)
    const hostname = address ?? name
    try {
      // Node does not call the lookup for IP addresses.
      if (ipVersion(hostname) !== 0) assertAllowed(egress, target, hostname)
    } catch (error) {
      onRefused?.(name, describeRefusal(error))
      callback(error as Error, null)
      return undefined
    }
    // SNI must not be an address (RFC 6066 §3); without it the certificate is checked against the dialled address.
    const servername = ipVersion(name) === 0 ? { servername: name } : {}
    const onConnect: buildConnector.Callback = (...[error, socket]) => {
      if (error) {
        if (error instanceof EgressError) onRefused?.(name, error.detail)
        callback(error, null)
        return
      }
      socket.prependListener('error', (cause: Error) => {
        if (socket.bytesRead > 0) cutAfterUse.add(cause)
      })
      callback(null, socket)
    }
    return dial({ ...to, hostname, ...servername }, onConnect)
  }
  return new undici.Agent({ ...options, connect, headersTimeout: 0, bodyTimeout: 0, allowH2: false })
}

/** Errors of connections that had brought an answer before. */
const cutAfterUse = new WeakSet<Error>()

/** Whether a kept connection was cut before an answer began. */
function wasStale(error: unknown): boolean {
  return error instanceof NoAnswerError && error.wasUsed
}

/** The look-up of a connection, without the refused addresses: the address checked is the address dialled. */
function filteredLookup(egress: EgressPolicy, named: Named, lookUp: HostLookup): LookupFunction {
  return (hostname, options, callback) => {
    const answer = (found: readonly string[]) => {
      const { namedBy } = named
      const within = found.filter(address => namedBy === 'operator' || egress.refusal(address) === undefined)
      const [first] = within
      if (first === undefined) callback(allRefused(egress, named, found), [])
      else if (options.all === true) callback(null, within.map(withFamily))
      else callback(null, first, ipVersion(first))
    }
    lookUp(hostname).then(answer, (error: unknown) =>
      callback(error instanceof Error ? error : new Error(String(error)), []),
    )
  }
}

function withFamily(address: string): LookupAddress {
  return { address, family: ipVersion(address) }
}

function allRefused(egress: EgressPolicy, named: Named, found: readonly string[]): Error {
  try {
    for (const address of found) assertAllowed(egress, named, address)
    return Object.assign(new Error('the host has no address'), { code: 'ENOTFOUND' })
  } catch (error) {
    return error as Error
  }
}

/** A connection that was cut before or during the answer. */
class CutError extends Error {
  readonly code = 'ECONNRESET'
}

class NoAnswerError extends CutError {
  readonly wasUsed: boolean

  constructor(message: string, wasUsed: boolean) {
    super(message)
    this.wasUsed = wasUsed
  }
}

async function exchange(
  clock: Clock,
  agent: Agent,
  { method, url, headers, body, timeoutMs, maxBytes }: HttpRequest,
): Promise<HttpResponse> {
  const { origin, pathname, search } = new URL(url)
  const abort = new AbortController()
  const timer = clock.after(timeoutMs, () =>
    abort.abort(Object.assign(new Error('request timed out'), { code: 'ETIMEDOUT' })),
  )
  try {
    const response = await agent
      .request({
        origin,
        path: pathname + search,
        method,
        headers: withoutHost(headers),
        body: body ?? null,
        signal: abort.signal,
      })
      .catch((error: unknown) => {
        throw isCut(error) ? new NoAnswerError(error.message, wasUsed(error)) : error
      })
    const { kept, isTruncated } = await readBody(response.body, maxBytes)
    return { status: response.statusCode, headers: headersOf(response.headers), body: kept, isTruncated }
  } catch (error) {
    throw isCut(error) && !(error instanceof CutError) ? new CutError(error.message) : error
  } finally {
    timer.cancel()
  }
}

const CUT_CODES: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
])

function isCut(error: unknown): error is Error {
  return error instanceof Error && CUT_CODES.has((error as { code?: unknown }).code)
}

function wasUsed(error: Error): boolean {
  const { socket } = error as { socket?: { readonly bytesRead?: number } | null }
  return cutAfterUse.has(error) || (socket?.bytesRead ?? 0) > 0
}

/** Sent as in the URL. */
function withoutHost(headers: HttpRequest['headers'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'host'))
}

/** Leaving the loop early destroys the response and its connection. */
async function readBody(response: AsyncIterable<Buffer>, maxBytes: number) {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) break
  }
  return { kept: Buffer.concat(chunks).subarray(0, maxBytes), isTruncated: length > maxBytes }
}

function headersOf(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
