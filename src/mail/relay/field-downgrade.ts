/**
 * Rewrites header fields with non-ASCII octets or overlong lines in 7 bits, preserving their meaning.
 *
 * Throws AppError `validation_error` for a field that cannot be folded.
 * Standards: RFC 2047 §5 (placement of encoded-words), RFC 2231 (parameters), RFC 5322 §2.1.1, §2.2.3 (lines), RFC 6857 §3 (downgrading).
 */
import { AppError } from '../../core/errors.js'
import { asciiDomain, readAddress } from '../address.js'
import {
  displayName,
  foldField,
  internationalMailbox,
  unstructured,
  type AddressForm,
} from '../mime/write-header-field.js'
import { readAddressList, type AddressList, type ListedGroup, type ListedMailbox } from './address-list.js'
import { decodeOctets, hasNonAscii } from '../mime/charset.js'
import { decodeText } from '../mime/encoded-word.js'
import { unfoldedValue, type HeaderField } from '../mime/header-fields.js'
import { readMediaType, writeMediaType } from '../mime/media-type.js'
import { MAX_LINE_OCTETS } from '../mime/transfer-encoding.js'

/** RFC 5322 §3.6: address lists, including fields of other standards. */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set([
  'from',
  'sender',
  'reply-to',
  'to',
  'cc',
  'bcc',
  'resent-from',
  'resent-sender',
  'resent-to',
  'resent-cc',
  'resent-bcc',
  'disposition-notification-to',
  'return-receipt-to',
  'errors-to',
  'mail-followup-to',
  'mail-reply-to',
])
const PARAMETER_FIELDS: ReadonlySet<string> = new Set(['content-type', 'content-disposition'])
/** Lists of message ids, which some programs write without white space. */
const ID_FIELDS: ReadonlySet<string> = new Set(['references', 'in-reply-to'])

const MAX_SHOWN_NAME = 76

export interface DowngradeRules {
  /** For octets that are not valid UTF-8. */
  readonly charset?: string | undefined
  /** How to write addresses with a non-ASCII local part. */
  readonly addresses: AddressForm
}

/** Whether a field must be rewritten: non-ASCII octets, NUL, or a line over 998. */
export function needsDowngrade(raw: string): boolean {
  return hasNonAscii(raw) || raw.includes('\0') || hasLongFieldLine(raw)
}

/** Replaced, not removed: joining the surroundings could form another field name or an empty line. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '?')
}

/** @returns the field without its final CRLF, as a latin1 string; non-ASCII only in addresses, in the form `utf8` */
export function downgradeField(field: HeaderField, rules: DowngradeRules): string {
  const raw = withoutNul(field.raw)
  const name = raw.slice(0, Math.max(raw.indexOf(':'), 0)).trimEnd()
  // No colon or an invalid name: mail software ignores it.
  if (name === '' || !/^[\x21-\x7e]+$/.test(name)) return hardWrap(raw.replace(/[^\x20-\x7e]+/g, '?'))
  const value = unfoldedValue(raw)
  if (!hasNonAscii(raw)) return refolded(name, field.name, value)
  if (PARAMETER_FIELDS.has(field.name))
    return writeMediaType(name, readMediaType(decodeOctets(value, rules.charset)))
  if (ADDRESS_FIELDS.has(field.name)) {
    const list = readAddressList(decodeOctets(value, rules.charset))
    if (list.fault === undefined) return addressField(name, list, rules.addresses)
  }
  return folded(name, unstructured(withoutControls(decodeText(value, rules.charset))))
}

/** ASCII and folded, without preserving meaning: cheap, for fields nobody reads. */
export function toAsciiField({ raw }: HeaderField): string {
  const colon = raw.indexOf(':')
  const name = colon > 0 && /^[\x21-\x7e]+$/.test(raw.slice(0, colon)) ? raw.slice(0, colon) : 'X-Unreadable'
  const value = unfoldedValue(raw).replace(/[^\x20-\x7e]+/g, '?')
  return hardWrap(`${name.slice(0, MAX_SHOWN_NAME)}: ${value}`)
}

/** Folds at existing white space, which changes nothing; otherwise adds white space or encodes. */
function refolded(name: string, key: string, value: string): string {
  const field = foldField(name, value)
  if (field !== undefined) return field
  if (PARAMETER_FIELDS.has(key)) return writeMediaType(name, readMediaType(value))
  if (ID_FIELDS.has(key)) return folded(name, value.replaceAll('><', '> <'))
  if (ADDRESS_FIELDS.has(key)) {
    const list = readAddressList(value)
    if (list.fault === undefined) return addressField(name, list, 'group')
  }
  // Tag lists (RFC 6376 §3.2) may be folded at semicolons, other lists at commas.
  const spaced = foldField(name, value.replace(/([;,])(?=[^ \t])/g, '$1 '))
  return spaced ?? folded(name, unstructured(withoutControls(decodeText(value))))
}

function folded(name: string, value: string): string {
  const field = foldField(name, value)
  if (field !== undefined) return field
  const path = name.slice(0, MAX_SHOWN_NAME)
  throw new AppError(
    'validation_error',
    `the ${path} field has a line longer than ${MAX_LINE_OCTETS} octets`,
    {
      path,
    },
  )
}

function hardWrap(text: string): string {
  return text.replace(/.{900}/g, '$&\r\n ')
}

/** A control character from an encoded-word could break out of its line. */
function withoutControls(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what has to go
  return text.replace(/[\x00-\x1f\x7f]+/g, ' ').trim()
}

function addressField(name: string, list: AddressList, form: AddressForm): string {
  return folded(name, list.elements.flatMap(element => writtenElement(element, form)).join(', '))
}

function writtenElement(element: ListedMailbox | ListedGroup, form: AddressForm): string[] {
  if (!('group' in element)) return [writtenMailbox(element, form)]
  // RFC 5322 §3.4: groups cannot be nested, so members written as groups follow the group.
  const isOutside = (member: ListedMailbox): boolean => form === 'group' && isInternational(member)
  const members = element.members.filter(member => !isOutside(member)).map(one => writtenMailbox(one, form))
  const outside = element.members.filter(isOutside).map(one => writtenMailbox(one, form))
  return [`${displayName(withoutControls(element.group))}: ${members.join(', ')};`, ...outside]
}

function isInternational({ address: text }: ListedMailbox): boolean {
  const address = readAddress(text, { allowSingleLabel: true })
  return !('fault' in address) && address.needsSmtpUtf8
}

function writtenMailbox(listed: ListedMailbox, form: AddressForm): string {
  const name = listed.name === undefined ? undefined : withoutControls(listed.name)
  const address = readAddress(listed.address, { allowSingleLabel: true })
  if (!('fault' in address)) return internationalMailbox(address, form, name)
  // An address that we would not send to (a literal, a quoted local part with spaces) may still be displayed.
  const at = listed.address.lastIndexOf('@')
  const domain = asciiDomain(listed.address.slice(at + 1), { allowSingleLabel: true })
  const kept = domain !== undefined && at > 0 ? `${listed.address.slice(0, at)}@${domain}` : listed.address
  const ascii = kept.replace(/[^\x20-\x7e]+/g, '?')
  return name === undefined || name === '' ? `<${ascii}>` : `${displayName(name)} <${ascii}>`
}

function hasLongFieldLine(raw: string): boolean {
  let from = 0
  while (raw.length - from > MAX_LINE_OCTETS) {
    const lineEnd = raw.indexOf('\r\n', from)
    if (lineEnd < 0 || lineEnd - from > MAX_LINE_OCTETS) return true
    from = lineEnd + 2
  }
  return false
}
