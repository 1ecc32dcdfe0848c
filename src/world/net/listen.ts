/**
 * Listening sockets: opens an HTTP server on an address and closes it without cutting off who is being served.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../time/clock.js'
import { HttpConnections, type HttpHandler, type HttpLimits } from './http-connections.js'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface Listener {
  /** Where it really listens; tells the port when 0 was asked for. */
  readonly address: ListenAddress
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
/** Octets of all headers of a request. */
const HEADERS_OCTETS = 16_384

/** @throws Error naming the address, e.g. `cannot listen on 127.0.0.1:8025: address already in use` */
export async function listenHttp(
  { host, port }: ListenAddress,
  handler: HttpHandler,
  limits: HttpLimits,
  clock: Clock,
): Promise<Listener> {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADERS_OCTETS,
  })
  new HttpConnections(handler, limits, clock).watch(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new Error(`cannot listen on ${host}:${port}: ${listenFaultInWords(error)}`, { cause: error })),
    )
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  const bound = server.address() as AddressInfo
  return {
    address: { host, port: bound.port },
    async close(graceMs) {
      const cut = clock.after(graceMs, () => server.closeAllConnections())
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeIdleConnections()
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
