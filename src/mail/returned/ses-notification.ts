/**
 * Parses Amazon SES notifications: JSON in the text of a mail.
 *
 * The JSON is treated as untrusted. Returns undefined for other text; reads at most 100 recipients.
 */
import { assessRecipient } from './assess-recipient.js'
import type { ReturnedKind, ReturnedRecipient } from './returned-mail.js'

const MAX_RECIPIENTS = 100
const MAX_JSON = 131_072

export interface SesNotification {
  readonly kind: ReturnedKind
  readonly recipients: readonly ReturnedRecipient[]
  readonly messageId?: string
}

type Json = Readonly<Record<string, unknown>>

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
  return recipients.slice(0, MAX_RECIPIENTS).map(recipient =>
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
  return Array.isArray(value) ? value.slice(0, MAX_RECIPIENTS).map(object) : []
}
