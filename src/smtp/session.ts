/**
 * One SMTP server session: sequencing, flushing of replies, timeouts, limits on errors.
 *
 * Created by `service.ts` per connection; I/O is in `server-connection.ts`, the protocol in `commands.ts` and `envelope.ts`. Nothing is
 * read while the receiver works. Replies to a pipelined group are sent together. Except for the greeting delay, timeouts are checked in
 * `tick`, which the service calls once a second. Logs never contain what was transmitted. Never throws; a bug in a receiver is answered
 * with 451 and logged.
 * Standards: RFC 5321 §3.1, §3.8, §4.5.3.2; RFC 2920 §3.2.
 *
 * ```
 * handshake (implicit TLS) -> greeting (delay, receiver.connect) -> commands and messages -> over
 *                             commands -> handshake (STARTTLS) -> commands
 * over: the last reply was sent; further input is dropped
 * ```
 */
import { AppError, describeError } from '../core/errors.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { AdmittedConnection } from '../world/net/admission.js'
import type { Socket, TcpServer } from '../world/net/listen-tcp.js'
import type { Log } from '../world/log.js'
import type { LogEvent } from '../world/log-events.js'
import { Commands, type CommandSession } from './commands.js'
import type { SessionRules } from './options.js'
import type { MailReceiver, SessionFacts } from './receiver.js'
import { refusalReply, REPLY } from './reply.js'
import { ServerConnection, type ConnectionOwner } from './server-connection.js'

/** Shared by all sessions of a service. */
export interface SessionContext<Identity> {
  readonly rules: SessionRules
  /** Of clients recognised by `connect`. */
  readonly knownClientRules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly clock: Clock
  readonly log: Log
  readonly tcpServer: TcpServer
  readonly onAccepted?: ((ms: number) => void) | undefined
  /** Called once per session, when its connection is closed. */
  readonly onClosed: (session: Session<Identity>) => void
}

/** Time for the client to close after the last reply. */
const LINGER_MS = 5_000
/** A TLS handshake takes a few round trips, even on slow clients. */
const HANDSHAKE_MS = 60_000
/** Time for the client to read its replies; until then nothing more is read from it. */
const UNREAD_REPLIES_MS = 60_000

export class Session<Identity> implements ConnectionOwner, CommandSession<Identity>, AdmittedConnection {
  rules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly facts: { -readonly [K in keyof SessionFacts]: SessionFacts[K] }
  identity: Identity | undefined
  isOver = false
  private readonly context: SessionContext<Identity>
  private readonly connection: ServerConnection
  private readonly commands: Commands<Identity>
  /** Result of `connect`, restored after STARTTLS. */
  private networkIdentity: Identity | undefined
  /** Also set while the greeting is delayed. */
  private isReceiverBusy = false
  private isGreeting = true
  private greetingDelay: Timer | undefined
  private isInHandshake = false
  private isStopping = false
  private errors = 0
  private refusals = 0
  /** Monotonic. */
  private deadline: number
  /** Since when the client has been idle; monotonic. */
  private idleSince: number
  private readonly openedAt: number
  private readonly sessionDeadline: number
  private endedBy = 'client'

  constructor(id: string, socket: Socket, peerAddress: string, surroundings: SessionContext<Identity>) {
    this.context = surroundings
    this.rules = surroundings.rules
    this.receiver = surroundings.receiver
    this.facts = { id, peerAddress, peerPort: socket.remotePort ?? 0, heloName: '', isEsmtp: false }
    const now = surroundings.clock.monotonic()
    this.deadline = now + this.rules.timeouts.commandMs
    this.idleSince = this.openedAt = now
    this.sessionDeadline = now + this.rules.timeouts.sessionMs
    this.connection = new ServerConnection(socket, this)
    this.commands = new Commands<Identity>(this, () => this.countError())
  }

  start(isImplicitTls: boolean): void {
    if (isImplicitTls) this.startTls()
    else this.greet()
  }

  /** @param now monotonic @param isUnderPressure whether most sessions are in use */
  tick(now: number, isPressed = false): void {
    if (this.isOver || this.isInHandshake) {
      const isOverdue =
        isPressed && !this.isOver && now - this.openedAt >= this.rules.timeouts.pressureProbationMs
      if (now >= this.deadline || isOverdue) this.connection.destroy()
    } else if (isPressed && this.isReplaceable(now)) {
      this.close(REPLY.busy, 'pressure')
    } else if (this.isReceiverBusy) {
      return // the client is waiting for us
    } else if (now >= this.deadline) {
      this.close(REPLY.timeout, 'timeout')
    } else if (now >= this.sessionDeadline) {
      this.close(REPLY.sessionTimeout, 'session time')
    }
  }

