/**
 * The interface between the SMTP server engine and whoever takes the mail: `msa/` (submission) and `inbound/` implement
 * it, tests script it.
 *
 * The engine speaks the protocol: commands, TLS, AUTH exchanges, sizes, line ends, time limits. A receiver decides: who
 * may log in, which sender and recipients are taken, and what a message becomes. It refuses by throwing `SmtpRefusal`, or
 * an `AppError`, whose reply stands in the error table; anything else that is thrown is answered 451 and logged.
 * Standards: RFC 5321 (SMTP), RFC 4954 (AUTH), RFC 3461 (DSN parameters), RFC 6531 (SMTPUTF8), RFC 1870 (SIZE).
 */

/** What the engine knows of a session, for decisions, Received fields and logs. */
export interface SessionFacts {
  /** Short, for logs and Received. */
  readonly id: string
  /** IP address of the client, without IPv4-mapping. */
  readonly peerAddress: string
  readonly peerPort: number
  /** What the client called itself in EHLO, HELO; empty before. */
  readonly heloName: string
  readonly isEsmtp: boolean
  /** Present once TLS is on. */
  readonly tls?: { readonly version: string; readonly cipher: string }
}

/** MAIL FROM (RFC 5321 §4.1.1.2). */
export interface MailCommand {
  /** Empty for `<>`; otherwise `local@domain` as given. */
  readonly address: string
  /** SIZE, in octets as declared; already found to be within the limit. */
  readonly size?: number
  readonly body?: '7BIT' | '8BITMIME'
  readonly smtpUtf8: boolean
  /** RFC 3461 §4.3, §4.4; ENVID decoded from xtext. */
  readonly ret?: 'FULL' | 'HDRS'
  readonly envid?: string
}

/** RCPT TO (RFC 5321 §4.1.1.3). */
export interface RcptCommand {
  /** `local@domain` as given; `postmaster` may come without a domain (RFC 5321 §4.5.1). */
  readonly address: string
  /** RFC 3461 §4.1: NEVER alone, or any of the others. */
  readonly notify?: readonly ('NEVER' | 'SUCCESS' | 'FAILURE' | 'DELAY')[]
  /** RFC 3461 §4.2, xtext decoded: `rfc822;ann@example.com`. */
  readonly orcpt?: string
}

export interface MailReceiver<Identity> {
  /**
   * Before the greeting. Who needs no login (a trusted network) gets an identity here. A refusal is sent in place of
   * the greeting, and the connection is closed.
   */
  connect?(session: SessionFacts): Promise<Identity | undefined> | Identity | undefined
  /** AUTH PLAIN and LOGIN end here. @throws AppError unauthorized, ... */
  authenticate?(session: SessionFacts, username: string, password: string): Promise<Identity>
  /** What the log names a client by. */
  keyIdOf?(identity: Identity): string
  /** @param identity absent where nobody has logged in; the engine has refused that already if logins are required */
  beginMail(
    session: SessionFacts,
    identity: Identity | undefined,
    mail: MailCommand,
  ): Promise<MailTransaction> | MailTransaction
}

/**
 * One message on its way in: recipients, then contents. Ended once: by `finish`, whether it resolves or rejects, or by
 * `abandon` wherever it stands. Calls come one at a time; a connection lost while one is pending is told after it.
 */
export interface MailTransaction {
  /** Accepts by returning; called one at a time, in the order given. */
  addRecipient(recipient: RcptCommand): Promise<void> | void
  /** After DATA or the first BDAT, with at least one recipient. @throws to answer in place of 354 */
  openMessage(): Promise<void> | void
  /**
   * A piece of the message: dot-stuffing undone, every line end a CRLF, lengths within bounds. The engine reads no further
   * until the promise, if any, resolves. A refusal is given as the reply to the final dot.
   */
  write(piece: Buffer): Promise<void> | void
  /** The whole message is here. Resolves, once it is durably stored, with the text of the 250 (without codes). */
  finish(): Promise<string>
  /** RSET, a lost connection, a refusal: nothing more comes. */
  abandon(): void
}

/** A reply that refuses. */
export class SmtpRefusal extends Error {
  override readonly name = 'SmtpRefusal'
  /** 4xx or 5xx (RFC 5321 §4.2). */
  readonly code: number
  /** RFC 3463, e.g. `5.7.1`. */
  readonly enhanced: string
  /** Whether the connection ends with this reply; the code is 421 or 554 then. */
  readonly closes: boolean

  constructor(code: number, enhanced: string, text: string, closes = false) {
    super(text)
    this.code = code
    this.enhanced = enhanced
    this.closes = closes
  }
}
