/**
 * A receiving server that behaves as providers do: it refuses, delays, breaks off and takes mail by seeded chance, and
 * keeps every message that it took responsibility for.
 *
 * What a recipient meets depends on the seed, the recipient and how often it was offered, never on the order in which
 * connections come: the same seed gives the same verdicts. Speaks SMTP by itself over real TCP (RFC 5321; PIPELINING,
 * STARTTLS), so that it can break where no well-behaved server would.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import type { FakeClock } from '../../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { certificate } from './scripted-server.js'

/** What a recipient is at this provider, for good. */
export type Standing = 'takes mail' | 'unknown' | 'blocklists us' | 'always full'

/** What may come between, once or several times. */
export type Trouble =
  | '421 at MAIL'
  | '421 at RCPT'
  | '421 at the dot'
  | 'greylisted'
  | 'mailbox full'
  | 'server busy'
  | 'asks for patience'
  | 'drops before the dot'
  | 'drops after the dot'
  | 'stalls in DATA'

export interface SinkHabits {
  readonly seed: number
  /** Percent of recipients; the others take mail. */
  readonly standings?: Partial<Record<Standing, number>>
  /** Percent of offers to a recipient that takes mail. Greylisting happens at the first offer only. */
  readonly troubles?: Partial<Record<Trouble, number>>
  /** Each so many-th connection is greeted after 20 seconds of the clock. */
  readonly slowGreetingEvery?: number
  readonly startTls?: 'works' | 'broken'
}

export interface TakenMessage {
  readonly recipient: string
  readonly messageId: string
  /** Whether its final dot was answered. */
  readonly isAnswered: boolean
}

export interface SmartSink {
  readonly port: number
  /** Every message whose final dot came and that was not refused, in order. */
  readonly taken: readonly TakenMessage[]
  /** When it asked for patience, ms of the clock. */
  readonly askedAt: readonly number[]
  /** Troubles that were played, with how often. */
  readonly played: ReadonlyMap<Trouble, number>
  /** Grows with every line and block received; unchanged while idle. */
  readonly activity: number
  standingOf(recipient: string): Standing
  /** Cuts every connection, and so ends every wait for a reply. */
  hangUp(): void
}

/** How long it asks to be left alone. */
export const PATIENCE_SECONDS = 120
const SLOW_GREETING_MS = 20_000

const REFUSALS = {
  '421 at MAIL': '421 4.3.2 Service shutting down, closing transmission channel',
  '421 at RCPT': '421 4.3.2 Too busy, closing transmission channel',
  '421 at the dot': '421 4.3.0 Temporary system failure, closing transmission channel',
  greylisted: '450 4.2.0 Recipient address rejected: Greylisted',
  'mailbox full': '452 4.2.2 Mailbox full',
  'server busy': '451 4.3.2 Server busy, please try again later',
  'asks for patience': `421 4.7.0 Rate limit exceeded, try again in ${PATIENCE_SECONDS} seconds`,
} as const

const UNKNOWN =
  '550-5.1.1 The email account that you tried to reach does not exist.\r\n550 5.1.1 User unknown'
const BLOCKLISTED = '554 5.7.1 Service unavailable; Client host [192.0.2.7] blocked using zen.spamhaus.org'

