/**
 * The Received field: where a message came from, by whom it was taken, how, and when.
 *
 * Called by the listeners, submission and inbound. Says nothing of recipients: the field goes to all of them. What the
 * client says of itself is cut down to what no reader can take for anything else. Pure.
 * Standards: RFC 5321 §4.4 (grammar), RFC 3848 and RFC 6531 §4.3 (protocol names).
 * Fails: never throws.
 */
import { headerDate } from '../mime/header-date.js'

export interface ReceivedFacts {
  /** What the client called itself in EHLO; any text. */
  readonly helo: string
  /** IP address; left out where it is not to be told. */
  readonly peerAddress?: string
  /** Our own name. */
  readonly hostname: string
  readonly protocol: TransmissionProtocol
  /** Under which our logs know the message. */
  readonly id: string
  /** Ms since epoch UTC. */
  readonly date: number
  readonly tls?: { readonly version: string; readonly cipher: string }
}

export type TransmissionProtocol = 'SMTP' | `${'ESMTP' | 'UTF8SMTP'}${'' | 'S' | 'A' | 'SA'}`

/** RFC 5321 §4.5.3.1.2. */
const MAX_NAME = 255

/** RFC 3848: S for TLS, A for a login; RFC 6531 §4.3: UTF8SMTP where the transaction used SMTPUTF8. */
export function transmissionProtocol(how: {
  readonly isEsmtp: boolean
  readonly hasTls: boolean
  readonly isAuthenticated: boolean
  readonly smtpUtf8: boolean
}): TransmissionProtocol {
  if (!how.isEsmtp) return 'SMTP'
  const suffix = `${how.hasTls ? 'S' : ''}${how.isAuthenticated ? 'A' : ''}` as const
  return how.smtpUtf8 ? `UTF8SMTP${suffix}` : `ESMTP${suffix}`
}

/** @returns folded, without the CRLF at its end */
export function receivedField(facts: ReceivedFacts): string {
  const { peerAddress, tls } = facts
  const literal = peerAddress === undefined ? undefined : addressLiteral(peerAddress)
  const helo = plain(facts.helo)
  const from = helo === '' ? (literal ?? 'unknown') : helo
  const lines = [
    `Received: from ${from}${literal !== undefined && literal !== from ? ` (${literal})` : ''}`,
    ...(tls ? [`(using ${plain(tls.version)} with cipher ${plain(tls.cipher)})`] : []),
    `by ${plain(facts.hostname)} with ${facts.protocol} id ${plain(facts.id)};`,
    headerDate(facts.date),
  ]
  return lines.join('\r\n ')
}

/** RFC 5321 §4.1.3. The address comes from our own socket; its form is checked so that it is never more than one. */
function addressLiteral(address: string): string | undefined {
  if (/^[0-9.]{7,15}$/.test(address)) return `[${address}]`
  // A zone (`fe80::1%eth0`) means something on one host only.
  const [bare = ''] = address.split('%', 1)
  return /^[0-9A-Fa-f:.]{2,45}$/.test(bare) && bare.includes(':') ? `[IPv6:${bare}]` : undefined
}

/** Without anything that could end the clause, open a comment or fold: no name of a host, cipher or message needs it. */
function plain(text: string): string {
  return text.slice(0, MAX_NAME).replace(/[^A-Za-z0-9.:_[\]-]/g, '?')
}