  private isReplaceable(now: number): boolean {
    if (this.isReceiverBusy && !this.isGreeting) return false // the client is waiting for us
    const { timeouts, isAuthRequired } = this.rules
    // Authenticated clients keep their connection. Where AUTH is not required, a client proves itself by an accepted message.
    if (isAuthRequired && this.identity !== undefined) return false
    if (now - this.idleSince >= timeouts.pressureIdleMs) return true
    const isProven = !isAuthRequired && this.commands.envelope.acceptedCount > 0
    return !isProven && now - this.openedAt >= timeouts.pressureProbationMs
  }

  /** See `AdmittedConnection`. Authenticated clients count as working; where AUTH is not required, an accepted message counts. */
  get activity(): AdmittedConnection['activity'] {
    const isBusy = this.isReceiverBusy && !this.isGreeting && !this.isOver
    if (isBusy || (this.rules.isAuthRequired && this.identity !== undefined)) return 'working'
    const { isInMessage, acceptedCount } = this.commands.envelope
    return isInMessage || (!this.rules.isAuthRequired && acceptedCount > 0) ? 'sending' : 'silent'
  }

  get activeSince(): number {
    return this.idleSince
  }

  /** Closes the session to make room for another client. */
  evict(): void {
    if (this.isOver || this.isInHandshake) this.cut()
    else this.close(REPLY.busy, 'pressure')
  }

  /** Shutdown: ends the session, after the message in progress if there is one. */
  stop(): void {
    this.isStopping = true
    if (this.isInHandshake) this.cut()
    else if (this.isGreeting) this.close(REPLY.shuttingDown, 'shutdown')
    else this.process()
  }

  cut(): void {
    this.connection.destroy()
  }

  get hasInput(): boolean {
    return this.connection.hasInput
  }

  get hasUnread(): boolean {
    return this.connection.hasUnread
  }

  reply(line: string): void {
    this.connection.send(line)
  }

  refusal(
    thrown: unknown,
    event: LogEvent<'info'> = 'mail refused',
  ): { readonly line: string; readonly closes: boolean } {
    // `unavailable` was already logged where it was detected.
    if (thrown instanceof AppError && thrown.cause !== undefined && thrown.code !== 'unavailable')
      this.logFault(thrown.cause)
    const refusal = refusalReply(thrown)
    if (refusal) {
      this.logRefusal(event, refusal.line)
      return refusal
    }
    this.logFault(thrown)
    return { line: REPLY.internalError, closes: false }
  }

  countRefusal(): void {
    this.refusals += 1
    if (this.refusals >= this.rules.limits.refusals) this.close(REPLY.tooManyErrors, 'too many errors')
  }

  close(line: string, by = this.endedBy): void {
    if (this.isOver) return
    this.endedBy = by
    this.connection.send(line)
    this.end()
  }

  startAcceptTimer(): () => void {
    const { clock, onAccepted } = this.context
    if (!onAccepted) return () => {}
    const since = clock.monotonic()
    return () => onAccepted(clock.monotonic() - since)
  }

  callReceiver<T>(
    work: () => Promise<T> | T,
    then: (value: T) => void,
    otherwise: (thrown: unknown) => void,
  ): void {
    let result: Promise<T> | T
    try {
      result = work()
    } catch (thrown) {
      otherwise(thrown)
      return
    }
    if (!(result instanceof Promise)) {
      then(result)
      return
    }
    this.isReceiverBusy = true
    result.then(
      value => this.resume(() => then(value)),
      (thrown: unknown) => this.resume(() => otherwise(thrown)),
    )
  }

  startTls(): void {
    const { secureContext } = this.rules
    if (!secureContext) {
      this.cut()
      return
    }
    this.commands.restart()
    this.identity = this.networkIdentity
    this.isInHandshake = true
    this.restartTimeout()
    this.connection.secure(this.context.tcpServer, secureContext(), ({ version, cipher }) => {
      this.isInHandshake = false
      this.facts.tls = { version, cipher }
      this.restartTimeout()
      if (this.isGreeting) this.greet()
      this.process()
    })
  }

  warn(event: LogEvent<'warn'>): void {
    this.context.log.warn(event, { session: this.facts.id, peer: this.facts.peerAddress })
  }

  onInput(): void {
    if (this.isOver) return
    if (this.isGreeting && this.rules.greetingDelayMs > 0 && this.connection.hasInput) {
      this.warn('smtp client spoke before the greeting')
      this.close(REPLY.earlyTalker, 'refusal')
      return
    }
    this.process()
    this.restartTimeout()
  }

