/**
 * One mailbox as a client writes it: `ann@example.com`, `Ann <ann@example.com>`, `"Doe, Ann" <ann@example.com>`.
 *
 * Called wherever an address may come with a display name: recipients, from_email and reply_to of the REST API, the To field of
 * a returned mail. More lenient with names than the grammar, since the composer quotes and encodes them again; as strict
 * with the address as `readAddress`. Pure.
 * Standards: RFC 5322 §3.4 (name-addr), RFC 2047 §5 (encoded-words in names).
 * Fails: never throws; what is no single mailbox comes back as the reason, one phrase that completes "the address ...".
 */
import { toUSVString } from 'node:util'
import { readAddress, type AddressRules, type EmailAddress, type NamedAddress } from './address.js'
import { hasHeaderBreak } from './compose/header-text.js'
import { mailboxesOf, readAddressList } from './relay/address-list.js'
import { decodeWords } from './mime/encoded-word.js'

export interface NamedMailbox extends EmailAddress {
  /** Decoded, never empty, at most 255 characters. */
  readonly name?: string
}

/** Characters of a display name; what is longer is no name. */
const MAX_NAME_LENGTH = 255
/** Characters of the whole; encoded-words take several for one of the name. */
export const MAX_MAILBOX_LENGTH = 1_000

interface Fault {
  readonly fault: string
  /** It is more than one, of which callers that take a list can tell. */
  readonly isSeveral?: true
}

/** @returns the mailbox, or why it is none */
export function readNamedAddress(text: string, rules: AddressRules = {}): NamedMailbox | Fault {
  if (text.length > MAX_MAILBOX_LENGTH) return { fault: `is longer than ${MAX_MAILBOX_LENGTH} characters` }
  if (hasHeaderBreak(text)) return { fault: 'contains control characters' }
  const trimmed = text.trim()
  const bare = readAddress(trimmed, rules)
  if (!('fault' in bare) || !/[<>",;:()]/.test(trimmed)) return bare
  // A name without quotes may hold what strictly needs them (`Doe, Ann`, `Desk: Ann`); with an @ it might be a list.
  const [, name, angle] = /^([^<>@"]*)<([^<>]*)>$/.exec(trimmed) ?? []
  return angle === undefined ? readStrictly(trimmed, rules) : named(name, angle.trim(), rules)
}

/** `readNamedAddress` for callers that need no reason. */
export function parseNamedAddress(text: string, rules: AddressRules = {}): NamedAddress | undefined {
  const read = readNamedAddress(text, rules)
  return 'fault' in read ? undefined : toNamedAddress(read)
}

export function toNamedAddress({ name, address }: NamedMailbox): NamedAddress {
  return name === undefined ? { address } : { name, address }
}

/** With quotes, comments or several words of both kinds. */
function readStrictly(text: string, rules: AddressRules): NamedMailbox | Fault {
  const list = readAddressList(text)
  const mailboxes = mailboxesOf(list)
  if (mailboxes.filter(({ address }) => address.includes('@')).length > 1)
    return { fault: 'is several addresses, and only one can stand here', isSeveral: true }
  if (list.fault !== undefined) return { fault: list.fault }
  const [only, ...others] = mailboxes
  if (!only || others.length > 0 || list.elements.some(element => 'group' in element))
    return { fault: 'is neither an address nor a name with an address in angle brackets' }
  if (/^[,;]|[,;]$/.test(text)) return { fault: 'has a comma or semicolon before or behind it' }
  return named(only.name, only.address, rules)
}

function named(text = '', written: string, rules: AddressRules): NamedMailbox | Fault {
  const address = readAddress(written, rules)
  if ('fault' in address) return address
  const name = toUSVString(decodeWords(text.trim())).trim()
  if (hasHeaderBreak(name)) return { fault: 'has control characters in its name' }
  if (name.length > MAX_NAME_LENGTH) return { fault: `has a name longer than ${MAX_NAME_LENGTH} characters` }
  return name === '' ? address : { name, ...address }
}
