/**
 * The arguments of MAIL and RCPT: path and parameters, read strictly.
 *
 * Called by `envelope.ts`. Pure; knows the grammar and the limits, not who may send what to whom. Fails: never throws; a
 * fault is the reply line to send. Parameters: SIZE (RFC 1870), BODY (RFC 6152), SMTPUTF8 (RFC 6531), AUTH (RFC 4954 §5,
 * read and ignored), RET, ENVID, NOTIFY, ORCPT (RFC 3461 §4). An unknown one is 555, a repeated or malformed one 501.
 */
import type { MailCommand, RcptCommand } from './receiver.js'
import { readPath } from './path.js'
import { REPLY, replyLine } from './reply.js'

/** What the session allows. */
export interface ParameterRules {
  /** Whether EHLO was said; without it there are no parameters. */
  readonly isEsmtp: boolean
  readonly dsn: boolean
  readonly smtpUtf8: boolean
  readonly auth: boolean
  readonly messageSize: number
}

/** RFC 3461 §4.2 and §4.4, in octets before decoding. */
const MAX_ENVID = 100
const MAX_ORCPT = 500
/** More than there are names. */
const MOST_PARAMETERS = 10

const NOTIFY = ['NEVER', 'SUCCESS', 'FAILURE', 'DELAY'] as const
type Notify = (typeof NOTIFY)[number]

/** @param argument what follows `MAIL FROM:` */
export function readMail(argument: string, rules: ParameterRules): MailCommand | string {
  const text = argument.trimStart()
  const path = readPath(text, false)
  if (typeof path === 'string') return replyLine(501, '5.1.7', `Sender: ${path}`)
  // Most mail has no parameters but SIZE, and many senders not even that.
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

/** RFC 3461 §4.1: NEVER by itself, or a list of the others, each once. */
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
 * xtext (RFC 3461 §4): `+2B` is `+`. What it decodes to has to be printable, for it will stand in reports.
 *
 * @returns undefined where it is none, is empty or too long
 */
function readXtext(value: string | undefined, maxLength: number): string | undefined {
  if (value === undefined || value === '' || value.length > maxLength) return undefined
  if (!/^(?:[!-*,-<>-~]|\+[0-9A-F]{2})+$/.test(value)) return undefined
  const decoded = value.replace(/\+([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return /^[\x20-\x7e]*$/.test(decoded) ? decoded : undefined
}

/** RFC 5321 §4.1.2 (esmtp-param), names in capitals; undefined where there are none, a reply where they are malformed. */
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
    if (parameters.size > MOST_PARAMETERS) return replyLine(501, '5.5.4', 'Too many parameters')
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
  return replyLine(553, '5.6.7', 'Such an address needs SMTPUTF8')
}
