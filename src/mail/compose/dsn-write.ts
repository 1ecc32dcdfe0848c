/**
 * Writes delivery status notifications.
 *
 * The caller sends them with an empty return path, never in reply to an empty one, and observes NOTIFY (RFC 3461 §6.2). Output is 7-bit
 * with CRLF line endings and deterministic. Throws if there is no recipient.
 * Standards: RFC 3464 (message/delivery-status), RFC 6522 (multipart/report), RFC 6533 §3 (non-ASCII addresses without SMTPUTF8), RFC 3461
 * §4.3 (RET), §6 (contents), RFC 3834 §5 (Auto-Submitted).
 */
import { createHash } from 'node:crypto'
import { parseAddress } from '../address.js'
import { foldField, headerDate, internationalMailbox } from '../mime/write-header-field.js'
import { MAX_HEADER_OCTETS, readRelayedHeader } from '../relay/relayed-header.js'
import { toSevenBit } from '../relay/seven-bit.js'
import { encodeText, isSevenBit } from '../mime/transfer-encoding.js'

export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed'

export interface DsnRecipient {
  readonly finalRecipient: string
  /** ORCPT, decoded, with its type: `rfc822;ann@example.com`. */
  readonly originalRecipient?: string
  readonly action: DsnAction
  /** RFC 3463, e.g. `5.1.1`. */
  readonly status: string
  readonly remoteMta?: string
  /** The remote server's reply including its code, or our own description without one; may span lines. */
  readonly diagnostic?: string
  readonly lastAttemptAt?: number
  /** Ms since epoch UTC; only with `delayed`. */
  readonly willRetryUntil?: number
}

export interface DsnFacts {
  readonly hostname: string
  /** Return path of the original; not empty. */
  readonly to: string
  /** `left@right` without angle brackets. */
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly date: number
  /** When the original was accepted, ms since epoch UTC. */
  readonly arrivedAt?: number
  /** ENVID, decoded. */
  readonly envelopeId?: string
  /** At least one; tens, not thousands. */
  readonly recipients: readonly DsnRecipient[]
  /** As sent, CRLF line endings. */
  readonly original: Buffer
  /** RET (RFC 3461 §4.3). For messages over 64 KB only the header is returned. */
  readonly returns: 'FULL' | 'HDRS'
}

const MAX_RETURNED_OCTETS = 65_536
/** Some servers send pages of text. */
const MAX_DIAGNOSTIC = 1_000

/** The worst action determines the subject. */
const SUBJECTS: readonly (readonly [DsnAction, string])[] = [
  ['failed', 'Undelivered mail'],
  ['delayed', 'Delayed mail (still being retried)'],
  ['relayed', 'Mail relayed to a server without delivery notifications'],
  ['delivered', 'Successful mail delivery'],
]

const SENTENCES: Readonly<Record<DsnAction, string>> = {
  failed:
    'Your message could not be delivered to the following recipients. No further attempts will be made.',
  delayed:
    'Your message has not been delivered to the following recipients yet. Delivery will be retried; you do not need to resend it.',
  relayed:
    'Your message was relayed for the following recipients to a server that does not send delivery notifications. You may receive no further notice.',
  delivered: 'Your message was delivered to the following recipients.',
}