export async function openSmartSink(t: Test, clock: FakeClock, habits: SinkHabits): Promise<SmartSink> {
  const taken: TakenMessage[] = []
  const askedAt: number[] = []
  const played = new Map<Trouble, number>()
  const offers = new Map<string, number>()
  const sockets = new Set<Socket>()
  let connections = 0
  let activity = 0

  const standingOf = (recipient: string) =>
    draw(habits.standings ?? {}, chance(habits.seed, recipient, 0)) ?? 'takes mail'

  /** The trouble of this offer, if any; each call is one offer. */
  const offered = (recipient: string): Trouble | undefined => {
    const offer = (offers.get(recipient) ?? 0) + 1
    offers.set(recipient, offer)
    if (standingOf(recipient) !== 'takes mail') return undefined
    const trouble = draw(habits.troubles ?? {}, chance(habits.seed, recipient, offer))
    if (trouble === undefined || (trouble === 'greylisted' && offer > 1)) return undefined
    played.set(trouble, (played.get(trouble) ?? 0) + 1)
    if (trouble === 'asks for patience') askedAt.push(clock.now())
    return trouble
  }

  const server = createServer(socket => {
    connections += 1
    sockets.add(socket)
    // The clock of the test stands still while replies are on their way; Nagle's algorithm would hold them back.
    socket.setNoDelay(true)
    const isSlow = connections % (habits.slowGreetingEvery ?? Infinity) === 0
    const session = new Session(socket, habits.startTls, {
      standingOf,
      offered,
      take: message => taken.push(message),
      onActivity: () => (activity += 1),
    })
    if (isSlow) clock.after(SLOW_GREETING_MS, () => session.greet())
    else session.greet()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const hangUp = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    hangUp()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    taken,
    askedAt,
    played,
    get activity() {
      return activity
    },
    standingOf,
    hangUp,
  }
}

interface Decisions {
  standingOf(recipient: string): Standing
  offered(recipient: string): Trouble | undefined
  take(message: TakenMessage): void
  onActivity(): void
}

/** One connection. */
class Session {
  private socket: Socket
  private readonly startTls: SinkHabits['startTls']
  private readonly decisions: Decisions
  private unread = ''
  private isInData = false
  private isDeaf = false
  private isSecure = false
  private recipient = ''
  private trouble: Trouble | undefined

  constructor(socket: Socket, startTls: SinkHabits['startTls'], decisions: Decisions) {
    this.socket = socket
    this.startTls = startTls
    this.decisions = decisions
    this.listen(socket)
  }

  greet(): void {
    this.say('220-mx.sink.example ESMTP\r\n220 no unsolicited mail')
  }

  private listen(socket: Socket): void {
    this.socket = socket
    socket.on('error', () => {}) // the client may cut the line
    socket.on('data', (octets: Buffer) => {
      this.decisions.onActivity()
      if (this.isDeaf) return
      this.unread += octets.toString('latin1')
      this.work()
    })
  }

  private say(reply: string): void {
    if (!this.socket.destroyed) this.socket.write(`${reply}\r\n`)
  }

  /** The reply, and then the end of the connection (RFC 5321 §3.8). */
  private leave(reply: string): void {
    this.isDeaf = true
    this.socket.end(`${reply}\r\n`)
  }

  private drop(): void {
    this.isDeaf = true
    this.socket.destroy()
  }

  private work(): void {
    while (!this.isDeaf) {
      const end = this.unread.indexOf(this.isInData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const text = this.unread.slice(0, end)
      this.unread = this.unread.slice(end + (this.isInData ? 5 : 2))
      if (this.isInData) this.message(text)
      else this.command(text)
    }
  }

  private command(line: string): void {
    const verb = line.slice(0, 4).toUpperCase()
    switch (verb) {
      case 'EHLO':
        this.say(
          `250-mx.sink.example\r\n${this.startTls && !this.isSecure ? '250-STARTTLS\r\n' : ''}250-PIPELINING\r\n250 SIZE 50000000`,
        )
        break
      case 'STAR':
        this.secure()
        break
      case 'MAIL':
        this.mail(recipientOf(/<(.*?)>/.exec(line)?.[1] ?? ''))
        break
      case 'RCPT':
        this.rcpt(/<(.*?)>/.exec(line)?.[1] ?? '')
        break
      case 'DATA':
        this.data()
        break
      case 'QUIT':
        this.leave('221 2.0.0 Bye')
        break
      default:
        this.say('250 2.0.0 Ok')
    }
  }

  private secure(): void {
    this.say('220 2.0.0 Ready to start TLS')
    if (this.startTls === 'broken') {
      this.say('TLS is not available due to a misconfiguration')
      this.drop()
      return
    }
    this.isSecure = true
    this.socket.removeAllListeners('data')
    this.listen(new TLSSocket(this.socket, { isServer: true, ...certificate }))
  }

  private mail(recipient: string): void {
    this.recipient = ''
    this.trouble = this.decisions.offered(recipient)
    if (this.trouble === '421 at MAIL') this.leave(REFUSALS[this.trouble])
    else this.say('250 2.1.0 Ok')
  }

  private rcpt(recipient: string): void {
    const { trouble } = this
    const standing = this.decisions.standingOf(recipient)
    if (standing === 'unknown') this.say(UNKNOWN)
    else if (standing === 'blocklists us') this.say(BLOCKLISTED)
    else if (standing === 'always full') this.say(REFUSALS['mailbox full'])
    else if (trouble === '421 at RCPT' || trouble === 'asks for patience') this.leave(REFUSALS[trouble])
    else if (trouble === 'greylisted' || trouble === 'mailbox full' || trouble === 'server busy')
      this.say(REFUSALS[trouble])
    else {
      this.recipient = recipient
      this.say('250 2.1.5 Ok')
    }
  }

  private data(): void {
    if (this.recipient === '') {
      this.say('503 5.5.1 No valid recipients')
      return
    }
    this.isInData = true
    this.say('354 End data with <CR><LF>.<CR><LF>')
    // The rest of the message stays unread; the client has to give up.
    if (this.trouble === 'stalls in DATA') this.isDeaf = true
    if (this.trouble === 'drops before the dot') this.drop()
  }

  private message(text: string): void {
    this.isInData = false
    if (this.trouble === '421 at the dot') {
      this.leave(REFUSALS[this.trouble])
      return
    }
    const messageId = /^message-id:\s*(<[^>]*>)/im.exec(text)?.[1] ?? ''
    const isAnswered = this.trouble !== 'drops after the dot'
    this.decisions.take({ recipient: this.recipient, messageId, isAnswered })
    if (isAnswered) this.say('250-2.0.0 Ok: queued\r\n250 2.0.0 thank you')
    else this.drop()
  }
}

/** The return path that tests give a message, so that a verdict may come at MAIL already (RFC 5321 §3.6.3). */
export function returnPathOf(recipient: string): string {
  return `${recipient.replace('@', '=')}@bounce.sender.example`
}

function recipientOf(returnPath: string): string {
  return returnPath.slice(0, returnPath.indexOf('@')).replace('=', '@')
}

/** A fraction in [0, 1) that depends on nothing but these three. */
function chance(seed: number, recipient: string, offer: number): number {
  let mixed = seed
  for (const char of `${recipient} ${offer}`) mixed = Math.imul(mixed ^ char.charCodeAt(0), 0x01000193)
  return new SeededRandom(mixed).fraction()
}

/** What the fraction falls on in a table of percentages; undefined for what they leave. */
function draw<T extends string>(percentages: Partial<Record<T, number>>, fraction: number): T | undefined {
  let rest = fraction * 100
  for (const [name, percent] of Object.entries(percentages) as [T, number][]) {
    if (rest < percent) return name
    rest -= percent
  }
  return undefined
}
