/**
 * Parses delivery status notifications: per-message and per-recipient fields.
 *
 * Input is a message/delivery-status part, or any text with such fields. Tolerates groups without separators, empty lines between fields,
 * missing recipient fields and continuation lines without indentation. Never throws; reads at most 200 recipients.
 * Standards: RFC 3464 §2 (fields and groups), RFC 6533 (UTF-8 forms).
 */
import { given } from '../../core/given.js'
import { assessRecipient } from './assess-recipient.js'
import { isSameAddress, readAddress, readTypedAddress } from './recipient-address.js'
import type { ReturnedKind, ReturnedRecipient } from './returned-mail.js'

const MAX_RECIPIENTS = 200
const MAX_LINES = 6_000
/** Of a value with its continuation lines. */
const MAX_VALUE = 4_000

/** One per-recipient group, as written. */
export interface StatusGroup {
  /** Empty if the field contains no address but a file or pipe. */
  readonly recipient: string
  readonly originalRecipient?: string
  readonly action?: NonNullable<ReturnedRecipient['action']>
  readonly status?: string
  readonly diagnostic?: string
  readonly remoteMta?: string
}

export interface DeliveryStatus {
  readonly envelopeId?: string
  readonly groups: readonly StatusGroup[]
  /** Whether there were fields, even if no recipient could be read. */
  readonly isPresent: boolean
}

type Fields = Map<string, string>

/** RFC 3464 §2.2, §2.3, and X- fields used in their place. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'original-envelope-id',
  'reporting-mta',
  'dsn-gateway',
  'received-from-mta',
  'arrival-date',
])
const RECIPIENT_FIELDS: ReadonlySet<string> = new Set([
  'original-recipient',
  'final-recipient',
  'x-actual-recipient',
  'action',
  'status',
  'remote-mta',
  'diagnostic-code',
  'last-attempt-date',
  'final-log-id',
  'will-retry-until',
  'localized-diagnostic',
  'x-supplementary-info',
  'x-display-name',
])
/** Some systems send `expired`, which RFC 3464 does not define. */
const ACTIONS: Readonly<Record<string, NonNullable<ReturnedRecipient['action']>>> = {
  failed: 'failed',
  failure: 'failed',
  fail: 'failed',
  error: 'failed',
  expired: 'failed',
  bounced: 'failed',
  delayed: 'delayed',
  delivered: 'delivered',
  relayed: 'relayed',
  expanded: 'expanded',
}

export function readDeliveryStatus(text: string): DeliveryStatus {
  const message: Fields = new Map()
  const groups: Fields[] = []
  for (const paragraph of readParagraphs(text)) addParagraph(paragraph, message, groups)
  const envelopeId = message.get('original-envelope-id')?.trim()
  const read = groups.map(readGroup).filter(group => group !== undefined)
  return {
    ...(envelopeId ? { envelopeId } : {}),
    groups: read.slice(0, MAX_RECIPIENTS),
    isPresent: groups.length > 0 || message.has('reporting-mta'),
  }
}

/** Lines that are not fields continue the previous field; consecutive empty lines count as one. */
function readParagraphs(text: string): [string, string][][] {
  const paragraphs: [string, string][][] = [[]]
  let isOpen = false
  for (const line of text.split('\n', MAX_LINES)) {
    if (line.trim() === '') {
      if (paragraphs.at(-1)?.length) paragraphs.push([])
      isOpen = false
      continue
    }
    const match = /^[ \t]{0,3}([A-Za-z][\w-]{2,60})[ \t]{0,20}:(.*)$/.exec(line)
    const name = match?.[1]?.toLowerCase() ?? ''
    const last = paragraphs.at(-1)?.at(-1)
    if (MESSAGE_FIELDS.has(name) || RECIPIENT_FIELDS.has(name)) {
      paragraphs.at(-1)?.push([name, (match?.[2] ?? '').slice(0, MAX_VALUE)])
      isOpen = true
    } else if (isOpen && last && (!match || /^\s/.test(line)) && last[1].length < MAX_VALUE) {
      last[1] += `\n${line.slice(0, MAX_VALUE)}`
    } else isOpen = false
  }
  return paragraphs
}

function addParagraph(paragraph: readonly [string, string][], message: Fields, groups: Fields[]): void {
  // A group without a recipient continues the previous one.
  let group = isContinuation(paragraph) ? groups.at(-1) : undefined
  for (const [name, value] of paragraph) {
    if (MESSAGE_FIELDS.has(name)) {
      if (!message.has(name)) message.set(name, value)
      continue
    }
    if (group === undefined || startsNextGroup(group, name)) {
      if (groups.length >= 2 * MAX_RECIPIENTS) return
      group = new Map()
      groups.push(group)
    }
    if (!group.has(name)) group.set(name, value.trim())
  }
}

function isContinuation(paragraph: readonly [string, string][]): boolean {
  return !paragraph.some(([name]) => name === 'final-recipient' || name === 'original-recipient')
}

/** Without empty lines between groups, a repeated field starts the next group. */
function startsNextGroup(group: Fields, name: string): boolean {
  return ['final-recipient', 'original-recipient', 'action', 'status'].includes(name) && group.has(name)
}

