/**
 * Parses free-text bounces with the template of the system that sent them, or the general one.
 *
 * Never throws; reads at most 2,000 lines and 100 recipients.
 * Standards: RFC 5321 §4.5.5 (the empty return path), RFC 3834 §3.3.
 */
import { given } from '../../../core/given.js'
import type { HeaderSection } from '../../mime/header-fields.js'
import { isVacationSubject } from '../automatic-reply.js'
import { isSameAddress, readAddressList, tidyAddress } from '../recipient-address.js'
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  AT_START,
  MAILTO,
  NAMED,
  TO_LINE,
  TRANSCRIPT,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  WITH_SEMICOLON,
  type NoticeTemplate,
} from './template.js'
import { GATEWAY_TEMPLATES, PROVIDER_TEMPLATES } from './templates-providers.js'
import { GROUPWARE_TEMPLATES, UNIX_TEMPLATES } from './templates-servers.js'

const MAX_LINES = 2_000
const MAX_LINE = 2_000
const MAX_RECIPIENTS = 100
const MAX_SECTION = 6_000

export interface NoticeRecipient {
  readonly recipient: string
  /** The quoted reply or reason; may be empty. */
  readonly diagnostic: string
  /** The whole text about the recipient. */
  readonly context: string
  readonly impliedReason?: string
  /** The alias that was expanded to it. */
  readonly originalRecipient?: string
}

export interface Notice {
  readonly header: HeaderSection
  readonly from: string
  readonly subject: string
  /** Without the original message. */
  readonly text: string
}

export function matchesTemplate(form: NoticeTemplate, { header, from, subject, text }: Notice): boolean {
  const { when } = form
  return (
    (when.from?.test(from) ?? true) &&
    (when.subject?.test(subject) ?? true) &&
    (when.field === undefined ||
      (header.has(when.field[0]) && when.field[1].test(header.text(when.field[0])))) &&
    (when.text?.test(text) ?? true)
  )
}

/** @returns the recipients the template finds; may be empty */
export function readNotice(form: NoticeTemplate, notice: Notice): readonly NoticeRecipient[] {
  const lines = notice.text
    .split('\n', MAX_LINES)
    .map(line => line.slice(0, MAX_LINE).replaceAll('\u00a0', ' '))
  const begin = form.start === undefined ? 0 : lines.findIndex(line => form.start?.test(line)) + 1
  const { preface, said } = collectSections(form, lines.slice(begin))
  const named = readAddressList(notice.header.text('x-failed-recipients'), MAX_RECIPIENTS)
  // A header field is more reliable than the text.
  const recipients = named.length > 0 ? named : [...said.keys()].map(key => said.get(key)?.recipient ?? key)
  return recipients.map(recipient => {
    const own = said.get(recipient.toLowerCase())?.text ?? ''
    const isTheOnlyOne = recipients.length === 1
    const text =
      own.trim() !== '' || !isTheOnlyOne ? own : lines.slice(begin).join('\n').slice(0, MAX_SECTION)
    return {
      recipient,
      diagnostic: quotedPart(text),
      context: `${text}\n${preface}`,
      ...given({ impliedReason: form.impliedReason }),
      ...originalOf(said.get(recipient.toLowerCase())),
    }
  })
}

function originalOf(said: RecipientSection | undefined): { originalRecipient?: string } {
  const { originalRecipient } = said ?? {}
  return originalRecipient === undefined ? {} : { originalRecipient }
}

interface RecipientSection {
  readonly recipient: string
  originalRecipient?: string
  text: string
}

/** Each line belongs to the recipient named last, or to the one it mentions. */
function collectSections(
  form: NoticeTemplate,
  lines: readonly string[],
): { preface: string; said: Map<string, RecipientSection> } {
  const said = new Map<string, RecipientSection>()
  let preface = ''
  let current: RecipientSection | undefined
  let before = ''
  for (const line of lines) {
    const alias = aliasIn(form, line)
    if (alias !== undefined && current) {
      current.originalRecipient ??= alias
      continue
    }
    const found = alias === undefined ? nameRecipient(form, line) : { recipient: alias, rest: '' }
    if (found) {
      const key = found.recipient.toLowerCase()
      current = said.get(key)
      if (current === undefined) {
        if (said.size >= MAX_RECIPIENTS) break
        current = { recipient: found.recipient, text: '' }
        said.set(key, current)
      }
      add(current, form.isReasonFirst ? `${before}${found.rest}` : found.rest)
      before = ''
      continue
    }
    if (form.isReasonFirst && before.length < MAX_SECTION) {
      before += `${line}\n`
      continue
    }
    current = findMentioned(said, line) ?? current
    if (current) add(current, line)
    else if (preface.length < MAX_SECTION) preface += `${line}\n`
  }
  return { preface, said }
}

