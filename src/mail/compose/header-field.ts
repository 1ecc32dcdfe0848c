/**
 * Writes header fields: encoded where they are not ASCII, folded, never longer than a line may be.
 *
 * Called by whatever composes mail. The values are expected to be free of line breaks (`hasHeaderBreak`). Pure.
 * Standards: RFC 5322 §2.2.3 (folding), §3.2.4 (quoted-string), §3.4 (addresses); RFC 2047 (encoded-word).
 * Fails: `foldField` returns undefined where a value has no place to fold at and is too long for one line.
 */
import type { EmailAddress } from '../address.js'
import { encodeWords } from '../mime/encoded-word.js'
import { MAX_LINE_OCTETS } from '../mime/transfer-encoding.js'

/** RFC 2047 §2: a line with an encoded-word is at most 76 long; the rest keep the same measure. */
const FOLD_AT = 76

/**
 * What has to be encoded: anything but printable ASCII; what would be read as an encoded-word though it is meant
 * literally; white space that folding and unfolding would not bring back; words too long to be folded.
 */
const NEEDS_ENCODING = /[^\x20-\x7e]|=\?|^ | $| {2}|[^ ]{60}/

/** A Subject or any other unstructured value. */
export function unstructured(text: string): string {
  return NEEDS_ENCODING.test(text) ? encodeWords(text) : text
}

/** A display name: bare, quoted or encoded, whichever is the least that carries it. */
export function displayName(name: string): string {
  if (NEEDS_ENCODING.test(name)) return encodeWords(name)
  if (/^[A-Za-z0-9 ]+$/.test(name)) return name
  return `"${name.replace(/["\\]/g, '\\$&')}"`
}

/** `Name <local@domain>`, or the address alone. */
export function mailbox(address: EmailAddress, name?: string): string {
  if (name !== undefined && name.trim() !== '') return `${displayName(name)} <${address.address}>`
  return address.local.startsWith('"') ? `<${address.address}>` : address.address
}

/**
 * How a header holds an address whose local part is beyond ASCII. `utf8`: as it is (RFC 6532), in a message that only
 * servers with SMTPUTF8 are offered. `group`: as an empty group with the address for its name, which can be read and not be
 * answered, as RFC 6857 does when it takes a message to readers that know no UTF-8 headers.
 */
export type AddressForm = 'utf8' | 'group'

/** @returns octets as a latin1 string; `mailbox` for whom ASCII will do */
export function internationalMailbox(address: EmailAddress, form: AddressForm, name?: string): string {
  if (!address.needsSmtpUtf8) return mailbox(address, name)
  if (form === 'group') return `${encodeWords(address.address)}:;`
  return Buffer.from(mailbox(address, name), 'utf8').toString('latin1')
}

/**
 * One field, folded at white space so that lines stay within 76 where they can. No line is ever white space only, and
 * none breaks right after the name, both of which some readers cannot take.
 *
 * @param value ASCII, or octets of UTF-8 as a latin1 string
 * @returns the field without the CRLF that ends it
 */
export function foldField(name: string, value: string): string | undefined {
  const lines: string[] = []
  let line = `${name}:`
  let hasText = false
  for (const piece of ` ${value}`.match(/[ \t]+[^ \t]+/g) ?? []) {
    if (hasText && line.length + piece.length > FOLD_AT) {
      lines.push(line)
      line = ''
    }
    line += piece
    hasText = true
  }
  lines.push(line)
  return lines.every(({ length }) => length <= MAX_LINE_OCTETS) ? lines.join('\r\n') : undefined
}
