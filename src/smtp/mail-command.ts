/**
 * Parses the arguments of MAIL and RCPT: path and parameters.
 *
 * Strict about grammar and limits; permissions are the receiver's concern. Errors are returned as the reply to send: 555 for an unknown
 * parameter, 501 for a repeated or malformed one. Parameters: SIZE (RFC 1870), BODY (RFC 6152), SMTPUTF8 (RFC 6531), AUTH (RFC 4954 §5,
 * parsed and ignored), RET, ENVID, NOTIFY, ORCPT (RFC 3461 §4).
 */
import type { MailCommand, RcptCommand } from './receiver.js'
import { REPLY, replyLine } from './reply.js'
import { localFault } from '../mail/address.js'
import { ipVersion } from '../world/net/ip-address.js'

/** Extensions offered in the session. */
export interface ParameterRules {
  /** Whether the client sent EHLO; there are no parameters after HELO. */
  readonly isEsmtp: boolean
  readonly dsn: boolean
  readonly smtpUtf8: boolean
  readonly auth: boolean
  readonly messageSize: number
}

/** RFC 3461 §4.2 and §4.4, in octets before decoding. */
const MAX_ENVID = 100
const MAX_ORCPT = 500
/** More than there are known parameters. */
const MAX_PARAMETERS = 10

const NOTIFY = ['NEVER', 'SUCCESS', 'FAILURE', 'DELAY'] as const
type Notify = (typeof NOTIFY)[number]

/** @param argument what follows `MAIL FROM:` */
export function readMail(argument: string, rules: ParameterRules): MailCommand | string {
  const text = argument.trimStart()
  const path = readPath(text, false)
  if (typeof path === 'string') return replyLine(501, '5.1.7', `Sender: ${path}`)
  const parameters = readParameters(text, path.end)
  if (typeof parameters === 'string') return parameters
  const mail: { -readonly [K in keyof MailCommand]: MailCommand[K] } = {
    address: path.address,
    smtpUtf8: false,
  }
  for (const [name, value] of parameters ?? []) {
    const fault = takeMailParameter(mail, name, value, rules)
    if (fault !== undefined) return fault
  }
  if (!path.isAscii && !mail.smtpUtf8) return nonAsciiAddress()
  return mail
}

function takeMailParameter(
  mail: { -readonly [K in keyof MailCommand]: MailCommand[K] },
  name: string,
  value: string | undefined,
  rules: ParameterRules,
): string | undefined {
  if (!rules.isEsmtp) return unknownParameter(name)
  switch (name) {
    case 'SIZE':
      if (value === undefined || !/^\d{1,20}$/.test(value)) return malformed(name)
      mail.size = Number(value)
      return mail.size > rules.messageSize ? REPLY.tooLarge : undefined
    case 'BODY': {
      const body = value?.toUpperCase()
      if (body !== '7BIT' && body !== '8BITMIME') return malformed(name)
      mail.body = body
      return undefined
    }
    case 'SMTPUTF8':
      if (!rules.smtpUtf8) return unknownParameter(name)
      if (value !== undefined) return malformed(name)
      mail.smtpUtf8 = true
      return undefined
    case 'RET': {
      if (!rules.dsn) return unknownParameter(name)
      const ret = value?.toUpperCase()
      if (ret !== 'FULL' && ret !== 'HDRS') return malformed(name)
      mail.ret = ret
      return undefined
    }
    case 'ENVID': {
      if (!rules.dsn) return unknownParameter(name)
      const envid = readXtext(value, MAX_ENVID)
      if (envid === undefined) return malformed(name)
      mail.envid = envid
      return undefined
    }
    case 'AUTH':
      if (!rules.auth) return unknownParameter(name)
      return readXtext(value, MAX_ORCPT) === undefined ? malformed(name) : undefined
    default:
      return unknownParameter(name)
  }
}

