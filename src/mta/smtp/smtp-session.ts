/**
 * An SMTP session: from dialling to the point where mail can be offered, and its end.
 *
 * Called by `session-opener.ts`; `smtp-transaction.ts` does what lies between. Never tries a second time and never chooses
 * another host: that is the agent's. Standards: RFC 5321 §3.1, §3.2, §4.1.1.1 (greeting, EHLO, HELO), RFC 3207
 * (STARTTLS), RFC 4954 (AUTH), RFC 4616 (PLAIN). Fails: `openSession` never rejects, it returns how far it came.
 *
 *   connect -> [TLS at once] -> greeting -> EHLO (or HELO) -> [STARTTLS -> handshake -> EHLO] -> [AUTH] -> ready
 */
import { given } from '../../core/given.js'
import type { Stage, TlsFacts } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Dialler } from '../../world/net/dial.js'
import { isLoopbackOrUnspecified } from '../../world/net/address-kind.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Credentials, Endpoint } from '../routing/endpoint.js'
import type { Timeouts } from '../mta-options.js'
import { SmtpConnection } from './smtp-connection.js'
import { Broken, endOf, Refused, type SmtpEnd } from '../smtp-end.js'
import { withoutLines, type ReplyLines } from './smtp-reply.js'

export interface SessionParts {
  readonly clock: Clock
  readonly dialler: Dialler
  /** What EHLO says: our own name in DNS. */
  readonly hostname: string
  readonly timeouts: Timeouts
}

export interface OpenOptions {
  readonly localAddress?: string
  /** Do without STARTTLS even if offered; honoured for opportunistic TLS only. */
  readonly inClear: boolean
  /** When it is given up, however far it has come; on the monotonic clock, ms. */
  readonly deadline: number
  readonly signal: AbortSignal
}

/** Keyword (upper case) and its parameters, as EHLO listed them; empty after HELO. */
export type Extensions = ReadonlyMap<string, string>

/** Ready for a transaction. */
export interface SmtpSession {
  readonly endpoint: Endpoint
  readonly connection: SmtpConnection
  readonly extensions: Extensions
  readonly tls?: TlsFacts
}

export type Opening = { readonly session: SmtpSession } | { readonly end: SmtpEnd; readonly tls?: TlsFacts }

/** TLS 1.0 and 1.1 are gone from every server that matters (RFC 8996). */
const OLDEST_TLS = 'TLSv1.2'

export async function openSession(
  parts: SessionParts,
  endpoint: Endpoint,
  options: OpenOptions,
): Promise<Opening> {
  const progress: Progress = { stage: 'connect', connection: undefined, tls: undefined }
  const abandon = () =>
    progress.connection?.break(new Broken('aborted', 'given up because this server is shutting down'))
  options.signal.addEventListener('abort', abandon, { once: true })
  try {
    const connection = await dial(parts, endpoint, options)
    progress.connection = connection
    connection.limitUntil(options.deadline)
    if (endpoint.implicitTls) await secure(parts, endpoint, options, connection, progress)
    progress.stage = 'greeting'
    expect(await connection.readReply(parts.timeouts.greetingMs))
    progress.stage = 'ehlo'
    let extensions = await sayHello(connection, parts)
    if (wantsStartTls(endpoint, options)) {
      progress.stage = 'starttls'
      if (await mayStartTls(connection, extensions, endpoint, helloTimeout(parts))) {
        await secure(parts, endpoint, options, connection, progress)
        // RFC 3207 §4.2: what was offered in clear does not count any more. A server that ends the connection here has
        // broken its STARTTLS, not its EHLO, so the stage stays.
        extensions = await sayHello(connection, parts)
      }
    }
    if (endpoint.auth !== undefined) {
      progress.stage = 'auth'
      await logIn(connection, extensions, endpoint, progress.tls, helloTimeout(parts))
    }
    return { session: { endpoint, connection, extensions, ...withTls(progress) } }
  } catch (thrown) {
    if (progress.connection !== undefined) void leave(progress.connection, parts.timeouts)
    return { end: withUnreachable(endOf(progress.stage, thrown)), ...withTls(progress) }
  } finally {
    options.signal.removeEventListener('abort', abandon)
  }
}

/** How far the opening has come. */
interface Progress {
  stage: Stage
  connection: SmtpConnection | undefined
  tls: TlsFacts | undefined
}

function withTls({ tls }: Progress): { tls?: TlsFacts } {
  return tls === undefined ? {} : { tls }
}

function helloTimeout({ timeouts }: SessionParts): number {
  return timeouts.ehloMs ?? timeouts.mailMs
}

async function dial(
  { clock, dialler, timeouts }: SessionParts,
  { address, port, namedBy }: Endpoint,
  { localAddress, deadline, signal }: OpenOptions,
): Promise<SmtpConnection> {
  const socket = await dialler.connect({
    address,
    port,
    timeoutMs: within(clock, deadline, timeouts.connectMs),
    signal,
    ...given({ localAddress, namedBy }),
  })
  return new SmtpConnection(clock, dialler, socket)
}

function within(clock: Clock, deadline: number, timeoutMs: number): number {
  return Math.max(0, Math.min(timeoutMs, deadline - clock.monotonic()))
}

/** The handshake; then the policy has its say about the certificate. */
async function secure(
  { clock, timeouts }: SessionParts,
  endpoint: Endpoint,
  { deadline, signal }: OpenOptions,
  connection: SmtpConnection,
  progress: Progress,
): Promise<void> {
  progress.stage = 'starttls'
  const tls = await connection.startTls(
    tlsOptions(endpoint, within(clock, deadline, timeouts.starttlsMs ?? timeouts.connectMs), signal),
  )
  progress.tls = tls
  if (endpoint.tls === 'verify' && !tls.verified)
    throw new Broken('tls_untrusted', `certificate not trusted: ${tls.unverifiedReason ?? 'unknown reason'}`)
}

