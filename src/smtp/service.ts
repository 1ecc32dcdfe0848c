/**
 * An SMTP service: listeners that share one receiver, one set of limits, and one clock beat for all their sessions.
 *
 * Opened by `msa/` (submission) and `inbound/`. Takes connections within the limits, watches over time limits once a
 * second, and stops without cutting off a message under way. Why not the `smtp-server` package: it waits 100 ms before each
 * greeting, passes bare LF on, does not hold a message to its size while it arrives, and knows no CHUNKING.
 * Fails: `listen` rejects with the address and the reason; nothing a client does is thrown from here.
 */
import type { Clock, Timer } from '../world/time/clock.js'
import type { ListenAddress } from '../world/net/listen.js'
import type { Socket, TcpListener, TcpServer } from '../world/net/listen-tcp.js'
import type { Log } from '../world/log.js'
import { Admission, type Refusal } from '../world/net/admission.js'
import { sessionRules, type SmtpServiceOptions } from './options.js'
import type { MailReceiver } from './receiver.js'
import { REPLY } from './reply.js'
import { Session, type SessionSurroundings } from './session.js'

/** What a service has had to do since it was opened. */
export interface SmtpCounts {
  /** Sessions now. */
  readonly sessions: number
  readonly opened: number
  /** Connections that were turned away at a limit. */
  readonly turnedAway: number
}

export interface SmtpServiceParts {
  readonly clock: Clock
  readonly log: Log
  readonly tcpServer: TcpServer
  /** For monitors: told of each message that was taken. @param ms from its last octet to the 250 */
  readonly onTaken?: ((ms: number) => void) | undefined
}

export interface SmtpService {
  /**
   * @param isImplicitTls TLS from the first octet (RFC 8314 §3); needs `secureContext`
   * @returns where it listens; tells the port when 0 was asked for
   * @throws Error naming the address
   */
  listen(address: ListenAddress, isImplicitTls?: boolean): Promise<ListenAddress>
  readonly sessionCount: number
  readonly counts: SmtpCounts
  /** Holds for connections from now on. */
  reconfigure(options: SmtpServiceOptions): void
  /**
   * Takes nothing new, tells idle clients 421, lets messages under way come to their end, and cuts what is left after
   * `graceMs`. Resolves when nobody is connected.
   */
  close(graceMs: number): Promise<void>
}

const BEAT_MS = 1_000
/** How long a client that is turned away has to read why, and how many of them are given that. */
const TURNED_AWAY_MS = 5_000
const MOST_TURNED_AWAY = 1_000

const TURNED_AWAY: Readonly<Record<Refusal, string>> = {
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
  private surroundings: SessionSurroundings<Identity>
  private readonly admission: Admission
  private readonly sessions = new Set<Session<Identity>>()
  /** Turned away, with the moment at which they are cut. */
  private readonly leaving = new Map<Socket, number>()
  private readonly listeners: TcpListener[] = []
  private beat: Timer | undefined
  /** Makes the ids of sessions differ from those before a restart. */
  private readonly started: string
  private opened = 0
  private refused = 0
  private isClosing = false
  private whenEmpty: () => void = () => {}

  constructor(options: SmtpServiceOptions, receiver: MailReceiver<Identity>, parts: SmtpServiceParts) {
    this.parts = parts
    this.started = Math.floor(parts.clock.now() / 1_000).toString(36)
    const rules = sessionRules(options, receiver.authenticate !== undefined)
    this.surroundings = { ...parts, rules, receiver, onGone: session => this.forget(session) }
    this.admission = new Admission(rules.limits, parts.clock)
  }

  get sessionCount(): number {
    return this.sessions.size
  }

  reconfigure(options: SmtpServiceOptions): void {
    const { receiver } = this.surroundings
    const rules = sessionRules(options, receiver.authenticate !== undefined)
    // Another object: sessions that are open go on with theirs.
    this.surroundings = { ...this.surroundings, rules }
    this.admission.setLimits(rules.limits)
  }

  get counts(): SmtpCounts {
    return { sessions: this.sessions.size, opened: this.opened, turnedAway: this.refused }
  }

  async listen(address: ListenAddress, isImplicitTls = false): Promise<ListenAddress> {
    if (isImplicitTls && !this.surroundings.rules.secureContext)
      throw new Error('a listener with TLS needs a certificate')
    const listener = await this.parts.tcpServer.listen(address, socket => this.take(socket, isImplicitTls))
    this.listeners.push(listener)
    return listener.address
  }

  async close(graceMs: number): Promise<void> {
    this.isClosing = true
    const closed = this.listeners.map(listener => listener.close())
    for (const socket of this.leaving.keys()) socket.destroy()
    const empty = new Promise<void>(resolve => {
      this.whenEmpty = resolve
    })
    for (const session of this.sessions) session.stop()
    if (this.sessions.size === 0) this.whenEmpty()
    const cut = this.parts.clock.after(graceMs, () => {
      for (const session of this.sessions) session.cut()
    })
    await empty
    cut.cancel()
    this.beat?.cancel()
    await Promise.all(closed)
  }

  private take(socket: Socket, isImplicitTls: boolean): void {
    const { remoteAddress } = socket
    if (remoteAddress === undefined || this.isClosing) {
      socket.on('error', () => {})
      socket.destroy() // gone already, or too late
      return
    }
    const peerAddress = remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress
    const refusal = this.admission.check(peerAddress)
    if (refusal !== undefined) {
      this.turnAway(socket, refusal, peerAddress, isImplicitTls)
      return
    }
    this.opened += 1
    const id = `${this.started}-${this.opened.toString(36)}`
    const session = new Session(id, socket, peerAddress, this.surroundings)
    this.admission.admit(peerAddress, session)
    this.sessions.add(session)
    this.keepBeating()
    session.start(isImplicitTls)
  }

  private forget(session: Session<Identity>): void {
    this.sessions.delete(session)
    this.admission.leave(session)
    if (this.sessions.size === 0) this.whenEmpty()
  }

  private turnAway(socket: Socket, refusal: Refusal, peerAddress: string, isImplicitTls: boolean): void {
    this.refused += 1
    this.parts.log.debug('smtp connection turned away', { peer: peerAddress, why: refusal })
    socket.on('error', () => {})
    // In clear nobody would understand it who waits for TLS.
    if (isImplicitTls || this.leaving.size >= MOST_TURNED_AWAY) {
      socket.destroy()
      return
    }
    this.leaving.set(socket, this.parts.clock.monotonic() + TURNED_AWAY_MS)
    this.keepBeating()
    socket.on('close', () => this.leaving.delete(socket))
    socket.end(TURNED_AWAY[refusal], 'latin1')
    socket.resume()
  }

  private keepBeating(): void {
    this.beat ??= this.parts.clock.after(BEAT_MS, () => this.onBeat())
  }

  private onBeat(): void {
    this.beat = undefined
    const now = this.parts.clock.monotonic()
    const isPressed = this.admission.isUnderPressure
    for (const session of this.sessions) session.tick(now, isPressed)
    for (const [socket, moment] of this.leaving) if (now >= moment) socket.destroy()
    if (this.sessions.size > 0 || this.leaving.size > 0) this.keepBeating()
  }
}
