/**
 * Parses and normalizes email addresses from REST requests, imports and SMTP. Stricter than the RFC grammar about what no real mailbox
 * uses: no comments, white space, address literals or display names (for those see `named-address.ts`). Never queries DNS. An invalid
 * address is returned as the reason, a phrase that completes "the address ...".
 * Standards: RFC 5321 §4.1.2 (Mailbox), §4.5.3.1 (sizes); RFC 6531 §3.3 (UTF-8); RFC 5890 (A-labels).
 */
import { domainToASCII, domainToUnicode } from 'node:url'

export interface EmailAddress {
  /** As written, including case and quotes: only the receiving host may interpret it (RFC 5321 §2.4). */
  readonly local: string
  /** A-labels, lower case, no trailing dot. */
  readonly domain: string
  /** `local@domain`, at most 254 octets. */
  readonly address: string
  /** Whether the local part is non-ASCII, so that only an SMTPUTF8 server accepts it (RFC 6531). */
  readonly needsSmtpUtf8: boolean
}

export interface AddressRules {
  /** Accepts `root@localhost` and `ann@intranet`. */
  readonly allowSingleLabel?: boolean
}

/** A mailbox as in a header field (RFC 5322 §3.4); parsed by `named-address.ts`. */
export interface NamedAddress {
  readonly name?: string
  readonly address: string
}

/** RFC 5321 §4.5.3.1.1. */
const MAX_LOCAL_OCTETS = 64
/** RFC 5321 §4.5.3.1.3 allows a path 256 octets, two of them the angle brackets. */
const MAX_ADDRESS_OCTETS = 254
/** RFC 1035 §2.3.4. */
const MAX_LABEL_OCTETS = 63

/** Dot-string of atext (RFC 5321 §4.1.2), with UTF-8 (RFC 6531 §3.3). */
const DOT_STRING =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*$/u
/** Quoted-string (RFC 5321 §4.1.2), without spaces. */
const QUOTED_STRING = /^"(?:[\x21\x23-\x5b\x5d-\x7e\u{80}-\u{10ffff}]|\\[\x21-\x7e])*"$/u
/** Controls, white space, invisible formatting characters and lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u
const NON_ASCII = /[^\x20-\x7e]/
/** Letters, digits and inner hyphens (RFC 1123 §2.1). */
const LDH_LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

