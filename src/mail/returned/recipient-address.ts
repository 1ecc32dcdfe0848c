/**
 * Extracts addresses from the text of returned mail.
 *
 * Much more lenient than `address.ts`: such addresses are compared and shown, never sent to.
 * Standards: RFC 3464 §2.3 (typed addresses), RFC 6533 §3 (utf-8-addr-xtext and unitext).
 */

const MAX_ADDRESS = 320

/** An address without brackets, white space or punctuation that separates it from prose. */
const BARE = '[^\\s<>()\\[\\]",;:\']{1,64}@[^\\s<>()\\[\\]",;:\'/\\\\]{1,255}'

/** For patterns of lines that name a recipient; one group, the address. */
export const ADDRESS = `(?:smtp:|mailto:)?((?:"[^"\\s]{1,64}"@[^\\s<>()",;:]{1,255})|${BARE})`

const ANGLED = /<\s{0,9}(?:smtp:|mailto:)?([^<>]{1,320}?)\s{0,9}>/i
const FIRST_BARE = new RegExp(`(?<![^\\s<>()\\[\\]",;:'=])${ADDRESS}`, 'i')

/** Value of Final-Recipient and similar fields: `rfc822; ann@example.net`, without brackets, names and comments. */
export function readTypedAddress(value: string): string | undefined {
  const semicolon = value.indexOf(';')
  const type = semicolon < 0 ? '' : value.slice(0, semicolon).trim().toLowerCase()
  const isTyped = /^[a-z0-9-]{1,30}$/.test(type)
  const rest = (isTyped ? value.slice(semicolon + 1) : value).trim()
  const address = readAddress(rest)
  if (address !== undefined) return type === 'utf-8' ? decodeUnicode(address) : address
  // Local users have no domain; a path or pipe is not an address.
  const word = rest.replace(/^<|>$/g, '')
  return /^[\w.+=-]{1,64}$/.test(word) ? word : undefined
}

/** Prefers an address in angle brackets. */
export function readAddress(text: string): string | undefined {
  const bounded = text.slice(0, 2_000)
  const angled = ANGLED.exec(bounded)?.[1]
  if (angled?.includes('@')) return tidyAddress(angled)
  const bare = FIRST_BARE.exec(bounded)?.[1]
  return bare === undefined ? undefined : tidyAddress(bare)
}

export function readAddressList(text: string, limit: number): readonly string[] {
  const found: string[] = []
  for (const piece of text.slice(0, 8_000).split(/[,;]/)) {
    const address = readAddress(piece)
    if (address !== undefined && !found.includes(address)) found.push(address)
    if (found.length >= limit) break
  }
  return found
}

/** Strips surrounding punctuation and quotes; @returns undefined if no valid address is left */
export function tidyAddress(text: string): string | undefined {
  const tidy = text
    .trim()
    .replace(/^['`]/, '')
    .replace(/[.'`>]{1,3}$/, '')
  const at = tidy.lastIndexOf('@')
  if (at <= 0 || at === tidy.length - 1 || tidy.length > MAX_ADDRESS || /[\s<>\p{Cc}]/u.test(tidy))
    return undefined
  return tidy
}

/** Case-insensitive, since no relevant host distinguishes case. */
export function isSameAddress(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** `\x{6A19}` (RFC 6533 §3). */
function decodeUnicode(address: string): string {
  return address.replace(/\\x\{([0-9A-Fa-f]{1,6})\}/g, (escape, hex: string) => {
    const code = parseInt(hex, 16)
    return code > 0x20 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      ? String.fromCodePoint(code)
      : escape
  })
}
