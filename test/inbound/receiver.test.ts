/** Which mail is taken in at the port for returned mail, and that what is taken is on disk. */
import t, { type Test } from 'tap'
import { readInboundOctets } from '../../src/inbound/inbound-mail-store.js'
import { PART_OCTETS } from '../../src/mail/message-spool.js'
import { IntakeLimiter, type IntakeLimits } from '../../src/inbound/intake/intake-limiter.js'
import { MailQuota } from '../../src/inbound/intake/mail-quota.js'
import { openInboundReceiver } from '../../src/inbound/intake/receiver.js'
import { MessageTokens } from '../../src/inbound/effects/match-message.js'
import { newCounters } from '../../src/inbound/results.js'
import type { Database } from '../../src/db/database.js'
import type { MailTransaction, SessionFacts } from '../../src/smtp/receiver.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { sqliteDatabase } from '../support/db/database.js'
import { BOUNCE_DOMAIN, HOSTNAME, KEY, sentMessage, signedFor } from '../support/inbound.js'
import { failing } from '../support/queue.js'
import { until } from '../support/until.js'

const SESSION: SessionFacts = {
  id: 's1',
  peerAddress: '192.0.2.1',
  peerPort: 40_000,
  heloName: 'mx.example.com',
  isEsmtp: true,
}

interface Options {
  readonly database?: Database
  readonly messageSize?: number
  readonly unsignedMessageSize?: number
  readonly keepSize?: number
  readonly limits?: Partial<IntakeLimits>
}

async function openReceiver(t: Test, options: Options = {}) {
  const { database, messageSize = 10_000_000, unsignedMessageSize = messageSize } = options
  const clock = new FakeClock()
  const base = database ?? (await sqliteDatabase(t))
  const counters = newCounters()
  const kept = new MailQuota(options.keepSize ?? 1_000_000_000, 0)
  let ids = 0
  let stored = 0
  const receiver = openInboundReceiver({
    database: base,
    clock,
    log: new FakeLog(),
    newId: () => `body-${++ids}`,
    names: { hostname: HOSTNAME, returnPathDomain: BOUNCE_DOMAIN },
    tokens: new MessageTokens(base.reader, [{ version: 2, secret: Buffer.alloc(32, 2) }, KEY]),
    counters,
    messageSize,
    unsignedMessageSize,
    limiter: new IntakeLimiter(
      { mailsPerMinute: 0, octetsPerHour: 0, octetsPerHourInAll: 0, ...options.limits },
      clock,
    ),
    quota: kept,
    onStored: () => (stored += 1),
  })
  return {
    database: base,
    counters,
    storedCount: () => stored,
    clock,
    kept,
    begin: async (
      from = '',
      more: { peerAddress?: string; size?: number } = {},
    ): Promise<MailTransaction> => {
      const { peerAddress = SESSION.peerAddress, ...rest } = more
      return receiver.beginMail({ ...SESSION, peerAddress }, undefined, {
        address: from,
        smtpUtf8: false,
        ...rest,
      })
    },
    rows: () => base.reader.selectFrom('inbound_mails').selectAll().execute(),
    parts: () => base.reader.selectFrom('inbound_parts').select(['body_id', 'part']).execute(),
  }
}

const UNKNOWN = { code: 550, enhanced: '5.1.1' }

t.test('addresses of the appliance itself are taken, whatever their case', async t => {
  const { begin, database } = await openReceiver(t)
  const message = await sentMessage(database, 1, 'ann@x.example')
  for (const address of [
    message.returnPath,
    message.returnPath.toUpperCase(),
    message.unsubscribe,
    message.unsubscribe.replace(BOUNCE_DOMAIN, HOSTNAME),
    `fbl@${BOUNCE_DOMAIN}`,
    `FBL@${HOSTNAME.toUpperCase()}`,
    `dmarc@${BOUNCE_DOMAIN}`,
    `tlsrpt@${HOSTNAME}`,
    `postmaster@${HOSTNAME}`,
    `Abuse@${BOUNCE_DOMAIN}`,
    'postmaster',
    'Postmaster',
  ]) {
    const transaction = await begin('someone@elsewhere.example')
    await t.resolves(Promise.resolve(transaction.addRecipient({ address })), address)
    transaction.abandon()
  }
})

