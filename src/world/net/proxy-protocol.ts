/**
 * Connections from load balancers that speak the PROXY protocol: reads the header and gives the socket the client's address.
 *
 * Used by the SMTP and HTTP listeners, ahead of TLS. A connection from a listed network must begin with a header, complete within
 * HEADER_MS, or is closed; on any other nothing is read, so that nobody can claim an address. Afterwards `remoteAddress` and
 * `remotePort` of the socket are those of the client, and what followed the header is unread. Never throws; closed connections are
 * logged with their number, at most once a minute.
 * Standard: see `proxy-header.ts`.
 */
import type { Server, Socket } from 'node:net'
import type { Log } from '../log.js'
import type { Clock } from '../time/clock.js'
import { NetworkList } from './ip-address.js'
import { readProxyHeader, type Client, type HeaderFault } from './proxy-header.js'

type ProxyFault = HeaderFault | 'too-slow' | 'too-many'

interface ProxyProtocolParts {
  readonly clock: Clock
  readonly log: Log
}

/** A load balancer sends the header immediately after connecting. */
const HEADER_MS = 5_000
/** Connections that have not sent their header. */
const MAX_PENDING = 1_000
const LOG_PERIOD_MS = 60_000

const EMPTY = Buffer.alloc(0)

/** The ends of a connection whose socket shows the client's address. */
const transports = new WeakMap<Socket, string>()

export class ProxyProtocol {
  private readonly clock: Clock
  private readonly log: Log
  private readonly networks: NetworkList
  /** For the log, e.g. `inbound`. */
  private readonly listener: string
  private readonly pending = new Set<Socket>()
  private unlogged = 0
  private loggedAt = Number.NEGATIVE_INFINITY

  constructor(networks: readonly string[], listener: string, { clock, log }: ProxyProtocolParts) {
    this.networks = new NetworkList(networks)
    this.listener = listener
    this.clock = clock
    this.log = log
  }

  /** Puts the header before all `connection` listeners that a server has now. */
  guard(server: Server): void {
    const listeners = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) =>
      this.accept(socket, () => {
        for (const listener of listeners) listener.call(server, socket)
      }),
    )
  }

  /** @param onConnection called once, unless the connection is closed for want of a header */
  accept(socket: Socket, onConnection: (socket: Socket) => void): void {
    socket.on('error', ignore)
    const { remoteAddress } = socket
    if (remoteAddress === undefined) {
      socket.destroy() // gone already
      return
    }
    const proxy = remoteAddress.replace(/^::ffff:/, '')
    if (!this.networks.contains(proxy)) onConnection(socket)
    else if (this.pending.size >= MAX_PENDING) this.reject(socket, proxy, 'too-many')
    else this.awaitHeader(socket, proxy, onConnection)
  }

  private awaitHeader(socket: Socket, proxy: string, onConnection: (socket: Socket) => void): void {
    let received: Buffer = EMPTY
    const deadline = this.clock.after(HEADER_MS, () => this.reject(socket, proxy, 'too-slow'))
    const stop = () => {
      deadline.cancel()
      this.pending.delete(socket)
      socket.off('readable', onReadable).off('end', onEnd).off('close', stop)
    }
    const onEnd = () => socket.destroy()
    const onReadable = () => {
      const piece = socket.read() as Buffer | null
      if (piece === null) return
      received = received.length === 0 ? piece : Buffer.concat([received, piece])
      const result = readProxyHeader(received)
      if (result.kind === 'incomplete') return
      stop()
      if (result.kind === 'fault') {
        this.reject(socket, proxy, result.fault)
        return
      }
      if (result.client) showClient(socket, result.client)
      if (received.length > result.length) socket.unshift(received.subarray(result.length))
      onConnection(socket)
    }
    this.pending.add(socket)
    socket.on('readable', onReadable).on('end', onEnd).on('close', stop)
  }

  /** Closes connections that have not sent their header; for shutdown. */
  endPending(): void {
    for (const socket of this.pending) socket.destroy()
  }

  private reject(socket: Socket, proxy: string, reason: ProxyFault): void {
    socket.destroy()
    this.unlogged += 1
    const now = this.clock.monotonic()
    if (now - this.loggedAt < LOG_PERIOD_MS) return
    this.log.warn('proxy header rejected', { listener: this.listener, proxy, reason, count: this.unlogged })
    this.loggedAt = now
    this.unlogged = 0
  }
}

/** @returns undefined where no load balancer is configured, so that connections are left alone */
export function openProxyProtocol(
  networks: readonly string[],
  listener: string,
  parts: ProxyProtocolParts,
): ProxyProtocol | undefined {
  return networks.length === 0 ? undefined : new ProxyProtocol(networks, listener, parts)
}

/** Identifies the connection of a socket, and of the TLS socket on top of it, whichever address they show. */
export function transportOf(socket: Socket): string {
  return transports.get(socket) ?? endsOf(socket)
}

/** Has the TLS socket on top of a socket show the same client. */
export function showSameClient(socket: Socket, secured: Socket): void {
  const { remoteAddress: address, remotePort: port } = socket
  if (transports.has(socket) && address !== undefined && port !== undefined)
    showClient(secured, { address, port })
}

/** Own properties, in front of the getters that ask the system. */
function showClient(socket: Socket, { address, port }: Client): void {
  transports.set(socket, endsOf(socket))
  const family = address.includes(':') ? 'IPv6' : 'IPv4'
  Object.defineProperties(socket, {
    remoteAddress: { value: address },
    remotePort: { value: port },
    remoteFamily: { value: family },
  })
}

function endsOf({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

function ignore(): void {}
