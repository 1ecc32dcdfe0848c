/**
 * One message at a time on its way in: MAIL, RCPT, DATA or BDAT, the octets, and the end.
 *
 * Called by `session.ts`; hands everything to the receiver's transaction. Keeps no octets. A message that cannot be taken
 * is read to its end without being kept, within a bound, and refused there: answered earlier, the rest of it would be read
 * as commands. Standards: RFC 5321 §3.3, §4.1.1, RFC 1870 §6.2 and §6.3, RFC 2920, RFC 3030 §2.
 *
 * ```
 * idle      MAIL taken -> open          BDAT -> its octets are read, then 503
 * open      RCPT taken -> open          DATA taken -> dotted          BDAT -> counted
 * dotted    CR LF . CR LF -> idle
 * counted   octets of the chunk read -> open with a message begun; LAST -> idle
 * any       RSET, EHLO, a lost connection, a refusal of the message -> idle, the transaction abandoned
 * ```
 */
import { MessageScanner, type MessageFault } from './message-scanner.js'
import { readMail, readRcpt, type ParameterRules } from './mail-command.js'
import type { SessionRules } from './options.js'
import type { MailReceiver, MailTransaction, SessionFacts } from './receiver.js'
import { REPLY, replyLine } from './reply.js'
import type { LogEvent } from '../world/log-events.js'

/** What an envelope needs of its session. */
export interface EnvelopeSession<Identity> {
  readonly rules: SessionRules
  readonly receiver: MailReceiver<Identity>
  readonly facts: SessionFacts
  readonly identity: Identity | undefined
  readonly isOver: boolean
  /** The client has sent more already. */
  readonly hasInput: boolean
  reply(line: string): void
  /** The reply to something a receiver threw, and whether the connection ends with it. */
  refusal(thrown: unknown, event?: LogEvent<'info'>): { readonly line: string; readonly closes: boolean }
  /** Counts a refused sender or recipient. */
  countRefusal(): void
  close(line: string): void
  /** A whole message is here. @returns to be called when it was taken */
  beginTaking(): () => void
  /** Does the receiver's work; the session reads on when it is done. */
  settle<T>(work: () => Promise<T> | T, then: (value: T) => void, otherwise: (thrown: unknown) => void): void
}

/** A message being read. */
interface Intake {
  readonly scanner: MessageScanner
  /** Octets of the chunk still to come; undefined with DATA. */
  remaining: number | undefined
  isLast: boolean
  /** The reply at the end, where the message is refused already. */
  refused: string | undefined
  closes: boolean
  /** Octets read since it is refused. */
  swallowed: number
}

/** Octets of a refused message that are read at least; RFC 5321 has no way to stop a sender. */
const LEAST_SWALLOWED = 16_777_216
/** Refused recipients beyond the limit that count as nothing: the rest of a pipelined list. */
const OVERSHOOT = 1_000
const CR_LF = Buffer.from('\r\n')

const FAULTS: Readonly<Record<MessageFault, string>> = {
  'line-end': replyLine(550, '5.6.0', 'Message has a CR or LF that is no line end'),
  nul: replyLine(550, '5.6.0', 'Message has a NUL octet'),
  'line-length': replyLine(550, '5.6.0', 'Message has a line that is too long'),
  'header-size': replyLine(552, '5.3.4', 'Header of the message too large'),
  'message-size': REPLY.tooLarge,
}

export class Envelope<Identity> {
  private readonly session: EnvelopeSession<Identity>
  private transaction: MailTransaction | undefined
  private allowsUtf8 = false
  private recipients = 0
  private offered = 0
  private intake: Intake | undefined
  /** Between chunks: the message that BDAT has begun. */
  private begun: Intake | undefined
  private isFinishing = false
  /** Messages begun, and messages taken. */
  begins = 0
  /** What the log names where something is refused: the sender, and the recipient that was asked for last. */
  asked: { readonly from?: string; readonly to?: string } = {}
  taken = 0

  constructor(session: EnvelopeSession<Identity>) {
    this.session = session
  }

  /** Whether what comes in now is a message and no command. */
  get isReceiving(): boolean {
    return this.intake !== undefined
  }

  /** Whether the message under way should be given time to end when the server stops. */
  get isInMessage(): boolean {
    return this.intake !== undefined || this.begun !== undefined || this.isFinishing
  }

