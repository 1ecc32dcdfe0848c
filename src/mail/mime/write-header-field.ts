/**
 * Writes header fields: encodes non-ASCII text, folds long lines, rejects control characters.
 *
 * Standards: RFC 5322 §2.2.3 (folding), §3.2.4 (quoted-string), §3.3 (date-time), §3.4 (addresses); RFC 2047 (encoded-word).
 */
import type { EmailAddress } from '../address.js'
import { encodeWords } from './encoded-word.js'
import { MAX_LINE_OCTETS } from './transfer-encoding.js'

/** RFC 2047 §2: lines with an encoded-word are at most 76 long; the same limit is used for all. */
const FOLD_AT = 76

/**
 * Anything but printable ASCII; text that would be read as an encoded-word; white space that folding would not preserve; words too long to
 * fold.
 */
const NEEDS_ENCODING = /[^\x20-\x7e]|=\?|^ | $| {2}|[^ ]{60}/

export function unstructured(text: string): string {
  return NEEDS_ENCODING.test(text) ? encodeWords(text) : text
}

/** A display name: plain, quoted or encoded, as needed. */
export function displayName(name: string): string {
  if (NEEDS_ENCODING.test(name)) return encodeWords(name)
  if (/^[A-Za-z0-9 ]+$/.test(name)) return name
  return `"${name.replace(/["\\]/g, '\\$&')}"`
}

export function mailbox(address: EmailAddress, name?: string): string {
  if (name !== undefined && name.trim() !== '') return `${displayName(name)} <${address.address}>`
  return address.local.startsWith('"') ? `<${address.address}>` : address.address
}

/**
 * How an address with a non-ASCII local part is written. `utf8`: as is (RFC 6532), if only SMTPUTF8 servers get the message. `group`: as an
 * empty group named after the address, which is readable but cannot be replied to (as in RFC 6857).
 */
export type AddressForm = 'utf8' | 'group'

/** @returns a latin1 string; like `mailbox` if the address is ASCII */
export function internationalMailbox(address: EmailAddress, form: AddressForm, name?: string): string {
  if (!address.needsSmtpUtf8) return mailbox(address, name)
  if (form === 'group') return `${encodeWords(address.address)}:;`
  return Buffer.from(mailbox(address, name), 'utf8').toString('latin1')
}

/**
 * Folds a field at white space to lines of 76 if possible. No line is white space only or breaks right after the name, which some readers
 * cannot handle.
 *
 * @param value ASCII, or octets of UTF-8 as a latin1 string
 * @returns the field without its final CRLF; undefined if a line would exceed 998 octets
 */
export function foldField(name: string, value: string): string | undefined {
  const lines: string[] = []
  let line = `${name}:`
  let hasText = false
  for (const piece of ` ${value}`.match(/[ \t]+[^ \t]+/gy) ?? []) {
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

// eslint-disable-next-line no-control-regex -- finding control characters is what this is for
const HEADER_BREAK = /[\x00-\x08\x0a-\x1f\x7f]/

/**
 * Whether the text could end its header field or be read as more than text: contains CR, LF, NUL or another C0 control or DEL. TAB is white
 * space (RFC 5322 §2.2.2) and allowed.
 *
 * Checked on submission and again after merging, since merge data can add what the template did not contain.
 */
export function hasHeaderBreak(text: string): boolean {
  return HEADER_BREAK.test(text)
}

/**
 * Removes HTML tags from a subject. Entities stay, since a subject is plain text and `&amp;` may be intended.
 *
 * Linear: each `>` closes the nearest open `<`. Removing a tag cannot create a new one (`<<b>b>`). A `>` inside a quoted attribute ends its
 * tag.
 */
export function stripTags(subject: string): string {
  if (!subject.includes('<')) return subject
  const kept: string[] = []
  const open: number[] = []
  for (const character of subject) {
    if (character === '<') open.push(kept.length)
    kept.push(character)
    if (character !== '>') continue
    const start = open.pop()
    if (start !== undefined && isTag(kept, start)) kept.length = start
  }
  return kept.join('')
}

/** `<b>`, `</b>`, `<br/>`, `<a href=...>`, `<!-- -->`, `<?xml ?>`; not `<3`, `a < b > c` or `<ann@example.com>`. */
function isTag(characters: readonly string[], start: number): boolean {
  let at = start + 1
  if (characters[at] === '!' || characters[at] === '?') return true
  if (characters[at] === '/') at++
  if (!/^[a-z]$/i.test(characters[at] ?? '')) return false
  while (/^[a-z0-9:-]$/i.test(characters[at] ?? '')) at++
  return /^[\s/>]$/.test(characters[at] ?? '')
}

/** RFC 5322 date-time; `GMT` is obsolete syntax (§4.3). @param moment ms since epoch UTC @returns e.g. `Mon, 05 Jan 2026 07:08:09 +0000` */
export function headerDate(moment: number): string {
  return new Date(moment).toUTCString().replace('GMT', '+0000')
}
