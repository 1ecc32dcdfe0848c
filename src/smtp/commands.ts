/**
 * SMTP commands and the order in which they are allowed.
 *
 * `session.ts` passes every line that is not message data. A client error is the returned reply, which the session sends and counts; all
 * other replies are sent from here. Standards: RFC 5321 §4.1, §4.1.4, RFC 2920 §3.1, RFC 3207, RFC 4954.
 *
 * ```
 * no name yet   EHLO, HELO -> named
 * named         MAIL and the rest: envelope.ts         AUTH -> challenge -> response -> named
 * any           STARTTLS -> handshake -> no name yet, not authenticated
 * ```
 */
import { isUtf8 } from 'node:buffer'
import type { LogEvent } from '../world/log-events.js'
import { Envelope, type EnvelopeSession } from './envelope.js'
import type { ParameterRules } from './mail-command.js'
import type { SessionFacts } from './receiver.js'
import { REPLY } from './reply.js'
import type { LineFault } from './server-connection.js'

/** The session, as commands see it. */
export interface CommandSession<Identity> extends EnvelopeSession<Identity> {
  readonly facts: { -readonly [K in keyof SessionFacts]: SessionFacts[K] }
  identity: Identity | undefined
  /** As `hasInput`, including data still in the socket. */
  readonly hasUnread: boolean
  startTls(): void
  warn(event: LogEvent<'warn'>): void
}

/** RFC 4954 §4: a line of an AUTH exchange. */
const MAX_AUTH_LINE = 12_288
/** NOOP, RSET, EHLO and the like since the last message; each one beyond this counts as an error. */
const MAX_IDLE_COMMANDS = 100
const MAX_HELO = 255

/** A browser tricked into talking to this port; its next line could be an SMTP command. */
const HTTP =
  /^(?:(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|CONNECT|PATCH|TRACE|PRI) |(?:Host|User-Agent|Content-[A-Z]+): )/i

export class Commands<Identity> {
  readonly envelope: Envelope<Identity>
  private readonly session: CommandSession<Identity>
  private readonly countError: () => void
  private parameters: ParameterRules
  private isAuthenticated = false
  private authExchange: AuthExchange | undefined
  private idleCommands = 0

  /** @param countError called for replies that are not errors but count as such */
  constructor(session: CommandSession<Identity>, countError: () => void) {
    this.session = session
    this.countError = countError
    this.envelope = new Envelope<Identity>(session)
    this.parameters = session.rules.parameters.helo
  }

  /** Maximum length of the next line in octets, CRLF included. */
  get maxLine(): number {
    return this.authExchange ? MAX_AUTH_LINE : this.session.rules.limits.commandLine
  }

  /** RFC 3207 §4.2: after STARTTLS the session starts over. */
  restart(): void {
    const { session } = this
    this.envelope.reset()
    session.facts.heloName = ''
    session.facts.isEsmtp = false
    this.parameters = session.rules.parameters.helo
    this.isAuthenticated = false
  }

  /** A line without its CRLF. @returns the reply to a client error */
  handleLine(line: string): string | undefined {
    if (this.authExchange) return this.handleAuthStep(this.authExchange.respond(line))
    const space = line.indexOf(' ')
    const verb = space < 0 ? line : line.slice(0, space)
    return this.command(verb.toUpperCase(), space < 0 ? '' : line.slice(space + 1), line)
  }

  /** @returns the reply to a malformed line */
  handleLineFault(lineFault: LineFault): string | undefined {
    const wasLogin = this.authExchange !== undefined
    this.authExchange = undefined
    switch (lineFault) {
      case 'endless':
        this.session.close(REPLY.lineTooLong)
        return undefined
      case 'too long':
        return wasLogin ? REPLY.authTooLong : REPLY.lineTooLong
      case 'malformed':
        return wasLogin ? REPLY.authMalformed : REPLY.malformedLine
    }
  }

