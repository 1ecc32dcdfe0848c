/**
 * Parses one mailbox with an optional display name: `ann@example.com`, `Ann <ann@example.com>`, `"Doe, Ann" <ann@example.com>`.
 *
 * More lenient with names than the grammar, since the composer quotes and encodes them again; as strict with the address as `readAddress`.
 * An invalid mailbox is returned as the reason, a phrase that completes "the address ...".
 * Standards: RFC 5322 §3.4 (name-addr), RFC 2047 §5 (encoded-words in names).
 */
import { toUSVString } from 'node:util'
import {
  readAddress,
  trimAddress,
  type AddressRules,
  type EmailAddress,
  type NamedAddress,
} from './address.js'
import { hasHeaderBreak } from './mime/write-header-field.js'
import { mailboxesOf, readAddressList } from './relay/address-list.js'
import { decodeWords } from './mime/encoded-word.js'

export interface NamedMailbox extends EmailAddress {
  /** Decoded, not empty, at most 255 characters. */
  readonly name?: string
}

const MAX_NAME_LENGTH = 255
/** Characters of the whole mailbox; encoded-words take several per character of the name. */
export const MAX_MAILBOX_LENGTH = 1_000

interface Fault {
  readonly fault: string
  /** There is more than one mailbox, which callers that accept a list report differently. */
  readonly isSeveral?: true
}

/** @returns the mailbox, or what is wrong with it */
export function readNamedAddress(text: string, rules: AddressRules = {}): NamedMailbox | Fault {
  if (text.length > MAX_MAILBOX_LENGTH) return { fault: `is longer than ${MAX_MAILBOX_LENGTH} characters` }
  const trimmed = trimAddress(text)
  if (hasHeaderBreak(trimmed)) return { fault: 'contains control characters' }
  const bare = readAddress(trimmed, rules)
  if (!('fault' in bare) || !/[<>",;:()]/.test(trimmed)) return bare
  // An unquoted name may contain what needs quotes (`Doe, Ann`, `Desk: Ann`); with an @ it could be a list.
  const [, name, angle] = /^([^<>@"]*)<([^<>]*)>$/.exec(trimmed) ?? []
  return angle === undefined ? readStrictly(trimmed, rules) : named(name, angle.trim(), rules)
}

/** Like `readNamedAddress`, without the reason. */
export function parseNamedAddress(text: string, rules: AddressRules = {}): NamedAddress | undefined {
  const read = readNamedAddress(text, rules)
  return 'fault' in read ? undefined : toNamedAddress(read)
}

export function toNamedAddress({ name, address }: NamedMailbox): NamedAddress {
  return name === undefined ? { address } : { name, address }
}

/**
 * Reads an address as spreadsheets and exports hold it: also `<ann@example.com>`, `mailto:ann@example.com?subject=Hello` and
 * `<mailto:ann@example.com>`.
 *
 * @returns the mailbox, or what is wrong with it
 */
export function readImportedAddress(text: string, rules: AddressRules = {}): NamedMailbox | Fault {
  const [, open = '', scheme, written = ''] = /^(<?)(mailto:)(.*)$/isu.exec(trimAddress(text)) ?? []
  if (scheme === undefined) return readNamedAddress(text, rules)
  const [address = ''] = (open && written.endsWith('>') ? written.slice(0, -1) : written).split('?', 1)
  return readAddress(percentDecoded(address), rules)
}

/** RFC 6068 §2 requires percent-encoding of some characters. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Handles quotes, comments and encoded-words. */
function readStrictly(text: string, rules: AddressRules): NamedMailbox | Fault {
  const list = readAddressList(text)
  const mailboxes = mailboxesOf(list)
  if (mailboxes.filter(({ address }) => address.includes('@')).length > 1)
    return { fault: 'contains several addresses, but only one is allowed', isSeveral: true }
  if (list.fault !== undefined) return { fault: list.fault }
  const [only, ...others] = mailboxes
  if (!only || others.length > 0 || list.elements.some(element => 'group' in element))
    return { fault: 'is neither an address nor a name with an address in angle brackets' }
  if (/^[,;]|[,;]$/.test(text)) return { fault: 'starts or ends with a comma or semicolon' }
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