t.test(
  'mail for other recipients is refused: the appliance is no relay and has no other mailboxes',
  async t => {
    const { begin, database } = await openReceiver(t)
    const message = await sentMessage(database, 1, 'ann@x.example')
    const transaction = await begin()
    const refused = async (address: string, reply: typeof UNKNOWN) =>
      t.rejects(async () => transaction.addRecipient({ address }), reply, address)
    await refused('ann@gmail.example', { code: 550, enhanced: '5.7.1' })
    await refused(`postmaster@${HOSTNAME}.evil.example`, { code: 550, enhanced: '5.7.1' })
    await refused(`ann%gmail.example@${HOSTNAME}`, UNKNOWN)
    await refused(`"ann@gmail.example"@${HOSTNAME}`, UNKNOWN)
    await refused(`ann@${HOSTNAME}`, UNKNOWN)
    await refused('ann', UNKNOWN)
    await refused(`unsubscribe@${BOUNCE_DOMAIN}`, UNKNOWN)
    await refused(`unsubscribe+nonsense@${BOUNCE_DOMAIN}`, UNKNOWN)
    // A return path is at its own domain and nowhere else.
    await refused(message.returnPath.replace(BOUNCE_DOMAIN, HOSTNAME), UNKNOWN)
  },
)

t.test('a token that was not made here is refused and counted', async t => {
  const { begin, counters, database, rows } = await openReceiver(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  const stolenKey = { version: 1, secret: Buffer.alloc(32, 9) }
  const neverSent = signedFor('01900000-0000-7000-8000-000000000000', 'ann@x.example')
  const mixed = `${ann.token.slice(0, -16)}${bob.token.slice(-16)}@${BOUNCE_DOMAIN}`
  const transaction = await begin()
  for (const address of [
    signedFor(ann.id, 'ann@x.example', stolenKey).returnPath,
    signedFor(ann.id, 'bob@x.example').returnPath,
    signedFor(ann.id, 'ann@x.example', { version: 7, secret: KEY.secret }).returnPath,
    neverSent.returnPath,
    mixed,
    signedFor(ann.id, 'ann@x.example', stolenKey).unsubscribe,
    signedFor(ann.id, 'ann@x.example', KEY, 'w2').unsubscribe,
    // What was signed as a return path is worth nothing for unsubscribing.
    `unsubscribe+${ann.token.replace(/^r1/, 'u1')}@${BOUNCE_DOMAIN}`,
  ])
    await t.rejects(async () => transaction.addRecipient({ address }), UNKNOWN, address)
  t.equal(counters.forged, 8)
  t.same(await rows(), [])
})

t.test('mail that was sent before the key was changed still comes back', async t => {
  const { begin, database } = await openReceiver(t)
  const old = await sentMessage(database, 1, 'ann@x.example', KEY)
  const recent = await sentMessage(database, 2, 'bob@x.example', { version: 2, secret: Buffer.alloc(32, 2) })
  const transaction = await begin()
  for (const address of [old, recent].flatMap(({ returnPath, unsubscribe }) => [returnPath, unsubscribe]))
    await t.resolves(async () => transaction.addRecipient({ address }), address)
})

t.test('what is answered with 250 is stored whole, with envelope and origin', async t => {
  const { begin, database, rows, storedCount, counters } = await openReceiver(t)
  const message = await sentMessage(database, 1, 'ann@x.example')
  const transaction = await begin('mailer@x.example')
  await transaction.addRecipient({ address: message.returnPath })
  await transaction.addRecipient({ address: `fbl@${BOUNCE_DOMAIN}` })
  await transaction.openMessage()
  const piece = Buffer.from('Subject: x\r\n\r\nHello\r\n')
  await transaction.write(piece)
  // The engine may use its buffer again.
  piece.fill(0)
  await transaction.write(Buffer.from('again\r\n'))
  t.match(await transaction.finish(), /^stored as \d+$/)
  const [row] = await rows()
  t.match(row, {
    envelope_sender: 'mailer@x.example',
    peer_address: '192.0.2.1',
    helo_name: 'mx.example.com',
    session: 's1',
    size: 28,
    processed_at: null,
  })
  t.match(JSON.parse(row!.recipients), [
    { address: message.returnPath, purpose: 'return_path', messageId: message.id },
    { purpose: 'feedback' },
  ])
  const octets = await readInboundOctets(database.reader, { bodyId: row!.body_id, size: 28 })
  t.equal(octets.toString(), 'Subject: x\r\n\r\nHello\r\nagain\r\n')
  t.equal(storedCount(), 1)
  t.equal(counters.received, 1)
})

t.test('a long mail is written while it arrives, and read again whole or in part', async t => {
  const { begin, database, rows, parts } = await openReceiver(t)
  const mail = Buffer.alloc(2 * PART_OCTETS + 1_000)
  for (let at = 0; at < mail.length; at += 1) mail[at] = at % 251
  const transaction = await begin()
  await transaction.addRecipient({ address: 'postmaster' })
  for (let at = 0; at < mail.length; at += 100_000) await transaction.write(mail.subarray(at, at + 100_000))
  t.equal((await parts()).length, 2, 'two parts are on disk before the end')
  t.same(await rows(), [])
  await transaction.finish()
  const [row] = await rows()
  const stored = { bodyId: row!.body_id, size: row!.size }
  t.ok(mail.equals(await readInboundOctets(database.reader, stored)))
  const beginning = await readInboundOctets(database.reader, stored, PART_OCTETS + 10)
  t.ok(mail.subarray(0, PART_OCTETS + 10).equals(beginning))
})

t.test('mail that was given up leaves nothing', async t => {
  const { begin, parts, rows } = await openReceiver(t)
  const transaction = await begin()
  await transaction.addRecipient({ address: 'postmaster' })
  await transaction.write(Buffer.alloc(PART_OCTETS + 1))
  t.equal((await parts()).length, 1)
  transaction.abandon()
  await until('the part is gone', async () => (await parts()).length === 0)
  t.same(await rows(), [])
})

t.test('a message beyond the limit is refused', async t => {
  const { begin, rows } = await openReceiver(t, { messageSize: 100_000 })
  const transaction = await begin()
  await transaction.addRecipient({ address: 'postmaster' })
  await transaction.write(Buffer.alloc(100_000))
  await t.rejects(async () => transaction.write(Buffer.alloc(1)), { code: 552, enhanced: '5.3.4' })
  transaction.abandon()
  t.same(await rows(), [])
})

t.test('clients of one address together hold no more than their share; who gives up makes room', async t => {
  const { begin, database } = await openReceiver(t)
  const most = Math.floor((8 * 1_024 * 1_024) / (PART_OCTETS - 1))
  const waiting: MailTransaction[] = []
  const one = async (peerAddress = SESSION.peerAddress) => {
    const transaction = await begin('', { peerAddress })
    await transaction.addRecipient({ address: 'postmaster' })
    waiting.push(transaction)
    await transaction.write(Buffer.alloc(PART_OCTETS - 1))
  }
  for (let n = 0; n < most; n += 1) await one()
  await t.rejects(one(), { code: 452, enhanced: '4.3.1' })
  for (const other of ['198.51.100.7', '203.0.113.7', '2001:db8::7']) await t.resolves(one(other))
  // Mail with a token of ours is not refused for what others hold.
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const signed = await begin()
  await signed.addRecipient({ address: ann.returnPath })
  await signed.write(Buffer.alloc(PART_OCTETS - 1))
  await t.resolves(signed.finish())
  for (const transaction of waiting.splice(-5)) transaction.abandon()
  await t.resolves(one())
  for (const transaction of waiting) transaction.abandon()
})

t.test(
  'mail without a token of ours has a smaller bound, told before it comes where its size is declared',
  async t => {
    const { begin, database } = await openReceiver(t, { messageSize: 300_000, unsignedMessageSize: 100_000 })
    const ann = await sentMessage(database, 1, 'ann@x.example')
    const tooLarge = { code: 552, enhanced: '5.3.4' }
    const declared = await begin('', { size: 100_001 })
    await t.rejects(async () => declared.addRecipient({ address: 'postmaster' }), tooLarge)
    await t.resolves(async () => declared.addRecipient({ address: ann.returnPath }))
    const unsigned = await begin()
    await unsigned.addRecipient({ address: ann.returnPath })
    await unsigned.addRecipient({ address: `tlsrpt@${HOSTNAME}` })
    await t.rejects(async () => unsigned.write(Buffer.alloc(100_001)), tooLarge, 'one recipient is enough')
    const signed = await begin()
    await signed.addRecipient({ address: ann.returnPath })
    await t.resolves(async () => signed.write(Buffer.alloc(300_000)))
  },
)

/** A whole mail. */
async function send(transaction: MailTransaction, address: string, octets: number): Promise<string> {
  try {
    await transaction.addRecipient({ address })
    for (let left = octets; left > 0; left -= 65_536)
      await transaction.write(Buffer.alloc(Math.min(left, 65_536)))
  } catch (error) {
    transaction.abandon()
    throw error
  }
  return transaction.finish()
}

t.test(
  'a client that sends too many mails without a token is sent away, others and bounces are not',
  async t => {
    const { begin, database, clock, rows } = await openReceiver(t, { limits: { mailsPerMinute: 3 } })
    const ann = await sentMessage(database, 1, 'ann@x.example')
    const from = async (peerAddress: string, address = 'postmaster') =>
      send(await begin('', { peerAddress }), address, 10)
    for (let n = 0; n < 3; n += 1) await from('2001:db8:1:2::1')
    // The same /64.
    await t.rejects(from('2001:db8:1:2::9'), { code: 421, enhanced: '4.7.0', closes: true })
    await t.resolves(from('2001:db8:1:3::1'))
    for (let n = 0; n < 10; n += 1) await t.resolves(from('2001:db8:1:2::1', ann.returnPath))
    await clock.advance(60_000)
    await t.resolves(from('2001:db8:1:2::1'), 'a minute later')
    t.equal((await rows()).length, 15)
  },
)

t.test('octets without a token are limited for each client and in all; bounces come in still', async t => {
  const limits = { octetsPerHour: 200_000, octetsPerHourInAll: 500_000 }
  const { begin, database, clock, kept } = await openReceiver(t, { limits })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const later = { code: 452, enhanced: '4.3.1' }
  const from = async (peerAddress: string, octets: number, address = 'postmaster') =>
    send(await begin('', { peerAddress }), address, octets)
  await from('192.0.2.1', 150_000)
  await t.rejects(from('192.0.2.1', 150_000), later)
  t.equal(kept.total, 150_000, 'what was refused is not kept')
  await from('192.0.2.2', 190_000)
  await t.rejects(from('192.0.2.3', 190_000), later, 'all together')
  await t.resolves(from('192.0.2.1', 1_000_000, ann.returnPath))
  await clock.advance(3_600_000)
  await t.resolves(from('192.0.2.1', 190_000))
})

t.test(
  'when clients have sent what may come in all, a network that has sent little is still heard',
  async t => {
    const { begin } = await openReceiver(t, { limits: { octetsPerHourInAll: 20_000_000 } })
    const from = async (peerAddress: string, octets: number) =>
      send(await begin('', { peerAddress }), 'postmaster', octets)
    for (let n = 0; n < 3; n += 1) await from(`2001:db8:1:${n}::1`, 5_500_000)
    await t.rejects(from('2001:db8:1:9::1', 5_500_000), { code: 452 }, 'another subnet of the same network')
    await t.rejects(from('192.0.2.9', 5_500_000), { code: 452 })
    for (const address of ['198.51.100.7', '203.0.113.7', '2001:db8:2::7'])
      await t.resolves(from(address, 200_000))
  },
)

t.test('where there is no more room only mail with a token is taken', async t => {
  const { begin, database, kept } = await openReceiver(t, { keepSize: 300_000 })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const later = { code: 452, enhanced: '4.3.1' }
  await send(await begin(), 'postmaster', 290_000)
  await t.rejects(send(await begin(), 'postmaster', 20_000), later)
  const declared = await begin('', { size: 20_000 })
  await t.rejects(async () => declared.addRecipient({ address: 'postmaster' }), later)
  await t.resolves(send(await begin(), ann.returnPath, 20_000))
  t.equal(kept.total, 310_000)
})

t.test('returned mail is limited per message, independent of other messages', async t => {
  const { begin, database, clock } = await openReceiver(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  const later = { code: 452, enhanced: '4.3.1' }
  for (let n = 0; n < 100; n += 1) await send(await begin(), ann.returnPath, 10)
  await t.rejects(send(await begin(), ann.returnPath, 10), later)
  await send(await begin(), bob.returnPath, 9_000_000)
  await send(await begin(), bob.returnPath, 9_000_000)
  await t.rejects(send(await begin(), bob.returnPath, 9_000_000), later)
  await t.resolves(send(await begin(), bob.returnPath, 10_000))
  await clock.advance(86_400_000)
  await t.resolves(send(await begin(), ann.returnPath, 10))
})

t.test('where the database cannot be written to, nothing is promised', async t => {
  const database = await sqliteDatabase(t)
  let isBroken = false
  const { begin, rows, storedCount, kept } = await openReceiver(t, {
    database: failing(database, () => isBroken),
  })
  const transaction = await begin()
  await transaction.addRecipient({ address: 'postmaster' })
  await transaction.write(Buffer.from('Hello\r\n'))
  isBroken = true
  await t.rejects(transaction.finish(), { message: /disk is full/ })
  t.same(await rows(), [])
  t.equal(storedCount(), 0)
  t.equal(kept.total, 0)
})
