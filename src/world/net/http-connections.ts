/**
 * What the clients of an HTTP server may hold of it: how many connections, how many requests begun, how long an answer that they
 * do not fetch.
 *
 * Called by `listen.ts`. `admission.ts` says who has a place; while more than half are taken, a client that does not finish its request
 * within seconds loses it. Of the requests that a client sends ahead on one connection (RFC 9112 §9.3.2) one is executed at a time,
 * the next when the answer before has left; while many wait nothing more is read. Knows no routes; what is said to whoever
 * speaks no HTTP is made by the handler's owner.
 * Fails: never throws; a connection that goes past a bound is closed, after an answer where one can still be given.
 */
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../time/clock.js'
import { Admission, type AdmittedConnection } from './admission.js'
import { addressKey, NetworkList } from './ip-address.js'
import { timeForOctets } from './transfer-time.js'

/** What is wrong with a connection, in terms of what its client may do about it. */
export type HttpFault = 'malformed' | 'headers-too-large' | 'too-slow' | 'too-many-connections'

export interface HttpHandler {
  /** Resolves when all of the answer has been handed over, whether or not it has left. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** What is said before the connection closes. */
  answerFault(fault: HttpFault, address: string): RawAnswer
}

/** An answer to what never became a request. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface HttpLimits {
  readonly connections: number
  /** From one address (one /64 of IPv6). */
  readonly connectionsPerAddress: number
  /** Networks of reverse proxies: their connections are never cut for others'. Those of this machine itself always count as one. */
  readonly trustedProxies?: readonly string[]
}

/** Requests sent ahead on one connection beyond which nothing is read, and beyond which it is closed. */
const MANY_WAITING = 16
const MOST_WAITING = 200
/** For a client to read the answer after which its connection closes. */
const LINGER_MS = 2_000
/** Turned away at a time with an answer; beyond it without. */
const MOST_TURNED_AWAY = 200

/** Under pressure: for a complete request head, from the connection or the answer before, and for each MIN_OCTETS of a body. */
const PRESSED_MS = 5_000
const MIN_OCTETS = 5_120
const BEAT_MS = 1_000
const OWN_ADDRESSES = ['127.0.0.1/32', '::1/128']

interface Connection {
  readonly socket: Socket
  readonly guest: ClientConnection
  readonly address: string
  readonly waiting: ServerResponse[]
  isPaused: boolean
  /** Said when the answer under way has left. */
  fault: HttpFault | undefined
  isEnding: boolean
}

class ClientConnection implements AdmittedConnection {
  private readonly clock: Clock
  private readonly socket: Socket
  /** The answer under way. */
  current: ServerResponse | undefined
  activeSince: number
  /** Read when `activeSince` was set. */
  private octets: number

  constructor(socket: Socket, clock: Clock) {
    this.socket = socket
    this.clock = clock
    this.activeSince = clock.monotonic()
    this.octets = socket.bytesRead
  }

  get activity(): AdmittedConnection['activity'] {
    if (!this.current) return 'silent'
    const { req } = this.current
    // Unread octets: the client waits for us.
    return req.complete || req.readableLength > 0 ? 'working' : 'sending'
  }

  /** @param current the answer that is begun now; undefined: the last one has left */
  setCurrent(current: ServerResponse | undefined): void {
    this.current = current
    this.restart()
  }

  /** Whether its client has sent too little for too long, while others want the place. */
  isHoldingUp(now: number): boolean {
    const { activity } = this
    if (activity === 'working' || now - this.activeSince < PRESSED_MS) return false
    // A head may trickle in, a body has to come on.
    if (activity === 'silent' || this.socket.bytesRead - this.octets < MIN_OCTETS) return true
    this.restart()
    return false
  }

  evict(): void {
    this.socket.destroy()
  }

  private restart(): void {
    this.activeSince = this.clock.monotonic()
    this.octets = this.socket.bytesRead
  }
}