function aliasIn({ alias }: NoticeTemplate, line: string): string | undefined {
  const address = alias?.exec(line)?.[1]
  return address === undefined ? undefined : tidyAddress(address)
}

function add(to: RecipientSection, line: string): void {
  if (to.text.length + line.length < MAX_SECTION) to.text += `${line}\n`
}

function nameRecipient(form: NoticeTemplate, line: string): { recipient: string; rest: string } | undefined {
  // The address after MAIL FROM is the sender's.
  if (!line.includes('@') || /\bmail from:? {0,3}</i.test(line)) return undefined
  for (const pattern of form.recipient) {
    const match = pattern.exec(line)
    if (!match) continue
    // The address is the first group that looks like one; in transcripts the reply code precedes it.
    const address = match.slice(1).find(group => /^(?:"[^"]+"|[^\s"]+)@/.test(group)) ?? ''
    const recipient = tidyAddress(address)
    if (recipient === undefined) continue
    const rest = match.slice(1).filter(group => group !== address)
    return { recipient, rest: rest.join(' ') }
  }
  return undefined
}

/** Only lines with an @ are searched. */
function findMentioned(
  said: ReadonlyMap<string, RecipientSection>,
  line: string,
): RecipientSection | undefined {
  if (!line.includes('@') || said.size < 2) return undefined
  for (const [, word = ''] of line.matchAll(/([^\s<>()[\]",;:']{1,64}@[\w.-]{1,255})/g)) {
    const known = said.get(word.toLowerCase().replace(/\.$/, ''))
    if (known) return known
  }
  return undefined
}

/** Start of the remote server's text. */
const QUOTE =
  /(?<![\w.:/@=-])[45]\d\d(?:[ -](?=[\w<'"(#[])|:\s|,\s)|(?<![\w.])#?[45]\.\d{1,2}\.\d{1,3}(?![\w.]\d)\s/
/** Text that systems add after it. */
const AFTER_QUOTE =
  /\n\s{0,20}\n|giving up on |i'm not going to try again|\(in reply to |\n\s{0,20}-{3,}|no further delivery attempts/i

function quotedPart(text: string): string {
  const at = QUOTE.exec(text)?.index ?? 0
  const quote = text.slice(at).trim()
  const end = AFTER_QUOTE.exec(quote)?.index ?? quote.length
  return quote.slice(0, end).trim()
}

/** Removes our own addresses, since bounces often name the sender too. */
export function withoutSenders(
  recipients: readonly NoticeRecipient[],
  senders: readonly string[],
): readonly NoticeRecipient[] {
  const others = recipients.filter(
    ({ recipient }) => !senders.some(sender => isSameAddress(sender, recipient)),
  )
  return others.length > 0 ? others : recipients
}

const DAEMON =
  /\b(?:mailer-?daemon|mail-?daemon|post_?master|mail(?:er)?[ ._-]?(?:delivery|administrator)|mail[ ._-]deliver(?:y|er)?[ ._-](?:sub)?system|mdaemon|bounces?|mail\.delivery\.system|internet mail delivery|system administrator)\b/i

const SUBJECTS: readonly RegExp[] = [
  /undeliver(?:able|ed)|not deliver(?:ed|able)|unzustellbar|unable to deliver|could ?n[o']t (?:be )?deliver/i,
  /deliver(?:y|ing)? (?:status|fail|error|problem|report|notification|has failed|unsuccessful|incomplete|notice)|deliverystatus/i,
  /fail(?:ure|ed) (?:notice|notification|delivery|to deliver|mail|report)|mail (?:delivery )?(?:system )?(?:fail|error)|returned (?:mail|to sender)|mail returned|message (?:rejected|bounced|blocked)|(?:rejected|blocked|bounced) (?:message|mail|e-?mail)|returning message/i,
  /there was an error sending your mail|(?:message|mail) you sent blocked|(?:e-?mail|message) (?:not sent|rejected|error)/i,
  /non remis|non distribu|\u00e9chec|no se (?:ha podido|puede|pudo) entregar|n\u00e3o (?:foi )?entregue|mancato recapito|niet (?:worden )?bezorgd|niet-bezorgbaar|nicht zugestellt|zustellung/i,
  /\u043d\u0435\u0434\u043e\u0441\u0442\u0430\u0432\u043b\u0435\u043d|\u043d\u0435 \u0434\u043e\u0441\u0442\u0430\u0432\u043b\u0435\u043d|\u914d\u4fe1(?:\u3067\u304d|\u4e0d\u80fd|\u30a8\u30e9\u30fc)|\u9001\u4fe1(?:\u3067\u304d|\u30a8\u30e9\u30fc|\u5931\u6557)|\u9000\u4fe1|\u9000\u4ef6|\u6295\u9012\u5931\u8d25/i,
]

const TEXTS: readonly RegExp[] = [
  /(?:could|can|was|were|has|have|is)(?: ?not|n't|n\u2019t) (?:be(?:en)? |able to (?:be )?)?(?:deliver|sent|send|reach|relay)/i,
  /unable to (?:deliver|send|relay)|undeliverable|delivery (?:has |to .{1,200} )?failed|fail(?:ed|ure) to deliver|did not reach|permanent(?:ly)? (?:error|fail)|mailbox is full|(?:user|recipient|mailbox|address|host|domain) (?:is |was |name )?(?:unknown|not found|invalid)|unknown (?:user|recipient|address|host|domain)|no such (?:user|mailbox|recipient|address|domain)/i,
  /(?:error|failure) (?:occurred )?(?:while|when|during) (?:trying to )?(?:deliver|send)|rejected by|returned to sender/i,
]

/** Sent by a mail daemon or from the empty return path (RFC 5321 §4.5.5), and reports a failed delivery. */
export function looksLikeBounce(notice: Notice): boolean {
  const { header, from, subject, text } = notice
  if (isVacationSubject(subject)) return false
  const isNobody = header.all('return-path').some(value => /^<?\s{0,3}>?$/.test(value))
  const isDaemon = DAEMON.test(from) || DAEMON.test(header.raw('return-path'))
  const isStatedBySubject = SUBJECTS.some(pattern => pattern.test(subject))
  const isStatedByText = TEXTS.some(pattern => pattern.test(text.slice(0, 8_000)))
  if (header.has('x-failed-recipients')) return true
  return (isDaemon || isNobody) && (isStatedBySubject || isStatedByText)
}

/** Whether delivery is still being retried (RFC 3464 §2.3.3 `delayed`). */
export function looksLikeDelay({ subject, text }: Notice): boolean {
  return (
    /\b(?:delay(?:ed)?|warning: (?:message|could not)|still being retried|will (?:be )?retr(?:y|ied))\b/i.test(
      subject,
    ) ||
    /this is a warning (?:message )?only|(?:no action is required|you do not need to resend)|will (?:continue to |keep )?(?:be )?(?:try|trying|retried|retry) /i.test(
      text.slice(0, 8_000),
    )
  )
}

/** The first that finds a recipient wins. Providers come first, since many run one of the other programs. */
export const NOTICE_TEMPLATES: readonly NoticeTemplate[] = [
  ...PROVIDER_TEMPLATES,
  ...UNIX_TEMPLATES,
  ...GATEWAY_TEMPLATES,
  ...GROUPWARE_TEMPLATES,
]

export const GENERAL_TEMPLATE: NoticeTemplate = {
  name: 'general',
  when: {},
  recipient: [
    TRANSCRIPT,
    ANGLED_FIRST,
    ALONE,
    MAILTO,
    NAMED,
    WITH_DATE,
    WITH_COLON,
    WITH_SEMICOLON,
    WITH_REMARK,
    AT_END,
    AT_START,
  ],
}

/** Used if no failed recipient is named: the recipient of the quoted message. */
export const FALLBACK_TEMPLATE: NoticeTemplate = { name: 'general', when: {}, recipient: [TO_LINE] }
