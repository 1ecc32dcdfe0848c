/**
 * Classifies rejections: cause, scope, permanence, and requested retry delay.
 *
 * Used for replies of a session and for the diagnostics of returned mail. Never throws: what no rule matches is `unclassified`, or
 * `unclassified_delay` for a 4xx, and suppresses nobody.
 * Standards: RFC 5321 §4.2 (reply codes), RFC 3463 (enhanced codes).
 */
import { fold } from '../../core/fold.js'
import { given } from '../../core/given.js'
import { formatEnhancedStatus, readEnhancedStatus } from '../enhanced-status.js'
import { decodeWords } from '../mime/encoded-word.js'
import type { Classification, Permanence, SmtpReply, Stage } from '../outcome.js'
import { LANGUAGE_RECIPIENT_RULES, LANGUAGE_REPUTATION_RULES } from './classify-rules-languages.js'
import { PROVIDER_RULES } from './classify-rules-providers.js'
import { RECEIVING_RULES } from './classify-rules-receiving.js'
import { SENDING_RULES } from './classify-rules-sending.js'
import { SUBTYPES, type ReplyRule, type Subtype } from './classify-subtypes.js'

export interface ReplyClassification extends Classification {
  readonly subtype: Subtype
  /** Delay requested by the server, ms; absent for permanent failures. */
  readonly retryAfterMs?: number
}

interface NormalReply {
  readonly code: string
  readonly enhanced: string
  readonly text: string
  readonly stage: Stage | undefined
}

const MAX_TEXT = 1_000

/** Codes repeated within a multi-line reply. */
const REPEATED_CODES = /(?<![\d.])(?:[45]\d\d[- ])?[45]\.\d{1,3}\.\d{1,3}(?![\d.])|(?<![\d.])[45]\d\d-/g

/**
 * Addresses name the recipient, not the reason: `<spam@example.net>: User unknown`. t-online.de identifies its rejections by an address.
 */
