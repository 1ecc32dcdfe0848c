/**
 * Enhanced mail system status codes: the `5.1.1` beside the `550`.
 *
 * Called by the SMTP client (replies), the classifier, the DSN parser (Status fields) and the DSN writer. Pure; never
 * touches the network or the database.
 * Standards: RFC 3463 (syntax, classes), RFC 2034 §4 (place in a reply), RFC 5248 (registry).
 * Fails: never throws; text that holds no code parses to `undefined`.
 */

/** One status code, e.g. `{class: 5, subject: 1, detail: 1}` for 5.1.1. */
export interface EnhancedStatus {
  /** 2 success, 4 persistent transient, 5 permanent (RFC 3463 §2). */
  readonly class: 2 | 4 | 5
  /**
   * Registered are 0..7: other, address, mailbox, mail system, network, protocol, content, security (RFC 3463 §3).
   * The syntax allows 0..999, and some large sites make use of that.
   */
  readonly subject: number
  /** 0..999, meaning depends on subject. */
  readonly detail: number
}

/** At the start of a line, and not the beginning of something longer such as an IP address. */
const AT_LINE_START = /^[ \t]*([245])\.(\d{1,3})\.(\d{1,3})(?!\d|\.\d)/m

/**
 * Finds the status code that a server put at the start of its reply text.
 *
 * A code anywhere else in the text is prose and ignored: Exim quotes the remote's code in its own sentence, and that
 * one is not its verdict.
 *
 * @param text reply text without the three-digit code, any number of lines
 * @returns the code of the first line that has one, or undefined
 */
export function readEnhancedStatus(text: string): EnhancedStatus | undefined {
  const match = AT_LINE_START.exec(text)
  if (!match) return undefined
  const [, statusClass, subject, detail] = match
  return {
    class: Number(statusClass) as EnhancedStatus['class'],
    subject: Number(subject),
    detail: Number(detail),
  }
}

/** `5.1.1`, as it stands in replies and in the Status field of a DSN (RFC 3464 §2.3.4). */
export function formatEnhancedStatus(status: EnhancedStatus): string {
  return `${status.class}.${status.subject}.${status.detail}`
}
