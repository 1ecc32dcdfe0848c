/**
 * HTTP and HTTPS listeners with graceful shutdown.
 *
 * TLS 1.2 or newer (RFC 9325 §3.1.1). The certificate is looked up for each connection, so a renewed one applies without a restart.
 * Rejects with an error that names the address and the reason.
 */
import { createServer, type Server as HttpServer, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import type { Clock } from '../time/clock.js'
import type { PemPair } from '../tls/self-signed-certificate.js'
import { SERVER_TLS } from '../tls/server-tls.js'
import { HttpConnections, type HttpHandler, type HttpLimits } from './http-connections.js'
import type { ProxyProtocol } from './proxy-protocol.js'

export interface ListenAddress {
  /** `::` includes IPv4 unless `isIpv6Only`. */
  readonly host: string
  readonly port: number
  readonly isIpv6Only?: boolean
}

/**
 * Makes `::` IPv6-only where `0.0.0.0` has a listener on the same port, so that both can be listed.
 *
 * @param all every address of this process that may share a port with `addresses`
 */
export function markIpv6Only(
  addresses: readonly ListenAddress[],
  all: readonly ListenAddress[] = addresses,
): ListenAddress[] {
  const ofIpv4 = new Set(all.flatMap(({ host, port }) => (host === '0.0.0.0' ? port : [])))
  return addresses.map(address =>
    address.host === '::' && address.port !== 0 && ofIpv4.has(address.port)
      ? { ...address, isIpv6Only: true }
      : address,
  )
}

/** Error codes of systems without IPv6. */
const NO_IPV6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'])

/**
 * Listens; without IPv6 on the machine, `::` becomes `0.0.0.0`.
 *
 * @returns the actual address; port 0 is replaced by the chosen port
 * @throws Error naming the address
 */
export async function listenOn(
  server: Server,
  { host, port, isIpv6Only = false }: ListenAddress,
  backlog: number,
): Promise<ListenAddress> {
  const listen = (on: string) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host: on, port, backlog, ipv6Only: isIpv6Only }, () => {
        server.off('error', reject)
        resolve()
      })
    })
  let bound = host
  try {
    await listen(host).catch((error: unknown) => {
      if (host !== '::' || isIpv6Only || !NO_IPV6.has((error as NodeJS.ErrnoException).code ?? ''))
        throw error
      bound = '0.0.0.0'
      return listen(bound)
    })
  } catch (error) {
    const reason = describeListenError(error as NodeJS.ErrnoException)
    throw new Error(`cannot listen on ${host}:${port}: ${reason}`, { cause: error })
  }
  return { host: bound, port: (server.address() as AddressInfo).port }
}

export interface Listener {
  /** The actual address, with the chosen port for port 0. */
  readonly address: ListenAddress
  readonly connections: number
  /** Stops accepting, waits for requests in progress, and after `graceMs` closes the rest. */
  close(graceMs: number): Promise<void>
}

/** For the complete headers of a request. */
const HEADERS_TIMEOUT_MS = 15_000
/** Backstop for bodies nobody reads; body readers have their own limit. */
const REQUEST_TIMEOUT_MS = 3_600_000
const TIMEOUT_CHECK_MS = 5_000
/** Longer than clients keep idle connections, so none is closed just as a request arrives. */
const KEEP_ALIVE_MS = 65_000
/** Linux limits it to net.core.somaxconn (4096). */
const BACKLOG = 4_096
const HANDSHAKE_TIMEOUT_MS = 10_000
const MAX_HEADER_BYTES = 16_384

const OPTIONS: ServerOptions = {
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
  // Checked by `http-connections.ts`, which sends a proper error body.
  requireHostHeader: false,
}

/**
 * @param proxyProtocol reads the headers of load balancers
 * @throws Error naming the address, e.g. `cannot listen on 127.0.0.1:8025: address already in use`
 */
export function listenHttp(
  address: ListenAddress,
  handler: HttpHandler,
  limits: HttpLimits,
  clock: Clock,
  proxyProtocol?: ProxyProtocol,
): Promise<Listener> {
  const server = createServer(OPTIONS)
  const connections = new HttpConnections(handler, limits, clock)
  connections.watch(server)
  return listen(server, address, connections, clock, proxyProtocol)
}

/** @param pair returns the current certificate; a new object when it changed */
export function listenHttps(
  address: ListenAddress,
  handler: HttpHandler,
  limits: HttpLimits,
  clock: Clock,
  pair: () => PemPair,
  proxyProtocol?: ProxyProtocol,
): Promise<Listener> {
  let shown = pair()
  const server = createTlsServer({
    ...OPTIONS,
    ...shown,
    ...SERVER_TLS,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  })
  server.prependListener('connection', () => {
    const current = pair()
    if (current === shown) return
    shown = current
    server.setSecureContext({ ...current, ...SERVER_TLS })
  })
  const connections = new HttpConnections(handler, limits, clock)
  connections.watchSecure(server)
  return listen(server, address, connections, clock, proxyProtocol)
}

async function listen(
  server: HttpServer,
  address: ListenAddress,
  connections: HttpConnections,
  clock: Clock,
  proxyProtocol: ProxyProtocol | undefined,
): Promise<Listener> {
  proxyProtocol?.guard(server)
  const bound = await listenOn(server, address, BACKLOG)
  return {
    address: bound,
    get connections() {
      return connections.count
    },
    async close(graceMs) {
      const cut = clock.after(graceMs, () => server.closeAllConnections())
      // Otherwise a client could keep a busy connection open with further requests.
      server.prependListener('request', (_, response) => response.setHeader('Connection', 'close'))
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeIdleConnections()
        connections.endHandshakes()
        proxyProtocol?.endPending()
      })
      cut.cancel()
    },
  }
}

/** A listen error in words, with the remedy where there is one. */
export function describeListenError(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return 'address already in use (is another server running?)'
  if (error.code === 'EACCES') return 'permission denied (ports below 1024 need CAP_NET_BIND_SERVICE)'
  if (error.code === 'EADDRNOTAVAIL') return 'this machine has no such address'
  return error.message
}
