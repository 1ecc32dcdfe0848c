/**
 * An SMTP service: listeners that share a receiver, limits and a one-second timer.
 *
 * Accepts connections within the limits, enforces timeouts, and on shutdown lets messages in progress finish. `listen` rejects with the
 * address and reason; errors caused by clients never propagate. The `smtp-server` package is not used: it delays each greeting by 100 ms,
 * passes on bare LF, does not enforce the size while a message arrives, and lacks CHUNKING.
 */
import type { Clock, Timer } from '../world/time/clock.js'
import type { ListenAddress } from '../world/net/listen.js'
import type { Socket, TcpListener, TcpServer } from '../world/net/listen-tcp.js'
import type { Log } from '../world/log.js'
import type { ProxyProtocol } from '../world/net/proxy-protocol.js'
import { Admission, type Refusal } from '../world/net/admission.js'
import { sessionRules, type SmtpServiceOptions } from './options.js'
import type { MailReceiver } from './receiver.js'
import { REPLY } from './reply.js'
import { Session, type SessionContext } from './session.js'

export interface SmtpCounts {
  readonly sessions: number
  readonly opened: number
  /** Connections rejected because of a limit. */
  readonly rejected: number
}

interface SmtpServiceParts {
  readonly clock: Clock
  readonly log: Log
  readonly tcpServer: TcpServer
  /** Reads the headers of load balancers. */
  readonly proxyProtocol?: ProxyProtocol | undefined
  /** For metrics: called for each accepted message. @param ms from the final octet to the 250 reply */
  readonly onAccepted?: ((ms: number) => void) | undefined
}

export interface SmtpService {
  /**
   * @param isImplicitTls implicit TLS (RFC 8314 §3); needs `secureContext`
   * @returns the listening address, with the actual port if 0 was given
   * @throws Error naming the address
   */
  listen(address: ListenAddress, isImplicitTls?: boolean): Promise<ListenAddress>
  readonly sessionCount: number
  readonly counts: SmtpCounts
  /** Applies to new connections. */
  reconfigure(options: SmtpServiceOptions): void
  /**
   * Stops accepting, sends 421 to idle clients, waits for messages in progress, and closes the rest after `graceMs`. Resolves when all
   * sessions have ended.
   */
  close(graceMs: number): Promise<void>
}

const TICK_MS = 1_000
/** Rejected clients get this long to read the reply, up to this many at a time. */
const REJECTED_MS = 5_000
const MAX_REJECTED = 1_000

const REJECTION_REPLIES: Readonly<Record<Refusal, string>> = {
  sessions: REPLY.tooManySessions,
  'sessions-per-address': REPLY.tooManyFromAddress,
  'connections-per-minute': REPLY.tooManyFromAddress,
}

export function openSmtpService<Identity>(
  options: SmtpServiceOptions,
  receiver: MailReceiver<Identity>,
  parts: SmtpServiceParts,
): SmtpService {
  return new Service(options, receiver, parts)
}

class Service<Identity> implements SmtpService {
  private readonly parts: SmtpServiceParts
  private context: SessionContext<Identity>
  private readonly admission: Admission
  private readonly sessions = new Set<Session<Identity>>()
  private readonly rejected = new Map<Socket, number>()
  private readonly listeners: TcpListener[] = []
  private ticker: Timer | undefined
  /** Makes session ids unique across restarts. */
  private readonly started: string
  private openedCount = 0
  private rejectedCount = 0
  private isClosing = false
  private onEmpty: () => void = () => {}

  constructor(options: SmtpServiceOptions, receiver: MailReceiver<Identity>, parts: SmtpServiceParts) {
    this.parts = parts
    this.started = Math.floor(parts.clock.now() / 1_000).toString(36)
    const { rules, knownClientRules } = sessionRules(options, receiver.authenticate !== undefined)
    this.context = { ...parts, rules, knownClientRules, receiver, onClosed: session => this.remove(session) }
    this.admission = new Admission(rules.limits, parts.clock)
  }

