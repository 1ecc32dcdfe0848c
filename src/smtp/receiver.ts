/**
 * Interface between the SMTP server engine and its receivers: `msa/` (submission) and `inbound/`.
 *
 * The engine implements the protocol: commands, TLS, AUTH exchanges, sizes, line endings, timeouts. A receiver decides who may
 * authenticate, which senders and recipients are accepted, and what happens to a message. It rejects by throwing `SmtpRefusal`, or an
 * `AppError`, whose reply is in the error table; anything else thrown is answered with 451 and logged.
 * Standards: RFC 5321 (SMTP), RFC 4954 (AUTH), RFC 3461 (DSN parameters), RFC 6531 (SMTPUTF8), RFC 1870 (SIZE).
 */

export interface SessionFacts {
  /** Short, for logs and Received. */
  readonly id: string
  /** Client IP address; IPv4-mapped addresses as IPv4. */
  readonly peerAddress: string
  readonly peerPort: number
  /** Argument of EHLO or HELO; empty before. */
  readonly heloName: string
  readonly isEsmtp: boolean
  /** Present once TLS is established. */
  readonly tls?: { readonly version: string; readonly cipher: string }
}

/** MAIL FROM (RFC 5321 §4.1.1.2). */
export interface MailCommand {
  /** `local@domain` as given; empty for `<>`. */
  readonly address: string
  /** Declared SIZE in octets, within the limit. */
  readonly size?: number
  readonly body?: '7BIT' | '8BITMIME'
  readonly smtpUtf8: boolean
  /** RFC 3461 §4.3, §4.4; ENVID decoded from xtext. */
  readonly ret?: 'FULL' | 'HDRS'
  readonly envid?: string
}

/** RCPT TO (RFC 5321 §4.1.1.3). */
export interface RcptCommand {
  /** `local@domain` as given; `postmaster` may have no domain (RFC 5321 §4.5.1). */
  readonly address: string
  /** RFC 3461 §4.1: NEVER alone, or any of the others. */
  readonly notify?: readonly ('NEVER' | 'SUCCESS' | 'FAILURE' | 'DELAY')[]
  /** RFC 3461 §4.2, xtext decoded: `rfc822;ann@example.com`. */
  readonly orcpt?: string
}

export interface MailReceiver<Identity> {
  /**
   * Called before the greeting. Clients that need no AUTH (a trusted network) get an identity here. A rejection replaces the greeting and
   * closes the connection.
   */
  connect?(session: SessionFacts): Promise<Identity | undefined> | Identity | undefined
  /** AUTH PLAIN and LOGIN. @throws AppError unauthorized, ... */
  authenticate?(session: SessionFacts, username: string, password: string): Promise<Identity>
  keyIdOf?(identity: Identity): string
  /** @param identity absent if the client has not authenticated; the engine has already rejected that if AUTH is required */
  beginMail(
    session: SessionFacts,
    identity: Identity | undefined,
    mail: MailCommand,
  ): Promise<MailTransaction> | MailTransaction
}

/**
 * One incoming message: recipients, then data. Ends exactly once, with `finish` (resolved or rejected) or `abandon`. Calls are sequential;
 * if the connection is lost during one, `abandon` follows it.
 */
export interface MailTransaction {
  /** Accepts by returning; called sequentially, in order. */
  addRecipient(recipient: RcptCommand): Promise<void> | void
  /** Called after DATA or the first BDAT, with at least one recipient. @throws to reject instead of sending 354 */
  openMessage(): Promise<void> | void
  /**
   * A piece of the message: dot-unstuffed, with CRLF line endings and checked lengths. The engine reads no further until the promise
   * resolves. A rejection is sent as the reply to the final dot.
   */
  write(piece: Buffer): Promise<void> | void
  /** The message is complete. Resolves with the text of the 250 reply (without codes) once the message is durably stored. */
  finish(): Promise<string>
  /** RSET, lost connection or rejection: no more calls follow. */
  abandon(): void
}

export class SmtpRefusal extends Error {
  override readonly name = 'SmtpRefusal'
  /** 4xx or 5xx (RFC 5321 §4.2). */
  readonly code: number
  /** RFC 3463, e.g. `5.7.1`. */
  readonly enhanced: string
  /** Whether the reply closes the connection; the code is then 421 or 554. */
  readonly closes: boolean

  constructor(code: number, enhanced: string, text: string, closes = false) {
    super(text)
    this.code = code
    this.enhanced = enhanced
    this.closes = closes
  }
}
