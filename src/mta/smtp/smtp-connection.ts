/**
 * One TCP connection to an SMTP server: commands and octets out, replies in, one timer per wait.
 *
 * Called by `smtp-session.ts` and `smtp-transaction.ts`; knows lines and replies, not their meaning. Never waits without
 * a time limit, never keeps more than a few replies. Standards: RFC 5321 §4.2, §4.5.3.2; RFC 3207 §4.2 and §6 (nothing
 * said before TLS survives it). Fails: throws Broken; from then on every call does.
 */
import type { TlsFacts } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Dialler, SecureOptions, Socket, TLSSocket } from '../../world/net/dial.js'
import { asBroken, Broken } from '../smtp-end.js'
import { ReplyParser, type ReplyLines } from './smtp-reply.js'

/** Octets handed to the socket at once; RFC 5321 §4.5.3.2.5 gives each block its own time. */
const BLOCK = 65_536
/** Replies that may wait unread; a pipelined group has at most four. */
const MOST_UNREAD = 16

export class SmtpConnection {
  private readonly clock: Clock
  private readonly dialler: Dialler
  private socket: Socket
  private parser = new ReplyParser()
  private readonly unread: ReplyLines[] = []
  /** Replies still to come for what was sent; the greeting is the first. */
  private awaited = 1
  /** When every wait ends, whatever its own time limit: on the monotonic clock, ms. */
  private deadline = Infinity
  private spokeUnasked = false
  /** Between STARTTLS and the handshake: nothing beyond the one reply counts. */
  private isSwitchingToTls = false
  private broken: Broken | undefined
  private wake: (() => void) | undefined

  constructor(clock: Clock, dialler: Dialler, socket: Socket) {
    this.clock = clock
    this.dialler = dialler
    this.socket = socket
    this.attach()
  }

  /** Whether the next command can be sent and its answer told from any other. */
  get isInStep(): boolean {
    return this.broken === undefined && !this.spokeUnasked && this.awaited === 0 && this.unread.length === 0
  }

  /** @param moment on the monotonic clock, ms; Infinity lifts the limit */
  limitUntil(moment: number): void {
    this.deadline = moment
  }

  /** Sends command lines without waiting; each one will be answered by one reply. */
  send(...lines: readonly string[]): void {
    this.awaited += lines.length
    // After a failure this is lost, and the wait for the reply will say why.
    if (this.broken === undefined) this.socket.write(lines.map(line => `${line}\r\n`).join(''))
  }

  /** The next reply; one that came before a failure is still given out. */
  async readReply(timeoutMs: number): Promise<ReplyLines> {
    await this.until(() => this.unread.length > 0, timeoutMs)
    const reply = this.unread.shift()
    if (reply === undefined) throw new Broken('protocol', 'reply vanished')
    return reply
  }

  async command(line: string, timeoutMs: number): Promise<ReplyLines> {
    this.send(line)
    return this.readReply(timeoutMs)
  }

  /**
   * Sends octets that are answered by one reply when their end is reached.
   *
   * @param blockTimeoutMs how long each block may take to leave our buffer
   * @param onLastBlock called right before the octets that make the message complete are sent
   * @returns false where the server answered before the end: then the end was not sent and will not be
   */
  async write(octets: Buffer, blockTimeoutMs: number, onLastBlock: () => void): Promise<boolean> {
    for (let offset = 0; offset < octets.length; offset += BLOCK) {
      if (this.unread.length > 0) return false
      if (this.broken !== undefined) throw this.broken
      if (offset + BLOCK >= octets.length) {
        onLastBlock()
        this.awaited += 1
      }
      this.socket.write(octets.subarray(offset, offset + BLOCK))
      await this.until(() => !this.socket.writableNeedDrain || this.unread.length > 0, blockTimeoutMs)
    }
    return true
  }

  /**
   * Asks for TLS. Whatever comes in clear beyond the one reply is dropped: somebody on the way may have put it there, and
   * it would be taken for answers to commands sent under TLS (RFC 3207 §6).
   */
  async askForTls(timeoutMs: number): Promise<ReplyLines> {
    this.isSwitchingToTls = true
    const reply = await this.command('STARTTLS', timeoutMs)
    this.isSwitchingToTls = reply.code === 220
    return reply
  }

  /** Goes on under TLS, with nothing remembered of what was said in clear. */
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
      this.broken = asBroken(thrown, 'tls')
      throw this.broken
    }
  }

  /** Ends the connection at once; whoever waits on it is told why. */
  break(reason: Broken): void {
    if (this.broken !== undefined) return
    this.broken = reason
    this.socket.destroy()
    this.wake?.()
  }

  close(): void {
    this.break(new Broken('closed', 'connection closed by this side'))
  }

  private readonly onOctets = (chunk: Buffer): void => {
    if (this.broken !== undefined) return
    try {
      for (const reply of this.parser.push(chunk)) this.take(reply)
    } catch (thrown) {
      this.break(asBroken(thrown, 'protocol'))
    }
    this.wake?.()
  }

  private take(reply: ReplyLines): void {
    if (this.awaited > 0) {
      this.awaited -= 1
    } else if (this.isSwitchingToTls) {
      return
    } else {
      this.spokeUnasked = true
      // A refusal may come at any moment (421 above all, RFC 5321 §3.8). A "yes" to nothing might be taken for the yes to
      // the next command: from such a server nothing can be believed.
      if (reply.code < 400) throw new Broken('protocol', `server said ${reply.code} without being asked`)
    }
    this.unread.push(reply)
    if (this.unread.length > MOST_UNREAD) throw new Broken('protocol', 'server sends replies without end')
  }

  private readonly onError = (error: Error): void => {
    this.broken ??= asBroken(error, 'closed')
    this.wake?.()
  }

  private readonly onEnd = (): void => {
    this.broken ??= new Broken('closed', 'connection closed by the server')
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
    this.socket.on('error', () => {}) // from here on TLS tells what happens underneath
  }

  /** Waits for what octets, drains and failures can bring about; there is never more than one who waits. */
  private async until(isReady: () => boolean, timeoutMs: number): Promise<void> {
    if (isReady()) return
    const leftMs = Math.max(0, Math.min(timeoutMs, this.deadline - this.clock.monotonic()))
    const timer = this.clock.after(leftMs, () => this.break(new Broken('timeout', 'no answer in time')))
    try {
      while (!isReady()) {
        if (this.broken !== undefined) throw this.broken
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

/** Words for the reasons that OpenSSL and Node give by code. */
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
  // The types say Error; Node sets the code as text.
  const code = String(socket.authorizationError)
  return {
    ...facts,
    verified: false,
    unverifiedReason: UNVERIFIED[code] ?? code.toLowerCase().replaceAll('_', ' '),
  }
}
