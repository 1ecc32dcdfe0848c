/**
 * Receives one message at a time: MAIL, RCPT, DATA or BDAT, the data, and its end.
 *
 * Passes everything to the receiver's transaction and buffers nothing. A rejected message is read to its end, within a limit, and the
 * rejection sent then; otherwise the rest of the message would be read as commands.
 * Standards: RFC 5321 §3.3, §4.1.1, RFC 1870 §6.2 and §6.3, RFC 2920, RFC 3030 §2.
 *
 * ```
 * idle      MAIL accepted -> open          BDAT -> its octets are read, then 503
 * open      RCPT accepted -> open          DATA accepted -> dotted          BDAT -> counted
 * dotted    CRLF.CRLF -> idle
 * counted   end of chunk -> open, between chunks; LAST -> idle
 * any       RSET, EHLO, lost connection, rejection of the message -> idle, transaction aborted
 * ```
 */
import { MessageScanner, type MessageFault } from './message-scanner.js'
import { readMail, readRcpt, type ParameterRules } from './mail-command.js'
import type { SessionRules } from './options.js'
import type { MailReceiver, MailTransaction, SessionFacts } from './receiver.js'
import { REPLY, replyLine } from './reply.js'
import type { LogEvent } from '../world/log-events.js'

export interface EnvelopeSession<Identity> {
  readonly rules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly facts: SessionFacts
  readonly identity: Identity | undefined
  readonly isOver: boolean
  /** Whether the client has already sent more. */
  readonly hasInput: boolean
  reply(line: string): void
  /** The reply to an error a receiver threw, and whether it closes the connection. */
  refusal(thrown: unknown, event?: LogEvent<'info'>): { readonly line: string; readonly closes: boolean }
  countRefusal(): void
  close(line: string): void
  /** Starts timing at the end of the message. @returns called when it was accepted */
  startAcceptTimer(): () => void
  /** Calls the receiver; the session reads nothing more until it is done. */
  callReceiver<T>(
    work: () => Promise<T> | T,
    then: (value: T) => void,
    otherwise: (thrown: unknown) => void,
  ): void
}

/** A message being received. */
interface IncomingMessage {
  readonly scanner: MessageScanner
  /** Octets left in the chunk; undefined with DATA. */
  remaining: number | undefined
  isLast: boolean
  /** Set once the message is rejected: the reply to send at its end. */
  rejection: string | undefined
  closes: boolean
  /** Octets read since the rejection. */
  discarded: number
}

/** A rejected message is read up to this size, or the message size limit; RFC 5321 has no way to stop a client. */
const MIN_DISCARDED = 16_777_216
/** Rejected recipients over the limit that do not count as errors: the rest of a pipelined list. */
const EXCESS_RECIPIENTS = 1_000
const CR_LF = Buffer.from('\r\n')

function faultReply(fault: MessageFault, { textLine, header }: SessionRules['limits']): string {
  switch (fault) {
    case 'line-end':
      return replyLine(550, '5.6.0', 'Message contains a bare CR or LF')
    case 'nul':
      return replyLine(550, '5.6.0', 'Message contains a NUL octet')
    case 'line-length':
      return replyLine(550, '5.6.0', `Message contains a line of more than ${textLine} octets`)
    case 'header-size':
      return replyLine(552, '5.3.4', `Message header has more than ${header} octets`)
    case 'message-size':
      return REPLY.tooLarge
  }
}

export class Envelope<Identity> {
  private readonly session: EnvelopeSession<Identity>
  private transaction: MailTransaction | undefined
  private allowsUtf8 = false
  private recipientCount = 0
  private offeredCount = 0
  private incoming: IncomingMessage | undefined
  /** The message of a BDAT sequence while the next chunk is awaited. */
  private betweenChunks: IncomingMessage | undefined
  private isFinishing = false
  transactionCount = 0
  /** For the log: the sender and the last recipient. */
  lastAddresses: { readonly from?: string; readonly to?: string } = {}
  acceptedCount = 0

  constructor(session: EnvelopeSession<Identity>) {
    this.session = session
  }

  /** Whether input is message data, not commands. */
  get isReceiving(): boolean {
    return this.incoming !== undefined
  }

  /** Whether a shutdown waits for the message to end. */
  get isInMessage(): boolean {
    return this.incoming !== undefined || this.betweenChunks !== undefined || this.isFinishing
  }

  get isOpen(): boolean {
    return this.transaction !== undefined
  }

