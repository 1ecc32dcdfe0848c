/**
 * The result of trying one host: a deciding reply, or a failure.
 *
 * Results pass between the layers of the SMTP client and the delivery agent; the two exceptions never leave the client.
 */
import type { SmtpReply, Stage } from '../mail/outcome.js'

/**
 * - `unreachable`: the TCP connection failed.
 * - `timeout`, `closed`: the connection was established, then lost.
 * - `protocol`: the server's output is not valid SMTP, or a reply arrived that no command asked for.
 * - `tls`: the handshake failed. `tls_unavailable`: TLS is required and not offered. `tls_untrusted`: bad
 *   certificate.
 * - `auth_unavailable`: no AUTH mechanism that is offered is safe to use.
 * - `aborted`: this server is shutting down.
 * - `needs_smtputf8`, `needs_8bitmime`, `too_big`: the server's EHLO rules this message out.
 */
export type FailureKind =
  | 'unreachable'
  | 'timeout'
  | 'closed'
  | 'protocol'
  | 'tls'
  | 'tls_unavailable'
  | 'tls_untrusted'
  | 'auth_unavailable'
  | 'aborted'
  | 'needs_smtputf8'
  | 'needs_8bitmime'
  | 'too_big'

/** Has either `reply` or `failure`; `accepted` only after a 2xx reply to the final dot. */
export interface SmtpResult {
  readonly accepted: boolean
  readonly stage: Stage
  readonly reply?: SmtpReply
  readonly failure?: { readonly kind: FailureKind; readonly text: string }
}

/** The connection failed. Thrown inside the client, caught where the stage is known. */
export class SmtpFailure extends Error {
  override readonly name = 'SmtpFailure'
  readonly kind: FailureKind

  constructor(kind: FailureKind, text: string) {
    super(text)
    this.kind = kind
  }
}

/** The server rejected a command. Thrown inside the client, caught where the stage is known. */
export class SmtpRejection extends Error {
  override readonly name = 'SmtpRejection'
  readonly reply: SmtpReply

  constructor(reply: SmtpReply) {
    super(`refused with ${reply.code}`)
    this.reply = reply
  }
}

export function toSmtpResult(stage: Stage, thrown: unknown): SmtpResult {
  if (thrown instanceof SmtpRejection) return { accepted: false, stage, reply: thrown.reply }
  const { kind, message } = toSmtpFailure(thrown, 'closed')
  return { accepted: false, stage, failure: { kind, text: message } }
}

/** Socket error codes in plain words. */
const SOCKET_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ECONNABORTED: 'connection aborted',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network unreachable',
  EPIPE: 'connection closed by the server',
  ETIMEDOUT: 'connection timed out',
  EADDRNOTAVAIL: 'source address is not available on this machine',
  EACCES: 'not permitted by this machine',
}

/** @param kind used unless the error's own code is more specific */
export function toSmtpFailure(thrown: unknown, kind: FailureKind): SmtpFailure {
  if (thrown instanceof SmtpFailure) return thrown
  const { code = '', message } =
    thrown instanceof Error ? (thrown as NodeJS.ErrnoException) : { message: String(thrown) }
  if (code === 'ABORT_ERR') return new SmtpFailure('aborted', 'aborted because this server is shutting down')
  // OpenSSL's message starts with its source file and line; the error code carries the same text.
  const words = code.startsWith('ERR_SSL_') ? code.slice(8).toLowerCase().replaceAll('_', ' ') : message
  return new SmtpFailure(kind, SOCKET_ERRORS[code] ?? words)
}
