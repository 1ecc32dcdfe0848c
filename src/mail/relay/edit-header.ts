/**
 * The header of a relayed message as it goes on: what we have to add and to take away, everything else as it was.
 *
 * Called by submission after the message was accepted in principle. Never touches the body, and no field it does not
 * name, to the octet and in order: signatures of others and the habits of readers depend on both. Pure.
 * Standards: RFC 5321 §4.4 (Received on top, Return-Path is the last host's), RFC 6409 §8 (Date, Message-ID),
 * RFC 5322 §3.6.3 (Bcc), §3.6.6 (Resent-Bcc).
 * Fails: AppError `validation_error` where an address is too long for a header line.
 */
import { AppError } from '../../core/errors.js'
import { parseAddress, type NamedAddress } from '../address.js'
import { foldField, mailbox } from '../compose/header-field.js'
import { hasHeaderBreak } from '../compose/header-text.js'
import { headerDate } from '../mime/header-date.js'
import type { HeaderField } from '../mime/header-fields.js'
import { POSTROAD_PREFIX } from '../server-fields.js'
import type { RelayedHeader, RelayedMailbox } from './relayed-header.js'

export interface HeaderEdits {
  /** A Received field without the CRLF at its end (`receivedField`). */
  readonly received?: string
  /** `left@right` without angle brackets; used where the message has none. */
  readonly messageIdToAdd?: string
  /** Ms since epoch UTC; used where the message has no Date. */
  readonly dateToAdd?: number
  /**
   * For workspaces that send from a shared address: stands in the place of From. The author becomes Reply-To unless
   * there is one, and a Sender, which would name the author's domain, goes.
   */
  readonly fromToSet?: NamedAddress
  /** Stands in the place of Sender, where there is one. */
  readonly senderToSet?: NamedAddress
  /** Further fields to take away, in lower case. */
  readonly removals?: readonly string[]
}

/** Bcc would tell whom the others are not to see; Return-Path is written by the host that delivers. */
const ALWAYS_REMOVED: readonly string[] = ['bcc', 'resent-bcc', 'return-path']

/** @returns the new header with the empty line that ends it; the body follows from `header.bodyStart` */
export function editRelayedHeader(header: RelayedHeader, edits: HeaderEdits): Buffer {
  const removed = removedNames(header, edits)
  const replacements = replacementFields(edits)
  const pieces: string[] = []
  if (edits.received !== undefined) pieces.push(edits.received, '\r\n')
  // What is kept is taken in runs: most headers lose nothing and are one.
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

/** By name in lower case, each with its CRLF; one for the first field of the name, whose others go. */
function replacementFields({ fromToSet, senderToSet }: HeaderEdits): Map<string, string> {
  const replacements = new Map<string, string>()
  if (fromToSet) replacements.set('from', `${foldOrThrow('From', formatMailbox(fromToSet))}\r\n`)
  if (senderToSet) replacements.set('sender', `${foldOrThrow('Sender', formatMailbox(senderToSet))}\r\n`)
  return replacements
}

function removedNames(header: RelayedHeader, { removals = [], ...edits }: HeaderEdits): Set<string> {
  const removed = new Set([...ALWAYS_REMOVED, ...removals])
  // Present and empty: replaced, since there may be only one.
  if (edits.dateToAdd !== undefined && header.date === undefined) removed.add('date')
  if (edits.messageIdToAdd !== undefined && header.messageId === undefined) removed.add('message-id')
  if (edits.fromToSet) removed.add('from').add('sender')
  if (edits.senderToSet) removed.add('sender')
  return removed
}

function isRemoved({ name }: HeaderField, removed: ReadonlySet<string>): boolean {
  return removed.has(name) || name.startsWith(POSTROAD_PREFIX)
}

/** At the end of the header, each with its CRLF. */
function addedFields(header: RelayedHeader, edits: HeaderEdits): string[] {
  const added: string[] = []
  if (edits.dateToAdd !== undefined && header.date === undefined)
    added.push(`Date: ${headerDate(edits.dateToAdd)}\r\n`)
  if (edits.messageIdToAdd !== undefined && header.messageId === undefined)
    added.push(`Message-ID: <${edits.messageIdToAdd}>\r\n`)
  const isAnswerable = header.fields.some(({ name }) => name === 'reply-to')
  if (edits.fromToSet && !isAnswerable) {
    // A local part beyond ASCII has no form that every reader can answer to.
    const authors = header.from.filter(({ address }) => !address.needsSmtpUtf8).map(author)
    if (authors.length > 0) added.push(`${foldOrThrow('Reply-To', authors.join(', '))}\r\n`)
  }
  return added
}

function author({ name, address }: RelayedMailbox): string {
  // A name with control characters came out of an encoded-word; the address will do.
  return mailbox(address, name === undefined || hasHeaderBreak(name) ? undefined : name)
}

function formatMailbox({ name, address }: NamedAddress): string {
  const parsed = parseAddress(address, { allowSingleLabel: true })
  if (!parsed || parsed.needsSmtpUtf8 || (name !== undefined && hasHeaderBreak(name)))
    throw new AppError('validation_error', 'the address cannot stand in From', { path: 'From' })
  return mailbox(parsed, name)
}

function foldOrThrow(name: string, value: string): string {
  const field = foldField(name, value)
  if (field === undefined)
    throw new AppError('validation_error', `${name} is too long for a header line`, { path: name })
  return field
}
