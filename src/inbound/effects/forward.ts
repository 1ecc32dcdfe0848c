/**
 * Mail to postmaster@ and abuse@ on its way to the person who reads it: as an attachment of a mail of our own, so that no
 * signature or policy of the original's author stands in its way.
 *
 * Called by the processor inside its transaction. Never forwarded are mails that were forwarded before (a loop), and more
 * than a hundred in an hour. Standards: RFC 5321 §4.5.1, RFC 2142 (somebody is to read it), RFC 3834 §5 (Auto-Submitted).
 * Fails: as the database does.
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
  /** Absent: nothing is forwarded. */
  readonly forwardTo: string | undefined
}

const HOUR_MS = 3_600_000
const MAX_PER_HOUR = 100
/** Octets of the original; in base64 and with what is around it they fit one part of a relayed message. */
const MAX_ATTACHED = 180_000
const MAX_SUBJECT = 200

export class Forwarder {
  private readonly parts: ForwardParts
  /** When the last ones were forwarded, ms since epoch UTC. */
  private recentAt: number[] = []

  constructor(parts: ForwardParts) {
    this.parts = parts
  }

  /** @param readOriginal the mail's first octets, so many at most */
  async forward(
    tx: Tx,
    mail: InboundMail,
    head: MailHead | undefined,
    now: number,
    readOriginal: (most: number) => Promise<Buffer>,
  ): Promise<Effect> {
    const { forwardTo } = this.parts
    if (forwardTo === undefined) return { result: 'kept', detail: 'inbound.forward_to is empty' }
    if (!head) return { result: 'kept', detail: 'its header could not be read' }
    if (head.loops.some(loop => loop.trim().toLowerCase() === this.loopAddress))
      return { result: 'kept', detail: 'it was forwarded before' }
    this.recentAt = this.recentAt.filter(at => at > now - HOUR_MS)
    if (this.recentAt.length >= MAX_PER_HOUR)
      return { result: 'kept', detail: `more than ${MAX_PER_HOUR} within an hour` }
    this.recentAt.push(now)
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

  /** What a mail that we forwarded has in X-Loop; also its author. */
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
      // RFC 2046 §5.2.1 allows message/rfc822 no base64, and the original may be 8-bit.
      'Content-Type: application/octet-stream; name="original.eml"',
      'Content-Disposition: attachment; filename="original.eml"',
      'Content-Transfer-Encoding: base64',
      '',
      encodeBase64(original).toString('latin1'),
      `--${boundary}--`,
      '',
    ]
    return Buffer.from(lines.filter(line => line !== undefined).join('\r\n'), 'latin1')
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
    'This mail came to a mailbox of your mail server that a person has to read.',
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
      ? `Its beginning is attached; all of it: postroad inbound show ${mail.seq}`
      : 'It is attached as it came. It has not been examined for viruses.',
  ]
}
