/**
 * Reading what an SMTP server says: octets in, replies out, whatever pieces they come in.
 *
 * Called by `smtp-connection.ts`. Pure; never judges a reply. Standard: RFC 5321 §4.2 (replies), §4.2.1 (multi-line),
 * RFC 2034 (enhanced codes). Fails: throws MalformedReply when the server speaks no SMTP; the connection is then of no
 * further use. Memory is bounded: one line and one reply have a largest size.
 */
import { given } from '../../core/given.js'
import { formatEnhancedStatus, readEnhancedStatus } from '../../mail/enhanced-status.js'
import type { SmtpReply } from '../../mail/outcome.js'

/** RFC 5321 §4.5.3.1.5 allows 512 octets a line; real servers write longer sentences. */
export const LONGEST_LINE = 2_000
export const MOST_LINES = 128
/** As much text as a trace keeps. */
const LONGEST_TEXT = 1_000

/** A reply with its lines apart, as EHLO needs them. */
export interface ReplyLines extends SmtpReply {
  /** Text of each line, without the three-digit code. */
  readonly lines: readonly string[]
}

export class MalformedReply extends Error {
  override readonly name = 'MalformedReply'
}

export class ReplyParser {
  /** Octets of a line that has not ended yet. */
  private rest: Buffer = Buffer.alloc(0)
  /** Lines of a reply that has not ended yet. */
  private lines: string[] = []

  /** Whether octets have come that are not part of a complete reply. */
  get isInsideReply(): boolean {
    return this.rest.length > 0 || this.lines.length > 0
  }

  /** @returns the replies that these octets complete, in order */
  push(chunk: Buffer): ReplyLines[] {
    const replies: ReplyLines[] = []
    const octets = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    let start = 0
    for (let end = octets.indexOf(0x0a); end !== -1; end = octets.indexOf(0x0a, start)) {
      const reply = this.takeLine(octets.subarray(start, end))
      if (reply !== undefined) replies.push(reply)
      start = end + 1
    }
    this.rest = octets.subarray(start)
    if (this.rest.length > LONGEST_LINE) throw new MalformedReply('reply line is too long')
    return replies
  }

  /** @param octets without the line feed; a bare one ends a line as well, since it cannot mean anything else here */
  private takeLine(octets: Buffer): ReplyLines | undefined {
    if (octets.length > LONGEST_LINE) throw new MalformedReply('reply line is too long')
    const line = octets.toString('utf8').replace(/\r$/, '')
    const match = /^([2-5]\d\d)(?:([ -])(.*))?$/s.exec(line)
    if (match === null) throw new MalformedReply(`malformed reply: ${printable(line).slice(0, 100)}`)
    const [, code = '', separator = ' ', text = ''] = match
    this.lines.push(printable(text))
    if (this.lines.length > MOST_LINES) throw new MalformedReply('reply has too many lines')
    if (separator === '-') return undefined
    const lines = this.lines
    this.lines = []
    // §4.2.1 wants the same code on every line. Where a server errs, the line that ends the reply carries its verdict.
    return makeReply(Number(code), lines)
  }
}

function makeReply(code: number, lines: readonly string[]): ReplyLines {
  const enhanced = readEnhancedStatus(lines.join('\n'))
  const text = lines.map(withoutEnhancedStatus).join(' ').trim().slice(0, LONGEST_TEXT)
  return {
    code,
    ...(enhanced === undefined ? {} : { enhanced: formatEnhancedStatus(enhanced) }),
    text,
    lines,
  }
}

/** Servers that give enhanced codes begin every line with one (RFC 2034 §4). */
function withoutEnhancedStatus(line: string): string {
  return line.replace(/^\s*[245]\.\d{1,3}\.\d{1,3}(?:\s+|$)/, '').trim()
}

/** What a server says ends up in traces and mails to people: nothing in it may act on a terminal. */
function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

/** The reply as a trace keeps it. */
export function withoutLines({ code, enhanced, text }: ReplyLines): SmtpReply {
  return { code, ...given({ enhanced }), text }
}
