/**
 * Receives inbound mail: checks recipients and stores what it accepts before replying 250.
 *
 * The receiver of the inbound SMTP service. Accepts only mail for the server itself (signed return paths, unsubscribe
 * addresses, feedback, reports, postmaster, abuse), so it is never an open relay, and never replies with mail. Contents
 * are parsed later. Mail whose recipients are all signed addresses is never rejected because of what others send
 * (`intake-limiter.ts`, `mail-quota.ts`). Memory: one part per session, and a bound over all sessions. Standards: RFC
 * 5321 §3.6.2 (relaying), §4.5.1, §6.1 (what 250 promises). Rejects with SmtpRefusal (550, 552, 452, 421); a database
 * error becomes a 451.
 */
import { FairShares } from '../../core/fair-shares.js'
import type { Holder } from '../../core/holder.js'
import type { Services } from '../../db/services.js'
import { MessageSpool } from '../../mail/message-spool.js'
import {
  SmtpRefusal,
  type MailCommand,
  type MailReceiver,
  type MailTransaction,
  type RcptCommand,
  type SessionFacts,
} from '../../smtp/receiver.js'
import { addressHolder } from '../../world/net/ip-address.js'
import { readInboundAddress, type InboundDomains } from '../inbound-address.js'
import type { IntakeLimiter } from './intake-limiter.js'
import type { MailQuota } from './mail-quota.js'
import type { InboundCounters } from '../results.js'
import {
  deleteInboundParts,
  insertInboundMail,
  insertInboundPart,
  type InboundRecipient,
} from '../inbound-mail-store.js'
import type { MessageTokens } from '../effects/match-message.js'

export interface ReceiverParts extends Pick<Services, 'database' | 'clock' | 'log' | 'newId'> {
  readonly names: InboundDomains
  readonly tokens: MessageTokens
  readonly counters: InboundCounters
  /** Maximum size, bytes. */
  readonly messageSize: number
  /** Maximum size of unsigned mail, bytes. */
  readonly unsignedMessageSize: number
  readonly limiter: IntakeLimiter
  readonly quota: MailQuota
  /** Called after the commit. @param isSigned whether every recipient is a signed address */
  readonly onStored: (isSigned: boolean) => void
}

/**
 * Memory of unfinished mails, all sessions together, bytes. Unsigned mail may use half, which its senders share fairly. Signed mail is never
 * rejected for it, but written in smaller parts.
 */
const MAX_HELD_OCTETS = 64 * 1_024 * 1_024

export function openInboundReceiver(parts: ReceiverParts): MailReceiver<undefined> {
  const memory = new HeldMemory()
  return {
    beginMail(session, _, mail) {
      parts.database.storage.requireRoom()
      return new InboundTransaction(parts, memory, session, mail)
    },
  }
}

class HeldMemory {
  private readonly unsigned = new FairShares(MAX_HELD_OCTETS / 2)
  private signed = 0

  /** If full, sessions write what they hold. */
  get isFull(): boolean {
    return this.signed + this.unsigned.held > MAX_HELD_OCTETS
  }

  /** @param sender of unsigned mail @throws SmtpRefusal */
  take(octets: number, sender: Holder | undefined): void {
    if (!sender) this.signed += octets
    else if (this.unsigned.take(sender, octets) !== undefined)
      throw new SmtpRefusal(452, '4.3.1', 'too much mail is arriving at once, try again later')
  }

  release(octets: number, sender: Holder | undefined): void {
    if (sender) this.unsigned.release(sender, octets)
    else this.signed -= octets
  }
}

class InboundTransaction implements MailTransaction {
  private readonly parts: ReceiverParts
  private readonly memory: HeldMemory
  private readonly session: SessionFacts
  private readonly mail: MailCommand
  private readonly bodyId: string
  private readonly recipients: InboundRecipient[] = []
  private readonly spool: MessageSpool
  /** Undefined while all recipients are signed. */
  private sender: Holder | undefined
  private size = 0
  /** Bytes added to the quota. */
  private counted = 0
  private isEnded = false
  private isRefusalLogged = false

  constructor(parts: ReceiverParts, memory: HeldMemory, session: SessionFacts, mail: MailCommand) {
    this.parts = parts
    this.memory = memory
    this.session = session
    this.mail = mail
    this.bodyId = parts.newId()
    this.spool = new MessageSpool({
      write: (part, octets) => this.writePart(part, octets),
      remove: () => parts.database.write(tx => deleteInboundParts(tx.db, this.bodyId)),
    })
  }