export class HttpConnections {
  private readonly handler: HttpHandler
  private readonly clock: Clock
  private readonly admission: Admission
  private beat: Timer | undefined
  private readonly connections = new Map<Socket, Connection>()
  /** By their other end; each with what ends the counting of it. */
  private readonly handshakes = new Map<string, { readonly socket: Socket; readonly done: () => void }>()
  private turnedAway = 0

  constructor(handler: HttpHandler, limits: HttpLimits, clock: Clock) {
    this.handler = handler
    this.clock = clock
    const proxies = new NetworkList([...OWN_ADDRESSES, ...(limits.trustedProxies ?? [])])
    const live = {
      get sessions() {
        return limits.connections
      },
      get sessionsPerAddress() {
        return limits.connectionsPerAddress
      },
      connectionsPerMinute: 0,
    }
    this.admission = new Admission(live, clock, address => proxies.contains(address.replace(/^::ffff:/, '')))
  }

  /** Open now. */
  get count(): number {
    return this.connections.size
  }

  watch(server: Server): void {
    server.on('connection', socket => this.open(socket))
    this.watchRequests(server)
  }

  /** A handshake counts as a connection until it is one; beyond a bound nothing can be said before one. */
  watchSecure(server: TlsServer): void {
    server.prependListener('connection', (socket: Socket) => this.beginHandshake(socket))
    server.on('secureConnection', (socket: Socket) => {
      this.handshakes.get(endOf(socket))?.done()
      this.open(socket)
    })
    this.watchRequests(server)
  }

  /** Nobody has asked anything there yet. */
  endHandshakes(): void {
    for (const { socket } of this.handshakes.values()) socket.destroy()
  }

  private beginHandshake(socket: Socket): void {
    const end = endOf(socket)
    const guest = this.admit(socket)
    const done = () => {
      if (this.handshakes.get(end)?.socket !== socket) return
      this.handshakes.delete(end)
      if (guest) this.admission.leave(guest)
    }
    this.handshakes.set(end, { socket, done })
    socket.once('close', done)
    if (!guest) socket.destroy()
  }

  /** @returns undefined where there is no place */
  private admit(socket: Socket): ClientConnection | undefined {
    const { remoteAddress = '' } = socket
    if (this.admission.check(remoteAddress) !== undefined) return undefined
    const guest = new ClientConnection(socket, this.clock)
    this.admission.admit(remoteAddress, guest)
    if (this.admission.isUnderPressure) this.beat ??= this.clock.after(BEAT_MS, () => this.onBeat())
    return guest
  }

  private onBeat(): void {
    this.beat = undefined
    if (!this.admission.isUnderPressure) return
    const now = this.clock.monotonic()
    for (const guest of [...this.admission.guests()])
      if (guest instanceof ClientConnection && guest.isHoldingUp(now)) guest.evict()
    this.beat = this.clock.after(BEAT_MS, () => this.onBeat())
  }

