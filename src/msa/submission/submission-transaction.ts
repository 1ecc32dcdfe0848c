/**
 * One message arriving by SMTP: recipients, then content. Octets beyond the first part are written to the database as they arrive,
 * so that memory stays bounded for any message size.
 *
 * Created by `submission-receiver.ts` for each MAIL command; `relay-mail.ts` interprets the message. Refuses at RCPT, so that the
 * client learns of it at once: invalid addresses (553 5.1.3), and more recipients than the key's rate per minute (452 4.5.3), which
 * could never be accepted together.
 */
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import type { Services } from '../../db/services.js'
import { readAddress } from '../../mail/address.js'
import { MessageSpool, PART_OCTETS } from '../../mail/message-spool.js'
import { deleteParts, insertPart } from '../../messages/content-store.js'
import {
  SmtpRefusal,
  type MailCommand,
  type MailTransaction,
  type RcptCommand,
  type SessionFacts,
} from '../../smtp/receiver.js'
import { relayMail, type RelayMailParts, type Submitter } from './relay-mail.js'
import type { DsnParameters } from '../mail-submission.js'

export type RelayParts = RelayMailParts & Pick<Services, 'log' | 'newId'>

export class SubmissionTransaction implements MailTransaction {
  private readonly parts: RelayParts
  private readonly session: SessionFacts
  private readonly submitter: Submitter
  private readonly mail: MailCommand
  private readonly contentId: string
  private readonly recipients: string[] = []
  private readonly dsn = new Map<string, DsnParameters>()
  /** Holds the parts after the first, which is stored in the content's own row. */
  private readonly spool: MessageSpool
  /** Set once the message exceeds one part. */
  private firstPart: Buffer | undefined

  constructor(parts: RelayParts, session: SessionFacts, submitter: Submitter, mail: MailCommand) {
    this.parts = parts
    this.session = session
    this.submitter = submitter
    this.mail = mail
    this.contentId = parts.newId()
    this.spool = new MessageSpool({
      write: (part, octets) =>
        parts.database.write(tx => insertPart(tx.db, this.contentId, part + 1, octets)),
      remove: () => parts.database.write(tx => deleteParts(tx.db, this.contentId)),
    })
  }

  addRecipient({ address, notify, orcpt }: RcptCommand): void {
    const read = readAddress(address)
    if ('fault' in read) throw new SmtpRefusal(553, '5.1.3', `The address ${read.fault}`)
    const { isSandbox, emailRateLimit } = this.submitter.principal
    if (!isSandbox && emailRateLimit > 0 && this.recipients.length >= emailRateLimit)
      throw new SmtpRefusal(
        452,
        '4.5.3',
        `Too many recipients: this key may send ${emailRateLimit} mails per minute`,
      )
    this.recipients.push(address)
    if (notify !== undefined || orcpt !== undefined)
      this.dsn.set(address, {
        ...(notify === undefined ? {} : { notify: notify.join(',') }),
        ...given({ originalRecipient: orcpt }),
      })
  }

  openMessage(): void {
    // Nothing to prepare.
  }

  write(piece: Buffer): Promise<void> | undefined {
    this.spool.add(piece)
    return this.spool.bufferedBytes > PART_OCTETS ? this.writeParts() : undefined
  }

  private async writeParts(): Promise<void> {
    // A copy: it is kept until the end of the message.
    this.firstPart ??= Buffer.from(this.spool.take(PART_OCTETS))
    await this.spool.writeWholeParts()
  }

  async finish(): Promise<string> {
    try {
      return await this.accept()
    } catch (error) {
      this.abandon()
      throw error
    }
  }

  private async accept(): Promise<string> {
    const firstPart = this.firstPart ?? this.spool.take()
    await this.spool.write()
    return relayMail(this.parts, {
      principal: this.submitter.principal,
      isLoggedIn: !this.submitter.isTrusted,
      session: this.session,
      mail: this.mail,
      recipients: this.recipients,
      dsn: this.dsn,
      contentId: this.contentId,
      firstPart,
      laterOctets: this.spool.writtenBytes,
    })
  }

  abandon(): void {
    const { log } = this.parts
    // The next start deletes what this fails to delete.
    this.spool
      .discard()
      .catch((error: unknown) =>
        log.warn('rejected message parts not deleted', { error: describeError(error) }),
      )
  }
}
