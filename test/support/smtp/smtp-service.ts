/**
 * An SMTP service on a free port with a receiver that keeps what it is given, and a client that plays a written dialogue.
 *
 * ```
 * C MAIL FROM:<a@x.example>    send this line; several in a row leave in one write
 * RAW "abc\n.\r\n"             send these octets (a JSON string of Latin-1), together with lines before and after it
 * S 250 2.1.0 ...              expect this line; `...` stands for anything
 * EHLO                         say EHLO and expect its reply, whatever it offers
 * MAIL                         MAIL and RCPT, both accepted
 * TLS                          start TLS
 * END                          expect the server to close
 * CUT                          cut the connection
 * ```
 * A dialogue begins with EHLO unless it begins with a greeting (`S 220 ...`) or `RAW`; where it ends, the server must not
 * have said more than was shown.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext } from 'node:tls'
import type { Test } from 'tap'
import { AppError } from '../../../src/core/errors.js'
import type { SmtpServiceOptions } from '../../../src/smtp/options.js'
import type { MailCommand, MailReceiver, MailTransaction, RcptCommand } from '../../../src/smtp/receiver.js'
import { openSmtpService, type SmtpService } from '../../../src/smtp/service.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemTcpServer } from '../../../src/world/net/listen-tcp.js'
import { certificate } from './scripted-server.js'

export interface ReceivedMessage {
  readonly identity: string | undefined
  readonly mail: MailCommand
  readonly recipients: readonly RcptCommand[]
  /** As Latin-1, so that every octet shows. */
  readonly text: string
}

/** Receives everything; a test overrides what it is about. */
export class KeepingReceiver implements MailReceiver<string> {
  readonly messages: ReceivedMessage[] = []
  /** How each transaction went that came to no message. */
  readonly abandoned: string[] = []
  written = 0

  async authenticate(_session: unknown, username: string, password: string): Promise<string> {
    if (password !== 'secret') throw new AppError('unauthorized', 'Wrong name or key')
    return username
  }

  beginMail(
    _session: unknown,
    identity: string | undefined,
    mail: MailCommand,
  ): MailTransaction | Promise<MailTransaction> {
    const recipients: RcptCommand[] = []
    const pieces: Buffer[] = []
    let isEnded = false
    return {
      addRecipient: recipient => this.addRecipient(recipient, recipients),
      openMessage: () => this.openMessage(),
      write: piece => {
        pieces.push(piece)
        this.written += piece.length
        return this.write(piece)
      },
      finish: async () => {
        if (isEnded) throw new Error('ended twice')
        isEnded = true
        await this.finish()
        this.messages.push({ identity, mail, recipients, text: Buffer.concat(pieces).toString('latin1') })
        return `Queued as ${this.messages.length}`
      },
      abandon: () => {
        if (isEnded) throw new Error('ended twice')
        isEnded = true
        this.abandoned.push(mail.address)
      },
    }
  }

  addRecipient(recipient: RcptCommand, recipients: RcptCommand[]): void | Promise<void> {
    recipients.push(recipient)
  }
  openMessage(): void | Promise<void> {}
  write(_piece: Buffer): void | Promise<void> {}
  async finish(): Promise<void> {}
}

export interface TestService {
  readonly service: SmtpService
  readonly port: number
  readonly receiver: KeepingReceiver
  readonly clock: FakeClock
  readonly log: FakeLog
  /** Plays a dialogue from the greeting on. */
  readonly dialogue: (script: string) => Promise<void>
}

export interface TestServiceOptions extends Partial<SmtpServiceOptions> {
  readonly receiver?: KeepingReceiver
  readonly hasTls?: boolean
  readonly isImplicitTls?: boolean
}

export async function smtpService(t: Test, options: TestServiceOptions = {}): Promise<TestService> {
  const { receiver = new KeepingReceiver(), hasTls = false, isImplicitTls = false, ...rest } = options
  const clock = new FakeClock()
  const log = new FakeLog()
  const context = createSecureContext(certificate)
  const service = openSmtpService(
    {
      hostname: 'mx.example',
      ...(hasTls || isImplicitTls ? { secureContext: () => context } : {}),
      ...rest,
    },
    receiver,
    { clock, log, tcpServer: systemTcpServer },
  )
  const { port } = await service.listen({ host: '127.0.0.1', port: 0 }, isImplicitTls)
  t.teardown(async () => {
    const closed = service.close(0)
    await clock.advance(1)
    await closed
  })
  return {
    service,
    port,
    receiver,
    clock,
    log,
    async dialogue(script) {
      const client = await SmtpClient.connect(port, isImplicitTls)
      try {
        await play(t, client, script)
      } finally {
        client.cut()
      }
    },
  }
}