  /**
   * @param argument what follows `MAIL FROM:`
   * @returns the reply to a client error, as `rcpt` and `data` do; all other replies are sent from here
   */
  mail(argument: string, parameters: ParameterRules): string | undefined {
    const { session } = this
    if (this.isOpen) return REPLY.nestedMail
    const mail = readMail(argument, parameters)
    if (typeof mail === 'string') return mail
    this.lastAddresses = { from: mail.address }
    const { transactions } = session.rules.limits
    if (transactions > 0 && this.transactionCount >= transactions) {
      session.close(REPLY.tooManyMessages)
      return undefined
    }
    this.transactionCount += 1
    session.callReceiver(
      () => session.receiver.beginMail(session.facts, session.identity, mail),
      transaction => {
        this.transaction = transaction
        this.allowsUtf8 = mail.smtpUtf8
        this.recipientCount = this.offeredCount = 0
        session.reply(REPLY.senderOk)
      },
      thrown => this.rejectAddress(thrown),
    )
    return undefined
  }

  /** @param argument what follows `RCPT TO:` */
  rcpt(argument: string, parameters: ParameterRules): string | undefined {
    const { session, transaction } = this
    if (transaction === undefined) return REPLY.mailFirst
    if (this.betweenChunks !== undefined) return REPLY.lateRecipient
    this.offeredCount += 1
    const { recipients } = session.rules.limits
    if (this.recipientCount >= recipients) {
      if (this.offeredCount > recipients + EXCESS_RECIPIENTS) return REPLY.tooManyRecipients
      session.reply(REPLY.tooManyRecipients)
      return undefined
    }
    const recipient = readRcpt(argument, this.allowsUtf8, parameters)
    if (typeof recipient === 'string') return recipient
    this.lastAddresses = { ...this.lastAddresses, to: recipient.address }
    session.callReceiver(
      () => transaction.addRecipient(recipient),
      () => {
        this.recipientCount += 1
        session.reply(REPLY.recipientOk)
      },
      thrown => this.rejectAddress(thrown),
    )
    return undefined
  }

  data(): string | undefined {
    const { session, transaction } = this
    if (session.hasInput) {
      // RFC 2920 §3.1: DATA ends a group. If it were rejected, message data sent along would be read as commands.
      session.close(REPLY.unsynchronized)
      return undefined
    }
    if (this.betweenChunks !== undefined) return REPLY.dataAfterBdat
    const missing = this.prerequisiteError()
    if (transaction === undefined || missing !== undefined) return missing ?? REPLY.mailFirst
    session.callReceiver(
      () => transaction.openMessage(),
      () => {
        this.incoming = this.newMessage(true)
        session.reply(REPLY.sendMessage)
      },
      thrown => this.rejectMessage(thrown),
    )
    return undefined
  }

  /** @param argument what follows `BDAT `, e.g. `1000 LAST` */
  bdat(argument: string): void {
    const { session, transaction } = this
    const [, digits, last] = /^(\d{1,15})( LAST)?$/i.exec(argument.trim()) ?? []
    // Without the size, the start of the next command is unknown.
    if (digits === undefined) {
      session.close(REPLY.malformedBdat)
      return
    }
    const size = Number(digits)
    const isLast = last !== undefined
    const message = this.betweenChunks ?? this.newMessage(false)
    const missing = this.prerequisiteError()
    if (transaction === undefined || missing !== undefined) {
      message.rejection = missing ?? REPLY.mailFirst
      this.beginChunk(message, size, isLast)
    } else if (this.betweenChunks !== undefined) {
      this.beginChunk(message, size, isLast)
    } else {
      session.callReceiver(
        () => transaction.openMessage(),
        () => this.beginChunk(message, size, isLast),
        thrown => {
          this.rejectAtEnd(message, thrown)
          this.beginChunk(message, size, isLast)
        },
      )
    }
  }

  /**
   * Reads message data.
   *
   * @returns where it ends in `octets`
   */
  receive(octets: Buffer, from: number): number {
    const { incoming: message } = this
    if (message === undefined) return from
    const { scanner, remaining } = message
    const isWhole = remaining === undefined || octets.length - from <= remaining
    const end = scanner.scan(isWhole ? octets : octets.subarray(0, from + remaining), from)
    if (remaining !== undefined) message.remaining = remaining - (end - from)
    if (scanner.fault !== undefined && message.rejection === undefined) {
      message.rejection = faultReply(scanner.fault, this.session.rules.limits)
      this.abandon()
    }
    if (message.rejection !== undefined) {
      this.discard(message, end - from)
    } else {
      this.write(message, octets.subarray(scanner.keptFrom, scanner.keptTo))
    }
    return end
  }

