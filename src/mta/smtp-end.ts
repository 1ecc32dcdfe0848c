/**
 * How a try with one host can end: a reply that decides, or something that broke.
 *
 * The values pass between the SMTP client's layers and the agent; the two exceptions never leave the client.
 */
import type { SmtpReply, Stage } from '../mail/outcome.js'

/**
 * - `unreachable`: no connection came about.
 * - `timeout`, `closed`: it stood, then nothing more was heard.
 * - `protocol`: what was heard is not SMTP, or an answer to nothing.
 * - `tls`: the handshake failed. `tls_unavailable`: not offered where it has to be. `tls_untrusted`: wrong certificate.
 * - `auth_unavailable`: no way to log in that is offered and safe.
 * - `aborted`: we are shutting down.
 * - `needs_smtputf8`, `needs_8bitmime`, `too_big`: this server cannot take this message, and says so by what it offers.
 */
export type BreakKind =
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

/** Exactly one of `reply` and `broken` is there; `accepted` only with a 2xx reply after the final dot. */
export interface SmtpEnd {
  readonly accepted: boolean
  readonly stage: Stage
  readonly reply?: SmtpReply
  readonly broken?: { readonly kind: BreakKind; readonly text: string }
}

/** Something broke; thrown inside the client, caught where the stage is known. */
export class Broken extends Error {
  override readonly name = 'Broken'
  readonly kind: BreakKind

  constructor(kind: BreakKind, text: string) {
    super(text)
    this.kind = kind
  }
}

/** The server said no; thrown inside the client, caught where the stage is known. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly reply: SmtpReply

  constructor(reply: SmtpReply) {
    super(`refused with ${reply.code}`)
    this.reply = reply
  }
}

/** @param thrown anything caught inside the client */
export function endOf(stage: Stage, thrown: unknown): SmtpEnd {
  if (thrown instanceof Refused) return { accepted: false, stage, reply: thrown.reply }
  const { kind, message } = asBroken(thrown, 'closed')
  return { accepted: false, stage, broken: { kind, text: message } }
}

/** Words for what sockets report by code. */
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

/** @param kind what a socket's or TLS's own error counts as, unless its code says more */
export function asBroken(thrown: unknown, kind: BreakKind): Broken {
  if (thrown instanceof Broken) return thrown
  const { code = '', message } =
    thrown instanceof Error ? (thrown as NodeJS.ErrnoException) : { message: String(thrown) }
  if (code === 'ABORT_ERR') return new Broken('aborted', 'given up because this server is shutting down')
  // OpenSSL's message begins with file and line of its own source; its code says the same in words.
  const words = code.startsWith('ERR_SSL_') ? code.slice(8).toLowerCase().replaceAll('_', ' ') : message
  return new Broken(kind, SOCKET_ERRORS[code] ?? words)
}
