/**
 * Listening sockets: opens an HTTP server on an address, in clear or with TLS, and closes it without cutting off who is being served.
 *
 * Called by the composition root. TLS is 1.2 or newer (RFC 9325 §3.1.1); the certificate is asked for at each connection, so that
 * another one counts from the next on and nobody is cut off. Fails: rejects with the address and the reason in words.
 */
import { createServer, type Server as HttpServer, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import type { Clock } from '../time/clock.js'
import type { PemPair } from '../tls/self-signed-certificate.js'
import { HttpConnections, type HttpHandler, type HttpLimits } from './http-connections.js'

export interface ListenAddress {
  /** `::` is every address, of IPv4 too, unless `isIpv6Only`. */
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

/** What the system says where it has no IPv6. */
const NO_IPV6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'])

/**
 * Resolves once the server listens. Where the machine has no IPv6, `::` is every address of IPv4.
 *
 * @returns where it listens, with the port that the system chose for 0
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
    const reason = listenFaultInWords(error as NodeJS.ErrnoException)
    throw new Error(`cannot listen on ${host}:${port}: ${reason}`, { cause: error })
  }
  return { host: bound, port: (server.address() as AddressInfo).port }
}

export interface Listener {
  /** Where it really listens; tells the port when 0 was asked for. */
  readonly address: ListenAddress
  /** Connections open now. */
  readonly connections: number
  /** Takes no new connections, waits for requests under way, and after `graceMs` cuts what is left. */
  close(graceMs: number): Promise<void>
}

/** For the headers of a request, from its first octet or from when the connection was made (slow senders hold sockets). */
const HEADERS_TIMEOUT_MS = 15_000
/** Whoever reads a body knows how long it may take; this ends what nobody reads. */
const REQUEST_TIMEOUT_MS = 3_600_000
const LOOK_EVERY_MS = 5_000
/** Longer than clients keep an idle connection for the next request, so that none is closed under a request on its way. */
const KEEP_ALIVE_MS = 65_000
/** Connections the system completes ahead of us; Linux cuts it at net.core.somaxconn (4096). */
const BACKLOG = 4_096
/** From the connection to the end of the handshake. */
const HANDSHAKE_TIMEOUT_MS = 10_000
/** Octets of all headers of a request. */
const HEADERS_OCTETS = 16_384

const OPTIONS: ServerOptions = {
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: LOOK_EVERY_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: HEADERS_OCTETS,
  // `http-connections.ts` looks for it: here the refusal would be an answer without a word.
  requireHostHeader: false,
}

/** @throws Error naming the address, e.g. `cannot listen on 127.0.0.1:8025: address already in use` */
export function listenHttp(
  address: ListenAddress,
  handler: HttpHandler,
  limits: HttpLimits,
  clock: Clock,
): Promise<Listener> {
  const server = createServer(OPTIONS)
  const connections = new HttpConnections(handler, limits, clock)
  connections.watch(server)
  return listen(server, address, connections, clock)
}

/**
 * The same with TLS from the first octet.
 *
 * @param pair the certificate to show now: another object when it is another one
 */
export function listenHttps(
  address: ListenAddress,
  handler: HttpHandler,
  limits: HttpLimits,
  clock: Clock,
  pair: () => PemPair,
): Promise<Listener> {
  let shown = pair()
  const server = createTlsServer({
    ...OPTIONS,
    ...shown,
    minVersion: 'TLSv1.2',
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  })
  // Before the handshake begins.
  server.prependListener('connection', () => {
    const current = pair()
    if (current === shown) return
    shown = current
    server.setSecureContext({ ...current, minVersion: 'TLSv1.2' })
  })
  const connections = new HttpConnections(handler, limits, clock)
  connections.watchSecure(server)
  return listen(server, address, connections, clock)
}

async function listen(
  server: HttpServer,
  address: ListenAddress,
  connections: HttpConnections,
  clock: Clock,
): Promise<Listener> {
  const bound = await listenOn(server, address, BACKLOG)
  return {
    address: bound,
    get connections() {
      return connections.count
    },
    async close(graceMs) {
      const cut = clock.after(graceMs, () => server.closeAllConnections())
      // Who asks again on a connection that was busy at this moment would keep it open for as long as he asks.
      server.prependListener('request', (_, response) => response.setHeader('Connection', 'close'))
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeIdleConnections()
        connections.endHandshakes()
      })
      cut.cancel()
    },
  }
}

/** Why an address could not be listened on, for whoever has to change that. */
export function listenFaultInWords(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return 'address already in use (is another server running?)'
  if (error.code === 'EACCES') return 'permission denied (ports below 1024 need CAP_NET_BIND_SERVICE)'
  if (error.code === 'EADDRNOTAVAIL') return 'this machine has no such address'
  return error.message
}