  onClosed(): void {
    if (this.commands.envelope.isReceiving) this.endedBy = 'lost connection'
    this.isOver = true
    this.greetingDelay?.cancel()
    this.resetMessage()
    this.context.onClosed(this)
    this.context.log.debug('smtp session ended', {
      session: this.facts.id,
      peer: this.facts.peerAddress,
      helo: this.facts.heloName,
      tls: this.facts.tls?.version,
      messages: this.commands.envelope.acceptedCount,
      errors: this.errors,
      by: this.endedBy,
    })
  }

  /** Consumes as much input as possible and sends the replies. */
  private process(): void {
    const { connection, commands } = this
    while (!this.isReceiverBusy && !this.isOver && !this.isInHandshake && connection.isWritable) {
      if (this.isStopping && !commands.envelope.isInMessage) {
        this.close(REPLY.shuttingDown, 'shutdown')
      } else if (commands.envelope.isReceiving) {
        if (!connection.hasInput) break
        connection.at = commands.envelope.receive(connection.input, connection.at)
      } else {
        const line = connection.readLine(commands.maxLine)
        if (line === undefined) break
        this.handleLine(line)
      }
    }
    if (this.isOver) return
    // Replies are held back for the rest of a pipelined group, unless no more input is buffered.
    if (!this.isReceiverBusy || !connection.hasInput) connection.flush()
    if (this.isReceiverBusy || this.isInHandshake || !connection.isWritable) return
    if (connection.hasPeerEnded) this.end()
    else connection.resume()
  }

  private handleLine(line: string): void {
    const { lineFault } = this.connection
    const fault =
      lineFault === undefined ? this.commands.handleLine(line) : this.commands.handleLineFault(lineFault)
    if (fault === undefined) return
    this.connection.send(fault)
    this.countError()
  }

  private resume(then: () => void): void {
    this.isReceiverBusy = false
    then()
    if (this.isOver) this.resetMessage()
    this.restartTimeout()
    this.process()
  }

  private greet(): void {
    const { greetingDelayMs } = this.rules
    if (greetingDelayMs === 0) {
      this.sendGreeting()
      return
    }
    this.isReceiverBusy = true
    this.greetingDelay = this.context.clock.after(greetingDelayMs, () =>
      this.resume(() => this.sendGreeting()),
    )
  }

  private sendGreeting(): void {
    const { receiver } = this
    this.callReceiver(
      () => receiver.connect?.(this.facts),
      identity => {
        this.identity = this.networkIdentity = identity
        if (identity !== undefined) this.rules = this.context.knownClientRules
        this.isGreeting = false
        this.reply(this.rules.greeting)
        this.connection.flush()
      },
      thrown => this.close(this.refusal(thrown).line, 'refusal'),
    )
  }

  private countError(): void {
    this.errors += 1
    if (this.errors >= this.rules.limits.errors) this.close(REPLY.tooManyErrors, 'too many errors')
  }

  private end(): void {
    this.isOver = true
    this.greetingDelay?.cancel()
    this.resetMessage()
    this.deadline = this.context.clock.monotonic() + LINGER_MS
    this.connection.end()
  }

  /** A busy receiver is reset once it is done. */
  private resetMessage(): void {
    if (!this.isReceiverBusy) this.commands.envelope.reset()
  }

  private restartTimeout(): void {
    if (this.isOver) return
    const { commandMs, dataBlockMs } = this.rules.timeouts
    const isReceiving = this.commands.envelope.isReceiving
    let patienceMs = isReceiving ? dataBlockMs : commandMs
    if (this.isInHandshake) patienceMs = Math.min(patienceMs, HANDSHAKE_MS)
    if (!this.connection.isWritable) patienceMs = Math.min(patienceMs, UNREAD_REPLIES_MS)
    this.idleSince = this.context.clock.monotonic()
    this.deadline = this.idleSince + patienceMs
  }

  private logRefusal(event: LogEvent<'info'>, reply: string): void {
    const { receiver, identity, facts, commands } = this
    this.context.log.info(event, {
      session: facts.id,
      peer: facts.peerAddress,
      keyId: identity === undefined ? undefined : receiver.keyIdOf?.(identity),
      ...commands.envelope.lastAddresses,
      reply: reply.trimEnd(),
    })
  }

  private logFault(thrown: unknown): void {
    const error = describeError(thrown)
    this.context.log.error('smtp receiver failed', { session: this.facts.id, error })
  }
}
