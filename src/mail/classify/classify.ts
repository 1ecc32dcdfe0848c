/**
 * What a refusal means: whose fault it is, what it is about, whether it will pass.
 *
 * Called by the delivery agent for replies of a session and by the bounce parser for diagnostics of returned mail.
 * Pure; knows neither. The knowledge is in the rules, this file only applies them.
 * Standards: RFC 5321 §4.2 (reply codes), RFC 3463 (enhanced codes).
 * Fails: never; what no rule knows is `unclassified`, or `unclassified_delay` for a 4xx, and suppresses nobody.
 */
import { given } from '../../core/given.js'
import type { ReplyRule } from './classify-rule.js'
import { REPLY_RULES } from './classify-rules.js'
import { SUBTYPES, type Subtype } from './classify-subtypes.js'
import { formatEnhancedStatus, readEnhancedStatus } from '../enhanced-status.js'
import type { Classification, Permanence, SmtpReply, Stage } from '../outcome.js'
import { readRetryDelay } from './retry-delay.js'

export interface ReplyClassification extends Classification {
  readonly subtype: Subtype
  /** How long the server asked us to wait, ms; only where waiting can help. */
  readonly retryAfterMs?: number
}

/** A reply in the form the rules are written for. */
interface NormalReply {
  readonly code: string
  readonly enhanced: string
  readonly text: string
  readonly stage: Stage | undefined
}

const MAX_TEXT = 1_000

/** The codes that a multi-line reply repeats in the middle of its sentences. */
const REPEATED_CODES = /(?<![\d.])(?:[45]\d\d[- ])?[45]\.\d{1,3}\.\d{1,3}(?![\d.])|(?<![\d.])[45]\d\d-/g

/** Addresses name the recipient, not the reason: `<spam@example.net>: User unknown`. One provider signs with its own. */
const ADDRESSES = /[^\s<>()"',;:]{1,64}@(?!rx\.t-online\.de)[a-z0-9.-]{1,253}/g

/** Before RCPT no server has heard of the recipient. */
const BEFORE_RECIPIENT: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls', 'auth', 'mail']

/**
 * @param reply `code` 0 where a diagnostic has none
 * @param stage where the dialogue stood, if known: a diagnostic of returned mail seldom says
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
    text: bounded
      .toLowerCase()
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

/** A "user unknown" in answer to MAIL FROM means the sender, in a greeting anything but the recipient. */
function subtypeAtStage(stage: Stage | undefined, subtype: Subtype): Subtype {
  if (stage === undefined || !BEFORE_RECIPIENT.includes(stage)) return subtype
  if (SUBTYPES[subtype].cause !== 'recipient') return subtype
  return stage === 'mail' ? 'sender_refused' : 'policy_refused'
}

/** RFC 5321 §4.2.1: the first digit decides, but for what is passing by its nature. */
function permanenceOf({ code, enhanced }: NormalReply, subtype: Subtype): Permanence {
  const digit = (code || enhanced).charAt(0)
  if (digit === '4') return 'transient'
  const { permanence } = SUBTYPES[subtype]
  return digit === '5' || permanence === 'transient' || subtype !== 'unclassified'
    ? permanence
    : 'undetermined'
}