  get isOpen(): boolean {
    return this.transaction !== undefined
  }

  /**
   * @param argument what follows `MAIL FROM:`
   * @returns the reply to a fault of the client, as `rcpt` and `data` do; all else is replied to from here
   */
  mail(argument: string, parameters: ParameterRules): string | undefined {
    const { session } = this
    if (this.isOpen) return REPLY.nestedMail
    const mail = readMail(argument, parameters)
    if (typeof mail === 'string') return mail
    this.asked = { from: mail.address }
    const { transactions } = session.rules.limits
    if (transactions > 0 && this.begins >= transactions) {
      session.close(REPLY.tooManyMessages)
      return undefined
    }
    this.begins += 1
    session.settle(
      () => session.receiver.beginMail(session.facts, session.identity, mail),
      transaction => {
        this.transaction = transaction
        this.allowsUtf8 = mail.smtpUtf8
        this.recipients = this.offered = 0
        session.reply(REPLY.senderOk)
      },
      thrown => this.refuseAddress(thrown),
    )
    return undefined
  }

  /** @param argument what follows `RCPT TO:` */
  rcpt(argument: string, parameters: ParameterRules): string | undefined {
    const { session, transaction } = this
    if (transaction === undefined) return REPLY.mailFirst
    if (this.begun !== undefined) return REPLY.lateRecipient
    this.offered += 1
    const { recipients } = session.rules.limits
    if (this.recipients >= recipients) {
      if (this.offered > recipients + OVERSHOOT) return REPLY.tooManyRecipients
      session.reply(REPLY.tooManyRecipients)
      return undefined
    }
    const recipient = readRcpt(argument, this.allowsUtf8, parameters)
    if (typeof recipient === 'string') return recipient
    this.asked = { ...this.asked, to: recipient.address }
    session.settle(
      () => transaction.addRecipient(recipient),
      () => {
        this.recipients += 1
        session.reply(REPLY.recipientOk)
      },
      thrown => this.refuseAddress(thrown),
    )
    return undefined
  }

  data(): string | undefined {
    const { session, transaction } = this
    if (session.hasInput) {
      // RFC 2920 §3.1: DATA ends a group. Were it refused, a message that came along would be read as commands.
      session.close(REPLY.unsynchronized)
      return undefined
    }
    if (this.begun !== undefined) return REPLY.dataAfterBdat
    const missing = this.missingBeforeMessage()
    if (transaction === undefined || missing !== undefined) return missing ?? REPLY.mailFirst
    session.settle(
      () => transaction.openMessage(),
      () => {
        this.intake = this.newIntake(true)
        session.reply(REPLY.sendMessage)
      },
      thrown => this.refuseMessage(thrown),
    )
    return undefined
  }

  /** @param argument what follows `BDAT `, e.g. `1000 LAST` */
  bdat(argument: string): void {
    const { session, transaction } = this
    const [, digits, last] = /^(\d{1,15})( LAST)?$/i.exec(argument.trim()) ?? []
    // Without the count nobody knows where the next command begins.
    if (digits === undefined) {
      session.close(REPLY.malformedBdat)
      return
    }
    const size = Number(digits)
    const isLast = last !== undefined
    const intake = this.begun ?? this.newIntake(false)
    const missing = this.missingBeforeMessage()
    if (transaction === undefined || missing !== undefined) {
      intake.refused = missing ?? REPLY.mailFirst
      this.beginChunk(intake, size, isLast)
    } else if (this.begun !== undefined) {
      this.beginChunk(intake, size, isLast)
    } else {
      session.settle(
        () => transaction.openMessage(),
        () => this.beginChunk(intake, size, isLast),
        thrown => {
          this.refuseLater(intake, thrown)
          this.beginChunk(intake, size, isLast)
        },
      )
    }
  }

  /**
   * Takes octets of the message.
   *
   * @returns where they end in `octets`
   */
  take(octets: Buffer, from: number): number {
    const { intake } = this
    if (intake === undefined) return from
    const { scanner, remaining } = intake
    const isWhole = remaining === undefined || octets.length - from <= remaining
    const end = scanner.scan(isWhole ? octets : octets.subarray(0, from + remaining), from)
    if (remaining !== undefined) intake.remaining = remaining - (end - from)
    if (scanner.fault !== undefined && intake.refused === undefined) {
      intake.refused = FAULTS[scanner.fault]
      this.abandon()
    }
    if (intake.refused !== undefined) {
      this.swallow(intake, end - from)
    } else {
      this.write(intake, octets.subarray(scanner.keptFrom, scanner.keptTo))
    }
    return end
  }

