/**
 * Classifies returned mail: bounce, delay, complaint, automatic reply, and for which recipients. Tried in order of certainty: feedback
 * reports, delivery status notifications, automatic replies, free-text bounces. Matching it to a message and acting on it is the caller's
 * job. Never throws; reads the first 256 KB and 64 MIME parts. Anything else is `other`, without recipients.
 * Standards: RFC 3464, RFC 3834, RFC 5965, RFC 6522, RFC 6533.
 */
import { given } from '../../core/given.js'
import { stripHtml } from '../compose/plain-text.js'
import { readHeaderSection } from '../mime/header-fields.js'
import { assessRecipient } from './assess-recipient.js'
import { isVacationSubject, readAutomaticReply } from './automatic-reply.js'
import {
  FALLBACK_TEMPLATE,
  GENERAL_TEMPLATE,
  looksLikeBounce,
  looksLikeDelay,
  matchesTemplate,
  type Notice,
  NOTICE_TEMPLATES,
  type NoticeRecipient,
  readNotice,
  withoutSenders,
} from './notices/read-notice.js'
import {
  type DeliveryStatus,
  readDeliveryStatus,
  readSesNotification,
  type StatusGroup,
} from './delivery-status.js'
import { headerOfOriginalPart, readFeedbackReport } from './feedback-report.js'
import { readMimeMessage, type MimeMessage, type MimePart } from './mime-part.js'
import type { NoticeTemplate } from './notices/template.js'
import { isSameAddress, readAddress, readAddressList } from './recipient-address.js'
import type { ReturnedKind, ReturnedMail, ReturnedOriginal, ReturnedRecipient } from './returned-mail.js'
import { cutOriginal, isOriginalPart, readOriginal } from './returned-original.js'

/** Levels of reports inside forwarded or filtered mail. */
const MAX_NESTING = 2
const MAX_NOTICE = 32_768
/** HTML is used only if there is no plain text. */
const MAX_HTML = 131_072

/** @param source the whole message, of any size; a Buffer, or the Uint8Array a thread receives */
export function readReturnedMail(source: Uint8Array): ReturnedMail {
  return readMessage(readMimeMessage(Buffer.from(source.buffer, source.byteOffset, source.byteLength)), 0)
}

function readMessage(message: MimeMessage, depth: number): ReturnedMail {
  const { notice, quoted } = readTexts(message)
  const original = readOriginal(message.parts, quoted, message.header)
  const withOriginal = original === undefined ? {} : { original }
  return (
    readFeedback(message, quoted, withOriginal) ??
    readNotification(message, withOriginal) ??
    readReport(message, notice, withOriginal) ??
    readNested(message, depth) ??
    readAutomaticAnswer(message, notice, withOriginal) ??
    readFreeText(notice, original) ??
    readRemainingAnswer(message, withOriginal) ?? {
      kind: 'other',
      recipients: [],
      form: 'none',
      ...withOriginal,
    }
  )
}

type WithOriginal = { readonly original?: ReturnedOriginal }

/** The text of the notice, and the original message quoted after it. */
function readTexts({ header, parts }: MimeMessage): { notice: Notice; quoted?: string } {
  const plain = parts.filter(part => part.type === 'text/plain')
  const shown = plain.filter(part => !/^attachment\b/i.test(part.header.raw('content-disposition')))
  const words =
    [shown, plain, parts.filter(part => part.type === 'text/html')].find(some => some.length > 0) ?? []
  let text = ''
  let quoted: string | undefined
  for (const part of words) {
    const written = part.type === 'text/html' ? stripHtml(part.text.slice(0, MAX_HTML)) : part.text
    const cut = cutOriginal(written, part === words[0])
    text = `${text}${cut.notice}\n`.slice(0, MAX_NOTICE)
    quoted = cut.original
    if (quoted !== undefined) break
  }
  const notice = { header, from: header.text('from'), subject: header.text('subject'), text }
  return { notice, ...given({ quoted }) }
}

