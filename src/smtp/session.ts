/**
 * One SMTP session as a server, from the connection to its end: whose turn it is, when replies leave, how long to wait.
 *
 * Made by `service.ts` for each connection. Speaks through `server-connection.ts`; `commands.ts` and `envelope.ts` know
 * what is said. While a receiver works nothing more is read; replies to a pipelined group leave together. Makes no timer
 * of its own but the greeting's: the service calls `tick` once a second. Never logs what was said, only how it went.
 * Standards: RFC 5321 §3.1, §3.8, §4.5.3.2; RFC 2920 §3.2. Fails: never throws; a receiver's fault is answered and logged.
 *
 * ```
 * handshake (implicit TLS) -> greeting (a delay, the receiver's word) -> lines and messages -> over
 *                             lines -> handshake (STARTTLS) -> lines
 * over: the last reply is on its way, what still comes is dropped
 * ```
 */
import { AppError, describeError } from '../core/errors.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Guest } from '../world/net/admission.js'
import type { Socket, TcpServer } from '../world/net/listen-tcp.js'
import type { Log } from '../world/log.js'
import type { LogEvent } from '../world/log-events.js'
import { Commands, type CommandSession } from './commands.js'
import type { SessionRules } from './options.js'
import type { MailReceiver, SessionFacts } from './receiver.js'
import { refusalReply, REPLY } from './reply.js'
import { ServerConnection, type ConnectionOwner } from './server-connection.js'

/** What every session of a service shares. */
export interface SessionSurroundings<Identity> {
  readonly rules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly clock: Clock
  readonly log: Log
  readonly tcpServer: TcpServer
  readonly onTaken?: ((ms: number) => void) | undefined
  /** Called once by each session, when its connection is gone. */
  readonly onGone: (session: Session<Identity>) => void
}

/** How long the client has, after the last reply, to close. */
const LINGER_MS = 5_000
/** A TLS handshake takes a few round trips, however slow the client's machine. */
const HANDSHAKE_MS = 60_000
/** For a client to read the replies it has; until then nothing more of it is taken. */
const UNREAD_MS = 60_000

export class Session<Identity> implements ConnectionOwner, CommandSession<Identity>, Guest {
  readonly rules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly facts: { -readonly [K in keyof SessionFacts]: SessionFacts[K] }
  identity: Identity | undefined
  isOver = false
  private readonly surroundings: SessionSurroundings<Identity>
  private readonly connection: ServerConnection
  private readonly commands: Commands<Identity>
  /** What `connect` gave, kept when TLS starts the session anew. */
  private networkIdentity: Identity | undefined
  /** A receiver works, or the greeting is not due yet. */
  private isWaiting = false
  private isGreeting = true
  private greetingDelay: Timer | undefined
  private isInHandshake = false
  private isStopping = false
  private errors = 0
  private refusals = 0
  /** Of the monotonic clock. */
  private deadline: number
  /** When the client was waited for last; of the monotonic clock. */
  private awaitedSince: number
  private readonly openedAt: number
  private readonly lastMoment: number
  private endedBy = 'client'

  constructor(id: string, socket: Socket, peerAddress: string, surroundings: SessionSurroundings<Identity>) {
    this.surroundings = surroundings
    this.rules = surroundings.rules
    this.receiver = surroundings.receiver
    this.facts = { id, peerAddress, peerPort: socket.remotePort ?? 0, heloName: '', isEsmtp: false }
    const now = surroundings.clock.monotonic()
    this.deadline = now + this.rules.timeouts.commandMs
    this.awaitedSince = this.openedAt = now
    this.lastMoment = now + this.rules.timeouts.sessionMs
    this.connection = new ServerConnection(socket, this)
    this.commands = new Commands<Identity>(this, () => this.countError())
  }

  start(isImplicitTls: boolean): void {
    if (isImplicitTls) this.startTls()
    else this.greet()
  }

  /** @param now of the monotonic clock @param isPressed there are many sessions, and others want one */
  tick(now: number, isPressed = false): void {
    if (this.isOver || this.isInHandshake) {
      const isOverdue = isPressed && !this.isOver && now - this.openedAt >= this.rules.timeouts.unprovenMs
      if (now >= this.deadline || isOverdue) this.connection.destroy()
    } else if (isPressed && this.isHoldingUp(now)) {
      this.close(REPLY.busy, 'pressure')
    } else if (this.isWaiting) {
      return // the client waits for us
    } else if (now >= this.deadline) {
      this.close(REPLY.timeout, 'timeout')
    } else if (now >= this.lastMoment) {
      this.close(REPLY.sessionTimeout, 'session time')
    }
  }

  /** Whether it does so little that its place is given to others. */
  private isHoldingUp(now: number): boolean {
    if (this.isWaiting && !this.isGreeting) return false // the client waits for us
    const { timeouts, isAuthRequired } = this.rules
    // Who has logged in is known, and keeps his connection; where nobody does, a message is all that tells of a client.
    if (isAuthRequired && this.identity !== undefined) return false
    if (now - this.awaitedSince >= timeouts.pressedSilenceMs) return true
    const isProven = !isAuthRequired && this.commands.envelope.taken > 0
    return !isProven && now - this.openedAt >= timeouts.unprovenMs
  }

  /** See `Guest`. Who has logged in is known; where nobody does, a message is all that tells of a client. */
  get activity(): Guest['activity'] {
    const isBusy = this.isWaiting && !this.isGreeting && !this.isOver
    if (isBusy || (this.rules.isAuthRequired && this.identity !== undefined)) return 'working'
    const { isInMessage, taken } = this.commands.envelope
    return isInMessage || (!this.rules.isAuthRequired && taken > 0) ? 'sending' : 'silent'
  }

