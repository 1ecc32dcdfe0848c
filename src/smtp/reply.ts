/**
 * Server replies: the fixed ones, and replies built from rejections.
 *
 * Text from elsewhere (a receiver, an address) is reduced to one line of printable ASCII of bounded length (RFC 5321 §4.2; RFC 6531
 * §3.7.4.2 allows more, but clients may not understand it).
 * Standards: RFC 5321 §4.2, §4.3.2 (codes per command); RFC 3463, RFC 2034 (enhanced codes); RFC 4954 §6.
 */
import { AppError, ERRORS } from '../core/errors.js'
import { SmtpRefusal } from './receiver.js'

/** Octets of text after the codes; RFC 5321 §4.5.3.1.5 allows 512 per line in total. */
const MAX_TEXT = 480

export const REPLY = {
  ok: '250 2.0.0 Ok\r\n',
  senderOk: '250 2.1.0 Sender ok\r\n',
  recipientOk: '250 2.1.5 Recipient ok\r\n',
  chunkOk: '250 2.0.0 Chunk ok\r\n',
  sendMessage: '354 End data with <CRLF>.<CRLF>\r\n',
  goodbye: '221 2.0.0 Goodbye\r\n',
  cannotVerify: '252 2.5.2 Cannot VRFY user, but will accept message and attempt delivery\r\n',
  help: '214 2.0.0 Postroad SMTP server; see RFC 5321\r\n',
  startTls: '220 2.0.0 Ready to start TLS\r\n',
  authenticated: '235 2.7.0 Authentication successful\r\n',

  unknownCommand: '500 5.5.2 Command not recognized\r\n',
  malformedLine: '500 5.5.2 Command line must be text ending in CRLF\r\n',
  lineTooLong: '500 5.5.6 Line too long\r\n',
  notImplemented: '502 5.5.1 Command not implemented\r\n',
  noArgument: '501 5.5.4 This command takes no argument\r\n',
  needsArgument: '501 5.5.4 This command needs an argument\r\n',
  heloFirst: '503 5.5.1 Send EHLO first\r\n',
  mailFirst: '503 5.5.1 Need MAIL command\r\n',
  nestedMail: '503 5.5.1 Nested MAIL command\r\n',
  lateRecipient: '503 5.5.1 RCPT not allowed after BDAT\r\n',
  recipientsFirst: '503 5.5.1 Need RCPT command\r\n',
  noRecipients: '554 5.5.1 No valid recipients\r\n',
  dataAfterBdat: '503 5.5.1 DATA not allowed after BDAT\r\n',
  malformedBdat: '501 5.5.4 Syntax: BDAT <size> [LAST]\r\n',
  failedBdat: '503 5.5.1 Message was rejected, send RSET first\r\n',
  tooManyRecipients: '452 4.5.3 Too many recipients\r\n',
  tooLarge: '552 5.3.4 Message too large\r\n',
  unsynchronized: '554 5.5.0 Improper command pipelining\r\n',
  earlyTalker: '554 5.5.0 Data received before the greeting\r\n',
  noWebServer: '554 5.5.0 This is an SMTP server\r\n',

  tlsIsOn: '503 5.5.1 TLS already active\r\n',
  tlsFirst: '530 5.7.0 Must issue a STARTTLS command first\r\n',
  injected: '554 5.5.0 Data received before the TLS handshake\r\n',
  encryptionRequired: '538 5.7.11 Encryption required for authentication\r\n',
  authenticationRequired: '530 5.7.0 Authentication required\r\n',
  authUnknown: '504 5.5.4 Unrecognized authentication type\r\n',
  authRepeated: '503 5.5.1 Already authenticated\r\n',
  authInTransaction: '503 5.5.1 AUTH not allowed during a mail transaction\r\n',
  authCancelled: '501 5.7.0 Authentication cancelled\r\n',
  authMalformed: '501 5.5.2 Malformed authentication response\r\n',
  authForeign: '535 5.7.8 Authorization identity must match the user name\r\n',
  authTooLong: '500 5.5.6 Authentication exchange line is too long\r\n',

  tooManySessions: '421 4.3.2 Too many connections, try again later\r\n',
  tooManyFromAddress: '421 4.7.0 Too many connections from your address, try again later\r\n',
  tooManyErrors: '421 4.7.0 Too many errors\r\n',
  tooManyMessages: '421 4.7.0 Too many messages in this session\r\n',
  busy: '421 4.3.2 Server busy, try again later\r\n',
  timeout: '421 4.4.2 Timeout\r\n',
  sessionTimeout: '421 4.4.2 Session time limit exceeded\r\n',
  shuttingDown: '421 4.3.2 Shutting down, try again later\r\n',
  internalError: '451 4.3.0 Internal error, try again later\r\n',
} as const

interface RefusalReply {
  readonly line: string
  readonly closes: boolean
}

/** @returns undefined if the error is a bug, not a rejection */
export function refusalReply(thrown: unknown): RefusalReply | undefined {
  if (thrown instanceof SmtpRefusal)
    return { line: replyLine(thrown.code, thrown.enhanced, thrown.message), closes: thrown.closes }
  if (thrown instanceof AppError && thrown.code !== 'internal_error') {
    const [code, enhanced] = ERRORS[thrown.code].smtp
    return { line: replyLine(code, enhanced, thrown.message), closes: false }
  }
  return undefined
}

export function replyLine(code: number, enhanced: string, text: string): string {
  return `${code} ${enhanced} ${printable(text)}\r\n`
}

function printable(text: string): string {
  const line = text.slice(0, MAX_TEXT)
  return /^[\x20-\x7e]*$/.test(line) ? line : line.replace(/\s+/g, ' ').replace(/[^\x20-\x7e]/g, '?')
}
