/**
 * Templates for recognizing the free-text bounces of mail systems, and the line patterns by which they name recipients.
 *
 * Recipient patterns match single lines of at most 2,000 characters and are anchored or start with a literal, so that matching stays fast.
 */
import { ADDRESS } from '../recipient-address.js'

export interface NoticeTemplate {
  /** For logs and the parser's score, lower case. */
  readonly name: string
  /** All given conditions must match. */
  readonly when: {
    readonly from?: RegExp
    readonly subject?: RegExp
    /** A header field and a pattern for its value. */
    readonly field?: readonly [name: string, value: RegExp]
    /** Matched against the text before the original message. */
    readonly text?: RegExp
  }
  /** Recipients follow the line that matches. */
  readonly start?: RegExp
  /** Matched per line: group 1 is the address, group 2, if any, the reason. */
  readonly recipient: readonly RegExp[]
  /** Matched per line: group 1 is the address that was expanded to the previous one, or to a pipe or file. */
  readonly alias?: RegExp
  /** The reason precedes the address. */
  readonly isReasonFirst?: boolean
  /** Delivery is still being retried. */
  readonly action?: 'delayed'
  /** In words the classifier knows, for systems that state no reason, or state it in any of forty languages. */
  readonly impliedReason?: string
}

function line(pattern: string): RegExp {
  return new RegExp(pattern, 'i')
}

/** `<ann@example.net>`, `<ann@example.net>: host said`, `<ann@example.net> (reason)`. */
export const ANGLED_FIRST = line(`^[\\s>*-]{0,20}<${ADDRESS}>[:,]?(.*)$`)
/** The address alone, with or without indentation, colon, quotes or bullet. */
export const ALONE = line(`^[\\s>*-]{0,20}["']?<?${ADDRESS}>?["']?:?\\s{0,20}$`)
/** `ann@example.net: 550 no such user`. */
export const WITH_COLON = line(`^\\s{0,20}["']?${ADDRESS}["']?:\\s{0,20}(\\S.*)$`)
/** `550 5.1.1 <ann@example.net>... User unknown`, from a Sendmail transcript. */
export const TRANSCRIPT = line(
  `^\\s{0,8}((?:<<<\\s{0,3})?[45]\\d\\d[ -](?:[45]\\.\\d\\.\\d{1,3}\\s{1,3})?)<?${ADDRESS}>?\\s?\\.\\.\\.(.*)$`,
)
/** `ann@example.net [User unknown]`, `ann@example.net (user unknown)`, `ann@example.net ... unknown host`. */
export const WITH_REMARK = line(`^\\s{0,20}<?${ADDRESS}>?\\s{1,20}((?:[[(]|\\.\\.\\.).*)$`)
/** `ann@example.net on Thu, 29 Apr 2010`, as in Exchange. */
export const WITH_DATE = line(`^\\s{0,20}["']?${ADDRESS}["']?,? on (?:\\d|\\w{2,9}\\.?,? ).*$`)
/** `Ann<mailto:ann@example.net>`. */
export const MAILTO = line(`^[^<]{0,200}<mailto:${ADDRESS}>`)
/** `RCPT TO: <ann@example.net>`, `To: ...` and similar labels. */
export const NAMED = line(
  `^[\\s*>|-]{0,20}(?:final[- ]recipient|failed (?:recipient|address)|recipient(?:\\(s\\)|s)?(?: address)?|rcpt to|addressed to|e-?mail address|destinataire|empf(?:\u00e4|ae)nger|destinatario)\\s{0,20}:\\s{0,20}(?:rfc822;\\s?)?<?${ADDRESS}>?(.*)$`,
)
/** `ann@example.net; Failed; 5.1.1 (bad destination mailbox address)`. */
export const WITH_SEMICOLON = line(`^\\s{0,20}<?${ADDRESS}>?\\s{0,9}[;|]\\s{0,9}(\\S.*)$`)
/** `To: ann@example.net` in a summary of the original. */
export const TO_LINE = line(`^[\\s>*-]{0,20}to\\s{0,20}:\\s{0,20}<?${ADDRESS}>?()\\s{0,20}$`)
/** The address followed by the reason. */
export const AT_START = line(`^\\s{0,20}<?${ADDRESS}>?\\s{1,20}(\\S.*)$`)
/** An address at the end of a sentence about a failed delivery. */
export const AT_END = line(
  `(?:deliver(?:y|ed)?|delivering|message|mail|undeliverable|unknown|exceeds allowed size|userid|attempts|reach|recipient|user|address|mailbox is full|full|host)\\b[^<>@]{0,80}?[\\s:]<?${ADDRESS}>?[.:]?\\s{0,20}$`,
)
