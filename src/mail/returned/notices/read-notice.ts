/**
 * Reads bounces that are written for people: applies the rule of the system that wrote it, or the general one.
 *
 * Called by the reader of returned mail for what is no DSN. The knowledge is in `notice-forms.ts`. Pure.
 * Fails: never; undefined where no recipient is named. At most 2,000 lines and 100 recipients are read.
 */
import { given } from '../../../core/given.js'
import type { HeaderSection } from '../../mime/header-section.js'
import type { NoticeTemplate } from './notice-form.js'
import { isSameAddress, readAddressList, tidyAddress } from '../recipient-address.js'

const MAX_LINES = 2_000
const MAX_LINE = 2_000
const MAX_RECIPIENTS = 100
/** Of what is said about one recipient, characters. */
const MAX_SECTION = 6_000

export interface NoticeRecipient {
  readonly recipient: string
  /** The reply or reason as it is quoted; empty where there is none. */
  readonly diagnostic: string
  /** All that is said about it. */
  readonly context: string
  readonly impliedReason?: string
  /** The alias that led to it. */
  readonly originalRecipient?: string
}

/** A notice and what stands around it. */
export interface Notice {
  readonly header: HeaderSection
  readonly from: string
  readonly subject: string
  /** Without the original. */
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

/** @returns the recipients that the form finds, none where it finds none */
export function readNotice(form: NoticeTemplate, notice: Notice): readonly NoticeRecipient[] {
  const lines = notice.text
    .split('\n', MAX_LINES)
    .map(line => line.slice(0, MAX_LINE).replaceAll('\u00a0', ' '))
  const begin = form.start === undefined ? 0 : lines.findIndex(line => form.start?.test(line)) + 1
  const { preface, said } = collectSections(form, lines.slice(begin))
  const named = readAddressList(notice.header.text('x-failed-recipients'), MAX_RECIPIENTS)
  // What the header states goes before what the text lets one guess.
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
      ...given({ means: form.impliedReason }),
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

/** Every line belongs to the recipient named last; one that holds the address of another belongs to that one. */
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
  // The address behind MAIL FROM is the sender's, whatever the sentence around it.
  if (!line.includes('@') || /\bmail from:? {0,3}</i.test(line)) return undefined
  for (const pattern of form.recipient) {
    const match = pattern.exec(line)
    if (!match) continue
    // The address is the first group that is one; in transcripts the reply code stands before it.
    const address = match.slice(1).find(group => /^(?:"[^"]+"|[^\s"]+)@/.test(group)) ?? ''
    const recipient = tidyAddress(address)
    if (recipient === undefined) continue
    const rest = match.slice(1).filter(group => group !== address)
    return { recipient, rest: rest.join(' ') }
  }
  return undefined
}

/** Looked for only in lines that hold an address at all. */
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

/** Where the words of the remote system begin. */
const QUOTE =
  /(?<![\w.:/@=-])[45]\d\d(?:[ -](?=[\w<'"(#[])|:\s|,\s)|(?<![\w.])#?[45]\.\d{1,2}\.\d{1,3}(?![\w.]\d)\s/
/** What systems add behind it. */
const AFTER_QUOTE =
  /\n\s{0,20}\n|giving up on |i'm not going to try again|\(in reply to |\n\s{0,20}-{3,}|no further delivery attempts/i

function quotedPart(text: string): string {
  const at = QUOTE.exec(text)?.index ?? 0
  const quote = text.slice(at).trim()
  const end = AFTER_QUOTE.exec(quote)?.index ?? quote.length
  return quote.slice(0, end).trim()
}

/** Without what is our own: bounces name the sender as readily as the recipient. */
export function withoutSenders(
  recipients: readonly NoticeRecipient[],
  senders: readonly string[],
): readonly NoticeRecipient[] {
  const others = recipients.filter(
    ({ recipient }) => !senders.some(sender => isSameAddress(sender, recipient)),
  )
  return others.length > 0 ? others : recipients
}
