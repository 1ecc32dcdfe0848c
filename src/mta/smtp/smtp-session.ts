/**
 * Opens and closes SMTP sessions: connect, greeting, EHLO, STARTTLS, AUTH, QUIT.
 *
 * Makes one attempt at one endpoint; retries are up to the caller. `openSession` never rejects, it returns how far it got.
 * Standards: RFC 5321 §3.1, §3.2, §4.1.1.1 (greeting, EHLO, HELO), RFC 3207 (STARTTLS), RFC 4954 (AUTH), RFC 4616 (PLAIN).
 *
 *   connect -> [implicit TLS] -> greeting -> EHLO (or HELO) -> [STARTTLS -> handshake -> EHLO] -> [AUTH] -> ready
 */
import { given } from '../../core/given.js'
import type { Stage, TlsFacts } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Dialler } from '../../world/net/dial.js'
import { isLoopbackOrUnspecified } from '../../world/net/address-kind.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Credentials, Endpoint } from '../routing/endpoint.js'
import type { Timeouts } from '../mta-options.js'
import { type ReplyLines, SmtpConnection, toSmtpReply } from './smtp-connection.js'
import { SmtpFailure, toSmtpResult, SmtpRejection, type SmtpResult } from '../smtp-result.js'

export interface SessionParts {
  readonly clock: Clock
  readonly dialler: Dialler
  /** Our own name in DNS, for EHLO. */
  readonly hostname: string
  readonly timeouts: Timeouts
}

export interface OpenOptions {
  readonly localAddress?: string
  /** Skip STARTTLS even if offered; applies to opportunistic TLS only. */
  readonly skipStartTls: boolean
  /** For the whole opening; monotonic, ms. */
  readonly deadline: number
  readonly signal: AbortSignal
}

/** Keyword (upper case) and parameters from EHLO; empty after HELO. */
export type Extensions = ReadonlyMap<string, string>

export interface SmtpSession {
  readonly endpoint: Endpoint
  readonly connection: SmtpConnection
  readonly extensions: Extensions
  readonly tls?: TlsFacts
}

export type OpenResult =
  | { readonly session: SmtpSession }
  | { readonly result: SmtpResult; readonly tls?: TlsFacts }

/** TLS 1.0 and 1.1 are deprecated (RFC 8996). */
const MIN_TLS_VERSION = 'TLSv1.2'

export async function openSession(
  parts: SessionParts,
  endpoint: Endpoint,
  options: OpenOptions,
): Promise<OpenResult> {
  const progress: Progress = { stage: 'connect', connection: undefined, tls: undefined }
  const abandon = () =>
    progress.connection?.fail(new SmtpFailure('aborted', 'aborted because this server is shutting down'))
  options.signal.addEventListener('abort', abandon, { once: true })
  try {
    const connection = await dial(parts, endpoint, options)
    progress.connection = connection
    connection.setDeadline(options.deadline)
    if (endpoint.implicitTls) await startTls(parts, endpoint, options, connection, progress)
    progress.stage = 'greeting'
    expectSuccess(await connection.readReply(parts.timeouts.greetingMs))
    progress.stage = 'ehlo'
    let extensions = await sendEhlo(connection, parts)
    if (wantsStartTls(endpoint, options)) {
      progress.stage = 'starttls'
      if (await requestStartTls(connection, extensions, endpoint, ehloTimeout(parts))) {
        await startTls(parts, endpoint, options, connection, progress)
        // RFC 3207 §4.2: extensions offered in plaintext no longer count. If the server closes the connection here, its STARTTLS is broken,
        // not its EHLO, so the stage stays `starttls`.
        extensions = await sendEhlo(connection, parts)
      }
    }
    if (endpoint.auth !== undefined) {
      progress.stage = 'auth'
      await authenticate(connection, extensions, endpoint, progress.tls, ehloTimeout(parts))
    }
    return { session: { endpoint, connection, extensions, ...withTls(progress) } }
  } catch (thrown) {
    if (progress.connection !== undefined) void quit(progress.connection, parts.timeouts)
    return { result: markUnreachable(toSmtpResult(progress.stage, thrown)), ...withTls(progress) }
  } finally {
    options.signal.removeEventListener('abort', abandon)
  }
}

interface Progress {
  stage: Stage
  connection: SmtpConnection | undefined
  tls: TlsFacts | undefined
}

function withTls({ tls }: Progress): { tls?: TlsFacts } {
  return tls === undefined ? {} : { tls }
}

