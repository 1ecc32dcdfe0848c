/**
 * Forwards mail to postmaster@ and abuse@ to a person, attached to a new mail so that the author's signature and DMARC
 * policy do not interfere.
 *
 * Composed before the processor's transaction and enqueued within it. Does not forward mail that was forwarded before (a loop), nor more
 * than a hundred an hour. Standards: RFC 5321 §4.5.1, RFC 2142.
 */
import type { Tx } from '../../db/database.js'
import { composeNotice } from '../../mail/compose/notice.js'
import { enqueueSystemMail, type SystemMailParts } from '../../queue/enqueue-system-mail.js'
import type { InboundMail } from '../inbound-mail-store.js'
import type { MailHead } from '../parser-protocol.js'
import type { Effect } from './effects.js'

export interface ForwardParts extends SystemMailParts {
  readonly hostname: string
  /** Undefined disables forwarding. */
  readonly forwardTo: string | undefined
}

/** Composed and not yet enqueued. */
export interface ForwardedMail {
  readonly to: string
  readonly subject: string
  readonly message: Buffer
}

const HOUR_MS = 3_600_000
const MAX_PER_HOUR = 100
/** Base64-encoded and with headers it fits one part of a relayed message. */
const MAX_ATTACHED = 180_000
const MAX_SUBJECT = 200
const TOO_MANY: Effect = { result: 'kept', detail: `limit of ${MAX_PER_HOUR} an hour reached` }

export class Forwarder {
  private readonly parts: ForwardParts
  /** When mails were forwarded in the last hour, ms since epoch UTC. */
  private recentAt: number[] = []
  /** Mails forwarded in a transaction that is not committed yet. */
  private readonly pending = new WeakMap<Tx, number>()

  constructor(parts: ForwardParts) {
    this.parts = parts
  }

  /**
   * Call it before the transaction.
   *
   * @param readOriginal reads at most this many bytes of the mail
   * @returns the mail to forward, or why it is kept
   */
  async compose(
    mail: InboundMail,
    head: MailHead | undefined,
    now: number,
    readOriginal: (most: number) => Promise<Buffer>,
  ): Promise<ForwardedMail | Effect> {
    const { forwardTo, hostname, newId } = this.parts
    if (forwardTo === undefined) return { result: 'kept', detail: 'inbound.forward_to is empty' }
    if (!head) return { result: 'kept', detail: 'unreadable header' }
    if (head.loops.some(loop => loop.trim().toLowerCase() === this.loopAddress))
      return { result: 'kept', detail: 'already forwarded once' }
    if (this.countRecent(now) >= MAX_PER_HOUR) return TOO_MANY
    const original = await readOriginal(MAX_ATTACHED)
    const subject = forwardedSubject(mail, head)
    const message = await composeNotice({
      from: { name: 'Postroad', address: this.loopAddress },
      to: forwardTo,
      subject,
      text: coverText(mail, original.length < mail.size),
      messageId: `${newId()}@${hostname}`,
      date: now,
      headers: [{ name: 'X-Loop', value: this.loopAddress }],
      // RFC 2046 §5.2.1 forbids base64 for message/rfc822, and the original may be 8-bit.
      attachments: [{ filename: 'original.eml', contentType: 'application/octet-stream', content: original }],
    })
    return { to: forwardTo, subject, message }
  }

  async forward(tx: Tx, { to, subject, message }: ForwardedMail, now: number): Promise<Effect> {
    const pending = this.pending.get(tx) ?? 0
    if (this.countRecent(now) + pending >= MAX_PER_HOUR) return TOO_MANY
    this.pending.set(tx, pending + 1)
    tx.onCommit(() => this.recentAt.push(now))
    await enqueueSystemMail(tx, this.parts, {
      from: this.loopAddress,
      to,
      subject,
      message,
      signingDomainId: null,
      createdAt: now,
    })
    return { result: 'forwarded', detail: `to ${to}` }
  }

  private countRecent(now: number): number {
    this.recentAt = this.recentAt.filter(at => at > now - HOUR_MS)
    return this.recentAt.length
  }

  /** Value of X-Loop and author of forwarded mail. */
  private get loopAddress(): string {
    return `postmaster@${this.parts.hostname}`
  }
}

function forwardedSubject({ recipients }: InboundMail, { subject }: MailHead): string {
  const clean = subject
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_SUBJECT)
  const local =
    recipients.find(({ purpose }) => purpose === 'contact')?.address.split('@', 1)[0] ?? 'postmaster'
  return `[${local.toLowerCase()}] ${clean === '' ? '(no subject)' : clean}`
}

function coverText(mail: InboundMail, isCut: boolean): string {
  const lines = [
    'Your mail server received this mail for a mailbox that a person should read.',
    '',
    `To:       ${mail.recipients
      .map(({ address }) => address)
      .slice(0, 10)
      .join(', ')
      .slice(0, 800)}`,
    `Sender:   <${mail.envelopeSender.slice(0, 320)}>`,
    `Client:   ${mail.heloName.slice(0, 255)} [${mail.peerAddress}]`,
    `Received: ${new Date(mail.receivedAt).toISOString()}, ${mail.size} octets`,
    '',
    isCut
      ? `The beginning is attached. For the whole mail: postroad inbound show ${mail.seq}`
      : 'The mail is attached as received. It was not scanned for viruses.',
  ]
  return lines.map(line => line.replace(/[^\x20-\x7e]/g, '?')).join('\r\n')
}