async function play(t: Test, client: SmtpClient, script: string): Promise<void> {
  const lines = script
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  if (!/^(S 220|S 4|S 5|RAW|TLS|END)/.test(lines[0] ?? '')) lines.unshift('S 220 mx.example ...', 'EHLO')
  let unsent = ''
  const send = () => {
    if (unsent !== '') client.send(unsent)
    unsent = ''
  }
  const expect = async (pattern: string) => {
    send()
    const said = await client.readLine()
    if (said === undefined) throw new Error(`the server closed where it should have said: ${pattern}`)
    if (!t.ok(matches(said, pattern), `the server says ${pattern}`, { said }))
      throw new Error(`the server said "${said}" where it should have said: ${pattern}`)
  }
  for (const line of lines) {
    const [, verb = '', rest = ''] = /^(\S+) ?(.*)$/.exec(line) ?? []
    switch (verb) {
      case 'C':
        unsent += `${Buffer.from(rest).toString('latin1')}\r\n`
        break
      case 'RAW':
        unsent += JSON.parse(rest) as string
        break
      case 'S':
        await expect(rest)
        break
      case 'EHLO':
        send()
        await client.ehlo()
        break
      case 'MAIL':
        unsent += 'MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\n'
        await expect('250 2.1.0 ...')
        await expect('250 2.1.5 ...')
        break
      case 'TLS':
        send()
        await client.startTls()
        break
      case 'END':
        send()
        t.equal(await client.readLine(), undefined, 'the server closes')
        break
      case 'CUT':
        send()
        client.cut()
        return
      default:
        throw new Error(`no such line in a dialogue: ${line}`)
    }
  }
  send()
  if (client.unread !== '') throw new Error(`the server said more: ${client.unread}`)
}

function matches(said: string, pattern: string): boolean {
  const parts = pattern.split('...').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(said)
}

/** The client's end of a connection, for dialogues and for tests that need several at a time. */
export class SmtpClient {
  socket: Socket
  private received = ''
  private isOver = false
  private wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    this.attach()
  }

  static async connect(port: number, isTls = false, localAddress = '127.0.0.1'): Promise<SmtpClient> {
    const client = new SmtpClient(connect({ port, host: '127.0.0.1', localAddress }))
    if (isTls) await client.startTls()
    return client
  }

  get unread(): string {
    return this.received
  }

  send(latin1: string): void {
    this.socket.write(latin1, 'latin1')
  }

  cut(): void {
    this.socket.destroy()
  }

  /** @returns undefined when the server has closed */
  async readLine(): Promise<string | undefined> {
    for (;;) {
      const at = this.received.indexOf('\r\n')
      if (at >= 0) {
        const line = this.received.slice(0, at)
        this.received = this.received.slice(at + 2)
        return line
      }
      if (this.isOver) return undefined
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
    }
  }

  /** All lines of one reply. */
  async readReply(): Promise<string[]> {
    const lines: string[] = []
    for (;;) {
      const line = await this.readLine()
      if (line === undefined) return lines
      lines.push(line)
      if (line[3] !== '-') return lines
    }
  }

  async ehlo(): Promise<string[]> {
    this.send('EHLO client.example\r\n')
    const reply = await this.readReply()
    if (!reply.at(-1)?.startsWith('250 ')) throw new Error(`EHLO was answered: ${reply.join(' / ')}`)
    return reply
  }

  async startTls(): Promise<void> {
    this.socket.removeAllListeners('data').removeAllListeners('close').removeAllListeners('end')
    const secured = connectTls({ socket: this.socket, rejectUnauthorized: false })
    this.socket = secured
    this.attach()
    await new Promise<void>((resolve, reject) => {
      secured.once('secureConnect', resolve).once('error', reject)
    })
  }

  private attach(): void {
    this.socket.on('error', () => {})
    this.socket.on('data', (octets: Buffer) => {
      this.received += octets.toString('latin1')
      this.wake()
    })
    const over = () => {
      this.isOver = true
      this.wake()
    }
    this.socket.on('end', over).on('close', over)
  }
}
