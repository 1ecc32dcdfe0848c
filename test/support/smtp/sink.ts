/**
 * The receiving side: an SMTP server that keeps what it is given, and can be told to misbehave at the two moments that
 * matter, in the middle of DATA and between the final dot and the reply.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'
import { until } from '../until.js'

export interface SinkMail {
  /** As it came, dots undone. */
  readonly raw: Buffer
  readonly sender: string
  readonly recipients: readonly string[]
  readonly isSecure: boolean
}

export interface Sink {
  readonly port: number
  /** `defer`: recipients are told that their mailbox is full for now (452 4.2.2). `unknown@` is never taken (550 5.1.1). */
  atRcpt: 'accept' | 'defer' | 'refuse'
  /** `stall`: from now on the octets of messages are left unread. */
  inData: 'read' | 'stall'
  /** What becomes of a message whose final dot has come: a 250, no answer until `release`, or a cut line. */
  atDot: 'accept' | 'hold' | 'drop'
  /** How many messages were begun (DATA answered by 354). */
  readonly begun: number
  /** Messages whose final dot has come, whatever was answered. */
  readonly arrived: readonly SinkMail[]
  /** Messages that were answered with 250: from then on they are ours to deliver. */
  readonly accepted: readonly SinkMail[]
  /** Answers what is held with 250 and accepts from now on. */
  release(): void
  /** Resolve once so many messages have been begun, have arrived, have been accepted. */
  begunOnce(count: number): Promise<void>
  arrivedOnce(count: number): Promise<void>
  acceptedOnce(count: number): Promise<readonly SinkMail[]>
}

export interface SinkOptions {
  /** 0: any. */
  readonly port?: number
  /** Where it listens; loopback by default. */
  readonly address?: string
  readonly hasTls?: boolean
  /** Replies to recipients that are never taken, by what stands before the @. */
  readonly refusals?: Readonly<Record<string, readonly [code: number, text: string]>>
}

export async function openSink(
  t: Test,
  { port = 0, address = '127.0.0.1', hasTls = true, refusals = {} }: SinkOptions = {},
): Promise<Sink> {
  const refused = new Map(Object.entries({ unknown: [550, '5.1.1 No such user here'] as const, ...refusals }))
  const arrived: SinkMail[] = []
  const accepted: SinkMail[] = []
  const held: (() => void)[] = []
  let begun = 0
  const server = new SMTPServer({
    name: 'sink.test',
    authOptional: true,
    hideSTARTTLS: !hasTls,
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 1,
    onRcptTo({ address }, _session, done) {
      const [code, text] = refused.get(address.replace(/@.*/, '')) ?? []
      if (code !== undefined) {
        done(Object.assign(new Error(text), { responseCode: code }))
        return
      }
      if (sink.atRcpt === 'accept') done(null)
      else if (sink.atRcpt === 'defer') done(Object.assign(new Error('Mailbox full'), { responseCode: 452 }))
      else done(Object.assign(new Error('5.1.1 No such user here'), { responseCode: 550 }))
    },
    onData(stream, session, done) {
      begun += 1
      if (sink.inData === 'stall') return
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const mail: SinkMail = {
          raw: Buffer.concat(chunks),
          sender: session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address,
          recipients: session.envelope.rcptTo.map(({ address }) => address),
          isSecure: session.secure,
        }
        arrived.push(mail)
        const accept = () => {
          accepted.push(mail)
          done()
        }
        if (sink.atDot === 'accept') accept()
        else if (sink.atDot === 'hold') held.push(accept)
        else for (const connection of server.connections) if (connection.id === session.id) connection.close()
      })
    },
  })
  // A killed client resets its connections; a test waiting for the mail notices.
  server.on('error', () => {})
  const listener = server.listen(port, address)
  await once(listener, 'listening')
  t.teardown(() => {
    for (const accept of held) accept()
    return new Promise<void>(resolve => server.close(resolve))
  })
  const sink: Sink = {
    port: (listener.address() as AddressInfo).port,
    atRcpt: 'accept',
    inData: 'read',
    atDot: 'accept',
    get begun() {
      return begun
    },
    arrived,
    accepted,
    release() {
      sink.inData = 'read'
      sink.atDot = 'accept'
      for (const accept of held.splice(0)) accept()
    },
    begunOnce: async count => {
      await until(`${count} mails in DATA`, () => begun >= count)
    },
    arrivedOnce: async count => {
      await until(`${count} final dots`, () => arrived.length >= count)
    },
    acceptedOnce: count =>
      until(`${count} accepted mails`, () => (accepted.length >= count ? accepted : undefined)),
  }
  return sink
}

/** Of the machine's own network 127.0.0.0/8, and no test listens there. */
const CLAIMS_ADDRESS = '127.99.0.1'

/**
 * A port on which nothing listens, and which no other test is given before this process ends. It lies below the range from which Linux takes the
 * local ports of outgoing connections (32768 and up): a port of that range can be taken again before the test uses it.
 */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if ((await claim(port)) && (await isFree(port))) return port
  }
}

/** The claim is a UDP socket on the same port of another address, which the system closes with this process. */
function claim(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref()
  return new Promise(resolve => {
    socket.once('error', () => resolve(false))
    socket.bind(port, CLAIMS_ADDRESS, () => resolve(true))
  })
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isListening = await new Promise<boolean>(resolve => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!isListening) return false
  server.close()
  await once(server, 'close')
  return true
}