  private command(verb: string, argument: string, line: string): string | undefined {
    switch (verb) {
      case 'MAIL':
        return this.mail(argument)
      case 'RCPT':
        return /^TO:/i.test(argument)
          ? this.envelope.rcpt(argument.slice(3), this.parameters)
          : REPLY.needsArgument
      case 'DATA':
        this.idleCommands = 0
        return argument === '' ? this.envelope.data() : REPLY.noArgument
      case 'BDAT':
        return this.bdat(argument)
      case 'EHLO':
      case 'HELO':
        return this.hello(verb === 'EHLO', argument.trim())
      case 'RSET':
        if (argument !== '') return REPLY.noArgument
        this.envelope.reset()
        return this.replyIdle(REPLY.ok)
      case 'NOOP':
        return this.replyIdle(REPLY.ok)
      case 'QUIT':
        if (argument !== '') return REPLY.noArgument
        this.session.close(REPLY.goodbye)
        return undefined
      case 'VRFY':
        return argument === '' ? REPLY.needsArgument : this.replyIdle(REPLY.cannotVerify)
      case 'HELP':
        return this.replyIdle(REPLY.help)
      case 'STARTTLS':
        return this.startTls(argument)
      case 'AUTH':
        return this.auth(argument)
      case 'EXPN':
      case 'ETRN':
      case 'TURN':
      case 'ATRN':
      case 'SEND':
      case 'SOML':
      case 'SAML':
        return REPLY.notImplemented
      default:
        if (!HTTP.test(line)) return REPLY.unknownCommand
        this.session.warn('smtp client speaks HTTP')
        this.session.close(REPLY.noWebServer)
        return undefined
    }
  }

  private hello(isEsmtp: boolean, name: string): string | undefined {
    const { session } = this
    if (session.hasInput) {
      // RFC 2920 §3.1: EHLO ends a pipelined group, since extensions are not known before its reply.
      session.close(REPLY.unsynchronized)
      return undefined
    }
    if (name === '' || name.length > MAX_HELO || name.includes(' ')) return REPLY.needsArgument
    this.envelope.reset()
    // The name is written into Received fields; machine names that are not valid host names stay readable.
    session.facts.heloName = name.replace(/[^\w.:[\]-]/g, '?')
    session.facts.isEsmtp = isEsmtp
    const { rules } = session
    this.parameters = isEsmtp ? rules.parameters.ehlo : rules.parameters.helo
    return this.replyIdle(
      isEsmtp
        ? rules.ehlo(session.facts.tls !== undefined, this.isAuthenticated)
        : `250 ${rules.hostname}\r\n`,
    )
  }

  private mail(argument: string): string | undefined {
    const { rules, facts, identity } = this.session
    if (facts.heloName === '') return REPLY.heloFirst
    if (rules.isAuthRequired && identity === undefined) {
      const needsTls = facts.tls === undefined && !rules.isAuthAllowedInClear
      return needsTls && rules.secureContext ? REPLY.tlsFirst : REPLY.authenticationRequired
    }
    return /^FROM:/i.test(argument)
      ? this.envelope.mail(argument.slice(5), this.parameters)
      : REPLY.needsArgument
  }

  private bdat(argument: string): string | undefined {
    if (!this.session.rules.capabilities.chunking) return REPLY.notImplemented
    const isUseful = this.envelope.isOpen
    this.envelope.bdat(argument)
    if (isUseful) this.idleCommands = 0
    else this.countIdle()
    return undefined
  }

  private startTls(argument: string): string | undefined {
    const { session } = this
    if (!session.rules.secureContext) return REPLY.notImplemented
    if (session.facts.tls) return REPLY.tlsIsOn
    if (argument !== '') return REPLY.noArgument
    if (session.hasUnread) {
      // RFC 3207 §5: injected commands would be taken for commands sent under TLS.
      session.warn('smtp commands injected behind STARTTLS')
      session.close(REPLY.injected)
      return undefined
    }
    session.reply(REPLY.startTls)
    session.startTls()
    return undefined
  }

  private auth(argument: string): string | undefined {
    const { rules, facts } = this.session
    if (!rules.hasAuth) return REPLY.notImplemented
    if (!facts.isEsmtp) return REPLY.heloFirst
    if (this.isAuthenticated) return REPLY.authRepeated
    if (this.envelope.isOpen) return REPLY.authInTransaction
    if (!facts.tls && !rules.isAuthAllowedInClear) return REPLY.encryptionRequired
    if (argument === '') return REPLY.needsArgument
    const { exchange, step } = AuthExchange.begin(argument)
    this.authExchange = exchange
    return this.handleAuthStep(step)
  }

