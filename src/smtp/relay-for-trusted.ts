/**
 * A receiver that stands before two: what is for the appliance itself goes to the one, what a trusted client sends to others to the
 * other (`inbound.relay_trusted`).
 *
 * Opened by the composition root for the inbound listener, where printers come that know only port 25. Who is trusted is the second
 * receiver's to say, by `connect`; nobody can log in here, and for everybody else there is only the first. The first recipient decides
 * where a message goes; one of the other kind is told to come in a message of its own, which senders do by themselves
 * (RFC 5321 §4.5.3.1.10). Fails: as the receivers do.
 */
import {
  SmtpRefusal,
  type MailCommand,
  type MailReceiver,
  type MailTransaction,
  type RcptCommand,
  type SessionFacts,
} from './receiver.js'

export interface TrustedRelay<Identity> {
  /** Whether trusted clients are known at all. Asked for each connection. */
  readonly isOn: () => boolean
  readonly own: MailReceiver<undefined>
  readonly relayed: MailReceiver<Identity>
  /** Whether a recipient is the appliance's own. */
  readonly isOwn: (address: string) => boolean
}

export function relayForTrusted<Identity>(parts: TrustedRelay<Identity>): MailReceiver<Identity> {
  const { own, relayed, isOn } = parts
  return {
    connect: session => (isOn() ? relayed.connect?.(session) : undefined),
    keyIdOf: identity => relayed.keyIdOf?.(identity) ?? '',
    beginMail: (session, identity, mail) =>
      identity === undefined
        ? own.beginMail(session, undefined, mail)
        : new UndecidedTransaction(parts, session, identity, mail),
  }
}

class UndecidedTransaction<Identity> implements MailTransaction {
  private readonly parts: TrustedRelay<Identity>
  private readonly session: SessionFacts
  private readonly identity: Identity
  private readonly mail: MailCommand
  private chosen: { readonly isOwn: boolean; readonly transaction: MailTransaction } | undefined

  constructor(parts: TrustedRelay<Identity>, session: SessionFacts, identity: Identity, mail: MailCommand) {
    this.parts = parts
    this.session = session
    this.identity = identity
    this.mail = mail
  }

  async addRecipient(recipient: RcptCommand): Promise<void> {
    const isOwn = this.parts.isOwn(recipient.address)
    this.chosen ??= { isOwn, transaction: await this.begin(isOwn) }
    if (this.chosen.isOwn !== isOwn)
      throw new SmtpRefusal(452, '4.5.3', 'Send this recipient a message of its own')
    await this.chosen.transaction.addRecipient(recipient)
  }

  private begin(isOwn: boolean): Promise<MailTransaction> | MailTransaction {
    const { own, relayed } = this.parts
    return isOwn
      ? own.beginMail(this.session, undefined, this.mail)
      : relayed.beginMail(this.session, this.identity, this.mail)
  }

  openMessage(): Promise<void> | void {
    return this.transaction.openMessage()
  }

  write(piece: Buffer): Promise<void> | void {
    return this.transaction.write(piece)
  }

  finish(): Promise<string> {
    return this.transaction.finish()
  }

  abandon(): void {
    this.chosen?.transaction.abandon()
  }

  /** There is a recipient before there is a message. */
  private get transaction(): MailTransaction {
    if (!this.chosen) throw new Error('a message without a recipient')
    return this.chosen.transaction
  }
}
