/**
 * Server side of one connection: reads lines and data, sends replies, flow control, switch to TLS, closing.
 *
 * Knows lines, not their meaning. Buffers at most one read of the socket (64 KB) and pauses the socket until it is consumed; an idle
 * connection holds no buffer. Replies are collected and sent in one write. Never throws; a lost connection is reported once, by `onClosed`.
 * Standards: RFC 5321 §2.3.7, §2.3.8 (lines end in CRLF), RFC 2920 §3.2 (replies sent together).
 */
import { isUtf8 } from 'node:buffer'
import type { SecureContext, SecuredSocket, Socket, TcpServer } from '../world/net/listen-tcp.js'

export interface ConnectionOwner {
  /** Data arrived, the socket drained, or the client half-closed the connection. */
  onInput(): void
  onClosed(): void
}

export type LineFault = 'too long' | 'endless' | 'malformed'

const LF = 10
const CR = 13
/** If the client does not read its replies, nothing more is read from it. */
const MAX_PENDING_REPLIES = 16_384
/** Octets of an overlong line that are skipped before the connection is closed. */
const MAX_SKIPPED = 262_144
/** Octets read and dropped after the last reply, so that closing the socket does not discard it (RFC 1122 §4.2.2.13). */
const MAX_LINGERING = 1_048_576

const EMPTY = Buffer.alloc(0)
const NOT_PRINTABLE = /[^\x20-\x7e]/
const CONTROLS = /\p{Cc}/u

export class ServerConnection {
  private readonly owner: ConnectionOwner
  private socket: Socket
  private pendingReplies = ''
  private isPaused = false
  private isEnding = false
  private isLost = false
  private skipped = 0
  private lingered = 0

  /** Unread input: `input` from `at` on. The owner advances `at`. */
  input: Buffer = EMPTY
  at = 0
  hasPeerEnded = false
  /** Fault of the last line from `readLine`. */
  lineFault: LineFault | undefined

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.owner = owner
    this.socket = socket
    this.attach()
  }

  get hasInput(): boolean {
    return this.at < this.input.length
  }

  /** As `hasInput`, including data in the socket buffer: nothing may follow STARTTLS. */
  get hasUnread(): boolean {
    return this.hasInput || this.socket.readableLength > 0
  }

  /** False if the client does not read its replies; nothing more is then read from it. */
  get isWritable(): boolean {
    return !this.socket.writableNeedDrain
  }

  /**
   * The next line without its CRLF. For a malformed line, returns '' and sets `lineFault`.
   *
   * @param maxLength in octets, CRLF included
   * @returns undefined if no complete line is available
   */
  readLine(maxLength: number): string | undefined {
    this.lineFault = undefined
    if (!this.hasInput) return undefined
    const { input, at } = this
    const lf = input.indexOf(LF, at)
    const length = (lf === -1 ? input.length : lf + 1) - at
    if (this.skipped > 0 || length > maxLength) return this.skipLine(lf, length)
    if (lf === -1) return undefined
    this.at = lf + 1
    if (lf === at || input[lf - 1] !== CR) {
      this.lineFault = 'malformed'
      return ''
    }
    const line = input.toString('latin1', at, lf - 1)
    return NOT_PRINTABLE.test(line) ? this.readUnicodeLine(at, lf - 1) : line
  }

  /** UTF-8 is allowed (RFC 6531 §3.3); control characters, including a bare CR, are not. */
  private readUnicodeLine(from: number, to: number): string {
    const octets = this.input.subarray(from, to)
    const text = isUtf8(octets) ? octets.toString('utf8') : undefined
    if (text !== undefined && !CONTROLS.test(text)) return text
    this.lineFault = 'malformed'
    return ''
  }

  private skipLine(lf: number, length: number): string | undefined {
    this.skipped += length
    this.at += length
    if (this.skipped > MAX_SKIPPED) this.lineFault = 'endless'
    else if (lf === -1) return undefined
    else this.lineFault = 'too long'
    this.skipped = 0
    return ''
  }

  /** Queues a reply; `flush` sends it. */
  send(reply: string): void {
    this.pendingReplies += reply
    if (this.pendingReplies.length > MAX_PENDING_REPLIES) this.flush()
  }

  flush(): void {
    if (this.pendingReplies === '' || this.isEnding || this.isLost) return
    this.socket.write(this.pendingReplies, 'latin1')
    this.pendingReplies = ''
  }

  /** Resumes reading, once everything that can be consumed was; an incomplete line may remain. */
  resume(): void {
    if (!this.isPaused || this.isLost) return
    this.isPaused = false
    this.socket.resume()
  }

  /** Sends queued replies and closes; further input is dropped. */
  end(): void {
    if (this.isEnding || this.isLost) return
    this.isEnding = true
    this.input = EMPTY
    this.at = 0
    this.socket.end(this.pendingReplies, 'latin1')
    this.pendingReplies = ''
    this.resume()
  }

  destroy(): void {
    this.socket.destroy()
  }

  /** Continues over TLS. Nothing received in plaintext is kept (RFC 3207 §4.2). */
  secure(server: TcpServer, context: SecureContext, onSecure: (secured: SecuredSocket) => void): void {
    this.flush()
    this.detach()
    this.input = EMPTY
    this.at = 0
    this.socket = server.secure(this.socket, context, onSecure)
    this.attach()
  }

  private readonly onData = (octets: Buffer): void => {
    if (this.isEnding) {
      this.lingered += octets.length
      if (this.lingered > MAX_LINGERING) this.socket.destroy()
      return
    }
    this.input = this.hasInput ? Buffer.concat([this.input.subarray(this.at), octets]) : octets
    this.at = 0
    this.owner.onInput()
    // `end` clears the input, so this holds afterwards as well.
    if (!this.hasInput) this.input = EMPTY // an idle connection holds no buffer
    else if (!this.isPaused) this.pauseOrTrim()
  }

  /** The rest is an incomplete line, or more than the owner can take now. */
  private pauseOrTrim(): void {
    if (this.input.indexOf(LF, this.at) === -1 && this.input.length - this.at < MAX_PENDING_REPLIES) {
      // Copied, so that the start of a line does not keep the whole read in memory.
      if (this.at > 0) this.input = Buffer.from(this.input.subarray(this.at))
      this.at = 0
      return
    }
    this.isPaused = true
    this.socket.pause()
  }

  private readonly onDrain = (): void => this.owner.onInput()

  private readonly onEnd = (): void => {
    this.hasPeerEnded = true
    this.owner.onInput()
  }

  private readonly onClose = (): void => {
    this.isLost = true
    this.input = EMPTY
    this.at = 0
    this.owner.onClosed()
  }

  private attach(): void {
    const { socket } = this
    socket.on('data', this.onData).on('drain', this.onDrain).on('end', this.onEnd).on('close', this.onClose)
    socket.on('error', ignore)
  }

  private detach(): void {
    const { socket } = this
    socket
      .off('data', this.onData)
      .off('drain', this.onDrain)
      .off('end', this.onEnd)
      .off('close', this.onClose)
  }
}

/** `close` always follows `error`. */
function ignore(): void {}
