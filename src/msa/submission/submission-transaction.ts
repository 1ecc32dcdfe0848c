/**
 * One message on its way in by SMTP: recipients, then contents, kept in memory up to one part and beyond that written
 * to the database while it still arrives, so that a message of any size takes little memory.
 *
 * Made by `submission-receiver.ts` for each MAIL command; what the message means is `relay-mail.ts`. Fails: an address that
 * cannot be mailed is refused at RCPT (553 5.1.3), so that the program at the other end hears of it at once; so are recipients
 * beyond what the key may send in a minute (452 4.5.3), who would never get through together.
 */
import type { NewId } from '../../core/ids.js'
import { describeError } from '../../core/errors.js'
import { readAddress } from '../../mail/address.js'
import { deleteParts, insertPart, PART_OCTETS } from '../../messages/content-store.js'
import {
  SmtpRefusal,
  type MailCommand,
  type MailTransaction,
  type RcptCommand,
  type SessionFacts,
} from '../../smtp/receiver.js'
import type { Log } from '../../world/log.js'
import { relayMail, type RelayMailParts } from './relay-mail.js'
import type { Reporting } from '../letter.js'
import type { Submitter } from './submitter.js'

export interface RelayParts extends RelayMailParts {
  readonly newId: NewId
  readonly log: Log
}

/** Of what is not written yet; more are joined. */
const MOST_PIECES = 256

export class SubmissionTransaction implements MailTransaction {
  private readonly parts: RelayParts
  private readonly session: SessionFacts
  private readonly submitter: Submitter
  private readonly mail: MailCommand
  private readonly contentId: string
  private readonly recipients: string[] = []
  private readonly reporting = new Map<string, Reporting>()
  /** Not written yet. */
  private pieces: Buffer[] = []
  private octets = 0
  /** The first part, once others follow it. */
  private firstPart: Buffer | undefined
  private storedParts = 0
  private storedOctets = 0
  private isAccepted = false

  constructor(parts: RelayParts, session: SessionFacts, submitter: Submitter, mail: MailCommand) {
    this.parts = parts
    this.session = session
    this.submitter = submitter
    this.mail = mail
    this.contentId = parts.newId()
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
      this.reporting.set(address, {
        ...(notify === undefined ? {} : { notify: notify.join(',') }),
        ...(orcpt === undefined ? {} : { originalRecipient: orcpt }),
      })
  }

  openMessage(): void {
    // Nothing to prepare: what arrives is kept as it comes.
  }

  write(piece: Buffer): Promise<void> | undefined {
    this.pieces.push(piece)
    this.octets += piece.length
    // Octet by octet each would take a hundred times its size.
    if (this.pieces.length === MOST_PIECES) this.pieces = [joined(this.pieces)]
    return this.octets > PART_OCTETS ? this.storeParts() : undefined
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
    const rest = joined(this.pieces)
    this.pieces = []
    if (this.firstPart !== undefined && rest.length > 0) await this.storePart(rest)
    const accepted = await relayMail(this.parts, {
      principal: this.submitter.principal,
      isLoggedIn: !this.submitter.isTrusted,
      session: this.session,
      mail: this.mail,
      recipients: this.recipients,
      reporting: this.reporting,
      contentId: this.contentId,
      firstPart: this.firstPart ?? rest,
      laterOctets: this.storedOctets,
    })
    this.isAccepted = true
    return accepted
  }

  abandon(): void {
    this.pieces = []
    if (this.storedParts === 0 || this.isAccepted) return
    const { database, log } = this.parts
    // What is left behind here is cleared at the next start.
    database
      .write(tx => deleteParts(tx.db, this.contentId), { canWait: true })
      .catch((error: unknown) =>
        log.warn('parts of a refused message remain', { error: describeError(error) }),
      )
  }

  private async storeParts(): Promise<void> {
    const octets = joined(this.pieces)
    let at = 0
    if (this.firstPart === undefined) {
      // Its own memory, not a window on what is written below.
      this.firstPart = Buffer.from(octets.subarray(0, PART_OCTETS))
      at = PART_OCTETS
    }
    for (; octets.length - at >= PART_OCTETS; at += PART_OCTETS)
      await this.storePart(octets.subarray(at, at + PART_OCTETS))
    this.pieces = at < octets.length ? [Buffer.from(octets.subarray(at))] : []
    this.octets = octets.length - at
  }

  private async storePart(octets: Buffer): Promise<void> {
    this.storedParts += 1
    this.storedOctets += octets.length
    await this.parts.database.write(tx => insertPart(tx.db, this.contentId, this.storedParts, octets))
  }
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces)
}
