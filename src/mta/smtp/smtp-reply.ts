/**
 * Incremental parser for SMTP replies.
 *
 * Pure and bounded in memory: lines and replies have a maximum size. Throws MalformedReply if the server does not
 * speak SMTP; the connection is then unusable.
 * Standards: RFC 5321 §4.2, §4.2.1 (multi-line), RFC 2034 (enhanced codes).
 */
import { given } from '../../core/given.js'
import { formatEnhancedStatus, readEnhancedStatus } from '../../mail/enhanced-status.js'
import type { SmtpReply } from '../../mail/outcome.js'

/** RFC 5321 §4.5.3.1.5 allows 512 octets; real servers send longer lines. */
export const MAX_LINE_BYTES = 2_000
export const MAX_LINES = 128
/** Text kept in the trace. */
const MAX_TEXT = 1_000

/** A reply with its lines separate, as EHLO needs them. */
export interface ReplyLines extends SmtpReply {
  /** Text of each line, without the reply code. */
  readonly lines: readonly string[]
}

export class MalformedReply extends Error {
  override readonly name = 'MalformedReply'
}

export class ReplyParser {
  private partialLine: Buffer = Buffer.alloc(0)
  private lines: string[] = []

  /** Whether an incomplete reply is buffered. */
  get isInsideReply(): boolean {
    return this.partialLine.length > 0 || this.lines.length > 0
  }

  /** @returns the replies completed by these octets, in order */
  push(chunk: Buffer): ReplyLines[] {
    const replies: ReplyLines[] = []
    const octets = this.partialLine.length === 0 ? chunk : Buffer.concat([this.partialLine, chunk])
    let start = 0
    for (let end = octets.indexOf(0x0a); end !== -1; end = octets.indexOf(0x0a, start)) {
      const reply = this.readLine(octets.subarray(start, end))
      if (reply !== undefined) replies.push(reply)
      start = end + 1
    }
    this.partialLine = octets.subarray(start)
    if (this.partialLine.length > MAX_LINE_BYTES) throw new MalformedReply('reply line is too long')
    return replies
  }

  /** @param octets without the line feed; a bare LF ends a line too, since it has no other meaning here */
  private readLine(octets: Buffer): ReplyLines | undefined {
    if (octets.length > MAX_LINE_BYTES) throw new MalformedReply('reply line is too long')
    const line = octets.toString('utf8').replace(/\r$/, '')
    const match = /^([2-5]\d\d)(?:([ -])(.*))?$/s.exec(line)
    if (match === null) throw new MalformedReply(`malformed reply: ${printable(line).slice(0, 100)}`)
    const [, code = '', separator = ' ', text = ''] = match
    this.lines.push(printable(text))
    if (this.lines.length > MAX_LINES) throw new MalformedReply('reply has too many lines')
    if (separator === '-') return undefined
    const lines = this.lines
    this.lines = []
    // §4.2.1 requires the same code on every line. If a server breaks that, the last line counts.
    return makeReply(Number(code), lines)
  }
}

function makeReply(code: number, lines: readonly string[]): ReplyLines {
  const enhanced = readEnhancedStatus(lines.join('\n'))
  const text = lines.map(withoutEnhancedStatus).join(' ').trim().slice(0, MAX_TEXT)
  return {
    code,
    ...(enhanced === undefined ? {} : { enhanced: formatEnhancedStatus(enhanced) }),
    text,
    lines,
  }
}

/** Servers that send enhanced codes start every line with one (RFC 2034 §4). */
function withoutEnhancedStatus(line: string): string {
  return line.replace(/^\s*[245]\.\d{1,3}\.\d{1,3}(?:\s+|$)/, '').trim()
}

/** Replies end up in traces and in mail to people; they must not control a terminal. */
function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

export function toSmtpReply({ code, enhanced, text }: ReplyLines): SmtpReply {
  return { code, ...given({ enhanced }), text }
}