/** @param argument what follows `RCPT TO:`; @param allowsUtf8 whether MAIL had SMTPUTF8 */
export function readRcpt(argument: string, allowsUtf8: boolean, rules: ParameterRules): RcptCommand | string {
  const text = argument.trimStart()
  const path = readPath(text, true)
  if (typeof path === 'string') return replyLine(501, '5.1.3', `Recipient: ${path}`)
  if (path.address === '') return replyLine(501, '5.1.3', 'Recipient: address is empty')
  if (!path.isAscii && !allowsUtf8) return nonAsciiAddress()
  const parameters = readParameters(text, path.end)
  if (typeof parameters === 'string') return parameters
  if (parameters === undefined) return { address: path.address }
  const recipient: { -readonly [K in keyof RcptCommand]: RcptCommand[K] } = { address: path.address }
  for (const [name, value] of parameters) {
    if (!rules.isEsmtp || !rules.dsn || (name !== 'NOTIFY' && name !== 'ORCPT')) return unknownParameter(name)
    if (name === 'NOTIFY') {
      const notify = readNotify(value)
      if (notify === undefined) return malformed(name)
      recipient.notify = notify
    } else {
      const orcpt = readOriginalRecipient(value)
      if (orcpt === undefined) return malformed(name)
      recipient.orcpt = orcpt
    }
  }
  return recipient
}

/** RFC 3461 §4.1: NEVER alone, or a list of the others, each once. */
function readNotify(value: string | undefined): readonly Notify[] | undefined {
  if (value === undefined) return undefined
  const words = value.toUpperCase().split(',', NOTIFY.length + 1)
  const known = words.filter((word): word is Notify => (NOTIFY as readonly string[]).includes(word))
  if (known.length !== words.length || new Set(known).size !== known.length) return undefined
  return known.includes('NEVER') && known.length > 1 ? undefined : known
}

/** RFC 3461 §4.2: address type, semicolon, xtext. */
function readOriginalRecipient(value: string | undefined): string | undefined {
  const semicolon = value?.indexOf(';') ?? -1
  if (value === undefined || semicolon < 1 || value.length > MAX_ORCPT) return undefined
  const type = value.slice(0, semicolon)
  const address = readXtext(value.slice(semicolon + 1), MAX_ORCPT)
  return /^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(type) && address ? `${type};${address}` : undefined
}

/**
 * xtext (RFC 3461 §4): `+2B` is `+`. The decoded text must be printable, since it is written into DSNs.
 *
 * @returns undefined if malformed, empty or too long
 */
