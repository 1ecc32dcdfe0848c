/**
 * The shape of a rule that knows the free-text bounces of one mail system, and the ways in which systems name a recipient.
 *
 * The rules are in `notice-forms-*.ts`, applied by `read-notice.ts`. Data only.
 * Every pattern of `recipient` runs over one line of at most 2,000 characters and is anchored or begins with a literal, so
 * that no text makes it slow.
 */
import { ADDRESS } from '../recipient-address.js'

export interface NoticeTemplate {
  /** For logs and the score, lower case. */
  readonly name: string
  /** All conditions that are given have to hold. */
  readonly when: {
    /** Over the From field. */
    readonly from?: RegExp
    readonly subject?: RegExp
    /** A field and what its value has to match. */
    readonly field?: readonly [name: string, value: RegExp]
    /** Over the text that comes before the original message. */
    readonly text?: RegExp
  }
  /** Recipients stand behind the line that matches. */
  readonly start?: RegExp
  /** Over one line: group 1 the address, group 2, where there is one, what is said of it. */
  readonly recipient: readonly RegExp[]
  /** Over one line: group 1 the address that led to the one named before, or to the pipe or file that was. */
  readonly alias?: RegExp
  /** What is said of a recipient stands before its address. */
  readonly isReasonFirst?: boolean
  /** Not failed yet. */
  readonly action?: 'delayed'
  /** In words that the classifier knows, for systems that give no reason or one in any of forty languages. */
  readonly impliedReason?: string
}

function line(pattern: string): RegExp {
  return new RegExp(pattern, 'i')
}

/** `<ann@example.net>`, `<ann@example.net>: host said`, `<ann@example.net> (reason)`. */
export const ANGLED_FIRST = line(`^[\\s>*-]{0,20}<${ADDRESS}>[:,]?(.*)$`)
/** The address alone, moved in or not, with or without a colon, quotes or a bullet. */
export const ALONE = line(`^[\\s>*-]{0,20}["']?<?${ADDRESS}>?["']?:?\\s{0,20}$`)
/** `ann@example.net: 550 no such user`. */
export const WITH_COLON = line(`^\\s{0,20}["']?${ADDRESS}["']?:\\s{0,20}(\\S.*)$`)
/** `550 5.1.1 <ann@example.net>... User unknown`, as in a transcript of Sendmail. */
export const TRANSCRIPT = line(
  `^\\s{0,8}((?:<<<\\s{0,3})?[45]\\d\\d[ -](?:[45]\\.\\d\\.\\d{1,3}\\s{1,3})?)<?${ADDRESS}>?\\s?\\.\\.\\.(.*)$`,
)
/** `ann@example.net [User unknown]`, `ann@example.net (user unknown)`, `ann@example.net ... unknown host`. */
export const WITH_REMARK = line(`^\\s{0,20}<?${ADDRESS}>?\\s{1,20}((?:[[(]|\\.\\.\\.).*)$`)
/** `ann@example.net on Thu, 29 Apr 2010`, the manner of Exchange. */
export const WITH_DATE = line(`^\\s{0,20}["']?${ADDRESS}["']?,? on (?:\\d|\\w{2,9}\\.?,? ).*$`)
/** `Ann<mailto:ann@example.net>`. */
export const MAILTO = line(`^[^<]{0,200}<mailto:${ADDRESS}>`)
/** `RCPT TO: <ann@example.net>`, `To: ...`, with what else is used as the name of such a field. */
export const NAMED = line(
  `^[\\s*>|-]{0,20}(?:final[- ]recipient|failed (?:recipient|address)|recipient(?:\\(s\\)|s)?(?: address)?|rcpt to|addressed to|e-?mail address|destinataire|empf(?:\u00e4|ae)nger|destinatario)\\s{0,20}:\\s{0,20}(?:rfc822;\\s?)?<?${ADDRESS}>?(.*)$`,
)
/** `ann@example.net; Failed; 5.1.1 (bad destination mailbox address)`. */
export const WITH_SEMICOLON = line(`^\\s{0,20}<?${ADDRESS}>?\\s{0,9}[;|]\\s{0,9}(\\S.*)$`)
/** `To: ann@example.net`: of the original as it was summed up. */
export const TO_LINE = line(`^[\\s>*-]{0,20}to\\s{0,20}:\\s{0,20}<?${ADDRESS}>?()\\s{0,20}$`)
/** The address, and what is said of it without anything between. */
export const AT_START = line(`^\\s{0,20}<?${ADDRESS}>?\\s{1,20}(\\S.*)$`)
/** An address at the end of a sentence that says it could not be reached. */
export const AT_END = line(
  `(?:deliver(?:y|ed)?|delivering|message|mail|undeliverable|unknown|exceeds allowed size|userid|attempts|reach|recipient|user|address|mailbox is full|full|host)\\b[^<>@]{0,80}?[\\s:]<?${ADDRESS}>?[.:]?\\s{0,20}$`,
)
