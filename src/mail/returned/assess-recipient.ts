/**
 * Makes one entry of the result out of what a mail says about one recipient: status, reply code, and what it means.
 *
 * Called by the DSN parser and by the reader of free-text bounces, so that both come to the same verdict as the delivery
 * agent does for an immediate reply. Pure.
 * Standards: RFC 3463 (codes), RFC 3464 §2.3 (per-recipient fields), RFC 5321 §4.2.1 (4yz is transient).
 * Fails: never.
 */
import { given } from '../../core/given.js'
import { classifyReply, type ReplyClassification } from '../classify/classify.js'
import { findQuotedReply } from './notices/quoted-reply.js'
import type { ReturnedRecipient } from './returned-mail.js'
import { chooseStatus, fittingStatus, readStatus } from './status-code.js'

/** Of a diagnostic, characters. */
const MAX_DIAGNOSTIC = 1_000
const MAX_NAME = 255

/** What was read about a recipient, not yet understood. */
export interface RecipientReport {
  readonly recipient: string
  readonly originalRecipient?: string | undefined
  readonly action: NonNullable<ReturnedRecipient['action']>
  /** As stated in a Status field. */
  readonly status?: string | undefined
  /** What the remote system said, or the best there is of it. */
  readonly diagnostic?: string | undefined
  /** More of what the mail says about this recipient, for when the diagnostic alone means nothing. */
  readonly context?: string | undefined
  /** What its form alone means, in words that the classifier knows; asked where no reply is quoted. */
  readonly impliedReason?: string | undefined
  readonly remoteMta?: string | undefined
}

/** Nothing more is known than the first digit. */
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
  /** The best there is of stated and quoted. */
  readonly enhanced: string | undefined
}

/** The diagnostic's words; where they mean nothing, those around it; where those do not either, the codes. */
function classifyEvidence({ words, code, stated, enhanced }: Evidence): ReplyClassification {
  // The rules are written for the text of a reply, without its codes.
  const classify = (text: string) =>
    classifyReply({
      code,
      text: text.replace(/^[45]\d\d[ :-]{1,3}(?:[45]\.\d{1,3}\.\d{1,3}\s)?/, ''),
      ...given({ enhanced }),
    })
  const tries = words.filter(text => text !== '').map(classify)
  const result = tries.find(({ subtype }) => !UNINFORMATIVE.has(subtype)) ?? tries[0] ?? classify('')
  // A relay that gave up on a 4xx reports it as failed; the mailbox is none the worse for it.
  const isTransient = stated?.startsWith('4') === true || (enhanced?.startsWith('4') === true && code < 500)
  return isTransient ? { ...result, permanence: 'transient' } : result
}

/** White space, and whatever else a terminal would not show, to one blank. */
function fold(text: string, limit = MAX_DIAGNOSTIC): string {
  return text
    .slice(0, 4 * limit)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, limit)
}
