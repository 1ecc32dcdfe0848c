/**
 * Determines status, reply code and classification of one recipient of a returned mail.
 *
 * Used for DSNs and free-text bounces, so that a later bounce is judged like the same rejection during delivery. Never throws.
 * Standards: RFC 3463 (codes), RFC 3464 §2.3 (per-recipient fields), §2.3.6 (Diagnostic-Code), RFC 5321 §4.2 (reply codes).
 */
import { given } from '../../core/given.js'
import { classifyReply, type ReplyClassification } from '../classify/classify.js'
import type { ReturnedRecipient } from './returned-mail.js'
import type { Permanence } from '../outcome.js'
import type { Subtype } from '../classify/classify-subtypes.js'

/** Characters. */
const MAX_DIAGNOSTIC = 1_000
const MAX_NAME = 255

export interface RecipientReport {
  readonly recipient: string
  readonly originalRecipient?: string | undefined
  readonly action: NonNullable<ReturnedRecipient['action']>
  readonly status?: string | undefined
  /** The remote server's reply, or the closest there is. */
  readonly diagnostic?: string | undefined
  /** Surrounding text, used if the diagnostic alone is not conclusive. */
  readonly context?: string | undefined
  /** Reason implied by the notice's template, in words the classifier knows; used if no reply is quoted. */
  readonly impliedReason?: string | undefined
  readonly remoteMta?: string | undefined
}

/** Subtypes that say no more than the first digit. */
const UNINFORMATIVE: ReadonlySet<string> = new Set(['unclassified', 'unclassified_delay', 'system_failure'])

export function assessRecipient(report: RecipientReport): ReturnedRecipient {
  const diagnostic = fold(report.diagnostic ?? '')
  const context = fold(report.context ?? '', 4 * MAX_DIAGNOSTIC)
  const stated = report.status === undefined ? undefined : readStatus(report.status)
  const inDiagnostic = findQuotedReply(report.diagnostic ?? '')
  const inContext = findQuotedReply(report.context ?? '')
  const code = inDiagnostic.code === 0 ? inContext.code : inDiagnostic.code
  const facts: ReturnedRecipient = {
    recipient: report.recipient,
    ...given({ originalRecipient: report.originalRecipient }),
    action: report.action,
    ...(code === 0 ? {} : { replyCode: code }),
    ...(diagnostic === '' ? {} : { diagnosticCode: diagnostic }),
    ...(report.remoteMta ? { remoteMta: fold(report.remoteMta, MAX_NAME) } : {}),
  }
  const quoted = chooseStatus(stated, [inDiagnostic.enhanced, inContext.enhanced])
  if (!['failed', 'delayed'].includes(report.action))
    return quoted === undefined ? facts : { ...facts, status: quoted }
  const isDelayed = report.action === 'delayed'
  const comment = fold(/\((.{3,200}?)\)/.exec(report.status ?? '')?.[1] ?? '')
  const words =
    report.impliedReason !== undefined && code === 0 ? [report.impliedReason] : [diagnostic, comment, context]
  const enhanced = quoted ?? (isDelayed && code === 0 ? '4.0.0' : undefined)
  const meaning = classifyEvidence({ words, code, stated, enhanced })
  const permanence = isDelayed ? 'transient' : meaning.permanence
  return {
    ...facts,
    status: quoted ?? fittingStatus(meaning.subtype, permanence, code),
    type: permanence,
    subtype: meaning.subtype,
    cause: meaning.cause,
    scope: meaning.scope,
  }
}

interface Evidence {
  /** Best first. */
  readonly words: readonly string[]
  readonly code: number
  readonly stated: string | undefined
  /** The best of the stated and quoted codes. */
  readonly enhanced: string | undefined
}

/** Classifies the diagnostic; if that is not conclusive, the surrounding text, then the codes. */
function classifyEvidence({ words, code, stated, enhanced }: Evidence): ReplyClassification {
  // Rules expect the text without its codes.
  const classify = (text: string) =>
    classifyReply({
      code,
      text: text.replace(/^[45]\d\d[ :-]{1,3}(?:[45]\.\d{1,3}\.\d{1,3}\s)?/, ''),
      ...given({ enhanced }),
    })
  const tries = words.filter(text => text !== '').map(classify)
  const result = tries.find(({ subtype }) => !UNINFORMATIVE.has(subtype)) ?? tries[0] ?? classify('')
  // A relay that gave up on a 4xx reports failure, but the mailbox is not at fault.
  const isTransient = stated?.startsWith('4') === true || (enhanced?.startsWith('4') === true && code < 500)
  return isTransient ? { ...result, permanence: 'transient' } : result
}

/** Replaces white space and control characters by single spaces. */
function fold(text: string, limit = MAX_DIAGNOSTIC): string {
  return text
    .slice(0, 4 * limit)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, limit)
}

const STATUS = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\d|\.\d)/

/** Value of a Status field: `5.1.1`, `5.1.1 (bad destination mailbox address)`; several sites write `Status: 550 5.1.1`. */
export function readStatus(value: string): string | undefined {
  return STATUS.exec(value.slice(0, 200))?.[1]
}

/** Only a class (X.0.0), or an expired retry period (X.4.7); a quoted code is more specific. */
function isUnspecific(status: string): boolean {
  return /^.\.(?:0\.0|4\.7)$/.test(status)
}

/**
 * The stated code, unless a quoted one is more specific. Quoted codes of another class are ignored, since the reporting relay knows the
 * result.
 */
