/**
 * Reads to, cc and bcc of one message: envelope recipients and the addresses its header shows.
 *
 * Called by `send-email.ts` and `batch-messages.ts` before anything is stored. Recipients are bare normalized addresses; display
 * names appear in the header only. Pure.
 * Fails: AppError validation_error with the field's path, for a single invalid address or too many. An invalid list entry does not
 * fail the others; it is skipped as invalid later (rule 6 of the contract).
 */
import { normalizedAddress, type NamedAddress } from '../../../mail/address.js'
import type { VisibleRecipients } from '../../../mail/compose/compose.js'
import { readNamedAddress, toNamedAddress } from '../../../mail/named-address.js'
import { invalidField } from './field-fault.js'

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
  return text.slice(0, MAX_SHOWN).replace(/[\p{Cc}\p{Cs}]/gu, ' ')
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
