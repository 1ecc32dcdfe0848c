/**
 * HTTP client; the only place that sends HTTP requests.
 *
 * Never follows redirects and never decodes bodies; pools connections only in a given pool. Certificates are checked against the URL's
 * host (RFC 9110 §4.3.4), whatever address is dialled. Unless the operator named the host, the egress policy applies to the URL and to
 * every resolved address.
 * Rejects with the socket or TLS error, code ETIMEDOUT, EADDRNOTPUBLIC or EURLREFUSED, or a TypeError for a URL that is not http(s).
 */
import { lookup, type LookupAddress } from 'node:dns'
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import type { HostLookup } from '../dns/host-lookup.js'
import type { Clock } from '../time/clock.js'
import type { HttpPool } from './http-pool.js'
import {
  hostOf,
  findTargetFault,
  assertAllowed,
  PUBLIC_ONLY,
  type Named,
  type EgressPolicy,
} from './egress-policy.js'
import { ipVersion } from './ip-address.js'

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

export interface HttpClientOptions {
  /** PEM of certificate authorities to trust instead of the public ones. */
  readonly authorities?: string
  /** Default: the public Internet only. */
  readonly egress?: EgressPolicy
  /** Default: the system's lookup. */
  readonly lookUp?: HostLookup
  /** Default: no connection reuse. */
  readonly pool?: HttpPool
}

export function openHttpClient(
  clock: Clock,
  { authorities, egress = PUBLIC_ONLY, lookUp = systemHostLookup, pool }: HttpClientOptions = {},
): HttpClient {
  const trust = authorities === undefined ? {} : { ca: authorities }

  function send(request: HttpRequest, kept: HttpPool | undefined): Promise<HttpResponse> {
    const { protocol, ...options } = optionsOf(request)
    // Node does not call the lookup for IP addresses.
    if (ipVersion(options.host) !== 0) assertAllowed(egress, request, options.host)
    else options.lookup = filteredLookup(egress, request, lookUp)
    if (protocol === 'https:') {
      const secured = { ...options, ...trust, agent: kept?.secure ?? false }
      return exchange(clock, request, listen => requestHttps(secured, listen))
    }
    if (protocol !== 'http:') throw new TypeError(`${protocol} is neither http: nor https:`)
    const plain = { ...options, agent: kept?.plain ?? false }
    return exchange(clock, request, listen => requestHttp(plain, listen))
  }

  return {
    async request(request) {
      const { namedBy, address, socketPath } = request
      const fault = namedBy === 'operator' ? undefined : findTargetFault(request.url)
      if (fault !== undefined && URL.canParse(request.url) && /^https?:/i.test(request.url))
        throw Object.assign(new Error(`the URL ${fault}`), { code: 'EURLREFUSED' })
      // Never pooled: it may lead where other requests must not go.
      const isShared = namedBy === undefined && address === undefined && socketPath === undefined
      const kept = isShared ? pool : undefined
      try {
        return await send(request, kept)
      } catch (error) {
        // The server closed an idle connection before it saw the request; safe to retry (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
        if (kept === undefined || !wasStale(error)) throw error
        return send(request, undefined)
      }
    },
  }
}

const stale = new WeakSet<Error>()

function wasStale(error: unknown): boolean {
  return error instanceof Error && stale.has(error)
}

const systemHostLookup: HostLookup = host =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve(found.map(({ address }) => address))
    })
  })

function optionsOf({
  method,
  url,
  headers,
  address,
  socketPath,
}: HttpRequest): RequestOptions & { protocol: string; host: string; servername?: string } {
  const { protocol, hostname, host, port, pathname, search } = new URL(url)
  const name = hostOf(hostname)
  return {
    protocol,
    method,
    ...(socketPath === undefined
      ? { host: address ?? name, ...(port === '' ? {} : { port }) }
      : { host: name, socketPath }),
    path: `${pathname}${search}`,
    headers: { ...headers, host },
    // SNI must not be an address (RFC 6066 §3); without it the certificate is checked against the dialled address.
    ...(ipVersion(name) === 0 ? { servername: name } : {}),
  }
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

type Send = (listen: (response: IncomingMessage) => void) => ReturnType<typeof requestHttp>

function exchange(
  clock: Clock,
  { body, timeoutMs, maxBytes }: HttpRequest,
  send: Send,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      timer.cancel()
      reject(error)
    }
    let hasAnswered = false
    const timer = clock.after(timeoutMs, () => {
      fail(Object.assign(new Error('request timed out'), { code: 'ETIMEDOUT' }))
      outgoing.destroy()
    })
    const outgoing = send(response => {
      hasAnswered = true
      readBody(response, maxBytes).then(({ kept, isTruncated }) => {
        timer.cancel()
        resolve({ status: response.statusCode ?? 0, headers: headersOf(response), body: kept, isTruncated })
      }, fail)
    })
    outgoing.on('error', error => {
      const isCut = 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      if (isCut && outgoing.reusedSocket && !hasAnswered) stale.add(error)
      fail(error)
    })
    outgoing.end(body)
  })
}

/** Leaving the loop early destroys the response and its connection. */
async function readBody(response: IncomingMessage, maxBytes: number) {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) break
  }
  return { kept: Buffer.concat(chunks).subarray(0, maxBytes), isTruncated: length > maxBytes }
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
