/**
 * Reads the addresses of one message: to, cc and bcc; from_email, from_name and reply_to.
 *
 * Recipients are bare normalized addresses; display names appear in the header only. `sender.ts` resolves the requested sender. Pure.
 * Throws AppError validation_error with the field's path, for a single invalid address or too many, and missing_from_email. An invalid
 * list entry does not fail the others; it is skipped as invalid later (rule 6 of the contract).
 */
import { normalizedAddress, parseAddress, type NamedAddress } from '../../mail/address.js'
import type { VisibleRecipients } from '../../mail/compose/compose.js'
import { readNamedAddress, toNamedAddress } from '../../mail/named-address.js'
import { invalidField, refuseControls } from './send-schema.js'
import { toUSVString } from 'node:util'
import type { Workspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import type { Author } from '../sender.js'

export interface Recipients {
  /** In the order to, cc, bcc; invalid ones as given, made printable. */
  readonly recipients: readonly string[]
  /** Absent if each recipient sees only its own bare address. */
  readonly addressees?: VisibleRecipients
  /** Why the first invalid entry of cc or bcc is invalid, e.g. `cc.1 has no @`. */
  readonly copyFault?: string
}

interface RecipientFields {
  readonly to: string | readonly string[]
  readonly cc?: string | readonly string[]
  readonly bcc?: string | readonly string[]
}

/** A parsed list entry. */
interface Entry {
  readonly shown: string
  readonly mailbox?: NamedAddress
  readonly fault?: string
}

const MAX_RECIPIENTS = 100
/** Length to which an invalid address is cut, characters. */
const MAX_SHOWN = 320

/** @param isOneOfMany for a batch message: an invalid address does not fail the request, even if it is the only one */
export function readRecipientFields(
  { to, cc = [], bcc = [] }: RecipientFields,
  isOneOfMany = false,
): Recipients {
  const [seen, copied, blind] = [
    readList(to, 'to', isOneOfMany),
    readList(cc, 'cc', isOneOfMany),
    readList(bcc, 'bcc', isOneOfMany),
  ] as const
  const recipients = [...seen, ...copied, ...blind].map(({ shown }) => shown)
  if (recipients.length > MAX_RECIPIENTS)
    throw invalidField('to', `to, cc and bcc must have at most ${MAX_RECIPIENTS} addresses together`)
  const copyFault = [...copied, ...blind].find(({ fault }) => fault !== undefined)?.fault
  const hasCopies = copied.length + blind.length > 0
  return {
    recipients,
    ...(copyFault === undefined ? {} : { copyFault }),
    ...(hasCopies || seen.some(({ mailbox }) => mailbox?.name !== undefined)
      ? { addressees: { to: headerOf(seen), cc: headerOf(copied), hasCopies } }
      : {}),
  }
}

/** A recipient as results show it: normalized, or as given if invalid. */
export function shownRecipient(text: string): string {
  return readEntry(text, 'to').shown
}

function readList(field: string | readonly string[], name: string, isOneOfMany: boolean): readonly Entry[] {
  if (typeof field !== 'string') return field.map((text, index) => readEntry(text, `${name}.${index}`))
  const entry = readEntry(field, name)
  if (entry.fault !== undefined && !isOneOfMany) throw invalidField(name, entry.fault)
  return [entry]
}

function readEntry(text: string, path: string): Entry {
  const read = readNamedAddress(text)
  if (!('fault' in read)) return { shown: read.address, mailbox: toNamedAddress(read) }
  const fault = read.isSeveral ? 'has several addresses; send them as a list, one per entry' : read.fault
  return { shown: presentable(text), fault: `${path} ${fault}` }
}

/** Makes an invalid address safe to store and show; the result is never a valid address. */
function presentable(text: string): string {
  const shown = text.slice(0, MAX_SHOWN).replace(/[\p{Cc}\p{Cs}]/gu, ' ')
  // Cutting it, or a space at its end, may have made it valid.
  return parseAddress(shown) ? `<${shown}>` : shown
}

/** Leaves out invalid and repeated addresses. */
function headerOf(entries: readonly Entry[]): NamedAddress[] {
  const byName = new Map<string, NamedAddress>()
  for (const { mailbox } of entries) {
    if (!mailbox) continue
    const name = normalizedAddress(mailbox.address)
    if (!byName.has(name)) byName.set(name, mailbox)
  }
  return [...byName.values()]
}

/** Limit of from_name and of the name in from_email, characters. */
const MAX_NAME = 100

export interface SenderRequest {
  readonly from_email?: string
  readonly from_name?: string
  readonly reply_to?: string
}

/** The request's sender fields, validated. */
export interface SenderFields {
  readonly fromAddress: string | undefined
  readonly name: string | undefined
  readonly replyTo: NamedAddress | undefined
}

/** @throws AppError validation_error */
export function readSenderFields(request: SenderRequest): SenderFields {
  const { from_name: fromName, reply_to: replyTo, from_email: fromEmail } = request
  if (fromName !== undefined) refuseControls(fromName, 'from_name')
  const from = fromEmail === undefined ? undefined : readAnswerable(fromEmail, 'from_email')
  if (from?.name !== undefined && from.name.length > MAX_NAME)
    throw invalidField('from_email', `from_email has a name of more than ${MAX_NAME} characters`)
  return {
    fromAddress: from?.address,
    name: fromName === undefined ? from?.name : toUSVString(fromName),
    replyTo: replyTo === undefined ? undefined : readAnswerable(replyTo, 'reply_to'),
  }
}

/** Fills in the workspace's defaults. @throws AppError missing_from_email */
export function withWorkspaceSender(fields: SenderFields, workspace: Workspace): Author {
  const { defaultFromEmail, defaultFromName } = workspace
  const fromAddress =
    fields.fromAddress ??
    (defaultFromEmail === null ? undefined : readAnswerable(defaultFromEmail, 'from_email').address)
  if (fromAddress === undefined)
    throw new AppError('missing_from_email', 'give from_email, or set a default in the workspace', {
      path: 'from_email',
    })
  return { fromAddress, name: fields.name ?? defaultFromName ?? undefined, replyTo: fields.replyTo }
}

/** The local part must be ASCII: the composed header is, and those who reply may lack SMTPUTF8. */
function readAnswerable(text: string, field: string): NamedAddress {
  const mailbox = readNamedAddress(text)
  if ('fault' in mailbox) throw invalidField(field, `${field} ${mailbox.fault}`)
  if (mailbox.needsSmtpUtf8) throw invalidField(field, `${field} must be ASCII before the @`)
  return toNamedAddress(mailbox)
}