function readXtext(value: string | undefined, maxLength: number): string | undefined {
  if (value === undefined || value === '' || value.length > maxLength) return undefined
  if (!/^(?:[!-*,-<>-~]|\+[0-9A-F]{2})+$/.test(value)) return undefined
  const decoded = value.replace(/\+([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return /^[\x20-\x7e]*$/.test(decoded) ? decoded : undefined
}

/** RFC 5321 §4.1.2 (esmtp-param). Names are upper-cased; undefined without parameters, a reply if malformed. */
function readParameters(
  text: string,
  from: number,
): ReadonlyMap<string, string | undefined> | string | undefined {
  if (from === text.length) return undefined
  const rest = text.slice(from)
  if (!rest.startsWith(' ')) return replyLine(501, '5.5.4', 'A space must follow the address')
  const parameters = new Map<string, string | undefined>()
  for (const word of rest.split(' ')) {
    if (word === '') continue
    const equals = word.indexOf('=')
    const name = (equals < 0 ? word : word.slice(0, equals)).toUpperCase()
    const value = equals < 0 ? undefined : word.slice(equals + 1)
    if (!/^[A-Z0-9][A-Z0-9-]*$/.test(name) || value?.includes('=') === true || value === '')
      return malformed(name)
    if (parameters.has(name)) return replyLine(501, '5.5.4', `Repeated parameter ${name.slice(0, 40)}`)
    parameters.set(name, value)
    if (parameters.size > MAX_PARAMETERS) return replyLine(501, '5.5.4', 'Too many parameters')
  }
  return parameters
}

function malformed(name: string): string {
  return replyLine(501, '5.5.4', `Malformed parameter ${name.slice(0, 40)}`)
}

function unknownParameter(name: string): string {
  return replyLine(555, '5.5.4', `Unknown parameter ${name.slice(0, 40)}`)
}

/** RFC 6531 §3.5. */
function nonAsciiAddress(): string {
  return replyLine(553, '5.6.7', 'Non-ASCII address requires SMTPUTF8')
}

export interface Path {
  /** `local@domain` as written; empty for `<>`. */
  readonly address: string
  readonly isAscii: boolean
  /** Index after the `>`. */
  readonly end: number
}

/** RFC 5321 §4.5.3.1.1 to §4.5.3.1.3, in octets. */
const MAX_LOCAL = 64
const MAX_DOMAIN = 255
const MAX_PATH = 256

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10ffff}-]+"
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*$`, 'u')
/** Spaces allowed, controls not. */
const QUOTED_STRING = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e\u{80}-\u{10ffff}]|\\[\x20-\x7e])*"$/u
/** Underscores are not in the grammar but common in host names. */
const LABEL =
  /^[A-Za-z0-9_\u{80}-\u{10ffff}](?:[A-Za-z0-9_\u{80}-\u{10ffff}-]*[A-Za-z0-9_\u{80}-\u{10ffff}])?$/u
const NON_ASCII = /[^\0-\x7f]/
/** Fast path for most addresses. */
const PLAIN = /^[A-Za-z0-9_.+=-]{1,64}@[A-Za-z0-9.-]{1,180}$/

/**
 * @param text the argument from `<` on, e.g. `<ann@example.com> SIZE=1000`
 * @param allowsPostmaster accepts `<postmaster>` without a domain (RFC 5321 §4.5.1)
 * @returns the path, or what is wrong with it
 */
export function readPath(text: string, allowsPostmaster: boolean): Path | string {
  if (text[0] !== '<') return 'address must be enclosed in angle brackets'
  const end = closingBracket(text)
  if (end < 0) return 'address has no closing bracket'
  const inside = text.slice(1, end)
  if (inside.length > MAX_PATH - 2 || Buffer.byteLength(inside) > MAX_PATH - 2)
    return `address is longer than ${MAX_PATH - 2} octets`
  if (inside === '') return { address: '', isAscii: true, end: end + 1 }
  const address = withoutRoute(inside)
  if (address === undefined) return 'address has an invalid source route'
  const isPostmaster = allowsPostmaster && address.toLowerCase() === 'postmaster'
  const fault = isPostmaster ? undefined : addressFault(address)
  return fault ?? { address, isAscii: !NON_ASCII.test(address), end: end + 1 }
}

/** The first unquoted `>`, within the maximum length of a path. */
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

/** `@one,@two:ann@example.com` means `ann@example.com`. */
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
    return isDomain(address.slice(address.indexOf('@') + 1)) ? undefined : 'address has no valid domain'
  }
  const at = address.lastIndexOf('@')
  if (at < 0) return 'address has no @'
  const local = address.slice(0, at)
  const domain = address.slice(at + 1)
  if (local === '') return 'address has nothing before the @'
  if (Buffer.byteLength(local) > MAX_LOCAL) return `address has more than ${MAX_LOCAL} octets before the @`
  if (!DOT_STRING.test(local) && !QUOTED_STRING.test(local)) return `address ${localFault(local)}`
  return isDomain(domain) || isAddressLiteral(domain) ? undefined : 'address has no valid domain'
}

function isDomain(domain: string): boolean {
  if (domain === '' || domain.length > MAX_DOMAIN) return false
  return domain.split('.').every(label => label.length <= 63 && LABEL.test(label))
}

/** RFC 5321 §4.1.3. No standard defines a General-address-literal. */
function isAddressLiteral(domain: string): boolean {
  if (!domain.startsWith('[') || !domain.endsWith(']')) return false
  const inside = domain.slice(1, -1)
  if (/^ipv6:/i.test(inside)) return !inside.includes('%') && ipVersion(inside.slice(5)) === 6
  return ipVersion(inside) === 4
}