  /** Forgets the message, wherever it stands; one that is being finished is the receiver's already. */
  reset(): void {
    this.abandon()
    this.intake = this.begun = undefined
  }

  private write(intake: Intake, piece: Buffer): void {
    const { transaction } = this
    if (piece.length === 0 || transaction === undefined) {
      this.goOn(intake)
      return
    }
    this.session.settle(
      () => transaction.write(piece),
      () => this.goOn(intake),
      thrown => {
        this.refuseLater(intake, thrown)
        this.goOn(intake)
      },
    )
  }

  private swallow(intake: Intake, octets: number): void {
    intake.swallowed += octets
    const bound = Math.max(LEAST_SWALLOWED, this.session.rules.limits.messageSize)
    if (intake.swallowed > bound) this.session.close(intake.refused ?? REPLY.tooLarge)
    else this.goOn(intake)
  }

  /** After each piece: is it the end of the message, or of the chunk? */
  private goOn(intake: Intake): void {
    if (intake.remaining === undefined ? intake.scanner.isComplete : intake.remaining === 0)
      this.endOfOctets(intake)
  }

  private beginChunk(intake: Intake, size: number, isLast: boolean): void {
    this.begun = undefined
    this.intake = intake
    intake.remaining = size
    intake.isLast = isLast
    if (size === 0) this.endOfOctets(intake)
  }

  private endOfOctets(intake: Intake): void {
    const { session, transaction } = this
    this.intake = undefined
    if (session.isOver) return
    if (intake.remaining !== undefined && intake.isLast) {
      intake.scanner.end()
      if (intake.scanner.fault !== undefined) intake.refused ??= FAULTS[intake.scanner.fault]
    }
    if (transaction === undefined || intake.refused !== undefined) {
      this.reset()
      const line = intake.refused ?? REPLY.failedBdat
      if (intake.closes) session.close(line)
      else session.reply(line)
    } else if (intake.remaining !== undefined && !intake.isLast) {
      this.begun = intake
      session.reply(REPLY.chunkOk)
    } else if (!intake.scanner.isAtLineStart) {
      // BDAT may leave the last line open; what is stored and signed ends in a line end (RFC 6376 §3.4.3).
      session.settle(
        () => transaction.write(CR_LF),
        () => this.finish(transaction),
        thrown => this.refuseMessage(thrown),
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
    const taken = session.beginTaking()
    session.settle(
      () => transaction.finish(),
      text => {
        taken()
        this.isFinishing = false
        this.taken += 1
        session.reply(replyLine(250, '2.0.0', text))
      },
      thrown => {
        this.isFinishing = false
        this.refuseMessage(thrown)
      },
    )
  }

  private missingBeforeMessage(): string | undefined {
    if (!this.isOpen) return REPLY.mailFirst
    if (this.recipients > 0) return undefined
    return this.offered > 0 ? REPLY.noRecipients : REPLY.recipientsFirst
  }

  private newIntake(isDotted: boolean): Intake {
    const scanner = new MessageScanner(this.session.rules.limits, isDotted)
    return { scanner, remaining: undefined, isLast: false, refused: undefined, closes: false, swallowed: 0 }
  }

  private refuseAddress(thrown: unknown): void {
    const { line, closes } = this.session.refusal(thrown)
    if (closes) {
      this.session.close(line)
      return
    }
    this.session.reply(line)
    // "Too many for now" invites the client to go on, and no guessing is met with it.
    if (!line.startsWith('452')) this.session.countRefusal()
  }

  private refuseMessage(thrown: unknown): void {
    this.reset()
    const { line, closes } = this.session.refusal(thrown)
    if (closes) this.session.close(line)
    else this.session.reply(line)
  }

  private refuseLater(intake: Intake, thrown: unknown): void {
    const { line, closes } = this.session.refusal(thrown)
    intake.refused = line
    intake.closes = closes
    this.abandon()
  }

  private abandon(): void {
    this.transaction?.abandon()
    this.transaction = undefined
  }
}