export function writeDsn(facts: DsnFacts): Buffer {
  const subject = SUBJECTS.find(([action]) => facts.recipients.some(each => each.action === action))
  if (!subject) throw new Error('a delivery status notification needs a recipient')
  // `=_` cannot occur in quoted-printable or base64; the hash distinguishes it from anything in the returned message.
  const boundary = `=_${createHash('sha256').update(facts.messageId).digest('hex').slice(0, 32)}`
  const header = [
    field('From', `Mail Delivery System <mailer-daemon@${facts.hostname}>`),
    field('To', recipientMailbox(facts.to)),
    field('Subject', subject[1]),
    field('Date', headerDate(facts.date)),
    field('Message-ID', `<${facts.messageId}>`),
    ...threading(facts.original),
    field('Auto-Submitted', 'auto-replied'),
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=delivery-status;\r\n boundary="${boundary}"`,
  ]
  const parts = [explanation(facts), statusPart(facts), returnedPart(facts)]
  const pieces = parts.flatMap(part => [Buffer.from(`--${boundary}\r\n`), part, Buffer.from('\r\n')])
  return Buffer.concat([
    Buffer.from(`${header.join('\r\n')}\r\n\r\n`, 'latin1'),
    ...pieces,
    Buffer.from(`--${boundary}--\r\n`),
  ])
}

function recipientMailbox(text: string): string {
  const address = parseAddress(text, { allowSingleLabel: true })
  if (!address) return `<${printable(text)}>`
  return internationalMailbox(address, 'group')
}

/** Shows the notification next to the original in threaded views. */
function threading(original: Buffer): string[] {
  const { messageId } = readRelayedHeader(original)
  if (messageId === undefined || !/^[\x21-\x7e]{1,250}$/.test(messageId)) return []
  return [field('In-Reply-To', `<${messageId}>`), field('References', `<${messageId}>`)]
}

function explanation({ hostname, recipients }: DsnFacts): Buffer {
  const lines = [`This is the mail system at ${hostname}.`, '']
  for (const [action] of SUBJECTS) {
    const concerned = recipients.filter(each => each.action === action)
    if (concerned.length > 0) lines.push(SENTENCES[action], '', ...concerned.flatMap(explained))
  }
  return textPart('text/plain; charset=utf-8', Buffer.from(lines.join('\r\n')))
}

function explained(recipient: DsnRecipient): string[] {
  const { remoteMta, diagnostic, willRetryUntil } = recipient
  const lines = [`<${recipient.finalRecipient.replace(/\p{Cc}+/gu, ' ')}>`]
  if (diagnostic !== undefined) {
    const host = remoteMta === undefined || !isReply(diagnostic) ? '' : `${printable(remoteMta)} said: `
    lines.push(`    ${host}${oneLine(diagnostic)}`)
  }
  if (willRetryUntil !== undefined)
    lines.push(`    Delivery will be retried until ${headerDate(willRetryUntil)}.`)
  return [...lines, '']
}

/** RFC 3464 §2.2 (per message), §2.3 (per recipient): groups separated by empty lines. */
function statusPart(facts: DsnFacts): Buffer {
  const perMessage = [
    ...optional('Original-Envelope-Id', facts.envelopeId && printable(facts.envelopeId)),
    field('Reporting-MTA', `dns; ${facts.hostname}`),
    ...optional('Arrival-Date', date(facts.arrivedAt)),
  ]
  const groups = [perMessage, ...facts.recipients.map(perRecipient)]
  const text = groups.map(group => `${group.join('\r\n')}\r\n`).join('\r\n')
  return Buffer.from(`Content-Type: message/delivery-status\r\n\r\n${text}`, 'latin1')
}

function perRecipient(recipient: DsnRecipient): string[] {
  const { originalRecipient, remoteMta, diagnostic } = recipient
  const willRetryUntil = recipient.action === 'delayed' ? recipient.willRetryUntil : undefined
  return [
    ...optional('Original-Recipient', originalRecipient && typedAddress(originalRecipient)),
    field('Final-Recipient', typedAddress(`rfc822;${recipient.finalRecipient}`)),
    field('Action', recipient.action),
    field('Status', printable(recipient.status)),
    ...optional('Remote-MTA', remoteMta && `dns; ${printable(remoteMta)}`),
    ...optional('Diagnostic-Code', diagnostic && typedDiagnostic(oneLine(diagnostic))),
    ...optional('Last-Attempt-Date', date(recipient.lastAttemptAt)),
    ...optional('Will-Retry-Until', date(willRetryUntil)),
  ]
}

/** RFC 3464 §2.3.6: type smtp is for SMTP replies. */
function typedDiagnostic(text: string): string {
  return `${isReply(text) ? 'smtp' : 'x-postroad'}; ${printable(text)}`
}

function isReply(diagnostic: string): boolean {
  return /^[2-5]\d\d(?: |-|$)/.test(diagnostic)
}

/** `type; address`. Non-ASCII addresses get type utf-8 and are escaped (RFC 6533 §3, utf-8-addr-xtext). */
function typedAddress(text: string): string {
  const semicolon = text.indexOf(';')
  const type = semicolon < 0 ? 'rfc822' : text.slice(0, semicolon).trim()
  const address = text.slice(semicolon + 1).trim()
  if (!/[^\x20-\x7e]/.test(address)) return `${printable(type)}; ${address}`
  const escaped = address.replace(
    /[^\x21-\x2a\x2c-\x3c\x3e-\x5b\x5d-\x7e]/gu,
    character => `\\x{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, '0')}}`,
  )
  return `utf-8; ${escaped}`
}

/** RFC 6522 §3: the message or its header. */
function returnedPart({ original, returns }: DsnFacts): Buffer {
  if (returns === 'FULL' && original.length <= MAX_RETURNED_OCTETS) {
    const message = sevenBitOriginal(original)
    if (message) return Buffer.concat([Buffer.from('Content-Type: message/rfc822\r\n\r\n'), message])
  }
  const { bodyStart } = readRelayedHeader(original)
  return textPart('text/rfc822-headers', original.subarray(0, Math.min(bodyStart, MAX_HEADER_OCTETS)))
}

/** @returns undefined if it cannot be converted to 7-bit; its header can always be encoded as text */
function sevenBitOriginal(original: Buffer): Buffer | undefined {
  try {
    const { message } = toSevenBit(original)
    return isSevenBit(message) ? message : undefined
  } catch {
    return undefined
  }
}

function textPart(type: string, octets: Buffer): Buffer {
  if (isSevenBit(octets)) return Buffer.concat([Buffer.from(`Content-Type: ${type}\r\n\r\n`), octets])
  const { encoding, encoded } = encodeText(octets)
  const head = `Content-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), encoded])
}

function optional(name: string, value: string | undefined): string[] {
  return value ? [field(name, value)] : []
}

function date(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : headerDate(moment)
}

/** Words too long for a line are split. */
function field(name: string, value: string): string {
  return foldField(name, value) ?? foldField(name, value.replace(/[^ ]{900}/g, '$& ')) ?? `${name}: ?`
}

function oneLine(text: string): string {
  return text.slice(0, MAX_DIAGNOSTIC).replace(/\s+/g, ' ').trim()
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, '?')
}