  private handleAuthStep(step: AuthStep): string | undefined {
    if (step.kind === 'challenge') return this.replyIdle(step.line)
    this.authExchange = undefined
    if (step.kind === 'refused') return step.line
    const { session } = this
    session.callReceiver(
      () => session.receiver.authenticate?.(session.facts, step.username, step.password),
      identity => {
        session.identity = identity
        this.isAuthenticated = true
        session.reply(REPLY.authenticated)
      },
      thrown => {
        const { line, closes } = session.refusal(thrown, 'login failed')
        if (closes) {
          session.close(line)
          return
        }
        session.reply(line)
        this.countError()
      },
    )
    return undefined
  }

  private replyIdle(line: string): string | undefined {
    this.session.reply(line)
    this.countIdle()
    return undefined
  }

  private countIdle(): void {
    this.idleCommands += 1
    if (this.idleCommands > MAX_IDLE_COMMANDS) this.countError()
  }
}

type AuthStep =
  | { readonly kind: 'challenge'; readonly line: string }
  | { readonly kind: 'refused'; readonly line: string }
  | { readonly kind: 'credentials'; readonly username: string; readonly password: string }

const USERNAME_PROMPT: AuthStep = { kind: 'challenge', line: '334 VXNlcm5hbWU6\r\n' }
const PASSWORD_PROMPT: AuthStep = { kind: 'challenge', line: '334 UGFzc3dvcmQ6\r\n' }
const EMPTY_CHALLENGE: AuthStep = { kind: 'challenge', line: '334 \r\n' }
const MALFORMED: AuthStep = { kind: 'refused', line: REPLY.authMalformed }

const NUL = String.fromCharCode(0)

/** AUTH PLAIN (RFC 4616) and LOGIN (an expired draft). Errors are returned as the reply to send. */
class AuthExchange {
  private readonly mechanism: 'PLAIN' | 'LOGIN'
  private username: string | undefined

  private constructor(mechanism: 'PLAIN' | 'LOGIN') {
    this.mechanism = mechanism
  }

  /** @param argument what follows `AUTH `, e.g. `PLAIN AGFubgBzZWNyZXQ=` */
  static begin(argument: string): { readonly exchange?: AuthExchange; readonly step: AuthStep } {
    const [name = '', initial, ...more] = argument.trimEnd().split(' ')
    const mechanism = name.toUpperCase()
    if (mechanism !== 'PLAIN' && mechanism !== 'LOGIN')
      return { step: { kind: 'refused', line: REPLY.authUnknown } }
    if (more.length > 0) return { step: MALFORMED }
    const exchange = new AuthExchange(mechanism)
    if (initial !== undefined) {
      // RFC 4954 §4: `=` is an empty initial response.
      return { exchange, step: exchange.respond(initial === '=' ? '' : initial) }
    }
    return { exchange, step: mechanism === 'PLAIN' ? EMPTY_CHALLENGE : USERNAME_PROMPT }
  }

  respond(line: string): AuthStep {
    if (line === '*') return { kind: 'refused', line: REPLY.authCancelled }
    const text = decodeBase64(line)
    if (text === undefined) return MALFORMED
    return this.mechanism === 'PLAIN' ? plainCredentials(text) : this.loginStep(text)
  }

  private loginStep(text: string): AuthStep {
    if (this.username === undefined) {
      if (text === '' || text.includes(NUL)) return MALFORMED
      this.username = text
      return PASSWORD_PROMPT
    }
    return { kind: 'credentials', username: this.username, password: text }
  }
}

/** RFC 4616 §2: authorization identity, NUL, authentication identity, NUL, password. */
function plainCredentials(text: string): AuthStep {
  const parts = text.split(NUL)
  const [authorization = '', username = '', password = ''] = parts
  if (parts.length !== 3 || username === '') return MALFORMED
  if (authorization !== '' && authorization !== username) return { kind: 'refused', line: REPLY.authForeign }
  return { kind: 'credentials', username, password }
}

/** Strict, since Node's decoder accepts nearly anything. @returns undefined unless the text is base64 of UTF-8 */
function decodeBase64(text: string): string | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  const octets = Buffer.from(text, 'base64')
  return isUtf8(octets) ? octets.toString('utf8') : undefined
}
