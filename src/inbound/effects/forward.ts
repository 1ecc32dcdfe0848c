/**
 * Forwards mail to postmaster@ and abuse@ to a person, attached to a new mail so that the author's signature and DMARC
 * policy do not interfere.
 *
 * Called by the processor inside its transaction. Does not forward mail that was forwarded before (a loop), nor more
 * than a hundred an hour. Standards: RFC 5321 §4.5.1, RFC 2142, RFC 3834 §5 (Auto-Submitted).
 */
import type { Tx } from '../../db/database.js'
import { foldField, headerDate, unstructured } from '../../mail/compose/header-field.js'
import { encodeBase64 } from '../../mail/mime/transfer-encoding.js'
import { enqueueSystemMail, type SystemMailParts } from '../../queue/enqueue-system-mail.js'
import type { InboundMail } from '../inbound-mail-store.js'
import type { MailHead } from '../reading/parser-protocol.js'
import type { Effect } from './effects.js'

export interface ForwardParts extends SystemMailParts {
  readonly hostname: string
  /** Undefined disables forwarding. */
  readonly forwardTo: string | undefined
}

const HOUR_MS = 3_600_000
const MAX_PER_HOUR = 100
/** Base64-encoded and with headers it fits one part of a relayed message. */
const MAX_ATTACHED = 180_000
const MAX_SUBJECT = 200

export class Forwarder {
  private readonly parts: ForwardParts
  /** When mails were forwarded in the last hour, ms since epoch UTC. */
  private recentAt: number[] = []
  /** Mails forwarded in a transaction that is not committed yet. */
  private readonly pending = new WeakMap<Tx, number>()

  constructor(parts: ForwardParts) {
    this.parts = parts
  }

  /** @param readOriginal reads at most this many bytes of the mail */
  async forward(
    tx: Tx,
    mail: InboundMail,
    head: MailHead | undefined,
    now: number,
    readOriginal: (most: number) => Promise<Buffer>,
  ): Promise<Effect> {
    const { forwardTo } = this.parts
    if (forwardTo === undefined) return { result: 'kept', detail: 'inbound.forward_to is empty' }
    if (!head) return { result: 'kept', detail: 'unreadable header' }
    if (head.loops.some(loop => loop.trim().toLowerCase() === this.loopAddress))
      return { result: 'kept', detail: 'already forwarded once' }
    this.recentAt = this.recentAt.filter(at => at > now - HOUR_MS)
    const pending = this.pending.get(tx) ?? 0
    if (this.recentAt.length + pending >= MAX_PER_HOUR)
      return { result: 'kept', detail: `limit of ${MAX_PER_HOUR} an hour reached` }
    this.pending.set(tx, pending + 1)
    tx.onCommit(() => this.recentAt.push(now))
    const subject = forwardedSubject(mail, head)
    const message = this.compose(mail, forwardTo, subject, await readOriginal(MAX_ATTACHED), now)
    await enqueueSystemMail(tx, this.parts, {
      from: this.loopAddress,
      to: forwardTo,
      subject,
      message,
      signingDomainId: null,
      createdAt: now,
    })
    return { result: 'forwarded', detail: `to ${forwardTo}` }
  }

  /** Value of X-Loop and author of forwarded mail. */
  private get loopAddress(): string {
    return `postmaster@${this.parts.hostname}`
  }

  private compose(mail: InboundMail, to: string, subject: string, original: Buffer, now: number): Buffer {
    const id = this.parts.newId()
    const boundary = `=_${id}`
    const isCut = original.length < mail.size
    const lines = [
      foldField('From', `Postroad <${this.loopAddress}>`),
      foldField('To', to),
      foldField('Subject', unstructured(subject)),
      `Date: ${headerDate(now)}`,
      `Message-ID: <${id}@${this.parts.hostname}>`,
      'Auto-Submitted: auto-generated',
      `X-Loop: ${this.loopAddress}`,
      'MIME-Version: 1.0',
      `Content-Type: multipart/mixed; boundary="${boundary}"`,
      '',
      `--${boundary}`,
      'Content-Type: text/plain; charset=us-ascii',
      '',
      ...coverText(mail, isCut).map(line => line.replace(/[^\x20-\x7e]/g, '?')),
      '',
      `--${boundary}`,
      // RFC 2046 §5.2.1 forbids base64 for message/rfc822, and the original may be 8-bit.
      'Content-Type: application/octet-stream; name="original.eml"',
      'Content-Disposition: attachment; filename="original.eml"',
      'Content-Transfer-Encoding: base64',
      '',
      encodeBase64(original).toString('latin1'),
      `--${boundary}--`,
      '',
    ]
    return Buffer.from(lines.join('\r\n'), 'latin1')
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

function coverText(mail: InboundMail, isCut: boolean): string[] {
  return [
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
}