  get activeSince(): number {
    return this.awaitedSince
  }

  /** Another client needs the place. */
  giveWay(): void {
    if (this.isOver || this.isInHandshake) this.cut()
    else this.close(REPLY.busy, 'pressure')
  }

  /** The server stops: the session ends at once, or when the message under way is done. */
  stop(): void {
    this.isStopping = true
    if (this.isInHandshake) this.cut()
    else if (this.isGreeting) this.close(REPLY.shuttingDown, 'shutdown')
    else this.run()
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
    // What is unavailable is known already, and told by whoever found it.
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

  beginTaking(): () => void {
    const { clock, onTaken } = this.surroundings
    if (!onTaken) return () => {}
    const since = clock.monotonic()
    return () => onTaken(clock.monotonic() - since)
  }

  settle<T>(
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
    this.isWaiting = true
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
    this.awaitClient()
    this.connection.secure(this.surroundings.tcpServer, secureContext(), ({ version, cipher }) => {
      this.isInHandshake = false
      this.facts.tls = { version, cipher }
      this.awaitClient()
      if (this.isGreeting) this.greet()
      this.run()
    })
  }

  warn(event: LogEvent<'warn'>): void {
    this.surroundings.log.warn(event, { session: this.facts.id, peer: this.facts.peerAddress })
  }

  onInput(): void {
    if (this.isOver) return
    if (this.isGreeting && this.rules.greetingDelayMs > 0 && this.connection.hasInput) {
      this.warn('smtp client spoke before the greeting')
      this.close(REPLY.earlyTalker, 'refusal')
      return
    }
    this.run()
    this.awaitClient()
  }

  onLost(): void {
    if (this.commands.envelope.isReceiving) this.endedBy = 'lost connection'
    this.isOver = true
    this.greetingDelay?.cancel()
    this.forgetMessage()
    this.surroundings.onGone(this)
    this.surroundings.log.debug('smtp session ended', {
      session: this.facts.id,
      peer: this.facts.peerAddress,
      helo: this.facts.heloName,
      tls: this.facts.tls?.version,
      messages: this.commands.envelope.taken,
      errors: this.errors,
      by: this.endedBy,
    })
  }

  /** Takes all that can be taken now, and says all that can be said. */
  private run(): void {
    const { connection, commands } = this
    while (!this.isWaiting && !this.isOver && !this.isInHandshake && connection.isClear) {
      if (this.isStopping && !commands.envelope.isInMessage) {
        this.close(REPLY.shuttingDown, 'shutdown')
      } else if (commands.envelope.isReceiving) {
        if (!connection.hasInput) break
        connection.at = commands.envelope.take(connection.input, connection.at)
      } else {
        const line = connection.readLine(commands.maxLine)
        if (line === undefined) break
        this.takeLine(line)
      }
    }
    if (this.isOver) return
    // Replies wait for the rest of their group, unless nothing more of it is here.
    if (!this.isWaiting || !connection.hasInput) connection.flush()
    if (this.isWaiting || this.isInHandshake || !connection.isClear) return
    if (connection.hasPeerEnded) this.end()
    else connection.readOn()
  }

  private takeLine(line: string): void {
    const { lineFault } = this.connection
    const fault = lineFault === undefined ? this.commands.take(line) : this.commands.takeFault(lineFault)
    if (fault === undefined) return
    this.connection.send(fault)
    this.countError()
  }

  private resume(then: () => void): void {
    this.isWaiting = false
    then()
    if (this.isOver) this.forgetMessage()
    this.awaitClient()
    this.run()
  }

  private greet(): void {
    const { greetingDelayMs } = this.rules
    if (greetingDelayMs === 0) {
      this.welcome()
      return
    }
    this.isWaiting = true
    this.greetingDelay = this.surroundings.clock.after(greetingDelayMs, () =>
      this.resume(() => this.welcome()),
    )
  }

  private welcome(): void {
    const { receiver } = this
    this.settle(
      () => receiver.connect?.(this.facts),
      identity => {
        this.identity = this.networkIdentity = identity
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
    this.forgetMessage()
    this.deadline = this.surroundings.clock.monotonic() + LINGER_MS
    this.connection.end()
  }

  /** A receiver at work hears of it when it is done. */
  private forgetMessage(): void {
    if (!this.isWaiting) this.commands.envelope.reset()
  }

  /** From now on it is the client's turn. */
  private awaitClient(): void {
    if (this.isOver) return
    const { commandMs, dataBlockMs } = this.rules.timeouts
    const isReceiving = this.commands.envelope.isReceiving
    let patienceMs = isReceiving ? dataBlockMs : commandMs
    if (this.isInHandshake) patienceMs = Math.min(patienceMs, HANDSHAKE_MS)
    if (!this.connection.isClear) patienceMs = Math.min(patienceMs, UNREAD_MS)
    this.awaitedSince = this.surroundings.clock.monotonic()
    this.deadline = this.awaitedSince + patienceMs
  }

  private logRefusal(event: LogEvent<'info'>, reply: string): void {
    const { receiver, identity, facts, commands } = this
    this.surroundings.log.info(event, {
      session: facts.id,
      peer: facts.peerAddress,
      keyId: identity === undefined ? undefined : receiver.keyIdOf?.(identity),
      ...commands.envelope.asked,
      reply: reply.trimEnd(),
    })
  }

  private logFault(thrown: unknown): void {
    const error = describeError(thrown)
    this.surroundings.log.error('smtp receiver failed', { session: this.facts.id, error })
  }
}
