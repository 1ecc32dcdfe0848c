/**
 * The inbound side over a real database and a real reading thread, without SMTP: mail is handed to the receiver as the
 * engine would, and consumers of the event log follow.
 */
import type { Test } from 'tap'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { bounceConsumer } from '../../src/deliverability/bounces/bounce-consumer.js'
import { Dispatcher } from '../../src/events/dispatcher.js'
import { findCursor, newestSeq, readEventsAfter, type StoredEvent } from '../../src/events/store.js'
import { findInboundMail, findWaitingMails, type InboundMail } from '../../src/inbound/inbound-mail-store.js'
import { openInbound, type InboundParts } from '../../src/inbound/open-inbound.js'
import { makeReturnPath, type ReturnPathKey } from '../../src/mail/return-path.js'
import { makeUnsubscribeToken } from '../../src/mail/unsubscribe-token.js'
import { findAnyMessage, type Message } from '../../src/messages/message-store.js'
import type { SessionFacts } from '../../src/smtp/receiver.js'
import { fakeDns } from '../../src/world/dns/fake-dns.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { spawnThread } from '../../src/world/threads.js'
import { sqliteDatabase } from './db/database.js'
import { enqueue } from './mailroom.js'
import { until } from './until.js'

export const HOSTNAME = 'mail.example.net'
export const BOUNCE_DOMAIN = 'bounce.mail.example.net'
export const KEY: ReturnPathKey = { version: 1, secret: Buffer.alloc(32, 1) }

const SESSION: SessionFacts = {
  id: 's1',
  peerAddress: '192.0.2.1',
  peerPort: 40_000,
  heloName: 'mx.example.com',
  isEsmtp: true,
}

export type InboundTest = Awaited<ReturnType<typeof openInboundTest>>

export async function openInboundTest(t: Test, options: Partial<InboundParts> = {}) {
  const database = options.database ?? (await sqliteDatabase(t))
  const clock = new FakeClock()
  const log = new FakeLog()
  const random = new SeededRandom()
  const newId = () => uuidv7(clock.now(), random.bytes(10))
  const enqueued: string[] = []
  const inbound = await openInbound({
    database,
    clock,
    log,
    random,
    newId,
    spawn: spawnThread,
    resolver: fakeDns({}),
    keys: [KEY],
    hostname: HOSTNAME,
    returnPathDomain: BOUNCE_DOMAIN,
    messageSize: 10_000_000,
    unsignedMessageSize: 10_000_000,
    limits: { mailsPerMinute: 0, octetsPerHour: 0, octetsPerHourInAll: 0 },
    isProcessing: () => true,
    keepSize: 1_000_000_000,
    forwardTo: undefined,
    expireMs: 86_400_000,
    onEnqueued: lane => void enqueued.push(lane),
    onAppended: () => dispatcher.wake(),
    ...options,
  })
  const dispatcher = new Dispatcher({ database, clock, log }, [bounceConsumer(followSuppressions())])
  await dispatcher.start()
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await inbound.processor.stop()
    await dispatcher.stop()
  }
  t.teardown(stop)

  /** One SMTP transaction up to the final dot. @returns the text of the 250 */
  const receive = async (to: string | readonly string[], mail: string | Buffer, from = '') => {
    const transaction = await inbound.receiver.beginMail(SESSION, undefined, {
      address: from,
      smtpUtf8: false,
    })
    try {
      for (const address of typeof to === 'string' ? [to] : to) await transaction.addRecipient({ address })
      await transaction.openMessage()
      const octets = Buffer.from(mail)
      for (let at = 0; at < octets.length; at += 65_536)
        await transaction.write(octets.subarray(at, at + 65_536))
    } catch (error) {
      transaction.abandon()
      throw error
    }
    return transaction.finish()
  }
  /** Until all that was received is processed and all consumers have heard. */
  const settled = async () => {
    inbound.processor.wake(true)
    inbound.processor.wake(false)
    await until(
      'all mail is processed',
      async () => (await findWaitingMails(database.reader, 1)).length === 0,
    )
    const newest = await newestSeq(database.reader)
    const kinds = ['email.bounced', 'email.complained', 'email.unsubscribed'] as const
    await until('consumers have heard', async () => {
      const cursor = (await findCursor(database.reader, 'bounces')) ?? 0
      return cursor >= newest || (await readEventsAfter(database.reader, cursor, kinds, 1)).length === 0
    })
  }
  const mailOf = async (reply: string): Promise<InboundMail> => {
    const mail = await findInboundMail(database.reader, Number(/\d+$/.exec(reply)?.[0]))
    if (!mail) throw new Error(`no mail ${reply}`)
    return mail
  }
  return {
    ...inbound,
    database,
    clock,
    log,
    newId,
    enqueued,
    dispatcher,
    receive,
    settled,
    mailOf,
    stop,
    /** Receives, processes, and tells what it was read as. */
    take: async (to: string | readonly string[], mail: string | Buffer, from = ''): Promise<InboundMail> => {
      const reply = await receive(to, mail, from)
      await settled()
      return mailOf(reply)
    },
    events: async (): Promise<StoredEvent[]> =>
      readEventsAfter(database.reader, 0, ['email.bounced', 'email.complained', 'email.unsubscribed'], 1_000),
    message: async (id: string): Promise<Message> => {
      const message = await findAnyMessage(database.reader, id)
      if (!message) throw new Error(`no message ${id}`)
      return message
    },
  }
}