  /** Aborts the message, unless the receiver is already finishing it. */
  reset(): void {
    this.abandon()
    this.incoming = this.betweenChunks = undefined
  }

  private write(message: IncomingMessage, piece: Buffer): void {
    const { transaction } = this
    if (piece.length === 0 || transaction === undefined) {
      this.checkEnd(message)
      return
    }
    this.session.callReceiver(
      () => transaction.write(piece),
      () => this.checkEnd(message),
      thrown => {
        this.rejectAtEnd(message, thrown)
        this.checkEnd(message)
      },
    )
  }

  private discard(message: IncomingMessage, octets: number): void {
    message.discarded += octets
    const bound = Math.max(MIN_DISCARDED, this.session.rules.limits.messageSize)
    if (message.discarded > bound) this.session.close(message.rejection ?? REPLY.tooLarge)
    else this.checkEnd(message)
  }

  /** Called after each piece: ends the message or the chunk if it is complete. */
  private checkEnd(message: IncomingMessage): void {
    if (message.remaining === undefined ? message.scanner.isComplete : message.remaining === 0)
      this.endOfData(message)
  }

  private beginChunk(message: IncomingMessage, size: number, isLast: boolean): void {
    this.betweenChunks = undefined
    this.incoming = message
    message.remaining = size
    message.isLast = isLast
    if (size === 0) this.endOfData(message)
  }

  private endOfData(message: IncomingMessage): void {
    const { session, transaction } = this
    this.incoming = undefined
    if (session.isOver) return
    if (message.remaining !== undefined && message.isLast) {
      message.scanner.end()
      if (message.scanner.fault !== undefined)
        message.rejection ??= faultReply(message.scanner.fault, this.session.rules.limits)
    }
    if (transaction === undefined || message.rejection !== undefined) {
      this.reset()
      const line = message.rejection ?? REPLY.failedBdat
      if (message.closes) session.close(line)
      else session.reply(line)
    } else if (message.remaining !== undefined && !message.isLast) {
      this.betweenChunks = message
      session.reply(REPLY.chunkOk)
    } else if (!message.scanner.isAtLineStart) {
      // BDAT may leave the last line open; stored and signed messages end in CRLF (RFC 6376 §3.4.3).
      session.callReceiver(
        () => transaction.write(CR_LF),
        () => this.finish(transaction),
        thrown => this.rejectMessage(thrown),
      )
    } else {
      this.finish(transaction)
    }
  }

  private finish(transaction: MailTransaction): void {
    const { session } = this
    if (session.isOver) return
    this.transaction = undefined
    this.isFinishing = true
    const taken = session.startAcceptTimer()
    session.callReceiver(
      () => transaction.finish(),
      text => {
        taken()
        this.isFinishing = false
        this.acceptedCount += 1
        session.reply(replyLine(250, '2.0.0', text))
      },
      thrown => {
        this.isFinishing = false
        this.rejectMessage(thrown)
      },
    )
  }

  private prerequisiteError(): string | undefined {
    if (!this.isOpen) return REPLY.mailFirst
    if (this.recipientCount > 0) return undefined
    return this.offeredCount > 0 ? REPLY.noRecipients : REPLY.recipientsFirst
  }

  private newMessage(isDotted: boolean): IncomingMessage {
    const scanner = new MessageScanner(this.session.rules.limits, isDotted)
    return { scanner, remaining: undefined, isLast: false, rejection: undefined, closes: false, discarded: 0 }
  }

  private rejectAddress(thrown: unknown): void {
    const { line, closes } = this.session.refusal(thrown)
    if (closes) {
      this.session.close(line)
      return
    }
    this.session.reply(line)
    // 452 (too many recipients) asks the client to continue, and is not a sign of address harvesting.
    if (!line.startsWith('452')) this.session.countRefusal()
  }

  private rejectMessage(thrown: unknown): void {
    this.reset()
    const { line, closes } = this.session.refusal(thrown)
    if (closes) this.session.close(line)
    else this.session.reply(line)
  }

  private rejectAtEnd(message: IncomingMessage, thrown: unknown): void {
    const { line, closes } = this.session.refusal(thrown)
    message.rejection = line
    message.closes = closes
    this.abandon()
  }

  private abandon(): void {
    this.transaction?.abandon()
    this.transaction = undefined
  }
}
