/** An SMTP reply on one line, as traces and summaries show it. */
import type { SmtpReply } from './outcome.js'

/** `550 5.1.1 no such user`. */
export function formatReply({ code, enhanced, text }: SmtpReply): string {
  return [code, enhanced, text].filter(part => part !== undefined && part !== '').join(' ')
}