const ADDRESSES = /[^\s<>()"',;:]{1,64}@(?!rx\.t-online\.de)[a-z0-9.-]{1,253}/g

/** Before RCPT, the server does not know the recipient. */
const BEFORE_RECIPIENT: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls', 'auth', 'mail']

/**
 * @param reply `code` is 0 if the diagnostic has none
 * @param stage of the session, if known; returned mail seldom says
 */
export function classifyReply(reply: SmtpReply, stage?: Stage): ReplyClassification {
  const normal = normalise(reply, stage)
  const rule = REPLY_RULES.find(candidate => matches(candidate, normal))
  const subtype = subtypeAtStage(stage, rule?.subtype ?? 'unclassified')
  const { cause, scope } = SUBTYPES[subtype]
  const permanence = permanenceOf(normal, subtype)
  const retryAfterMs = permanence === 'permanent' ? undefined : readRetryDelay(normal.text)
  return {
    cause,
    scope: subtype === rule?.subtype ? (rule.scope ?? scope) : scope,
    permanence,
    subtype,
    ...given({ retryAfterMs }),
  }
}

function normalise({ code, enhanced, text }: SmtpReply, stage: Stage | undefined): NormalReply {
  const bounded = text.slice(0, MAX_TEXT)
  const found = enhanced === undefined ? readEnhancedStatus(bounded) : undefined
  return {
    code: code === 0 ? '' : String(code),
    enhanced: enhanced ?? (found === undefined ? '' : formatEnhancedStatus(found)),
    text: fold(bounded.includes('=?') ? decodeWords(bounded) : bounded)
      .slice(0, MAX_TEXT)
      .replace(REPEATED_CODES, ' ')
      .replace(ADDRESSES, '<>')
      .replace(/\s+/g, ' ')
      .trim(),
    stage,
  }
}

function matches(rule: ReplyRule, { code, enhanced, text, stage }: NormalReply): boolean {
  return (
    (rule.code?.test(code) ?? true) &&
    (rule.enhanced?.test(enhanced) ?? true) &&
    (rule.stage === undefined || (stage !== undefined && rule.stage.includes(stage))) &&
    (rule.text?.some(pattern => pattern.test(text)) ?? true) &&
    !(rule.unless?.test(text) ?? false)
  )
}

/** "User unknown" in reply to MAIL FROM is about the sender, and before that about neither. */
function subtypeAtStage(stage: Stage | undefined, subtype: Subtype): Subtype {
  if (stage === undefined || !BEFORE_RECIPIENT.includes(stage)) return subtype
  if (SUBTYPES[subtype].cause !== 'recipient') return subtype
  return stage === 'mail' ? 'sender_refused' : 'policy_refused'
}

/** RFC 5321 §4.2.1: the first digit decides, except for subtypes that are transient by nature. */
function permanenceOf({ code, enhanced }: NormalReply, subtype: Subtype): Permanence {
  const digit = (code || enhanced).charAt(0)
  if (digit === '4') return 'transient'
  const { permanence } = SUBTYPES[subtype]
  return digit === '5' || permanence === 'transient' || subtype !== 'unclassified'
    ? permanence
    : 'undetermined'
}

const MAX_DELAY_MS = 86_400_000

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** Words that make the number a requested delay, rather than a count or past time. */
const CUE = '(?:try|retry|again|wait|come back|gr[ae]y-?listed|gr[ae]y-?listing)'
const AMOUNT = new RegExp(
  `\\b${CUE}\\b[^\\d.;]{0,40}\\b(\\d{1,6}) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\\b`,
)
/** `in 00:04:59`, as policy servers write it. */
const CLOCK = new RegExp(`\\b${CUE}\\b[^\\d.;]{0,40}\\b(\\d{1,2}):(\\d\\d):(\\d\\d)\\b`)

/**
 * The delay a server requests in its reply text: "try again in 300 seconds", "greylisted for 5 minutes".
 *
 * @param text in lower case
 * @returns ms, at most a day; undefined if the text names none
 */
function readRetryDelay(text: string): number | undefined {
  const ms = readAmount(text) ?? readClock(text)
  return ms === undefined || ms <= 0 ? undefined : Math.min(ms, MAX_DELAY_MS)
}

function readAmount(text: string): number | undefined {
  const [, amount, unit = ''] = AMOUNT.exec(text) ?? []
  const unitMs = UNIT_MS[unit.charAt(0)]
  return amount === undefined || unitMs === undefined ? undefined : Number(amount) * unitMs
}

function readClock(text: string): number | undefined {
  const [, hours, minutes, seconds] = CLOCK.exec(text) ?? []
  return hours === undefined
    ? undefined
    : ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
}

/** By enhanced code (RFC 3463 §3, RFC 5248 registry). */
const ENHANCED_RULES: readonly ReplyRule[] = [
  // RFC 3463 §3.2: address status
  { enhanced: /^.\.1\.[01]$/, subtype: 'no_such_mailbox', unless: /sender|from/ },
  { enhanced: /^.\.1\.2$/, subtype: 'bad_destination' },
  { enhanced: /^.\.1\.3$/, subtype: 'bad_address_syntax' },
  { enhanced: /^.\.1\.4$/, subtype: 'no_such_mailbox' },
  { enhanced: /^.\.1\.6$/, subtype: 'mailbox_moved' },
  { enhanced: /^.\.1\.[078]$/, subtype: 'sender_refused' },
  // RFC 7505 §4.2: 5.1.10 for a null MX (Exchange uses it for unknown recipients, with a text), 5.7.27 for a sender without MX
  { enhanced: /^.\.1\.10$/, subtype: 'domain_accepts_no_mail' },
  { enhanced: /^5\.7\.27$/, subtype: 'sender_refused' },
  // RFC 3463 §3.3: mailbox status
  { enhanced: /^4\.2\.1$/, subtype: 'mailbox_unavailable' },
  { enhanced: /^5\.2\.1$/, subtype: 'mailbox_disabled' },
  { enhanced: /^.\.2\.2$/, subtype: 'mailbox_full' },
  { enhanced: /^.\.2\.3$/, subtype: 'message_too_big' },
  { enhanced: /^4\.2\./, subtype: 'mailbox_unavailable' },
  { enhanced: /^5\.2\./, subtype: 'recipient_refused' },
  // RFC 3463 §3.4: mail system status
  { enhanced: /^.\.3\.1$/, subtype: 'system_full' },
  // RFC 7504 §3: a host that accepts no mail, whatever the enhanced code
  { enhanced: /^5\.3\.2$/, code: /^(?:521|556)$/, subtype: 'domain_accepts_no_mail' },
  { enhanced: /^.\.3\.2$/, subtype: 'server_busy' },
  { enhanced: /^.\.3\.4$/, subtype: 'message_too_big' },
  { enhanced: /^.\.3\./, subtype: 'system_failure' },
  // RFC 3463 §3.5: network and routing status
  { enhanced: /^.\.4\.6$/, subtype: 'routing_loop' },
  { enhanced: /^.\.4\.5$/, subtype: 'server_busy' },
  { enhanced: /^.\.4\./, subtype: 'network_failure' },
  // RFC 3463 §3.6: protocol status
  { enhanced: /^.\.5\.3$/, subtype: 'too_many_recipients' },
  { enhanced: /^.\.5\./, subtype: 'protocol_error' },
  // RFC 3463 §3.7: content status RFC 6531 §4.2 (and X.6.8 to X.6.10 of the registry), RFC 6152 §3: missing extensions
  { enhanced: /^.\.6\.(?:7|8|9|10)$/, subtype: 'smtputf8_unsupported' },
  { enhanced: /^.\.6\.3$/, subtype: '8bitmime_unsupported' },
  { enhanced: /^.\.6\./, subtype: 'content_refused' },
  // RFC 3463 §3.8 and the registry: security and policy status
  { enhanced: /^.\.7\.(?:8|9)$/, code: /^53/, subtype: 'authentication_failed' },
  { enhanced: /^.\.7\.(?:10|11)$/, subtype: 'tls_required' },
  { enhanced: /^.\.7\.13$/, subtype: 'mailbox_disabled' },
  // RFC 7372 §3: DKIM, SPF, reverse DNS, multiple checks; 5.7.9 means DMARC at several large sites
  { enhanced: /^.\.7\.(?:20|21|22|23|24|26|9)$/, subtype: 'authentication_policy' },
  { enhanced: /^.\.7\.25$/, subtype: 'reverse_dns' },
  { enhanced: /^.\.7\.28$/, subtype: 'rate_limited', code: /^4/ },
  { enhanced: /^.\.7\.28$/, subtype: 'bad_reputation' },
  { enhanced: /^4\.7\./, subtype: 'rate_limited' },
  { enhanced: /^.\.7\./, subtype: 'policy_refused' },
]

/** By reply code (RFC 5321 §4.2.3). */
const REPLY_CODE_RULES: readonly ReplyRule[] = [
  { code: /^421$/, subtype: 'server_busy' },
  { code: /^450$/, subtype: 'mailbox_unavailable' },
  { code: /^451$/, subtype: 'system_failure' },
  { code: /^452$/, subtype: 'system_full' },
  { code: /^(?:454|538)$/, subtype: 'tls_required' },
  { code: /^50[0-4]$/, subtype: 'protocol_error' },
  // RFC 7504 §3 and §4: 521 from the host itself, 556 from a relay
  { code: /^(?:521|556)$/, subtype: 'domain_accepts_no_mail' },
  { code: /^530$/, subtype: 'authentication_required' },
  { code: /^53[45]$/, subtype: 'authentication_failed' },
  { code: /^551$/, subtype: 'mailbox_moved' },
  { code: /^552$/, subtype: 'mailbox_full', stage: ['rcpt'] },
  { code: /^552$/, subtype: 'message_too_big', stage: ['mail', 'data', 'final_dot'] },
  { code: /^4/, subtype: 'unclassified_delay' },
  { code: /^$/, enhanced: /^4/, subtype: 'unclassified_delay' },
]

/**
 * The first match wins: provider texts before general ones, the sender before the recipient, texts before codes, enhanced codes before
 * reply codes; other languages after the English rules about the sender. Patterns match normalized replies of at most 1,000 characters and avoid nested repetition, so that matching is linear.
 */
export const REPLY_RULES: readonly ReplyRule[] = [
  ...PROVIDER_RULES,
  ...SENDING_RULES,
  ...LANGUAGE_REPUTATION_RULES,
  ...LANGUAGE_RECIPIENT_RULES,
  ...RECEIVING_RULES,
  ...ENHANCED_RULES,
  ...REPLY_CODE_RULES,
]
