/**
 * Reads to, cc and bcc of one message: whom it is sent to, and whom its header names.
 *
 * Called by `send-email.ts` and `batch-messages.ts` before anything is stored. Addresses leave in their one normal form, bare;
 * display names go into the header only. Pure.
 * Fails: AppError validation_error with the field's path where one address stands alone and is none, and for too many. In a
 * list it is skipped as invalid later on, whatever it holds, so that it fails nobody else's mail (rule 6 of the contract).
 */
import { normalizedAddress, type NamedAddress } from '../../../mail/address.js'
import type { VisibleRecipients } from '../../../mail/compose/compose.js'
import { readNamedAddress, toNamedAddress } from '../../../mail/named-address.js'
import { invalidField } from './field-fault.js'

export interface Recipients {
  /** Each address in the order to, cc, bcc; what is none is shown as it came, made presentable. */
  readonly recipients: readonly string[]
  /** Absent where each recipient sees itself alone, without a name. */
  readonly addressees?: VisibleRecipients
  /** Why the first entry of cc or bcc that is no address is none, e.g. `cc.1 has no @`. */
  readonly copyFault?: string
}

interface RecipientFields {
  readonly to: string | readonly string[]
  readonly cc?: string | readonly string[]
  readonly bcc?: string | readonly string[]
}

/** One entry of a list, read. */
interface Entry {
  readonly shown: string
  readonly mailbox?: NamedAddress
  readonly fault?: string
}

const MOST_RECIPIENTS = 100
/** Characters of what is no address, as it is stored and answered. */
const MOST_SHOWN = 320

/** @param isOneOfMany a message of a batch: an address that is none does not fail the request, even where it stands alone */
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
  if (recipients.length > MOST_RECIPIENTS)
    throw invalidField('to', `to, cc and bcc must have at most ${MOST_RECIPIENTS} addresses together`)
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

/** A recipient as results name it: its normal form, or what is no address as it came. */
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
  const fault = read.isSeveral ? 'is several addresses: give them as a list, one in each entry' : read.fault
  return { shown: presentable(text), fault: `${path} ${fault}` }
}

/** Fit to be stored and shown, and still no address: neither cutting it nor the spaces in it can make it one. */
function presentable(text: string): string {
  return text.slice(0, MOST_SHOWN).replace(/[\p{Cc}\p{Cs}]/gu, ' ')
}

/** What is no address cannot stand in a header; what is named twice stands there once. */
function headerOf(entries: readonly Entry[]): NamedAddress[] {
  const byName = new Map<string, NamedAddress>()
  for (const { mailbox } of entries) {
    if (!mailbox) continue
    const name = normalizedAddress(mailbox.address)
    if (!byName.has(name)) byName.set(name, mailbox)
  }
  return [...byName.values()]
}