function readFeedback(
  message: MimeMessage,
  quoted: string | undefined,
  original: WithOriginal,
): ReturnedMail | undefined {
  const header =
    headerOfOriginalPart(message.parts) ??
    (quoted === undefined ? undefined : readHeaderSection(quoted.slice(0, 16_384)))
  const report = readFeedbackReport(message, header)
  return report && { kind: 'feedback', ...report, ...original }
}

function readNotification(message: MimeMessage, original: WithOriginal): ReturnedMail | undefined {
  const text = message.parts.find(part => part.type === 'text/plain')?.text
  const found = text === undefined ? undefined : readSesNotification(text)
  if (!found) return undefined
  const { kind, recipients, messageId } = found
  const named =
    messageId === undefined ? original : { original: { messageId, header: new Map<string, string>() } }
  return { kind, recipients, form: 'ses-notification', ...named }
}

/** RFC 3464; also if the fields are in a part with another label. */
function readReport(message: MimeMessage, notice: Notice, original: WithOriginal): ReturnedMail | undefined {
  const status = findStatus(message.parts)
  if (!status || status.groups.length === 0) return undefined
  const said = readNotice(findTemplate(notice) ?? GENERAL_TEMPLATE, notice)
  const recipients = nameGroups(status.groups, said).map(group =>
    assessGroup(group, said, notice, status.groups.length),
  )
  if (recipients.length === 0) return undefined
  return {
    kind: kindOf(recipients),
    recipients,
    form: 'rfc3464',
    ...given({ envelopeId: status.envelopeId }),
    ...original,
  }
}

/** A group whose recipient is a file or pipe is assigned a recipient named only in the text. */
function nameGroups(groups: readonly StatusGroup[], said: readonly NoticeRecipient[]): StatusGroup[] {
  const others = said
    .map(({ recipient }) => recipient)
    .filter(recipient => !groups.some(group => isSameAddress(group.recipient, recipient)))
  return groups
    .map(group => (group.recipient === '' ? { ...group, recipient: others.shift() ?? '' } : group))
    .filter(({ recipient }) => recipient !== '')
}

function findStatus(parts: readonly MimePart[]): DeliveryStatus | undefined {
  const labelled = parts.filter(part => /^message\/(?:global-)?delivery-status$/.test(part.type))
  for (const part of labelled) {
    const status = readDeliveryStatus(part.text)
    if (status.groups.length > 0) return status
  }
  for (const part of parts) {
    if (!part.type.startsWith('text/') || isOriginalPart(part)) continue
    const { notice } = cutOriginal(part.text)
    if (!/^[ \t]{0,3}(?:final|original)-recipient[ \t]{0,9}:/im.test(notice)) continue
    if (!/^[ \t]{0,3}(?:action|status|diagnostic-code)[ \t]{0,9}:/im.test(notice)) continue
    return readDeliveryStatus(notice)
  }
  return undefined
}

function assessGroup(
  group: StatusGroup,
  said: readonly NoticeRecipient[],
  notice: Notice,
  groups: number,
): ReturnedRecipient {
  const own = said.find(one => isSameAddress(one.recipient, group.recipient))
  // With a single recipient, the whole notice is about it.
  const context = own?.context ?? (groups === 1 ? notice.text.slice(0, 4_000) : undefined)
  const isOnlyNumber = /^\d{0,5}$/.test(group.diagnostic ?? '')
  const diagnostic = isOnlyNumber ? (own?.diagnostic ?? group.diagnostic) : group.diagnostic
  return assessRecipient({ ...group, action: group.action ?? impliedAction(group), diagnostic, context })
}

function impliedAction({ status, diagnostic }: StatusGroup): NonNullable<ReturnedRecipient['action']> {
  return /^\s{0,9}2/.test(status ?? diagnostic ?? '') ? 'delivered' : 'failed'
}