  get sessionCount(): number {
    return this.sessions.size
  }

  reconfigure(options: SmtpServiceOptions): void {
    const { receiver } = this.context
    const next = sessionRules(options, receiver.authenticate !== undefined)
    // A new object: existing sessions keep their options.
    this.context = { ...this.context, ...next }
    this.admission.setLimits(next.rules.limits)
  }

  get counts(): SmtpCounts {
    return { sessions: this.sessions.size, opened: this.openedCount, rejected: this.rejectedCount }
  }

  async listen(address: ListenAddress, isImplicitTls = false): Promise<ListenAddress> {
    if (isImplicitTls && !this.context.rules.secureContext)
      throw new Error('a listener with implicit TLS needs a certificate')
    const { tcpServer, proxyProtocol } = this.parts
    const onConnection = (socket: Socket) => this.accept(socket, isImplicitTls)
    const listener = await tcpServer.listen(address, onConnection, proxyProtocol)
    this.listeners.push(listener)
    return listener.address
  }

  async close(graceMs: number): Promise<void> {
    this.isClosing = true
    const closed = this.listeners.map(listener => listener.close())
    for (const socket of this.rejected.keys()) socket.destroy()
    const empty = new Promise<void>(resolve => {
      this.onEmpty = resolve
    })
    for (const session of this.sessions) session.stop()
    if (this.sessions.size === 0) this.onEmpty()
    const cut = this.parts.clock.after(graceMs, () => {
      for (const session of this.sessions) session.cut()
    })
    await empty
    cut.cancel()
    this.ticker?.cancel()
    await Promise.all(closed)
  }

  private accept(socket: Socket, isImplicitTls: boolean): void {
    const { remoteAddress } = socket
    if (remoteAddress === undefined || this.isClosing) {
      socket.on('error', () => {})
      socket.destroy() // gone already, or too late
      return
    }
    const peerAddress = remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress
    const refusal = this.admission.check(peerAddress)
    if (refusal !== undefined) {
      this.reject(socket, refusal, peerAddress, isImplicitTls)
      return
    }
    this.openedCount += 1
    const id = `${this.started}-${this.openedCount.toString(36)}`
    const session = new Session(id, socket, peerAddress, this.context)
    this.admission.admit(peerAddress, session)
    this.sessions.add(session)
    this.scheduleTick()
    session.start(isImplicitTls)
  }

  private remove(session: Session<Identity>): void {
    this.sessions.delete(session)
    this.admission.leave(session)
    if (this.sessions.size === 0) this.onEmpty()
  }

  private reject(socket: Socket, refusal: Refusal, peerAddress: string, isImplicitTls: boolean): void {
    this.rejectedCount += 1
    this.parts.log.debug('smtp connection turned away', { peer: peerAddress, why: refusal })
    socket.on('error', () => {})
    // A client that expects TLS could not read a plaintext reply.
    if (isImplicitTls || this.rejected.size >= MAX_REJECTED) {
      socket.destroy()
      return
    }
    this.rejected.set(socket, this.parts.clock.monotonic() + REJECTED_MS)
    this.scheduleTick()
    socket.on('close', () => this.rejected.delete(socket))
    socket.end(REJECTION_REPLIES[refusal], 'latin1')
    socket.resume()
  }

  private scheduleTick(): void {
    this.ticker ??= this.parts.clock.after(TICK_MS, () => this.tick())
  }

  private tick(): void {
    this.ticker = undefined
    const now = this.parts.clock.monotonic()
    const isPressed = this.admission.isUnderPressure
    for (const session of this.sessions) session.tick(now, isPressed)
    for (const [socket, moment] of this.rejected) if (now >= moment) socket.destroy()
    if (this.sessions.size > 0 || this.rejected.size > 0) this.scheduleTick()
  }
}