/**
 * Says QUIT and closes, whatever the answer: RFC 5321 §4.1.1.10 wants it even after an error. A connection on which
 * nothing can be said any more is just closed. Never rejects.
 */
export async function leave(connection: SmtpConnection, timeouts: Timeouts): Promise<void> {
  connection.limitUntil(Infinity)
  try {
    if (connection.isInStep) await connection.command('QUIT', timeouts.quitMs)
  } catch {
    // The session is over either way.
  } finally {
    connection.close()
  }
}

function expect(reply: ReplyLines): ReplyLines {
  if (reply.code >= 400) throw new Refused(withoutLines(reply))
  if (reply.code >= 300) throw new Broken('protocol', `unexpected reply ${reply.code}`)
  return reply
}

/** RFC 5321 §3.2: EHLO, and HELO for a server that does not know it. */
async function sayHello(connection: SmtpConnection, parts: SessionParts): Promise<Extensions> {
  const reply = await connection.command(`EHLO ${parts.hostname}`, helloTimeout(parts))
  if (reply.code < 500) return readExtensions(expect(reply))
  expect(await connection.command(`HELO ${parts.hostname}`, helloTimeout(parts)))
  return new Map()
}

/** RFC 5321 §4.1.1.1: the first line is the server's name, each other one a keyword with parameters. */
function readExtensions(reply: ReplyLines): Extensions {
  return new Map(
    reply.lines.slice(1).map(line => {
      // Old servers write `AUTH=LOGIN`.
      const [keyword = '', ...parameters] = line.trim().split(/[ =]+/)
      return [keyword.toUpperCase(), parameters.join(' ').toUpperCase()]
    }),
  )
}

function wantsStartTls(endpoint: Endpoint, { inClear }: OpenOptions): boolean {
  if (endpoint.implicitTls || endpoint.tls === 'none') return false
  return !(inClear && endpoint.tls === 'opportunistic')
}

/** @returns false where the dialogue goes on in clear, which only opportunistic TLS allows */
async function mayStartTls(
  connection: SmtpConnection,
  extensions: Extensions,
  endpoint: Endpoint,
  timeoutMs: number,
): Promise<boolean> {
  const isRequired = endpoint.tls !== 'opportunistic'
  if (!extensions.has('STARTTLS')) {
    if (isRequired) throw new Broken('tls_unavailable', 'server does not offer STARTTLS')
    return false
  }
  const reply = await connection.askForTls(timeoutMs)
  if (reply.code === 220) return true
  if (isRequired || reply.code === 421) throw new Refused(withoutLines(reply))
  return false
}

function tlsOptions({ host, address }: Endpoint, timeoutMs: number, signal: AbortSignal) {
  return {
    // RFC 6066 §3: an IP address is no server name.
    ...(ipVersion(host) === 0 ? { servername: host, host } : { host: address }),
    minVersion: OLDEST_TLS,
    // The policy decides, not the handshake: opportunistic TLS goes on with any certificate and records what it saw.
    rejectUnauthorized: false,
    timeoutMs,
    signal,
  } as const
}

async function logIn(
  connection: SmtpConnection,
  extensions: Extensions,
  endpoint: Endpoint,
  tls: TlsFacts | undefined,
  timeoutMs: number,
): Promise<void> {
  const { auth } = endpoint
  if (auth === undefined) return
  const objection = objectionToLogIn(endpoint, auth, tls)
  if (objection !== undefined) throw new Broken('auth_unavailable', objection)
  const offered = (extensions.get('AUTH') ?? '').split(' ')
  const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64')
  if (offered.includes('PLAIN')) {
    // RFC 4616 §2: no authorisation identity, then name and password.
    expect(
      await connection.command(`AUTH PLAIN ${base64(`\0${auth.username}\0${auth.password}`)}`, timeoutMs),
    )
  } else if (offered.includes('LOGIN')) {
    expectChallenge(await connection.command('AUTH LOGIN', timeoutMs))
    expectChallenge(await connection.command(base64(auth.username), timeoutMs))
    expect(await connection.command(base64(auth.password), timeoutMs))
  } else {
    throw new Broken('auth_unavailable', 'server offers neither AUTH PLAIN nor AUTH LOGIN')
  }
}

/**
 * A password is said to the host it is for, or to nobody (RFC 4954 §4). Without verified TLS only the operator's word lets it
 * cross, and in clear only where the route says that there is no TLS; what stays on this machine crosses nothing.
 */
function objectionToLogIn(
  { address, tls: demanded }: Endpoint,
  { isForUnverified }: Credentials,
  tls: TlsFacts | undefined,
): string | undefined {
  if (tls?.verified === true || isLoopbackOrUnspecified(address)) return undefined
  if (!isForUnverified)
    return `the password is said under verified TLS only: ${tls?.unverifiedReason ?? 'there is no TLS'}`
  if (tls === undefined && demanded !== 'none')
    return 'server offers no TLS, and the password is not sent in clear'
  return undefined
}

function expectChallenge(reply: ReplyLines): void {
  if (reply.code >= 400) throw new Refused(withoutLines(reply))
  if (reply.code !== 334) throw new Broken('protocol', `unexpected reply ${reply.code} to AUTH`)
}

/** Before the connection stands, a failure says something of the way, not of the server. */
function withUnreachable(end: SmtpEnd): SmtpEnd {
  if (end.stage !== 'connect' || end.broken === undefined || end.broken.kind === 'aborted') return end
  return { ...end, broken: { ...end.broken, kind: 'unreachable' } }
}
