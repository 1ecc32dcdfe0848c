/**
 * Limits what clients of an HTTP server may hold: connections, pipelined requests, responses they do not read.
 *
 * `admission.ts` decides who gets a slot; while more than half are taken, a client that does not finish its request within seconds is
 * disconnected. Pipelined requests (RFC 9112 §9.3.2) are executed one at a time, each after the previous response was sent; beyond a
 * bound the socket is not read. Never throws; a connection over a limit is closed, after an error response if possible.
 */
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../time/clock.js'
import { Admission, type AdmittedConnection } from './admission.js'
import { addressKey, NetworkList } from './ip-address.js'
import { showSameClient, transportOf } from './proxy-protocol.js'
import { timeForOctets } from './transfer-time.js'

/** Why a connection is closed. */
export type HttpFault = 'malformed' | 'headers-too-large' | 'too-slow' | 'too-many-connections'

export interface HttpHandler {
  /** Resolves once the whole response is written to the socket, sent or not. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** The response before the connection closes. */
  answerFault(fault: HttpFault, address: string): RawAnswer
}

/** A response outside any request. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface HttpLimits {
  readonly connections: number
  /** Per IPv4 address or IPv6 /64. */
  readonly connectionsPerAddress: number
  /** Networks of reverse proxies, whose connections are never evicted. This machine always counts as one. */
  readonly trustedProxies?: readonly string[]
}

/** Pipelined requests at which reading pauses, and at which the connection is closed. */
const PAUSE_AT_WAITING = 16
const MAX_WAITING = 200
/** Time for the client to read the last response before the socket is destroyed. */
const LINGER_MS = 2_000
/** Refused connections that get a response at a time; others are closed without one. */
const MAX_TURNED_AWAY = 200

/** Under pressure: limit for a complete request head, and for each MIN_OCTETS of a body. */
const PRESSURE_MS = 5_000
const MIN_OCTETS = 5_120
const PRESSURE_CHECK_MS = 1_000
const OWN_ADDRESSES = ['127.0.0.1/32', '::1/128']

interface Connection {
  readonly socket: Socket
  readonly client: ClientConnection
  readonly address: string
  readonly waiting: ServerResponse[]
  isPaused: boolean
  /** Reported after the current response. */
  fault: HttpFault | undefined
  isEnding: boolean
}

