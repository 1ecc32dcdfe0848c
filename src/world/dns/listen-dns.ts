/**
 * UDP and TCP sockets of the name server, with limits on what clients may hold.
 *
 * Standards: RFC 1035 §4.2 (transport), RFC 7766 (TCP: several queries per connection, idle timeout).
 * `listenDns` rejects with an error that names the address and the reason; afterwards nothing rejects.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type AddressInfo, type ListenOptions, type Server, type Socket } from 'node:net'
import { FairShares } from '../../core/fair-shares.js'
import type { Clock, Timer } from '../time/clock.js'
import { addressHolder, ipVersion } from '../net/ip-address.js'
import { describeListenError, type ListenAddress } from '../net/listen.js'

export interface DnsSender {
  readonly address: string
  readonly transport: 'udp' | 'tcp'
}

export interface DnsHandler {
  /** Never rejects. @returns undefined to send no answer */
  answer(message: Buffer, sender: DnsSender): Promise<Buffer | undefined>
}

export interface DnsListener {
  /** The actual address, with the chosen port for port 0. */
  readonly address: ListenAddress
  close(): Promise<void>
}

/** Concurrent UDP queries; more are dropped, and clients retry. */
const MAX_CONCURRENT = 1_000
/** TCP connections, shared fairly among networks. */
const MAX_CONNECTIONS = 256
const MAX_CONNECTIONS_PER_ADDRESS = 16
/** Idle timeout of a connection (RFC 7766 §6.2.3). */
const IDLE_MS = 10_000
/** Bytes; queries are rarely longer than 100. */
const MAX_QUERY = 4_096
/** With port 0, a port free for TCP may be in use for UDP. */
const PORT_TRIES = 10

/** @throws Error naming the address, e.g. `cannot listen on 0.0.0.0:53: permission denied (...)` */
export async function listenDns(
  { host, port, isIpv6Only = false }: ListenAddress,
  handler: DnsHandler,
  clock: Clock,
): Promise<DnsListener> {
  for (let tries = 1; ; tries++)
    try {
      return await listenOnBoth({ host, port, isIpv6Only }, handler, clock)
    } catch (error) {
      const fault = error as NodeJS.ErrnoException
      if (port === 0 && fault.code === 'EADDRINUSE' && tries < PORT_TRIES) continue
      throw new Error(`cannot listen on ${host}:${port}: ${describeListenError(fault)}`, { cause: error })
    }
}

async function listenOnBoth(
  { host, port, isIpv6Only }: Required<ListenAddress>,
  handler: DnsHandler,
  clock: Clock,
): Promise<DnsListener> {
  const tcp = createServer({ noDelay: true })
  const connections = new Connections(handler, clock)
  tcp.on('connection', socket => connections.take(socket))
  await listenTcp(tcp, { host, port, ipv6Only: isIpv6Only })
  const bound = (tcp.address() as AddressInfo).port
  const udp = createSocket({ type: ipVersion(host) === 6 ? 'udp6' : 'udp4', ipv6Only: isIpv6Only })
  try {
    await bindUdp(udp, host, bound)
  } catch (error) {
    tcp.close()
    udp.close()
    throw error
  }
  // E.g. out of file descriptors or no route: affects only this query.
  tcp.on('error', () => {})
  udp.on('error', () => {})
  answerUdp(udp, handler)
  return {
    address: { host, port: bound },
    close: () =>
      new Promise(resolve => {
        connections.end()
        udp.close(() => tcp.close(() => resolve()))
      }),
  }
}

function listenTcp(server: Server, on: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(on, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function bindUdp(socket: UdpSocket, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ port, address: host }, () => {
      socket.off('error', reject)
      resolve()
    })
  })
}

function answerUdp(socket: UdpSocket, handler: DnsHandler): void {
  let underWay = 0
  let isClosed = false
  socket.once('close', () => (isClosed = true))
  socket.on('message', (message, { address, port }) => {
    // No reply is possible to port 0.
    if (port === 0 || underWay >= MAX_CONCURRENT) return
    underWay += 1
    void handler.answer(message, { address, transport: 'udp' }).then(answer => {
      underWay -= 1
      if (answer && !isClosed) socket.send(answer, port, address, () => {})
    })
  })
}

/** TCP connections; queries on a connection are answered one at a time. */
class Connections {
  private readonly handler: DnsHandler
  private readonly clock: Clock
  private readonly sockets = new Set<Socket>()
  private readonly places = new FairShares(MAX_CONNECTIONS, { perKey: MAX_CONNECTIONS_PER_ADDRESS })

  constructor(handler: DnsHandler, clock: Clock) {
    this.handler = handler
    this.clock = clock
  }

  take(socket: Socket): void {
    const client = addressHolder(socket.remoteAddress ?? '')
    socket.on('error', () => socket.destroy())
    if (this.places.take(client) !== undefined) {
      socket.destroy()
      return
    }
    this.sockets.add(socket)
    socket.once('close', () => {
      this.sockets.delete(socket)
      this.places.release(client)
    })
    void this.serve(socket)
  }

  end(): void {
    for (const socket of this.sockets) socket.destroy()
  }

  private async serve(socket: Socket): Promise<void> {
    const sender = { address: socket.remoteAddress ?? '', transport: 'tcp' } as const
    let idle: Timer | undefined
    const wait = () => {
      idle?.cancel()
      idle = this.clock.after(IDLE_MS, () => socket.destroy())
    }
    wait()
    let received: Buffer = Buffer.alloc(0)
    try {
      // Do not read ahead of unanswered queries.
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
        while (received.length >= 2) {
          const length = received.readUInt16BE(0)
          if (length > MAX_QUERY) return
          if (received.length < 2 + length) break
          const answer = await this.handler.answer(received.subarray(2, 2 + length), sender)
          received = received.subarray(2 + length)
          if (!answer) return
          await write(socket, answer)
          wait()
        }
      }
      socket.end()
    } catch {
      // The client disconnected.
    } finally {
      idle?.cancel()
      socket.destroySoon()
    }
  }
}

function write(socket: Socket, answer: Buffer): Promise<void> {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(answer.length)
  return new Promise((resolve, reject) => {
    socket.write(Buffer.concat([head, answer]), error => (error ? reject(error) : resolve()))
  })
}
