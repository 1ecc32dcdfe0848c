/**
 * A TCP connection to an SMTP server: sends commands and data, reads replies, with a time limit for every wait.
 *
 * Knows lines and replies, not their meaning, and buffers only a few replies. Throws SmtpFailure; after the first one, every call does.
 * Standards: RFC 5321 §4.2, §4.5.3.2; RFC 2034 (enhanced codes); RFC 3207 §4.2, §6 (plaintext input does not survive STARTTLS).
 */
import { given } from '../../core/given.js'
import { formatEnhancedStatus, readEnhancedStatus } from '../../mail/enhanced-status.js'
import type { SmtpReply, TlsFacts } from '../../mail/outcome.js'
import type { Dialler, SecureOptions, Socket, TLSSocket } from '../../world/net/dial.js'
import type { Clock } from '../../world/time/clock.js'
import { SmtpFailure, toSmtpFailure } from '../smtp-result.js'

/** Written to the socket at once; each block has its own time limit (RFC 5321 §4.5.3.2.5). */
const BLOCK_BYTES = 65_536
/** A pipelined group has four replies at most. */
const MAX_UNREAD_REPLIES = 16

export class SmtpConnection {
  private readonly clock: Clock
  private readonly dialler: Dialler
  private socket: Socket
  private parser = new ReplyParser()
  private readonly unread: ReplyLines[] = []
  /** Replies due for what was sent; starts with the greeting. */
  private expectedReplies = 1
  /** Ends every wait, whatever its own time limit; monotonic, ms. */
  private deadline = Infinity
  private gotUnsolicitedReply = false
  /** Between STARTTLS and the handshake, when only the one reply counts. */
  private isSwitchingToTls = false
  private failure: SmtpFailure | undefined
  private wake: (() => void) | undefined

  constructor(clock: Clock, dialler: Dialler, socket: Socket) {
    this.clock = clock
    this.dialler = dialler
    this.socket = socket
    this.attach()
  }

  /** Whether the next reply can only belong to the next command. */
  get isSynchronized(): boolean {
    return (
      this.failure === undefined &&
      !this.gotUnsolicitedReply &&
      this.expectedReplies === 0 &&
      this.unread.length === 0
    )
  }

  /** @param moment monotonic, ms; Infinity removes the deadline */
  setDeadline(moment: number): void {
    this.deadline = moment
  }

  send(...lines: readonly string[]): void {
    this.expectedReplies += lines.length
    // After a failure the lines are lost; waiting for the reply throws the reason.
    if (this.failure === undefined) this.socket.write(lines.map(line => `${line}\r\n`).join(''))
  }

  /** The next reply. A reply received before a failure is still returned. */
  async readReply(timeoutMs: number): Promise<ReplyLines> {
    await this.waitUntil(() => this.unread.length > 0, timeoutMs)
    const reply = this.unread.shift()
    if (reply === undefined) throw new SmtpFailure('protocol', 'no reply to read')
    return reply
  }

  async command(line: string, timeoutMs: number): Promise<ReplyLines> {
    this.send(line)
    return this.readReply(timeoutMs)
  }

  /**
   * Sends data that gets one reply after its end.
   *
   * @param blockTimeoutMs time limit for each block to leave the socket buffer
   * @param onLastBlock called right before the final block is sent
   * @returns false if the server replied before the end; the rest is then not sent
   */
  async write(octets: Buffer, blockTimeoutMs: number, onLastBlock: () => void): Promise<boolean> {
    for (let offset = 0; offset < octets.length; offset += BLOCK_BYTES) {
      if (this.unread.length > 0) return false
      if (this.failure !== undefined) throw this.failure
      if (offset + BLOCK_BYTES >= octets.length) {
        onLastBlock()
        this.expectedReplies += 1
      }
      this.socket.write(octets.subarray(offset, offset + BLOCK_BYTES))
      await this.waitUntil(() => !this.socket.writableNeedDrain || this.unread.length > 0, blockTimeoutMs)
    }
    return true
  }

  /**
   * Sends STARTTLS. Anything received in plaintext beyond its reply is dropped: an attacker on the path may have injected it to pass for
   * replies to commands sent under TLS (RFC 3207 §6).
   */
  async requestTls(timeoutMs: number): Promise<ReplyLines> {
    this.isSwitchingToTls = true
    const reply = await this.command('STARTTLS', timeoutMs)
    this.isSwitchingToTls = reply.code === 220
    return reply
  }

  async startTls(options: SecureOptions): Promise<TlsFacts> {
    this.detach()
    this.parser = new ReplyParser()
    this.unread.length = 0
    this.isSwitchingToTls = false
    try {
      const secured = await this.dialler.secure(this.socket, options)
      this.socket = secured
      this.attach()
      return tlsFacts(secured)
    } catch (thrown) {
      this.failure = toSmtpFailure(thrown, 'tls')
      throw this.failure
    }
  }