  async addRecipient({ address }: RcptCommand): Promise<void> {
    const { tokens, names, counters } = this.parts
    const known = readInboundAddress(address, names)
    switch (known.kind) {
      case 'foreign':
        throw new SmtpRefusal(550, '5.7.1', 'relaying denied')
      case 'unknown':
        throw noSuchMailbox()
      case 'return_path':
      case 'unsubscribe': {
        const message = await tokens.find(known)
        if (!message) {
          counters.forged += 1
          this.logForged(known.kind)
          throw noSuchMailbox()
        }
        this.parts.limiter.beginSigned(message.id)
        this.recipients.push({ address, purpose: known.kind, messageId: message.id })
        return
      }
      case 'feedback':
      case 'reports':
      case 'contact':
        await this.beginUnsigned()
        this.recipients.push({ address, purpose: known.kind })
    }
  }

  /** @throws SmtpRefusal */
  private async beginUnsigned(): Promise<void> {
    if (this.sender) return
    const { limiter, quota, unsignedMessageSize } = this.parts
    const { size = 0 } = this.mail
    if (size > unsignedMessageSize) throw tooLarge()
    if (!quota.fits(size)) throw quotaExceeded()
    await limiter.beginUnsigned(this.session.peerAddress)
    this.sender = addressHolder(this.session.peerAddress)
  }

  openMessage(): void {
    // Nothing to prepare.
  }

  async write(piece: Buffer): Promise<void> {
    this.count(piece.length)
    this.memory.take(piece.length, this.sender)
    this.spool.add(piece)
    if (this.sender)
      await this.parts.limiter.takeUnsigned(this.session.peerAddress, this.size - piece.length, this.size)
    await this.spool.writeWholeParts()
    if (this.memory.isFull) await this.spool.write()
  }

  /** @throws SmtpRefusal if a limit is exceeded */
  private count(octets: number): void {
    const { limiter, quota, messageSize, unsignedMessageSize } = this.parts
    this.size += octets
    if (this.size > (this.sender ? Math.min(messageSize, unsignedMessageSize) : messageSize)) throw tooLarge()
    if (this.sender && !quota.fits(octets)) throw quotaExceeded()
    for (const { messageId } of this.recipients)
      if (messageId !== undefined) limiter.takeSigned(messageId, octets)
    quota.add(octets)
    this.counted += octets
  }

  async finish(): Promise<string> {
    const { database, clock, counters, quota, onStored } = this.parts
    const rest = this.spool.take()
    try {
      database.storage.requireRoom()
      const number = await database.write(async tx => {
        if (rest.length > 0) await insertInboundPart(tx.db, this.bodyId, this.spool.partsWritten, rest)
        const seq = await insertInboundMail(tx.db, {
          bodyId: this.bodyId,
          receivedAt: clock.now(),
          session: this.session.id,
          peerAddress: this.session.peerAddress,
          heloName: this.session.heloName.slice(0, 255),
          envelopeSender: this.mail.address,
          recipients: this.recipients,
          size: this.size,
        })
        tx.changed('inbound')
        tx.onCommit(() => onStored(this.sender === undefined))
        return seq
      })
      quota.noteStored(this.counted)
      counters.received += 1
      return `stored as ${number}`
    } catch (error) {
      this.drop()
      throw error
    } finally {
      this.isEnded = true
      this.memory.release(rest.length, this.sender)
    }
  }

  abandon(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.memory.release(this.spool.bufferedBytes, this.sender)
    this.drop()
  }

  private drop(): void {
    this.parts.quota.drop(this.counted)
    this.counted = 0
    const { log } = this.parts
    // If this fails, the next start deletes them.
    this.spool
      .discard()
      .catch(() => log.warn('parts of an unfinished inbound mail not deleted', { session: this.session.id }))
  }

  private async writePart(part: number, octets: Buffer): Promise<void> {
    try {
      await this.parts.database.write(tx => insertInboundPart(tx.db, this.bodyId, part, octets))
    } finally {
      this.memory.release(octets.length, this.sender)
    }
  }

  /** Once per mail: a guesser may try many addresses. */
  private logForged(kind: string): void {
    if (this.isRefusalLogged) return
    this.isRefusalLogged = true
    this.parts.log.info('forged inbound address rejected', {
      kind,
      peer: this.session.peerAddress,
      session: this.session.id,
    })
  }
}

function tooLarge(): SmtpRefusal {
  return new SmtpRefusal(552, '5.3.4', 'message too large')
}

function quotaExceeded(): SmtpRefusal {
  return new SmtpRefusal(452, '4.3.1', 'no space for mail without a signed return path, try again later')
}

function noSuchMailbox(): SmtpRefusal {
  return new SmtpRefusal(550, '5.1.1', 'no such mailbox here')
}