/** Around an address, as pasted from spreadsheets and mail programs: white space, zero-width characters, marks of writing direction. */
const SURROUNDING = /[\s\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/

/** Fast path for most addresses; lengths and A-labels need no further checks. */
const PLAIN = /^([A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*)@((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]+)$/
const PLAIN_LENGTH = MAX_LABEL_OCTETS

/**
 * The one reader of addresses, for all ways in. White space around the address is no part of it; see `trimAddress`.
 *
 * @returns the address, or what is wrong with it
 */
export function readAddress(
  text: string,
  rules: AddressRules = {},
): EmailAddress | { readonly fault: string } {
  const trimmed = trimAddress(text)
  return readPlain(trimmed) ?? readAnyAddress(trimmed, rules)
}

/** Removes white space from both ends, no-break and zero-width included; other control characters stay, and make the address invalid. */
export function trimAddress(text: string): string {
  let end = text.length
  while (end > 0 && SURROUNDING.test(text.charAt(end - 1))) end -= 1
  let start = 0
  while (start < end && SURROUNDING.test(text.charAt(start))) start += 1
  return text.slice(start, end)
}

function readPlain(text: string): EmailAddress | undefined {
  if (text.length > PLAIN_LENGTH) return undefined
  const [, local, domain] = PLAIN.exec(text) ?? []
  if (local === undefined || domain === undefined || domain.includes('xn--')) return undefined
  return { local, domain, address: text, needsSmtpUtf8: false }
}

function readAnyAddress(text: string, rules: AddressRules): EmailAddress | { readonly fault: string } {
  // Checked first, so that everything below handles short text.
  if (text.length > MAX_ADDRESS_OCTETS) return { fault: TOO_LONG }
  if (INVISIBLE.test(text)) return { fault: 'contains spaces or control characters' }
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @' }
  const local = text.slice(0, at)
  if (local === '') return { fault: 'has nothing before the @' }
  if (Buffer.byteLength(local) > MAX_LOCAL_OCTETS) return { fault: 'has more than 64 octets before the @' }
  if (!DOT_STRING.test(local) && !QUOTED_STRING.test(local)) return { fault: localFault(local) }
  const domain = asciiDomain(text.slice(at + 1), rules)
  if (domain === undefined) return { fault: 'has no valid domain' }
  const address = `${local}@${domain}`
  // Checked again, since A-labels are longer than U-labels.
  if (Buffer.byteLength(address) > MAX_ADDRESS_OCTETS) return { fault: TOO_LONG }
  return { local, domain, address, needsSmtpUtf8: NON_ASCII.test(local) }
}

const TOO_LONG = 'is longer than 254 octets'
/** Atext without the dot, as in `DOT_STRING`. */
const ALLOWED = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\u{80}-\u{10ffff}-]$/u

/**
 * The fault in an invalid local part, in words that its owner understands: most are typing errors, or two addresses in one field. For
 * all readers of addresses.
 */
export function localFault(local: string): string {
  if (INVISIBLE.test(local)) return 'contains spaces or control characters'
  if (local.includes('@')) return 'has more than one @'
  const odd = Array.from(local).find(character => !ALLOWED.test(character))
  if (odd !== undefined) return `has the character ${odd} before the @, where it is not allowed`
  return 'has a dot at the beginning, at the end, or next to another dot'
}

/** Like `readAddress`, without the reason. */
export function parseAddress(text: string, rules: AddressRules = {}): EmailAddress | undefined {
  const result = readAddress(text, rules)
  return 'fault' in result ? undefined : result
}

/**
 * Converts a host name to the form used in DNS and SMTP.
 *
 * @param text U-labels or A-labels, any case, without trailing dot
 * @returns A-labels in lower case; undefined if it is not a host name, or an IP address
 */
export function asciiDomain(text: string, rules: AddressRules = {}): string | undefined {
  const domain = toALabels(text)
  if (domain === undefined || domain.length > MAX_ADDRESS_OCTETS) return undefined
  const labels = domain.split('.')
  if (labels.length < 2 && !rules.allowSingleLabel) return undefined
  if (!labels.every(label => label.length <= MAX_LABEL_OCTETS && LDH_LABEL.test(label))) return undefined
  // No top-level domain is numeric (RFC 3696 §2), so this is an IP address.
  if (/^\d+$/.test(labels.at(-1) ?? '')) return undefined
  return domain
}

/** The URL parser behind domainToASCII also decodes `%41` and reads `0x7f.1` as an address; the checks keep both from it. */
function toALabels(text: string): string | undefined {
  const lower = text.toLowerCase()
  if (/^[a-z0-9.-]*$/.test(lower) && !/(?:^|\.)xn--/.test(lower)) return lower
  if (!/^[a-z0-9.\u{80}-\u{10ffff}-]*$/u.test(lower)) return undefined
  const aLabels = domainToASCII(lower)
  // Invalid A-labels pass domainToASCII unchanged, but only valid ones decode.
  return aLabels === '' || /(?:^|\.)xn--/.test(domainToUnicode(aLabels)) ? undefined : aLabels
}

/** The root dot after a domain, in any script (RFC 3490 §3.1). */
const ROOT_DOT = /[.\u3002\uff0e\uff61]$/

/**
 * The canonical form of an address, or of a domain written as `@example.com`, for comparisons and keys (suppressions, bounces, contacts,
 * duplicates). There must be no other.
 *
 * Lower case: RFC 5321 §2.4 lets hosts distinguish case, but none that matters does, and a capital letter must not evade a suppression.
 * Redundant quotes are removed (RFC 5321 §4.1.2), domains are A-labels without the root dot. Any other text is only lower-cased.
 */
export function normalizedAddress(text: string): string {
  const trimmed = trimAddress(text)
  if (readPlain(trimmed)) return trimmed.toLowerCase()
  const bare = trimmed.replace(ROOT_DOT, '')
  const domain = bare.startsWith('@') ? asciiDomain(bare.slice(1), { allowSingleLabel: true }) : undefined
  if (domain !== undefined) return `@${domain}`
  const parsed = parseAddress(bare, { allowSingleLabel: true })
  if (!parsed) return trimmed.normalize('NFC').toLowerCase()
  const unquoted = parsed.local.startsWith('"') ? unquote(parsed.local) : parsed.local
  const local = DOT_STRING.test(unquoted) ? unquoted : parsed.local
  return `${local.normalize('NFC').toLowerCase()}@${parsed.domain}`
}

/** The domain in lower case; '' if there is no @. */
export function addressDomain(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? '' : address.slice(at + 1).toLowerCase()
}

function unquote(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/gu, '$1')
}

const DOTLESS = new Set(['gmail.com', 'googlemail.com'])

/**
 * The mailbox an address probably belongs to, for counting only: `a.nn+news@googlemail.com` is `ann@gmail.com`. Never send to it.
 *
 * Subaddressing is RFC 5233 §4.1; Gmail ignores dots.
 */
export function likelyMailbox(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1).toLowerCase()
  const local = address.slice(0, at).toLowerCase()
  const plus = local.indexOf('+')
  const name = plus > 0 ? local.slice(0, plus) : local
  return DOTLESS.has(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}