  /** Ends the connection; pending and later calls throw the reason. */
  fail(reason: SmtpFailure): void {
    if (this.failure !== undefined) return
    this.failure = reason
    this.socket.destroy()
    this.wake?.()
  }

  close(): void {
    this.fail(new SmtpFailure('closed', 'connection closed by this side'))
  }

  private readonly onOctets = (chunk: Buffer): void => {
    if (this.failure !== undefined) return
    try {
      for (const reply of this.parser.push(chunk)) this.receive(reply)
    } catch (thrown) {
      this.fail(toSmtpFailure(thrown, 'protocol'))
    }
    this.wake?.()
  }

  private receive(reply: ReplyLines): void {
    if (this.expectedReplies > 0) {
      this.expectedReplies -= 1
    } else if (this.isSwitchingToTls) {
      return
    } else {
      this.gotUnsolicitedReply = true
      // A server may send 421 at any time (RFC 5321 §3.8). An unsolicited success reply could be taken for the reply to the next command,
      // so the connection is abandoned.
      if (reply.code < 400) throw new SmtpFailure('protocol', `unsolicited reply ${reply.code}`)
    }
    this.unread.push(reply)
    if (this.unread.length > MAX_UNREAD_REPLIES) throw new SmtpFailure('protocol', 'too many unread replies')
  }

  private readonly onError = (error: Error): void => {
    this.failure ??= toSmtpFailure(error, 'closed')
    this.wake?.()
  }

  private readonly onEnd = (): void => {
    this.failure ??= new SmtpFailure('closed', 'connection closed by the server')
    this.wake?.()
  }

  private readonly onDrain = (): void => this.wake?.()

  private attach(): void {
    this.socket.on('data', this.onOctets).on('drain', this.onDrain)
    this.socket.on('error', this.onError).on('end', this.onEnd).on('close', this.onEnd)
  }

  private detach(): void {
    this.socket.off('data', this.onOctets).off('drain', this.onDrain)
    this.socket.off('error', this.onError).off('end', this.onEnd).off('close', this.onEnd)
    // The TLS socket reports errors of the one below.
    this.socket.on('error', () => {})
  }

  /** Rechecks `isReady` after each read, drain or failure. There is at most one waiter. */
  private async waitUntil(isReady: () => boolean, timeoutMs: number): Promise<void> {
    if (isReady()) return
    const leftMs = Math.max(0, Math.min(timeoutMs, this.deadline - this.clock.monotonic()))
    const timer = this.clock.after(leftMs, () =>
      this.fail(new SmtpFailure('timeout', 'timed out waiting for a reply')),
    )
    try {
      while (!isReady()) {
        if (this.failure !== undefined) throw this.failure
        await new Promise<void>(resolve => {
          this.wake = resolve
        })
      }
    } finally {
      timer.cancel()
      this.wake = undefined
    }
  }
}

/** Verification error codes of OpenSSL and Node in plain words. */
const UNVERIFIED: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'self-signed certificate in the chain',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate chain is incomplete',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate issuer is unknown',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate issuer is unknown',
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate is for another name',
}

function tlsFacts(socket: TLSSocket): TlsFacts {
  const facts = { version: socket.getProtocol() ?? 'unknown', cipher: socket.getCipher().name }
  if (socket.authorized) return { ...facts, verified: true }
  // Typed as Error, but Node sets the code as a string.
  const code = String(socket.authorizationError)
  return {
    ...facts,
    verified: false,
    unverifiedReason: UNVERIFIED[code] ?? code.toLowerCase().replaceAll('_', ' '),
  }
}

/** RFC 5321 §4.5.3.1.5 allows 512 octets; real servers send longer lines. */
export const MAX_LINE_BYTES = 2_000
export const MAX_LINES = 128
/** Text kept in the trace. */
const MAX_TEXT = 1_000

/** A reply with its lines separate, as EHLO needs them. */
export interface ReplyLines extends SmtpReply {
  readonly lines: readonly string[]
}

export class MalformedReply extends Error {
  override readonly name = 'MalformedReply'
}

/** Incremental reply parser (RFC 5321 §4.2.1). Throws MalformedReply if the server does not speak SMTP. */
export class ReplyParser {
  private partialLine: Buffer = Buffer.alloc(0)
  private lines: string[] = []

  /** Whether an incomplete reply is buffered. */
  get isInsideReply(): boolean {
    return this.partialLine.length > 0 || this.lines.length > 0
  }

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