function chooseStatus(
  stated: string | undefined,
  quoted: readonly (string | undefined)[],
): string | undefined {
  const known = quoted.filter(code => code !== undefined)
  if (stated === undefined) return known.find(code => !isUnspecific(code)) ?? known[0]
  if (!isUnspecific(stated)) return stated
  // The remote server was no more specific.
  if (stated.endsWith('.0.0') && known[0] === stated) return stated
  return known.find(code => !isUnspecific(code) && code.startsWith(stated.charAt(0))) ?? stated
}

/** RFC 3463 subject and detail for each subtype; the class follows from the permanence. */
const DETAIL_OF_SUBTYPE: Partial<Record<Subtype, string>> = {
  no_such_mailbox: '1.1',
  bad_destination: '1.2',
  bad_address_syntax: '1.3',
  mailbox_moved: '1.6',
  domain_accepts_no_mail: '1.10',
  sender_refused: '1.8',
  mailbox_disabled: '2.1',
  mailbox_unavailable: '2.0',
  mailbox_full: '2.2',
  message_too_big: '3.4',
  system_full: '3.1',
  server_busy: '3.2',
  system_failure: '3.0',
  network_failure: '4.1',
  routing_loop: '4.6',
  expired: '4.7',
  too_many_recipients: '5.3',
  protocol_error: '5.0',
  content_refused: '6.0',
  relay_denied: '7.1',
  greylisted: '7.1',
  rate_limited: '7.0',
  too_many_connections: '7.0',
  blocklisted: '7.1',
  bad_reputation: '7.1',
  bad_sender_reputation: '7.1',
  spam_content: '7.1',
  virus_content: '7.1',
  policy_refused: '7.1',
  recipient_refused: '7.1',
  authentication_policy: '7.26',
  reverse_dns: '7.25',
  tls_required: '7.10',
  authentication_required: '7.0',
  authentication_failed: '7.8',
}

/**
 * The code for a mail that states none.
 *
 * @param replyCode 0 if none is quoted; otherwise its first digit is the class (RFC 3463 §2)
 */
function fittingStatus(subtype: Subtype, permanence: Permanence, replyCode: number): string {
  const isTransient = replyCode === 0 ? permanence === 'transient' : replyCode < 500
  return `${isTransient ? 4 : 5}.${DETAIL_OF_SUBTYPE[subtype] ?? '0.0'}`
}

interface QuotedReply {
  /** 0 if none is quoted. */
  readonly code: number
  /** RFC 3463 code next to it, in brackets after it, or alone. */
  readonly enhanced?: string
}

/** `550 5.1.1`, `550-5.1.1`, `550: 5.1.1`, `550-'5.2.2`, `[550] [5.1.1]`, `#550 5.1.1`, `550 #5.1.1`. */
const PAIR =
  /(?<![\d.:/-])([245]\d\d)(?:[\])]|[ :,'"-]){0,4}\s?[[(#'"]{0,2}([245]\.\d{1,3}\.\d{1,3})(?![\d.]\d|\d)/g

/** A code at the start, after an introduction, or at the start of a line. */
const CODE_AT_START = /^[\s'"[(<#:]{0,10}([45]\d\d)(?=[\s\-:;,'"\])]|$)/
const CODE_ANNOUNCED =
  /(?:\b(?:said|says|was|response|responded|reply|replied|returned|reason|error|code|status|error_code|smtp|message|text|following|command|host\b.{0,120}\]|to)\b[^\n:;]{0,40}?[:;,]|<<<|->|=>|\.\.\.|returned|error|code|with)[\s'"[(<#:]{0,10}([45]\d\d)(?=[\s\-:;,'"\])]|$)/i
const CODE_ON_LINE = /(?:^|\n)[ \t>*-]{0,20}([45]\d\d)(?:[- ](?=\S)|: )/
const CODE_BEFORE_TEXT = /(?<![\w.:/@=-])([45]\d\d)[ -](?=['"<(#]?[A-Za-z])/

const ENHANCED_ALONE = /(?<![\w.:/@=-])#?([245]\.\d{1,2}\.\d{1,3})(?![\w.]\w|\d)/g

function findQuotedReply(text: string): QuotedReply {
  const bounded = text.slice(0, 4_000)
  const pair = findPair(bounded)
  if (pair) return pair
  const code =
    CODE_AT_START.exec(bounded)?.[1] ??
    CODE_ANNOUNCED.exec(bounded)?.[1] ??
    CODE_ON_LINE.exec(bounded)?.[1] ??
    CODE_BEFORE_TEXT.exec(bounded)?.[1]
  const enhanced = findEnhanced(bounded, code)
  return { code: Number(code ?? 0), ...given({ enhanced }) }
}

/** The first pair; if it only reports an expired retry period, the next specific one. */
function findPair(text: string): QuotedReply | undefined {
  let first: QuotedReply | undefined
  for (const [, code = '', enhanced = ''] of text.matchAll(PAIR)) {
    const pair = { code: Number(code), enhanced }
    // `441 4.4.1` and `550 5.1.1` are pairs; `250 5.1.1` is not.
    if (pair.code < 400) continue
    if (first === undefined) first = pair
    else if (first.enhanced !== undefined && isUnspecific(first.enhanced) && !isUnspecific(enhanced))
      return pair
  }
  return first
}

/** Of the same class as the code, if there is one. */
function findEnhanced(text: string, code: string | undefined): string | undefined {
  for (const [, enhanced = ''] of text.matchAll(ENHANCED_ALONE))
    if (code === undefined ? !enhanced.startsWith('2') : enhanced.startsWith(code.charAt(0))) return enhanced
  return undefined
}