function ehloTimeout({ timeouts }: SessionParts): number {
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

/** TLS handshake, then the certificate check that the policy requires. */
async function startTls(
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
    throw new SmtpFailure(
      'tls_untrusted',
      `certificate not trusted: ${tls.unverifiedReason ?? 'unknown reason'}`,
    )
}

/**
 * Sends QUIT and closes the connection; RFC 5321 §4.1.1.10 wants QUIT even after an error. A connection that is out of sync is closed
 * without it. Never rejects.
 */
export async function quit(connection: SmtpConnection, timeouts: Timeouts): Promise<void> {
  connection.setDeadline(Infinity)
  try {
    if (connection.isSynchronized) await connection.command('QUIT', timeouts.quitMs)
  } catch {
    // The session is over either way.
  } finally {
    connection.close()
  }
}

function expectSuccess(reply: ReplyLines): ReplyLines {
  if (reply.code >= 400) throw new SmtpRejection(toSmtpReply(reply))
  if (reply.code >= 300) throw new SmtpFailure('protocol', `unexpected reply ${reply.code}`)
  return reply
}

/** RFC 5321 §3.2: falls back to HELO if the server does not know EHLO. */
async function sendEhlo(connection: SmtpConnection, parts: SessionParts): Promise<Extensions> {
  const reply = await connection.command(`EHLO ${parts.hostname}`, ehloTimeout(parts))
  if (reply.code < 500) return readExtensions(expectSuccess(reply))
  expectSuccess(await connection.command(`HELO ${parts.hostname}`, ehloTimeout(parts)))
  return new Map()
}

/** RFC 5321 §4.1.1.1: the first line names the server, each other line is a keyword with parameters. */
function readExtensions(reply: ReplyLines): Extensions {
  return new Map(
    reply.lines.slice(1).map(line => {
      // Old servers send `AUTH=LOGIN`.
      const [keyword = '', ...parameters] = line.trim().split(/[ =]+/)
      return [keyword.toUpperCase(), parameters.join(' ').toUpperCase()]
    }),
  )
}

function wantsStartTls(endpoint: Endpoint, { skipStartTls }: OpenOptions): boolean {
  if (endpoint.implicitTls || endpoint.tls === 'none') return false
  return !(skipStartTls && endpoint.tls === 'opportunistic')
}

/** @returns false to continue in plaintext, which only opportunistic TLS allows */
async function requestStartTls(
  connection: SmtpConnection,
  extensions: Extensions,
  endpoint: Endpoint,
  timeoutMs: number,
): Promise<boolean> {
  const isRequired = endpoint.tls !== 'opportunistic'
  if (!extensions.has('STARTTLS')) {
    if (isRequired) throw new SmtpFailure('tls_unavailable', 'server does not offer STARTTLS')
    return false
  }
  const reply = await connection.requestTls(timeoutMs)
  if (reply.code === 220) return true
  if (isRequired || reply.code === 421) throw new SmtpRejection(toSmtpReply(reply))
  return false
}

function tlsOptions({ host, address }: Endpoint, timeoutMs: number, signal: AbortSignal) {
  return {
    // RFC 6066 §3: an IP address is not a valid SNI name.
    ...(ipVersion(host) === 0 ? { servername: host, host } : { host: address }),
    minVersion: MIN_TLS_VERSION,
    // The policy is applied after the handshake; opportunistic TLS accepts any certificate and records the result.
    rejectUnauthorized: false,
    timeoutMs,
    signal,
  } as const
}

async function authenticate(
  connection: SmtpConnection,
  extensions: Extensions,
  endpoint: Endpoint,
  tls: TlsFacts | undefined,
  timeoutMs: number,
): Promise<void> {
  const { auth } = endpoint
  if (auth === undefined) return
  const objection = reasonNotToAuthenticate(endpoint, auth, tls)
  if (objection !== undefined) throw new SmtpFailure('auth_unavailable', objection)
  const offered = (extensions.get('AUTH') ?? '').split(' ')
  const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64')
  if (offered.includes('PLAIN')) {
    // RFC 4616 §2: empty authorization identity, then user name and password.
    expectSuccess(
      await connection.command(`AUTH PLAIN ${base64(`\0${auth.username}\0${auth.password}`)}`, timeoutMs),
    )
  } else if (offered.includes('LOGIN')) {
    expectChallenge(await connection.command('AUTH LOGIN', timeoutMs))
    expectChallenge(await connection.command(base64(auth.username), timeoutMs))
    expectSuccess(await connection.command(base64(auth.password), timeoutMs))
  } else {
    throw new SmtpFailure('auth_unavailable', 'server offers neither AUTH PLAIN nor AUTH LOGIN')
  }
}

/**
 * Passwords are sent only over verified TLS (RFC 4954 §4), to a loopback address, or if the route explicitly allows it; in plaintext only
 * if the route is configured without TLS.
 */
function reasonNotToAuthenticate(
  { address, tls: demanded }: Endpoint,
  { allowUnverified }: Credentials,
  tls: TlsFacts | undefined,
): string | undefined {
  if (tls?.verified === true || isLoopbackOrUnspecified(address)) return undefined
  if (!allowUnverified)
    return `the password is sent over verified TLS only: ${tls?.unverifiedReason ?? 'no TLS'}`
  if (tls === undefined && demanded !== 'none')
    return 'server does not offer TLS, and the password is not sent in plaintext'
  return undefined
}

function expectChallenge(reply: ReplyLines): void {
  if (reply.code >= 400) throw new SmtpRejection(toSmtpReply(reply))
  if (reply.code !== 334) throw new SmtpFailure('protocol', `unexpected reply ${reply.code} to AUTH`)
}

/** Before TCP is connected, a failure concerns the network, not the server. */
function markUnreachable(result: SmtpResult): SmtpResult {
  if (result.stage !== 'connect' || result.failure === undefined || result.failure.kind === 'aborted')
    return result
  return { ...result, failure: { ...result.failure, kind: 'unreachable' } }
}
