/**
 * Edits the header of a relayed message: adds and removes the fields that submission must.
 *
 * Other fields and the body keep their octets and order, since signatures depend on them. Throws AppError `validation_error` if an address
 * is too long for a header line.
 * Standards: RFC 5321 §4.4 (Received on top, Return-Path is the final host's), RFC 6409 §8 (Date, Message-ID), RFC 5322 §3.6.3 (Bcc),
 * §3.6.6 (Resent-Bcc).
 */
import { AppError } from '../../core/errors.js'
import { parseAddress, type NamedAddress } from '../address.js'
import { foldField, hasHeaderBreak, headerDate, mailbox } from '../mime/write-header-field.js'
import type { HeaderField } from '../mime/header-fields.js'
import { POSTROAD_PREFIX } from '../server-fields.js'
import type { RelayedHeader, RelayedMailbox } from './relayed-header.js'

export interface HeaderEdits {
  /** A Received field without its final CRLF (`receivedField`). */
  readonly received?: string
  /** `left@right` without angle brackets; used if the message has none. */
  readonly messageIdToAdd?: string
  /** Ms since epoch UTC; used if the message has no Date. */
  readonly dateToAdd?: number
  /**
   * Replaces From, for workspaces that send from a shared address. The author becomes Reply-To unless there is one; Sender is removed,
   * since it would name the author's domain.
   */
  readonly fromToSet?: NamedAddress
  /** Replaces Sender, if present. */
  readonly senderToSet?: NamedAddress
  /** Further fields to remove, lower case. */
  readonly removals?: readonly string[]
}

/** Bcc must stay hidden; Return-Path is written by the delivering host. */
const ALWAYS_REMOVED: readonly string[] = ['bcc', 'resent-bcc', 'return-path']

/** @returns the new header including the empty line; the body follows from `header.bodyStart` */
export function editRelayedHeader(header: RelayedHeader, edits: HeaderEdits): Buffer {
  const removed = removedNames(header, edits)
  const replacements = replacementFields(edits)
  const pieces: string[] = []
  if (edits.received !== undefined) pieces.push(edits.received, '\r\n')
  // Unchanged fields are copied in runs; most headers are one run.
  let keptFrom = 0
  for (const field of header.fields) {
    const replacement = replacements.get(field.name)
    if (replacement === undefined && !isRemoved(field, removed)) continue
    pieces.push(header.text.slice(keptFrom, field.start))
    if (replacement !== undefined) pieces.push(replacement)
    replacements.delete(field.name)
    keptFrom = field.end
  }
  pieces.push(header.text.slice(keptFrom))
  // A message that is all header may end within its last field.
  if (!header.text.endsWith('\r\n') && header.text !== '' && keptFrom < header.text.length)
    pieces.push('\r\n')
  pieces.push(replacements.get('from') ?? '')
  pieces.push(...addedFields(header, edits), '\r\n')
  return Buffer.from(pieces.join(''), 'latin1')
}

/** By lower-case name, each with its CRLF. Replaces the first field of that name; repeated ones are removed. */
function replacementFields({ fromToSet, senderToSet }: HeaderEdits): Map<string, string> {
  const replacements = new Map<string, string>()
  if (fromToSet) replacements.set('from', `${foldOrThrow('From', formatMailbox(fromToSet))}\r\n`)
  if (senderToSet) replacements.set('sender', `${foldOrThrow('Sender', formatMailbox(senderToSet))}\r\n`)
  return replacements
}

function removedNames(header: RelayedHeader, { removals = [], ...edits }: HeaderEdits): Set<string> {
  const removed = new Set([...ALWAYS_REMOVED, ...removals])
  // Present but empty; there may be only one.
  if (edits.dateToAdd !== undefined && header.date === undefined) removed.add('date')
  if (edits.messageIdToAdd !== undefined && header.messageId === undefined) removed.add('message-id')
  if (edits.fromToSet) removed.add('from').add('sender')
  if (edits.senderToSet) removed.add('sender')
  return removed
}

function isRemoved({ name }: HeaderField, removed: ReadonlySet<string>): boolean {
  return removed.has(name) || name.startsWith(POSTROAD_PREFIX)
}

/** Appended to the header, each with its CRLF. */
function addedFields(header: RelayedHeader, edits: HeaderEdits): string[] {
  const added: string[] = []
  if (edits.dateToAdd !== undefined && header.date === undefined)
    added.push(`Date: ${headerDate(edits.dateToAdd)}\r\n`)
  if (edits.messageIdToAdd !== undefined && header.messageId === undefined)
    added.push(`Message-ID: <${edits.messageIdToAdd}>\r\n`)
  const isAnswerable = header.fields.some(({ name }) => name === 'reply-to')
  if (edits.fromToSet && !isAnswerable) {
    // A non-ASCII local part has no form that every mail client can reply to.
    const authors = header.from.filter(({ address }) => !address.needsSmtpUtf8).map(author)
    if (authors.length > 0) added.push(`${foldOrThrow('Reply-To', authors.join(', '))}\r\n`)
  }
  return added
}

function author({ name, address }: RelayedMailbox): string {
  // The name came from an encoded-word with control characters; the address suffices.
  return mailbox(address, name === undefined || hasHeaderBreak(name) ? undefined : name)
}

function formatMailbox({ name, address }: NamedAddress): string {
  const parsed = parseAddress(address, { allowSingleLabel: true })
  if (!parsed || parsed.needsSmtpUtf8 || (name !== undefined && hasHeaderBreak(name)))
    throw new AppError('validation_error', 'the address cannot be used in From', { path: 'From' })
  return mailbox(parsed, name)
}

function foldOrThrow(name: string, value: string): string {
  const field = foldField(name, value)
  if (field === undefined)
    throw new AppError('validation_error', `${name} is too long for a header line`, { path: name })
  return field
}

interface ReceivedFacts {
  /** Argument of EHLO; any text. */
  readonly helo: string
  /** Client IP address; omit to hide it. */
  readonly peerAddress?: string
  readonly hostname: string
  readonly protocol: TransmissionProtocol
  /** Id of the message in our logs. */
  readonly id: string
  /** Ms since epoch UTC. */
  readonly date: number
  readonly tls?: { readonly version: string; readonly cipher: string }
}

type TransmissionProtocol = 'SMTP' | `${'ESMTP' | 'UTF8SMTP'}${'' | 'S' | 'A' | 'SA'}`

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

/**
 * Builds the Received field (RFC 5321 §4.4). Names no recipients, since all of them get it, and reduces what the client claims about itself
 * to safe characters.
 *
 * @returns folded, without the final CRLF
 */
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
