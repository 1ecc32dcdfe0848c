/**
 * By what a bounce is known where no rule knows the system that sent it.
 *
 * Called by the reader of returned mail before it lets the general rule guess. Pure.
 * Standards: RFC 5321 §4.5.5 (the empty return path), RFC 3834 §3.3.
 * Fails: never.
 */
import { isVacationSubject } from './automatic-reply.js'
import type { Notice } from './notices/read-notice.js'

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

/** A daemon sent it, or nobody did, and it says that something could not be delivered. */
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

/** Whether the system is still trying (RFC 3464 §2.3.3 `delayed`). */
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
