/**
 * The server's end of one connection: lines and octets in, replies out, flow in both directions, the switch to TLS, the end.
 *
 * Called by `session.ts`, which it tells that there is something to read. Knows lines, not what they mean. Holds one piece
 * of input as the system delivers it (64 KB) and, while nobody reads it, lets nothing more come in; an idle connection
 * holds none. Replies are gathered and leave in one write.
 * Standards: RFC 5321 §2.3.7, §2.3.8 (lines end in CR LF), RFC 2920 §3.2 (replies sent together).
 * Fails: never throws; a broken connection is told to the owner once, as `onLost`.
 */
import { isUtf8 } from 'node:buffer'
import type { SecureContext, SecuredSocket, Socket, TcpServer } from '../world/net/listen-tcp.js'

export interface ConnectionOwner {
  /** Octets came, or the way out is free again, or the client has closed his direction. */
  onInput(): void
  /** The connection is gone, whoever ended it. */
  onLost(): void
}

export type LineFault = 'too long' | 'endless' | 'malformed'

const LF = 10
const CR = 13
/** Replies that wait to be written; a client that reads none is not read from either. */
const MAX_GATHERED = 16_384
/** Octets of one overlong line that are skipped before the client is given up. */
const MAX_SKIPPED = 262_144
/** Octets read and dropped after the last reply, so that it arrives before the connection is cut (RFC 1122 §4.2.2.13). */
const MAX_LINGERING = 1_048_576

const NOTHING = Buffer.alloc(0)
const NOT_PRINTABLE = /[^\x20-\x7e]/
const CONTROLS = /\p{Cc}/u

export class ServerConnection {
  private readonly owner: ConnectionOwner
  private socket: Socket
  private gathered = ''
  private isPaused = false
  private isEnding = false
  private isLost = false
  private skipped = 0
  private lingered = 0

  /** What came and was not taken yet: `input` from `at` on. The owner moves `at`. */
  input: Buffer = NOTHING
  at = 0
  /** The client sends no more. */
  hasPeerEnded = false
  /** What was wrong with the line that `readLine` gave last. */
  lineFault: LineFault | undefined

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.owner = owner
    this.socket = socket
    this.attach()
  }

  get hasInput(): boolean {
    return this.at < this.input.length
  }

  /** As `hasInput`, and what the system has for us besides: STARTTLS must be the last that was said in clear. */
  get hasUnread(): boolean {
    return this.hasInput || this.socket.readableLength > 0
  }

  /** Whether the client reads our replies; if not, nothing more of his is taken. */
  get isClear(): boolean {
    return !this.socket.writableNeedDrain
  }

  /**
   * The next line without its CR LF. A line that is none comes as the empty text, with `lineFault`.
   *
   * @param maxLength octets with CR LF
   * @returns undefined where there is no whole line yet
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
    return NOT_PRINTABLE.test(line) ? this.unusualLine(at, lf - 1) : line
  }

  /** UTF-8 is a line (RFC 6531 §3.3); controls are not, a CR in the middle included. */
  private unusualLine(from: number, to: number): string {
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

  /** Gathers replies; `flush` sends them. */
  send(reply: string): void {
    this.gathered += reply
    if (this.gathered.length > MAX_GATHERED) this.flush()
  }

  flush(): void {
    if (this.gathered === '' || this.isEnding || this.isLost) return
    this.socket.write(this.gathered, 'latin1')
    this.gathered = ''
  }

  /** Lets octets in again, once all that can be taken was; the beginning of a line may be left. */
  readOn(): void {
    if (!this.isPaused || this.isLost) return
    this.isPaused = false
    this.socket.resume()
  }

  /** Sends what is gathered and closes; what the client still sends is dropped. */
  end(): void {
    if (this.isEnding || this.isLost) return
    this.isEnding = true
    this.input = NOTHING
    this.at = 0
    this.socket.end(this.gathered, 'latin1')
    this.gathered = ''
    this.readOn()
  }

  destroy(): void {
    this.socket.destroy()
  }

  /** Goes on under TLS. Nothing said in clear is left (RFC 3207 §4.2). */
  secure(server: TcpServer, context: SecureContext, onSecure: (secured: SecuredSocket) => void): void {
    this.flush()
    this.detach()
    this.input = NOTHING
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
    // Ended or not: what `end` leaves is nothing.
    if (!this.hasInput)
      this.input = NOTHING // an idle connection holds no buffer
    else if (!this.isPaused) this.holdBack()
  }

  /** What is left is either the beginning of a line, or more than the owner can take now. */
  private holdBack(): void {
    if (this.input.indexOf(LF, this.at) === -1 && this.input.length - this.at < MAX_GATHERED) {
      // The beginning of a line must not keep the whole piece in memory.
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
    this.input = NOTHING
    this.at = 0
    this.owner.onLost()
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

/** `close` follows and says all there is to say. */
function ignore(): void {}
