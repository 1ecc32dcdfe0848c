/**
 * Combines two receivers on the inbound listener: one for the appliance's own addresses, one that relays for trusted clients
 * (`inbound.relay_trusted`).
 *
 * For devices such as printers that only support port 25. The relaying receiver's `connect` decides which clients are trusted; AUTH is not
 * offered. The first recipient decides which receiver gets the message. A recipient of the other kind is answered with 452, so that the
 * client sends it in a separate message (RFC 5321 §4.5.3.1.10).
 */
import {
  SmtpRefusal,
  type MailCommand,
  type MailReceiver,
  type MailTransaction,
  type RcptCommand,
  type SessionFacts,
} from './receiver.js'

interface TrustedRelayParts<Identity> {
  /** Whether relaying is enabled; checked for each connection. */
  readonly isEnabled: () => boolean
  readonly own: MailReceiver<undefined>
  readonly relayed: MailReceiver<Identity>
  /** Whether a recipient is one of the appliance's addresses. */
  readonly isOwn: (address: string) => boolean
}

export function relayForTrusted<Identity>(parts: TrustedRelayParts<Identity>): MailReceiver<Identity> {
  const { own, relayed, isEnabled } = parts
  return {
    connect: session => (isEnabled() ? relayed.connect?.(session) : undefined),
    keyIdOf: identity => relayed.keyIdOf?.(identity) ?? '',
    beginMail: (session, identity, mail) =>
      identity === undefined
        ? own.beginMail(session, undefined, mail)
        : new UndecidedTransaction(parts, session, identity, mail),
  }
}

class UndecidedTransaction<Identity> implements MailTransaction {
  private readonly parts: TrustedRelayParts<Identity>
  private readonly session: SessionFacts
  private readonly identity: Identity
  private readonly mail: MailCommand
  private chosen: { readonly isOwn: boolean; readonly transaction: MailTransaction } | undefined

  constructor(
    parts: TrustedRelayParts<Identity>,
    session: SessionFacts,
    identity: Identity,
    mail: MailCommand,
  ) {
    this.parts = parts
    this.session = session
    this.identity = identity
    this.mail = mail
  }

  async addRecipient(recipient: RcptCommand): Promise<void> {
    const isOwn = this.parts.isOwn(recipient.address)
    this.chosen ??= { isOwn, transaction: await this.begin(isOwn) }
    if (this.chosen.isOwn !== isOwn)
      throw new SmtpRefusal(452, '4.5.3', 'Send this recipient in a separate message')
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

  /** The engine sends no data before a recipient was accepted. */
  private get transaction(): MailTransaction {
    if (!this.chosen) throw new Error('message data before the first recipient')
    return this.chosen.transaction
  }
}
