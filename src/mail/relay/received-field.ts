/**
 * Builds the Received field.
 *
 * Names no recipients, since all of them get the field. What the client claims about itself is reduced to safe
 * characters. Never throws.
 * Standards: RFC 5321 §4.4 (grammar), RFC 3848 and RFC 6531 §4.3 (protocol names).
 */
import { headerDate } from '../compose/header-field.js'

export interface ReceivedFacts {
  /** Argument of EHLO; any text. */
  readonly helo: string
  /** Client IP address; omit to hide it. */
  readonly peerAddress?: string
  /** Our own host name. */
  readonly hostname: string
  readonly protocol: TransmissionProtocol
  /** Id of the message in our logs. */
  readonly id: string
  /** Ms since epoch UTC. */
  readonly date: number
  readonly tls?: { readonly version: string; readonly cipher: string }
}

export type TransmissionProtocol = 'SMTP' | `${'ESMTP' | 'UTF8SMTP'}${'' | 'S' | 'A' | 'SA'}`

/** RFC 5321 §4.5.3.1.2. */
const MAX_NAME = 255

/** RFC 3848: S for TLS, A for AUTH; RFC 6531 §4.3: UTF8SMTP if the transaction used SMTPUTF8. */
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

/** @returns folded, without the final CRLF */
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

/** RFC 5321 §4.1.3. The address comes from our own socket; the check only guards against surprises. */
function addressLiteral(address: string): string | undefined {
  if (/^[0-9.]{7,15}$/.test(address)) return `[${address}]`
  // A zone id (`fe80::1%eth0`) is local to a host.
  const [bare = ''] = address.split('%', 1)
  return /^[0-9A-Fa-f:.]{2,45}$/.test(bare) && bare.includes(':') ? `[IPv6:${bare}]` : undefined
}

/** Removes what could end the clause, open a comment or fold; valid names do not need it. */
function plain(text: string): string {
  return text.slice(0, MAX_NAME).replace(/[^A-Za-z0-9.:_[\]-]/g, '?')
}
