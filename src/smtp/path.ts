/**
 * The paths of MAIL and RCPT: `<ann@example.com>`, `<>`, `<"a b"@example.com>`, `<ann@[192.0.2.1]>`,
 * `<@relay.example:ann@example.com>`.
 *
 * Called by `mail-command.ts`. Checks the grammar and the sizes; whether the address is one that mail can be sent to is
 * the receiver's question. Source routes are read and forgotten (RFC 5321 §4.1.1.3, appendix C). Pure.
 * Standards: RFC 5321 §4.1.2, §4.1.3, §4.5.3.1; RFC 6531 §3.3. Fails: never throws; a fault is a value.
 */
import { ipVersion } from '../world/net/ip-address.js'

export interface Path {
  /** `local@domain` as written; empty for `<>`. */
  readonly address: string
  readonly isAscii: boolean
  /** Where the text goes on behind the `>`. */
  readonly end: number
}

/** RFC 5321 §4.5.3.1.1 to §4.5.3.1.3, in octets. */
const MAX_LOCAL = 64
const MAX_DOMAIN = 255
const MAX_PATH = 256

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10ffff}-]+"
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*$`, 'u')
/** Spaces included; no controls. */
const QUOTED_STRING = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e\u{80}-\u{10ffff}]|\\[\x20-\x7e])*"$/u
/** A label; the underscore is no part of the grammar and of many host names. */
const LABEL =
  /^[A-Za-z0-9_\u{80}-\u{10ffff}](?:[A-Za-z0-9_\u{80}-\u{10ffff}-]*[A-Za-z0-9_\u{80}-\u{10ffff}])?$/u
const NON_ASCII = /[^\0-\x7f]/
/** The common case in one look: plain local part, plain domain. */
const PLAIN = /^[A-Za-z0-9_.+=-]{1,64}@[A-Za-z0-9.-]{1,180}$/

/**
 * @param text the argument from `<` on, e.g. `<ann@example.com> SIZE=1000`
 * @param allowsPostmaster takes `<postmaster>` without a domain (RFC 5321 §4.5.1)
 * @returns the path, or the phrase that says what is wrong with it
 */
export function readPath(text: string, allowsPostmaster: boolean): Path | string {
  if (text[0] !== '<') return 'address must stand in angle brackets'
  const end = closingBracket(text)
  if (end < 0) return 'address has no closing bracket'
  const inside = text.slice(1, end)
  if (inside.length > MAX_PATH - 2 || Buffer.byteLength(inside) > MAX_PATH - 2)
    return `path is longer than ${MAX_PATH} octets`
  if (inside === '') return { address: '', isAscii: true, end: end + 1 }
  const address = withoutRoute(inside)
  if (address === undefined) return 'malformed source route'
  const isPostmaster = allowsPostmaster && address.toLowerCase() === 'postmaster'
  const fault = isPostmaster ? undefined : addressFault(address)
  return fault ?? { address, isAscii: !NON_ASCII.test(address), end: end + 1 }
}

/** The first `>` outside quotes, within the length that a path may have. */
function closingBracket(text: string): number {
  let isQuoted = false
  const last = Math.min(text.length, 2 * MAX_PATH)
  for (let at = 1; at < last; at++) {
    const character = text[at]
    if (character === '\\' && isQuoted) at++
    else if (character === '"') isQuoted = !isQuoted
    else if (character === '>' && !isQuoted) return at
  }
  return -1
}

/** `@one,@two:ann@example.com` is `ann@example.com`. */
function withoutRoute(inside: string): string | undefined {
  if (!inside.startsWith('@')) return inside
  const colon = inside.indexOf(':')
  if (colon < 0) return undefined
  const hosts = inside.slice(0, colon).split(',')
  return hosts.every(host => host.startsWith('@') && isDomain(host.slice(1)))
    ? inside.slice(colon + 1)
    : undefined
}

function addressFault(address: string): string | undefined {
  if (PLAIN.test(address) && !address.includes('..') && !address.startsWith('.') && !address.includes('.@')) {
    return isDomain(address.slice(address.indexOf('@') + 1)) ? undefined : 'malformed domain'
  }
  const at = address.lastIndexOf('@')
  if (at < 0) return 'address has no domain'
  const local = address.slice(0, at)
  const domain = address.slice(at + 1)
  if (local === '') return 'address has no local part'
  if (Buffer.byteLength(local) > MAX_LOCAL) return `local part is longer than ${MAX_LOCAL} octets`
  if (!DOT_STRING.test(local) && !QUOTED_STRING.test(local)) return 'malformed local part'
  return isDomain(domain) || isAddressLiteral(domain) ? undefined : 'malformed domain'
}

function isDomain(domain: string): boolean {
  if (domain === '' || domain.length > MAX_DOMAIN) return false
  return domain.split('.').every(label => label.length <= 63 && LABEL.test(label))
}

/** RFC 5321 §4.1.3; general literals belong to no standard yet. */
function isAddressLiteral(domain: string): boolean {
  if (!domain.startsWith('[') || !domain.endsWith(']')) return false
  const inside = domain.slice(1, -1)
  if (/^ipv6:/i.test(inside)) return !inside.includes('%') && ipVersion(inside.slice(5)) === 6
  return ipVersion(inside) === 4
}