function kindOf(recipients: readonly ReturnedRecipient[]): ReturnedKind {
  if (recipients.some(({ action }) => action === 'failed')) return 'bounce'
  return recipients.some(({ action }) => action === 'delayed') ? 'delay' : 'success'
}

/** A gateway attached the bounce it received. */
function readNested({ parts }: MimeMessage, depth: number): ReturnedMail | undefined {
  if (depth >= MAX_NESTING) return undefined
  for (const part of parts) {
    if (part.type !== 'message/rfc822') continue
    const inner = readMimeMessage(part.text)
    const isReport = /^multipart\/report\b/.test(inner.type) || inner.header.has('x-failed-recipients')
    const read = isReport ? readMessage(inner, depth + 1) : undefined
    if (read && read.recipients.length > 0) return read
  }
  return undefined
}

/** Certain replies are recognized before a daemon's address makes them look like bounces. */
function readAutomaticAnswer(
  message: MimeMessage,
  notice: Notice,
  original: WithOriginal,
): ReturnedMail | undefined {
  const answer = readAutomaticReply(message)
  if (answer === undefined) return undefined
  const isCertain = answer === 'receipt' || answer === 'challenge' || isVacationSubject(notice.subject)
  const isBounce = !isCertain && (looksLikeBounce(notice) || findTemplate(notice) !== undefined)
  return isBounce ? undefined : toAnswer(answer, message, original)
}

function readRemainingAnswer(message: MimeMessage, original: WithOriginal): ReturnedMail | undefined {
  const answer = readAutomaticReply(message)
  return answer === undefined ? undefined : toAnswer(answer, message, original)
}

function toAnswer(form: string, { header }: MimeMessage, original: WithOriginal): ReturnedMail {
  const sender = readAddress(header.text('from'))
  return {
    kind: 'auto_reply',
    recipients: sender === undefined ? [] : [{ recipient: sender }],
    form,
    ...original,
  }
}

function findTemplate(notice: Notice): NoticeTemplate | undefined {
  return NOTICE_TEMPLATES.find(form => matchesTemplate(form, notice))
}

/** Templates first, the general one only for what looks like a bounce. */
function readFreeText(notice: Notice, original: ReturnedOriginal | undefined): ReturnedMail | undefined {
  const senders = sendersOf(notice, original)
  for (const form of NOTICE_TEMPLATES) {
    if (!matchesTemplate(form, notice)) continue
    const found = withoutSenders(readNotice(form, notice), senders)
    if (found.length > 0) return toBounce(form, found, notice, original)
  }
  if (!looksLikeBounce(notice)) return undefined
  for (const form of [GENERAL_TEMPLATE, FALLBACK_TEMPLATE]) {
    const found = withoutSenders(readNotice(form, notice), senders)
    if (found.length > 0) return toBounce(form, found, notice, original)
  }
  // Without a named recipient, the original's only recipient is assumed.
  const intended = readAddressList(original?.header.get('to') ?? '', 2)
  const [only] = intended
  if (intended.length !== 1 || only === undefined) return undefined
  return toBounce(
    GENERAL_TEMPLATE,
    [{ recipient: only, diagnostic: '', context: notice.text }],
    notice,
    original,
  )
}

function toBounce(
  form: NoticeTemplate,
  found: readonly NoticeRecipient[],
  notice: Notice,
  original: ReturnedOriginal | undefined,
): ReturnedMail {
  const action = form.action ?? (looksLikeDelay(notice) ? 'delayed' : 'failed')
  const recipients = found.map(one => assessRecipient({ ...one, action }))
  return {
    kind: kindOf(recipients),
    recipients,
    form: form.name,
    ...given({ original }),
  }
}

/** The recipient of the notice, and the original's sender. */
function sendersOf({ header, from }: Notice, original: ReturnedOriginal | undefined): readonly string[] {
  return [
    header.text('to'),
    from,
    original?.header.get('from') ?? '',
    original?.header.get('return-path') ?? '',
  ]
    .map(value => readAddress(value))
    .filter(address => address !== undefined)
}
