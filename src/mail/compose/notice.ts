/**
 * Composes mail the server writes to people itself, such as forwarded mail and invitations, with nodemailer's MailComposer.
 *
 * Mail of workspaces is composed by `compose.ts`, which is synchronous and much faster. Output is 7-bit with CRLF line endings, and identical
 * when composed again. Takes several turns of the event loop: never await it inside a transaction.
 * Standards: RFC 3834 §5 (Auto-Submitted).
 */
import type { NamedAddress } from '../address.js'
import type { HeaderField } from './compose.js'

export interface Notice {
  readonly from: NamedAddress
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** `left@right`, without angle brackets. */
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly date: number
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly NoticeAttachment[]
}

export interface NoticeAttachment {
  readonly filename: string
  readonly contentType: string
  readonly content: Buffer
}

export async function composeNotice({
  from,
  headers = [],
  attachments = [],
  ...notice
}: Notice): Promise<Buffer> {
  // Loaded on first use: it is large, and most servers write no such mail for days.
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const mail = new MailComposer({
    ...notice,
    from: { name: from.name ?? '', address: from.address },
    to: { name: '', address: notice.to },
    messageId: `<${notice.messageId}>`,
    date: new Date(notice.date),
    headers: [
      { key: 'Auto-Submitted', value: 'auto-generated' },
      ...headers.map(({ name, value }) => ({ key: name, value })),
    ],
    // Base64 for all: the type alone would leave an attached text unencoded.
    attachments: attachments.map(one => ({ ...one, contentTransferEncoding: 'base64' })),
    // `=_` cannot occur in quoted-printable or base64 (RFC 2045 §6.7).
    boundaryPrefix: '=_',
    baseBoundary: notice.messageId,
    newline: 'windows',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return mail.compile().build()
}