/** A message of workspace w1 that was sent, and the addresses that are signed for it. */
export async function sentMessage(database: Database, number: number, to: string, key = KEY) {
  const id = uuidv7(Date.UTC(2026, 0, 5, 9), Buffer.alloc(10, number))
  await enqueue(database, [{ id, to }])
  return signedFor(id, to, key)
}

export function signedFor(id: string, to: string, key = KEY, workspaceId = 'w1') {
  const returnPath = makeReturnPath({ messageId: id, recipient: to, key, domain: BOUNCE_DOMAIN })
  const token = makeUnsubscribeToken({ workspaceId, messageId: id, recipient: to }, key)
  return {
    id,
    to,
    returnPath,
    /** What X-Postroad-ID has. */
    token: returnPath.split('@')[0] ?? '',
    unsubscribe: `unsubscribe+${token}@${BOUNCE_DOMAIN}`,
  }
}

export type SentMessage = ReturnType<typeof signedFor>

/** Lines of a test as they come by SMTP. */
export function crlf(text: string): string {
  return text.replace(/^\n/, '').replaceAll('\n', '\r\n')
}

export interface DsnFacts {
  readonly recipient: string
  readonly action?: string
  readonly status?: string
  readonly diagnostic?: string
  readonly envelopeId?: string
  /** Header of the returned original. */
  readonly original?: string
}

/** A delivery status notification (RFC 3464) as Postfix writes them. */
export function dsn({
  recipient,
  action = 'failed',
  status = '5.1.1',
  diagnostic = `550 5.1.1 <${recipient}>: Recipient address rejected: User unknown`,
  envelopeId,
  original = 'Subject: Your order',
}: DsnFacts): string {
  return crlf(`
From: MAILER-DAEMON@mx.example.com
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1
Content-Type: text/plain

This is the mail system at host mx.example.com.

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com${envelopeId === undefined ? '' : `\nOriginal-Envelope-Id: ${envelopeId}`}

Final-Recipient: rfc822; ${recipient}
Action: ${action}
Status: ${status}
Remote-MTA: dns; mx.example.com
Diagnostic-Code: smtp; ${diagnostic}

--b1
Content-Type: text/rfc822-headers

${original}

--b1--
`)
}

/** A feedback report (RFC 5965). */
export function arf({ type = 'abuse', recipient = '', original = 'Subject: Your order' } = {}): string {
  return crlf(`
From: feedback@isp.example
Subject: Complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b1"

--b1
Content-Type: text/plain

This is an email abuse report.

--b1
Content-Type: message/feedback-report

Feedback-Type: ${type}
User-Agent: SomeGenerator/1.0
Version: 1${recipient === '' ? '' : `\nOriginal-Rcpt-To: <${recipient}>`}

--b1
Content-Type: message/rfc822

${original}

Hello.

--b1--
`)
}