class ClientConnection implements AdmittedConnection {
  private readonly clock: Clock
  private readonly socket: Socket
  /** The response in progress. */
  current: ServerResponse | undefined
  activeSince: number
  /** `bytesRead` at `activeSince`. */
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
    // Unread bytes: the client is waiting for us.
    return req.complete || req.readableLength > 0 ? 'working' : 'sending'
  }

  /** @param current undefined once the response was sent */
  setCurrent(current: ServerResponse | undefined): void {
    this.current = current
    this.restart()
  }

  /** Whether the client has sent too little for too long. */
  isTooSlow(now: number): boolean {
    const { activity } = this
    if (activity === 'working' || now - this.activeSince < PRESSURE_MS) return false
    // A head has one deadline; a body must keep arriving.
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
  private pressureCheck: Timer | undefined
  private readonly connections = new Map<Socket, Connection>()
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

  get count(): number {
    return this.connections.size
  }

  watch(server: Server): void {
    server.on('connection', socket => this.open(socket))
    this.watchRequests(server)
  }

  /** A TLS handshake counts as a connection. Over the limit it is closed without a response. */
  watchSecure(server: TlsServer): void {
    server.prependListener('connection', (socket: Socket) => this.beginHandshake(socket))
    server.on('secureConnection', (socket: Socket) => {
      const handshake = this.handshakes.get(transportOf(socket))
      if (handshake) showSameClient(handshake.socket, socket)
      handshake?.done()
      this.open(socket)
    })
    this.watchRequests(server)
  }

  /** No request has been received on these yet. */
  endHandshakes(): void {
    for (const { socket } of this.handshakes.values()) socket.destroy()
  }

  private beginHandshake(socket: Socket): void {
    const end = transportOf(socket)
    const client = this.admit(socket)
    const done = () => {
      if (this.handshakes.get(end)?.socket !== socket) return
      this.handshakes.delete(end)
      if (client) this.admission.leave(client)
    }
    this.handshakes.set(end, { socket, done })
    socket.once('close', done)
    if (!client) socket.destroy()
  }

  /** @returns undefined if refused */
  private admit(socket: Socket): ClientConnection | undefined {
    const { remoteAddress = '' } = socket
    if (this.admission.check(remoteAddress) !== undefined) return undefined
    const client = new ClientConnection(socket, this.clock)
    this.admission.admit(remoteAddress, client)
    if (this.admission.isUnderPressure)
      this.pressureCheck ??= this.clock.after(PRESSURE_CHECK_MS, () => this.checkPressure())
    return client
  }

  private checkPressure(): void {
    this.pressureCheck = undefined
    if (!this.admission.isUnderPressure) return
    const now = this.clock.monotonic()
    for (const client of [...this.admission.evictable()])
      if (client instanceof ClientConnection && client.isTooSlow(now)) client.evict()
    this.pressureCheck = this.clock.after(PRESSURE_CHECK_MS, () => this.checkPressure())
  }

  private watchRequests(server: Server | TlsServer): void {
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.take(request.socket, response)
    // 100 Continue is sent when the body is read; other expectations are ignored.
    server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest)
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.refuse(error, socket))
    server.on('connect', (_: IncomingMessage, socket: Socket) => {
      // After CONNECT, Node removes its own listeners from the socket.
      socket.on('error', () => socket.destroy())
      this.refuse({ code: 'CONNECT' }, socket)
    })
    server.on('timeout', (socket: Socket) => this.endIdle(socket))
  }

  private open(socket: Socket): void {
    const client = this.admit(socket)
    const connection: Connection = {
      socket,
      client: client ?? new ClientConnection(socket, this.clock),
      address: addressKey(socket.remoteAddress ?? ''),
      waiting: [],
      isPaused: false,
      fault: undefined,
      isEnding: false,
    }
    this.connections.set(socket, connection)
    socket.once('close', () => this.forget(connection))
    if (!client) this.turnAway(connection)
  }

  private turnAway(connection: Connection): void {
    this.turnedAway += 1
    connection.socket.once('close', () => (this.turnedAway -= 1))
    if (this.turnedAway > MAX_TURNED_AWAY) connection.socket.destroy()
    else this.endWith(connection, 'too-many-connections')
  }

  private forget({ socket, client, waiting }: Connection): void {
    waiting.length = 0
    this.connections.delete(socket)
    this.admission.leave(client)
  }

  private take(socket: Socket, response: ServerResponse): void {
    const connection = this.connections.get(socket)
    if (!connection || connection.isEnding) return
    if (!connection.client.current) this.begin(connection, response)
    else if (connection.waiting.length === MAX_WAITING) socket.destroy()
    else {
      connection.waiting.push(response)
      if (connection.waiting.length === PAUSE_AT_WAITING) this.pauseReading(connection)
    }
  }

  /** Deferred: the parser resumes the socket after each request of the data already read. */
  private pauseReading(connection: Connection): void {
    connection.isPaused = true
    setImmediate(() => {
      if (connection.isPaused) connection.socket.pause()
    })
  }

  private begin(connection: Connection, response: ServerResponse): void {
    connection.client.setCurrent(response)
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
    connection.client.setCurrent(undefined)
    if (socket.destroyed) return
    const response = waiting.shift()
    if (response) this.begin(connection, response)
    else if (connection.fault !== undefined) this.endWith(connection, connection.fault)
    if (connection.isPaused && waiting.length < PAUSE_AT_WAITING / 2) {
      connection.isPaused = false
      socket.resume()
    }
  }

  private refuse({ code }: Pick<NodeJS.ErrnoException, 'code'>, socket: Socket): void {
    const connection = this.connections.get(socket)
    if (!connection || code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    connection.fault ??= faultOf(code)
    const { current } = connection.client
    // Let responses to earlier complete requests finish; the broken request gets no more data.
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

  /** Idle between requests; during a request its own limits apply. */
  private endIdle(socket: Socket): void {
    if (!this.connections.get(socket)?.client.current) socket.destroy()
  }
}

/** RFC 9112 §3.2: at most one Host field, and exactly one since HTTP/1.1. */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0')
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