function readGroup(fields: Fields): StatusGroup | undefined {
  const final = readTypedAddress(fields.get('final-recipient') ?? '')
  const original = readTypedAddress(fields.get('original-recipient') ?? '')
  const actual = readAddress(fields.get('x-actual-recipient') ?? '')
  const isMailbox = (address: string | undefined) => address?.includes('@') === true
  if (!fields.has('final-recipient') && !fields.has('original-recipient')) return undefined
  const recipient = [final, original, actual].find(isMailbox) ?? final ?? original ?? ''
  const action = ACTIONS[/^\s*([a-z-]{1,20})/i.exec(fields.get('action') ?? '')?.[1]?.toLowerCase() ?? '']
  const diagnostic = [fields.get('diagnostic-code'), fields.get('localized-diagnostic')]
    .map(value => withoutType(value ?? ''))
    .find(value => value !== '')
  const remoteMta = withoutType(fields.get('remote-mta') ?? '')
  const status = fields.get('status')
  return {
    recipient,
    ...(original !== undefined && !isSameAddress(original, recipient) ? { originalRecipient: original } : {}),
    ...given({ action }),
    ...(status ? { status } : {}),
    ...given({ diagnostic }),
    ...(remoteMta === '' ? {} : { remoteMta }),
  }
}

/** `smtp; 550 ...` without its type. */
function withoutType(value: string): string {
  return value.trim().replace(/^[A-Za-z][\w-]{0,29}[ \t]{0,9};\s*/, '')
}

const MAX_SES_RECIPIENTS = 100
const MAX_JSON = 131_072

interface SesNotification {
  readonly kind: ReturnedKind
  readonly recipients: readonly ReturnedRecipient[]
  readonly messageId?: string
}

type Json = Readonly<Record<string, unknown>>

/** Amazon SES notifications: untrusted JSON in the text of a mail. @returns undefined for other text */
export function readSesNotification(text: string): SesNotification | undefined {
  const start = text.indexOf('{')
  if (start < 0 || start > 2_000 || !/"(?:notificationType|eventType)\\?"/.test(text.slice(start, MAX_JSON)))
    return undefined
  const outer = parse(text.slice(start, start + MAX_JSON))
  if (!outer) return undefined
  const wrapped = string(outer['Message'], MAX_JSON)
  const json = wrapped === undefined ? outer : (parse(wrapped) ?? {})
  const mail = object(json['mail'])
  const messageId = string(object(mail['commonHeaders'])['messageId']) ?? string(mail['messageId'])
  const found = readByType(string(json['notificationType']) ?? string(json['eventType']) ?? '', json)
  return (
    found && { ...found, ...(messageId === undefined ? {} : { messageId: messageId.replace(/^<|>$/g, '') }) }
  )
}

function readByType(type: string, json: Json): Omit<SesNotification, 'messageId'> | undefined {
  switch (type.toLowerCase()) {
    case 'bounce':
      return { kind: 'bounce', recipients: readBounce(object(json['bounce'])) }
    case 'complaint':
      return { kind: 'feedback', recipients: readComplaint(object(json['complaint'])) }
    case 'delivery':
      return { kind: 'success', recipients: readDelivery(object(json['delivery'])) }
    default:
      return undefined
  }
}

function readBounce(bounce: Json): ReturnedRecipient[] {
  // `Transient` includes full mailboxes and vacations; the diagnostic is more specific if present.
  const isTransient = string(bounce['bounceType'])?.toLowerCase() === 'transient'
  return list(bounce['bouncedRecipients']).map(one =>
    assessRecipient({
      recipient: string(one['emailAddress']) ?? '',
      action: 'failed',
      status: string(one['status']) ?? (isTransient ? '4.0.0' : undefined),
      diagnostic: string(one['diagnosticCode'])?.replace(/^\w{1,30};\s{0,9}/, ''),
      context: string(bounce['bounceSubType']),
      remoteMta: string(bounce['remoteMtaIp']),
    }),
  )
}

function readComplaint(complaint: Json): ReturnedRecipient[] {
  const type = string(complaint['complaintFeedbackType'])?.toLowerCase() ?? 'abuse'
  const feedbackType = ['abuse', 'auth-failure', 'fraud', 'not-spam', 'virus'].includes(type) ? type : 'other'
  return list(complaint['complainedRecipients']).map(one => ({
    recipient: string(one['emailAddress']) ?? '',
    feedbackType,
  }))
}

function readDelivery(delivery: Json): ReturnedRecipient[] {
  const recipients = Array.isArray(delivery['recipients']) ? (delivery['recipients'] as unknown[]) : []
  const diagnostic = string(delivery['smtpResponse'])
  return recipients.slice(0, MAX_SES_RECIPIENTS).map(recipient =>
    assessRecipient({
      recipient: string(recipient) ?? '',
      action: 'delivered',
      diagnostic,
      status: /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})/.exec(diagnostic ?? '')?.[1],
      remoteMta: string(delivery['reportingMTA']),
    }),
  )
}

/** The object may be followed by the footer of the notification service. */
function parse(text: string): Json | undefined {
  // Sendmail breaks overlong lines with `!`, even inside strings.
  const whole = text.replace(/!\n {1,2}/g, '')
  for (const end of [whole.length, whole.indexOf('\n\n'), whole.lastIndexOf('}') + 1]) {
    if (end <= 0) continue
    try {
      return object(JSON.parse(whole.slice(0, end)))
    } catch {
      continue
    }
  }
  return undefined
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function string(value: unknown, limit = 4_000): string | undefined {
  return typeof value === 'string' ? value.slice(0, limit) : undefined
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.slice(0, MAX_SES_RECIPIENTS).map(object) : []
}
