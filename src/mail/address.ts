/**
 * E-mail addresses as a REST client, an import file or an SMTP session gives them.
 *
 * Called wherever an address enters, before it is stored or compared. Stricter than the grammar where the grammar
 * allows what no mailbox uses and attackers do: no comments, no white space, no address literals, no display name
 * (`named-address.ts` takes those).
 * Pure; never asks DNS whether the domain exists.
 * Standards: RFC 5321 §4.1.2 (Mailbox), §4.5.3.1 (sizes); RFC 6531 §3.3 (UTF-8); RFC 5890 (A-labels).
 * Fails: never throws; what is no address comes back as the reason, one phrase that completes "the address ...".
 */
import { domainToASCII } from 'node:url'

export interface EmailAddress {
  /** As written, case and quotes included (RFC 5321 §2.4: only its host may interpret it). */
  readonly local: string
  /** A-labels, lower case, no trailing dot. */
  readonly domain: string
  /** `local@domain`, at most 254 octets. */
  readonly address: string
  /** Whether the local part has non-ASCII characters, so that only an SMTPUTF8 server can take it (RFC 6531). */
  readonly needsSmtpUtf8: boolean
}

export interface AddressRules {
  /** Lets `root@localhost` and `ann@intranet` through; for networks with their own names. */
  readonly allowSingleLabel?: boolean
}

/** A mailbox as it stands in a header (RFC 5322 §3.4); `named-address.ts` reads them. */
export interface NamedAddress {
  readonly name?: string
  readonly address: string
}

/** RFC 5321 §4.5.3.1.1. */
const MAX_LOCAL_OCTETS = 64
/** RFC 5321 §4.5.3.1.3 allows a path 256 octets, of which two are the angle brackets. */
const MAX_ADDRESS_OCTETS = 254
/** RFC 1035 §2.3.4. */
const MAX_LABEL_OCTETS = 63

/** Dot-string of atext (RFC 5321 §4.1.2), with the UTF-8 characters that RFC 6531 §3.3 adds to atext. */
const DOT_STRING =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*$/u
/** Quoted-string (RFC 5321 §4.1.2) without the spaces that it would allow. */
const QUOTED_STRING = /^"(?:[\x21\x23-\x5b\x5d-\x7e\u{80}-\u{10ffff}]|\\[\x21-\x7e])*"$/u
/** Controls, white space, invisible formatting characters and lone surrogates, in any script. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u
const NON_ASCII = /[^\x20-\x7e]/
/** Letters, digits, hyphen; a hyphen neither first nor last (RFC 1123 §2.1). */
const LDH_LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

