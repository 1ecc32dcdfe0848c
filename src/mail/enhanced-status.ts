/**
 * Enhanced mail system status codes: the `5.1.1` after the `550`.
 *
 * Pure. Never throws; text without a code parses to undefined.
 * Standards: RFC 3463 (syntax, classes), RFC 2034 §4 (position in a reply), RFC 5248 (registry).
 */

/** One status code, e.g. `{class: 5, subject: 1, detail: 1}` for 5.1.1. */
export interface EnhancedStatus {
  /** 2 success, 4 persistent transient failure, 5 permanent failure (RFC 3463 §2). */
  readonly class: 2 | 4 | 5
  /**
   * Registered are 0 to 7: other, address, mailbox, mail system, network, protocol, content, security (RFC 3463 §3). The syntax allows 0 to
   * 999, which some large sites use.
   */
  readonly subject: number
  /** 0 to 999; its meaning depends on `subject`. */
  readonly detail: number
}

/** At the start of a line, and not part of something longer such as an IP address. */
const AT_LINE_START = /^[ \t]*([245])\.(\d{1,3})\.(\d{1,3})(?!\d|\.\d)/m

/**
 * Reads the status code at the start of a server's reply text.
 *
 * A code anywhere else is ignored: Exim quotes the remote server's code inside its own sentence, and that is not Exim's verdict.
 *
 * @param text reply text without the three-digit code; may span lines
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

/** `5.1.1`, as in replies and in the Status field of a DSN (RFC 3464 §2.3.4). */
export function formatEnhancedStatus(status: EnhancedStatus): string {
  return `${status.class}.${status.subject}.${status.detail}`
}
