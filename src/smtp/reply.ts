/**
 * Replies of the server: the fixed ones, and the making of one line from a refusal.
 *
 * Called by the session and its parts. Text from elsewhere (a receiver's, an address) leaves here as one line of printable
 * ASCII of bounded length, whatever came in (RFC 5321 §4.2; RFC 6531 §3.7.4.2 allows more, clients understand less).
 * Standards: RFC 5321 §4.2, §4.3.2 (which code where); RFC 3463, RFC 2034 (enhanced codes); RFC 4954 §6.
 */
import { AppError, ERRORS } from '../core/errors.js'
import { SmtpRefusal } from './receiver.js'

/** Octets of text after the codes; RFC 5321 §4.5.3.1.5 allows a line 512 in all. */
const MAX_TEXT = 480

export const REPLY = {
  ok: '250 2.0.0 Ok\r\n',
  senderOk: '250 2.1.0 Sender ok\r\n',
  recipientOk: '250 2.1.5 Recipient ok\r\n',
  chunkOk: '250 2.0.0 Chunk ok\r\n',
  sendMessage: '354 End with a dot on a line by itself\r\n',
  goodbye: '221 2.0.0 Goodbye\r\n',
  cannotVerify: '252 2.5.2 Send some mail and it will be seen\r\n',
  help: '214 2.0.0 This is Postroad; RFC 5321 tells the rest\r\n',
  startTls: '220 2.0.0 Go ahead\r\n',
  authenticated: '235 2.7.0 Logged in\r\n',

  unknownCommand: '500 5.5.2 Command not recognized\r\n',
  malformedLine: '500 5.5.2 Command lines are text and end in CR LF\r\n',
  lineTooLong: '500 5.5.6 Line too long\r\n',
  notImplemented: '502 5.5.1 Command not implemented\r\n',
  noArgument: '501 5.5.4 This command takes no argument\r\n',
  needsArgument: '501 5.5.4 This command needs an argument\r\n',
  heloFirst: '503 5.5.1 Say EHLO first\r\n',
  mailFirst: '503 5.5.1 MAIL first\r\n',
  nestedMail: '503 5.5.1 A message is under way already\r\n',
  lateRecipient: '503 5.5.1 The message has begun, no more recipients\r\n',
  recipientsFirst: '503 5.5.1 RCPT first\r\n',
  noRecipients: '554 5.5.1 No valid recipients\r\n',
  dataAfterBdat: '503 5.5.1 BDAT has begun, DATA cannot go on\r\n',
  malformedBdat: '501 5.5.4 BDAT takes a number of octets\r\n',
  failedBdat: '503 5.5.1 The message was refused, RSET first\r\n',
  tooManyRecipients: '452 4.5.3 Too many recipients\r\n',
  tooLarge: '552 5.3.4 Message too large\r\n',
  unsynchronized: '554 5.5.0 Wait for the reply before you go on\r\n',
  earlyTalker: '554 5.5.0 Wait for the greeting before you speak\r\n',
  noWebServer: '554 5.5.0 This is a mail server\r\n',

  tlsIsOn: '503 5.5.1 TLS is on already\r\n',
  tlsFirst: '530 5.7.0 Issue a STARTTLS command first\r\n',
  injected: '554 5.5.0 Nothing may follow STARTTLS before TLS\r\n',
  encryptionRequired: '538 5.7.11 Encryption required to log in\r\n',
  authenticationRequired: '530 5.7.0 Log in first\r\n',
  authUnknown: '504 5.5.4 Unknown login mechanism\r\n',
  authRepeated: '503 5.5.1 Logged in already\r\n',
  authInTransaction: '503 5.5.1 Not while a message is under way\r\n',
  authCancelled: '501 5.7.0 Login cancelled\r\n',
  authMalformed: '501 5.5.2 Not what this mechanism sends\r\n',
  authForeign: '535 5.7.8 Nobody logs in for somebody else here\r\n',
  authTooLong: '500 5.5.6 Login response too long\r\n',

  tooManySessions: '421 4.3.2 Too many connections, try again later\r\n',
  tooManyFromAddress: '421 4.7.0 Too many connections from your address, try again later\r\n',
  tooManyErrors: '421 4.7.0 Too many errors\r\n',
  tooManyMessages: '421 4.7.0 Enough messages for one connection\r\n',
  busy: '421 4.3.2 Too busy to wait for you, try again later\r\n',
  timeout: '421 4.4.2 Timeout\r\n',
  sessionTimeout: '421 4.4.2 This session has lasted too long\r\n',
  shuttingDown: '421 4.3.2 Shutting down, try again later\r\n',
  internalError: '451 4.3.0 Internal error, try again later\r\n',
} as const

/** A refusal ready to be sent. */
export interface RefusalReply {
  readonly line: string
  readonly closes: boolean
}

/** @returns undefined where what was thrown is no refusal but a fault of ours */
export function refusalReply(thrown: unknown): RefusalReply | undefined {
  if (thrown instanceof SmtpRefusal)
    return { line: replyLine(thrown.code, thrown.enhanced, thrown.message), closes: thrown.closes }
  if (thrown instanceof AppError && thrown.code !== 'internal_error') {
    const [code, enhanced] = ERRORS[thrown.code].smtp
    return { line: replyLine(code, enhanced, thrown.message), closes: false }
  }
  return undefined
}

/** One reply of one line. */
export function replyLine(code: number, enhanced: string, text: string): string {
  return `${code} ${enhanced} ${printable(text)}\r\n`
}

function printable(text: string): string {
  const line = text.slice(0, MAX_TEXT)
  return /^[\x20-\x7e]*$/.test(line) ? line : line.replace(/\s+/g, ' ').replace(/[^\x20-\x7e]/g, '?')
}