/** What nearly every address looks like, for which the rules below have nothing to add but lengths and the validity of A-labels. */
const PLAIN = /^([A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*)@((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]+)$/
const PLAIN_LENGTH = MAX_LABEL_OCTETS

/** @returns the address, or why it is none */
export function readAddress(
  text: string,
  rules: AddressRules = {},
): EmailAddress | { readonly fault: string } {
  return readPlain(text) ?? readAnyAddress(text, rules)
}

function readPlain(text: string): EmailAddress | undefined {
  if (text.length > PLAIN_LENGTH) return undefined
  const [, local, domain] = PLAIN.exec(text) ?? []
  if (local === undefined || domain === undefined || domain.includes('xn--')) return undefined
  return { local, domain, address: text, needsSmtpUtf8: false }
}

function readAnyAddress(text: string, rules: AddressRules): EmailAddress | { readonly fault: string } {
  // First, so that everything below works on a short text.
  if (text.length > MAX_ADDRESS_OCTETS) return { fault: 'is longer than 254 octets' }
  if (INVISIBLE.test(text)) return { fault: 'contains spaces or control characters' }
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @' }
  const local = text.slice(0, at)
  if (local === '') return { fault: 'has nothing before the @' }
  if (Buffer.byteLength(local) > MAX_LOCAL_OCTETS) return { fault: 'has a local part longer than 64 octets' }
  if (!DOT_STRING.test(local) && !QUOTED_STRING.test(local)) return { fault: 'has a malformed local part' }
  const domain = asciiDomain(text.slice(at + 1), rules)
  if (domain === undefined) return { fault: 'has no valid domain' }
  const address = `${local}@${domain}`
  // Once more: A-labels are longer than what they stand for.
  if (Buffer.byteLength(address) > MAX_ADDRESS_OCTETS) return { fault: 'is longer than 254 octets' }
  return { local, domain, address, needsSmtpUtf8: NON_ASCII.test(local) }
}

/** `readAddress` for callers that need no reason. */
export function parseAddress(text: string, rules: AddressRules = {}): EmailAddress | undefined {
  const result = readAddress(text, rules)
  return 'fault' in result ? undefined : result
}

/**
 * A host name in the form that DNS and SMTP use.
 *
 * @param text U-labels or A-labels, any case, without trailing dot
 * @returns A-labels in lower case; undefined where it is no host name, an IP address included
 */
export function asciiDomain(text: string, rules: AddressRules = {}): string | undefined {
  const domain = toALabels(text)
  if (domain === undefined || domain.length > MAX_ADDRESS_OCTETS) return undefined
  const labels = domain.split('.')
  if (labels.length < 2 && !rules.allowSingleLabel) return undefined
  if (!labels.every(label => label.length <= MAX_LABEL_OCTETS && LDH_LABEL.test(label))) return undefined
  // No top-level domain is all digits (RFC 3696 §2): this is an IP address.
  if (/^\d+$/.test(labels.at(-1) ?? '')) return undefined
  return domain
}

/** The URL parser behind domainToASCII also decodes `%41` and reads `0x7f.1` as an address: it sees neither here. */
function toALabels(text: string): string | undefined {
  const lower = text.toLowerCase()
  if (/^[a-z0-9.-]*$/.test(lower) && !/(?:^|\.)xn--/.test(lower)) return lower
  if (!/^[a-z0-9.\u{80}-\u{10ffff}-]*$/u.test(lower)) return undefined
  return domainToASCII(lower) || undefined
}

/** The root's dot behind a domain, in any script (RFC 3490 §3.1). */
const ROOT_DOT = /[.\u3002\uff0e\uff61]$/

/**
 * The form in which addresses, and domains as `@example.com`, are compared, stored as keys and looked up (suppressions,
 * bounces, contacts, duplicates in one request). There is no other: whoever stores or asks goes through here.
 *
 * Lower case throughout: RFC 5321 §2.4 lets hosts tell `Ann` from `ann`, none that matters does, and a suppression must
 * not be escaped by a capital letter. Nor by quotes that mean nothing (`"ann"@example.com`, RFC 5321 §4.1.2).
 * Domains are A-labels without the root's dot. Text that is neither is lower-cased only.
 */
export function normalizedAddress(text: string): string {
  const plain = readPlain(text)
  if (plain) return text.toLowerCase()
  const bare = text.trim().replace(ROOT_DOT, '')
  const domain = bare.startsWith('@') ? asciiDomain(bare.slice(1), { allowSingleLabel: true }) : undefined
  if (domain !== undefined) return `@${domain}`
  const parsed = parseAddress(bare, { allowSingleLabel: true })
  if (!parsed) return text.trim().normalize('NFC').toLowerCase()
  const unquoted = parsed.local.startsWith('"') ? unquote(parsed.local) : parsed.local
  const local = DOT_STRING.test(unquoted) ? unquoted : parsed.local
  return `${local.normalize('NFC').toLowerCase()}@${parsed.domain}`
}

/** Domain part in lower case, as written otherwise; the empty string where there is no @. */
export function addressDomain(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? '' : address.slice(at + 1).toLowerCase()
}

function unquote(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/gu, '$1')
}

const DOTLESS = new Set(['gmail.com', 'googlemail.com'])

/**
 * The mailbox that an address most likely leads to, for counting: `a.nn+news@googlemail.com` is `ann@gmail.com`. Never to be mailed.
 *
 * Plus addressing is RFC 5233 §4.1; Gmail ignores dots.
 */
export function likelyMailbox(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1).toLowerCase()
  const local = address.slice(0, at).toLowerCase()
  const plus = local.indexOf('+')
  const name = plus > 0 ? local.slice(0, plus) : local
  return DOTLESS.has(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}
