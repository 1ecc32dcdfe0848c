/**
 * Writes delivery status notifications: what a submitter is told of mail that failed, waits, or arrived.
 *
 * Called by whoever settles relayed mail. The caller sends it with an empty return path, never to one, and not where NOTIFY
 * says otherwise (RFC 3461 §6.2). What it writes is 7-bit with CRLF line ends, the same for the same facts. Pure.
 * Standards: RFC 3464 (message/delivery-status), RFC 6522 (multipart/report), RFC 6533 §3 (addresses beyond ASCII, in the
 * form that needs no SMTPUTF8), RFC 3461 §4.3 (RET), §6 (contents), RFC 3834 §5 (Auto-Submitted).
 * Fails: plain Error where there is no recipient; an address that is none is shown as far as ASCII holds it.
 */
import { createHash } from 'node:crypto'
import { parseAddress } from '../address.js'
import { foldField, internationalMailbox } from './header-field.js'
import { headerDate } from '../mime/header-date.js'
import { MAX_HEADER_OCTETS, readRelayedHeader } from '../relay/relayed-header.js'
import { toSevenBit } from '../relay/seven-bit.js'
import { encodeText, isSevenBit } from '../mime/transfer-encoding.js'

export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed'

export interface DsnRecipient {
  /** Address that was tried. */
  readonly finalRecipient: string
  /** ORCPT decoded, with its type: `rfc822;ann@example.com`. */
  readonly originalRecipient?: string
  readonly action: DsnAction
  /** RFC 3463, e.g. `5.1.1`. */
  readonly status: string
  /** Host that was talked to. */
  readonly remoteMta?: string
  /** Its reply, code included; or, without a code, what we have to say ourselves. Any number of lines. */
  readonly diagnostic?: string
  /** Ms since epoch UTC. */
  readonly lastAttemptAt?: number
  /** Ms since epoch UTC; only with `delayed`. */
  readonly willRetryUntil?: number
}

export interface DsnFacts {
  /** Our own name. */
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
  /** The original as it was sent, CRLF line ends. */
  readonly original: Buffer
  /** RET (RFC 3461 §4.3). A message over 64 KB comes back as its header either way. */
  readonly returns: 'FULL' | 'HDRS'
}

const MAX_RETURNED_OCTETS = 65_536
/** Of a diagnostic; servers write novels, and whoever reads needs the first page. */
const MAX_DIAGNOSTIC = 1_000

/** The worst that happened gives the subject: somebody reads only that. */
const SUBJECTS: readonly (readonly [DsnAction, string])[] = [
  ['failed', 'Undelivered mail'],
  ['delayed', 'Delayed mail (still being tried)'],
  ['relayed', 'Mail handed on to a server that sends no confirmations'],
  ['delivered', 'Successful mail delivery'],
]

const SENTENCES: Readonly<Record<DsnAction, string>> = {
  failed: 'Your message could not be delivered to the following recipients. It will not be tried again.',
  delayed:
    'Your message has not been delivered to the following recipients yet. It is still being tried; you need not send it again.',
  relayed:
    'Your message was handed on for the following recipients to a server that does not confirm deliveries. This may be the last you hear of it.',
  delivered: 'Your message was delivered to the following recipients.',
}

/** @returns the complete message, unsigned */
export function writeDsn(facts: DsnFacts): Buffer {
  const subject = SUBJECTS.find(([action]) => facts.recipients.some(each => each.action === action))
  if (!subject) throw new Error('a delivery status notification needs a recipient')
  // `=_` can stand in no quoted-printable or base64 text; the digest keeps it from anything that is returned as it is.
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

/** So that it is shown beside what it is about. */
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
  if (willRetryUntil !== undefined) lines.push(`    It is tried until ${headerDate(willRetryUntil)}.`)
  return [...lines, '']
}

/** RFC 3464 §2.2 (per message), §2.3 (per recipient): groups of fields with an empty line between them. */
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

/** RFC 3464 §2.3.6: the type smtp is for replies. */
function typedDiagnostic(text: string): string {
  return `${isReply(text) ? 'smtp' : 'x-postroad'}; ${printable(text)}`
}

function isReply(diagnostic: string): boolean {
  return /^[2-5]\d\d(?: |-|$)/.test(diagnostic)
}

/** `type; address`. One beyond ASCII gets the type utf-8 and escapes instead (RFC 6533 §3, utf-8-addr-xtext). */
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

/** RFC 6522 §3: the message, or its header. */
function returnedPart({ original, returns }: DsnFacts): Buffer {
  if (returns === 'FULL' && original.length <= MAX_RETURNED_OCTETS) {
    const message = sevenBitOriginal(original)
    if (message) return Buffer.concat([Buffer.from('Content-Type: message/rfc822\r\n\r\n'), message])
  }
  const { bodyStart } = readRelayedHeader(original)
  return textPart('text/rfc822-headers', original.subarray(0, Math.min(bodyStart, MAX_HEADER_OCTETS)))
}

/** @returns undefined where it cannot be 7-bit; its header can be encoded, being text */
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

/** Folded; words that fit into no line are cut. */
function field(name: string, value: string): string {
  return foldField(name, value) ?? foldField(name, value.replace(/[^ ]{900}/g, '$& ')) ?? `${name}: ?`
}

function oneLine(text: string): string {
  return text.slice(0, MAX_DIAGNOSTIC).replace(/\s+/g, ' ').trim()
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, '?')
}
