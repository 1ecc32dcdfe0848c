/**
 * Texts that mention a person: which words name one, and text without them.
 *
 * Used by erasure and export. Whoever shares part of an address is someone else: `joann@x.example` does not mention `ann@x.example`. Pure.
 */
import { domainToUnicode } from 'node:url'
import { normalizedAddress } from '../../mail/address.js'

/** Replaces the address where a row must stay. */
export const PLACEHOLDER = 'erased@erased.invalid'

/**
 * The forms an address takes in stored text: as it is, with its domain in U-labels, and as part of a URL.
 *
 * @param email as normalised by `normalizedAddress`
 */
export function formsOf(email: string): string[] {
  const at = email.lastIndexOf('@')
  const readable = `${email.slice(0, at)}@${domainToUnicode(email.slice(at + 1))}`.toLowerCase()
  const plain = [...new Set([email, readable])]
  return [...new Set([...plain, ...plain.map(encodeURIComponent)])]
}

/** Whether a text contains one of the words as a whole, in any case. */
export function mentionOf(words: readonly string[]): (text: string) => boolean {
  const named = new RegExp(words.map(wholeWord).join('|'), 'iu')
  return text => named.test(text)
}

/** The text with the placeholder for each mention of the address. */
export function withoutAddress(text: string, email: string): string {
  return text.replace(new RegExp(formsOf(email).map(wholeWord).join('|'), 'giu'), PLACEHOLDER)
}

/** Whatever in a text looks like an address, as `normalizedAddress` writes it. */
export function addressesIn(text: string): Set<string> {
  const found = text.matchAll(
    /(?<![\p{L}\p{N}_.+%-])(?:[\p{L}\p{N}_.+-]|%(?!40))+(?:@|%40)[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*/giu,
  )
  return new Set([...found].map(([address]) => normalizedAddress(address.replace(/%40/i, '@'))))
}

/**
 * Also matches after an escape of JSON (a line break) or of a URL (`%3D`), and after characters that an address may begin with but that
 * far more often precede one: `?email=ann@x.example`, `'ann@x.example'`. The apostrophe of `o'brien@x.example` is part of a name.
 */
function wholeWord(word: string): string {
  const literal = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const escaped = String.raw`(?<=\\[bfnrt]|\\u[0-9a-f]{4}|%[0-9a-f]{2})`
  const before = String.raw`(?:(?<![\p{L}\p{N}_.+%-]|[\p{L}\p{N}]')|${escaped})`
  return `${before}${literal}(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`
}