  private watchRequests(server: Server | TlsServer): void {
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.take(request.socket, response)
    // The reader of the body sends 100 Continue; other expectations are ignored.
    server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest)
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.refuse(error, socket))
    server.on('connect', (_: IncomingMessage, socket: Socket) => {
      // From here on the socket has no other listener.
      socket.on('error', () => socket.destroy())
      this.refuse({ code: 'CONNECT' }, socket)
    })
    server.on('timeout', (socket: Socket) => this.endIdle(socket))
  }

  private open(socket: Socket): void {
    const guest = this.admit(socket)
    const connection: Connection = {
      socket,
      guest: guest ?? new ClientConnection(socket, this.clock),
      address: addressKey(socket.remoteAddress ?? ''),
      waiting: [],
      isPaused: false,
      fault: undefined,
      isEnding: false,
    }
    this.connections.set(socket, connection)
    socket.once('close', () => this.forget(connection))
    if (!guest) this.turnAway(connection)
  }

  private turnAway(connection: Connection): void {
    this.turnedAway += 1
    connection.socket.once('close', () => (this.turnedAway -= 1))
    if (this.turnedAway > MOST_TURNED_AWAY) connection.socket.destroy()
    else this.endWith(connection, 'too-many-connections')
  }

  private forget({ socket, guest, waiting }: Connection): void {
    waiting.length = 0
    this.connections.delete(socket)
    this.admission.leave(guest)
  }

  private take(socket: Socket, response: ServerResponse): void {
    const connection = this.connections.get(socket)
    if (!connection || connection.isEnding) return
    if (!connection.guest.current) this.begin(connection, response)
    else if (connection.waiting.length === MOST_WAITING) socket.destroy()
    else {
      connection.waiting.push(response)
      if (connection.waiting.length === MANY_WAITING) this.holdBack(connection)
    }
  }

  /** Once what has come already is parsed, which reads on after each request. */
  private holdBack(connection: Connection): void {
    connection.isPaused = true
    setImmediate(() => {
      if (connection.isPaused) connection.socket.pause()
    })
  }

  private begin(connection: Connection, response: ServerResponse): void {
    connection.guest.setCurrent(response)
    let stalled: Timer | undefined
    response.once('close', () => {
      stalled?.cancel()
      this.next(connection)
    })
    const onHandedOver = () => {
      const { socket } = connection
      const hasLeft = response.writableEnded && socket.writableLength === 0
      if (hasLeft || response.closed || socket.destroyed) return
      stalled = this.clock.after(timeForOctets(socket.writableLength), () => socket.destroy())
    }
    const handled = namesOneHost(response.req)
      ? this.handler.handle(response.req, response)
      : this.refuseRequest(response, connection.address)
    void handled.then(onHandedOver, onHandedOver)
  }

  /** In order, after the answers to earlier requests. */
  private refuseRequest(response: ServerResponse, address: string): Promise<void> {
    const { status, headers, body } = this.handler.answerFault('malformed', address)
    response.writeHead(status, {
      ...headers,
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    })
    response.end(body)
    return Promise.resolve()
  }

  private next(connection: Connection): void {
    const { socket, waiting } = connection
    connection.guest.setCurrent(undefined)
    if (socket.destroyed) return
    const response = waiting.shift()
    if (response) this.begin(connection, response)
    else if (connection.fault !== undefined) this.endWith(connection, connection.fault)
    if (connection.isPaused && waiting.length < MANY_WAITING / 2) {
      connection.isPaused = false
      socket.resume()
    }
  }

  /** What came is no HTTP, or did not come in time. */
  private refuse({ code }: Pick<NodeJS.ErrnoException, 'code'>, socket: Socket): void {
    const connection = this.connections.get(socket)
    if (!connection || code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    connection.fault ??= faultOf(code)
    const { current } = connection.guest
    // Of a request that is broken off nothing more comes; the answers to those before it are waited for.
    if (!current || (!current.req.complete && !current.headersSent))
      this.endWith(connection, connection.fault)
    else if (!current.req.complete) socket.destroy()
  }

  private endWith(connection: Connection, fault: HttpFault): void {
    if (connection.isEnding) return
    connection.isEnding = true
    const { socket, address } = connection
    socket.end(asText(this.handler.answerFault(fault, address)))
    const cut = this.clock.after(LINGER_MS, () => socket.destroy())
    socket.once('close', () => cut.cancel())
  }

  /** Between two requests; while one is executed its own bounds hold. */
  private endIdle(socket: Socket): void {
    if (!this.connections.get(socket)?.guest.current) socket.destroy()
  }
}

/** RFC 9112 §3.2: more than one is malformed for every version, none from HTTP/1.1 on. */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0')
}

/** What a socket and the TLS over it have in common. */
function endOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** RFC 9112 §4, §9.6. */
function asText({ status, headers, body }: RawAnswer): string {
  const all = { ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`
}

function faultOf(code: string | undefined): HttpFault {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers-too-large'
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'too-slow' : 'malformed'
}
