/** The inbound side means the same on both databases: its stores, and a mail's whole way through them. */
import t from 'tap'
import { LAST_ID } from '../../src/core/ids.js'
import { listBounces } from '../../src/deliverability/bounces/bounce-store.js'
import {
  insertReport,
  listReports,
  deleteReportsBefore,
  findReport,
} from '../../src/deliverability/reports/report-store.js'
import { listSuppressions } from '../../src/deliverability/suppressions/suppression-store.js'
import {
  countAttempt,
  deleteOrphanedInboundParts,
  deleteProcessed,
  findInboundMail,
  findWaitingMails,
  insertInboundMail,
  insertInboundPart,
  listInboundMails,
  markProcessed,
  markUnprocessed,
  readInboundOctets,
  sumInboundOctets,
  type InboundRecipient,
  type Removal,
} from '../../src/inbound/inbound-mail-store.js'
import { MailQuota } from '../../src/inbound/intake/mail-quota.js'
import type { Database } from '../../src/db/database.js'
import { eachDatabase } from '../support/db/database.js'
import { arf, BOUNCE_DOMAIN, dsn, openInboundTest, sentMessage } from '../support/inbound.js'
import { NOW } from '../support/mailroom.js'
import type { PageOf } from '../../src/db/listing.js'
import { walkPages } from '../support/walk-pages.js'

const PAGE = { limit: 10, offset: 0 }

async function store(database: Database, bodyId: string, text: string): Promise<number> {
  return database.write(async tx => {
    await insertInboundPart(tx.db, bodyId, 0, Buffer.from(text.slice(0, 4)))
    await insertInboundPart(tx.db, bodyId, 1, Buffer.from(text.slice(4)))
    return insertInboundMail(tx.db, {
      bodyId,
      receivedAt: NOW,
      session: 's1',
      peerAddress: '192.0.2.1',
      heloName: 'mx.example.com',
      envelopeSender: '',
      recipients: [{ address: 'fbl@bounce.example', purpose: 'feedback' }],
      size: text.length,
    })
  })
}

eachDatabase(t, 'a mail is stored, processed, listed, reprocessed and removed', async (t, database) => {
  const first = await store(database, 'b1', 'the first')
  const second = await store(database, 'b2', 'the second')
  const { reader } = database
  const waiting = async () => (await findWaitingMails(reader, 10)).map(({ seq }) => seq)
  t.same(await waiting(), [first, second])
  t.equal((await readInboundOctets(reader, { bodyId: 'b1', size: 9 })).toString(), 'the first')
  t.equal((await readInboundOctets(reader, { bodyId: 'b1', size: 9 }, 6)).toString(), 'the fi')

  const findings = [
    { recipient: 'a@x.example', result: 'bounce', messageId: 'm1', detail: '5.1.1' },
    { recipient: 'b@x.example', result: 'forged' },
    { recipient: 'c@x.example', result: 'bounce' },
  ]
  await database.write(tx => markProcessed(tx.db, first, NOW + 1, findings))
  t.same(await waiting(), [second])
  t.match(await findInboundMail(reader, first), {
    processedAt: NOW + 1,
    result: 'bounce, forged',
    findings,
  })
  const listed = async (filter: object) =>
    (await listInboundMails(reader, filter, PAGE)).items.map(({ seq }) => seq)
  t.same(await listed({}), [second, first])
  t.same(await listed({ result: 'forged' }), [first])
  t.same(await listed({ result: 'forge' }), [])
  t.same(await listed({ isWaiting: true }), [second])

  t.equal(await database.write(tx => countAttempt(tx.db, second)), 1)
  t.equal(await database.write(tx => countAttempt(tx.db, second)), 2)
  t.equal(await sumInboundOctets(reader), 19)
  const remove = (removal: Partial<Removal>) =>
    database.write(tx => deleteProcessed(tx.db, { isSigned: false, limit: 10, ...removal }))
  t.same(await remove({ before: NOW + 1 }), { mails: 0, octets: 0 })
  t.same(await remove({ before: NOW + 2, isSigned: true }), { mails: 0, octets: 0 })
  t.same(await remove({ before: NOW + 2 }), { mails: 1, octets: 9 })
  t.equal(await sumInboundOctets(reader), 10)
  t.equal(await findInboundMail(reader, first), undefined)
  await t.rejects(readInboundOctets(reader, { bodyId: 'b1', size: 9 }), { message: /is missing/ })

  t.equal(await database.write(tx => markUnprocessed(tx, second)), true)
  t.match(await findInboundMail(reader, second), { processedAt: null, tries: 0 })
})

eachDatabase(t, 'mail to signed addresses has its own queue', async (t, database) => {
  const unsigned = await store(database, 'b1', 'the first')
  const add = (bodyId: string, ...recipients: InboundRecipient[]) =>
    database.write(tx =>
      insertInboundMail(tx.db, {
        bodyId,
        receivedAt: NOW,
        session: 's1',
        peerAddress: '192.0.2.1',
        heloName: 'mx.example.com',
        envelopeSender: '',
        recipients,
        size: 1_000,
      }),
    )
  const signed = { address: 'r1-x@bounce.example', purpose: 'return_path', messageId: 'm1' } as const
  const first = await add('b2', signed)
  // The holder of one token must not get reports ahead of others' bounces.
  const mixed = await add('b3', signed, { address: 'tlsrpt@bounce.example', purpose: 'reports' })
  const second = await add('b4', signed)
  const waiting = async (isSigned: boolean) =>
    (await findWaitingMails(database.reader, 10, isSigned)).map(({ seq }) => seq)
  t.same(await waiting(true), [first, second])
  t.same(await waiting(false), [unsigned, mixed])
})

eachDatabase(
  t,
  'beyond its bound the oldest mail that was read goes, that without a token first',
  async (t, database) => {
    const seqs = new Map<string, number>()
    for (const [index, name] of ['s0', 'u1', 'u2', 's3', 'u4', 'u5'].entries()) {
      const purpose = name.startsWith('s')
        ? ({ purpose: 'return_path', messageId: 'm1' } as const)
        : ({ purpose: 'contact' } as const)
      const seq = await database.write(tx =>
        insertInboundMail(tx.db, {
          bodyId: name,
          receivedAt: NOW,
          session: 's1',
          peerAddress: '192.0.2.1',
          heloName: 'mx.example.com',
          envelopeSender: '',
          recipients: [{ address: 'x@bounce.example', ...purpose }],
          size: 1_000,
        }),
      )
      seqs.set(name, seq)
      // The last one waits still.
      if (name !== 'u5') await database.write(tx => markProcessed(tx.db, seq, NOW + index, []))
    }
    const left = async () => {
      const rows = await database.reader
        .selectFrom('inbound_mails')
        .select('body_id')
        .orderBy('seq')
        .execute()
      return rows.map(row => row.body_id)
    }
    const shrinkTo = async (most: number) => {
      const kept = await MailQuota.count(database.reader, most)
      while ((await database.write(tx => kept.removeExcess(tx, 1))) > 0);
      return kept.total
    }
    t.equal(await shrinkTo(6_700), 6_000, 'below nine tenths nothing goes')
    t.equal(await shrinkTo(6_250), 5_000)
    t.same(await left(), ['s0', 'u2', 's3', 'u4', 'u5'])
    t.equal(await shrinkTo(2_500), 2_000)
    t.same(await left(), ['s3', 'u5'])
    t.equal(await shrinkTo(1_000), 1_000, 'what waits to be read stays')
    t.same(await left(), ['u5'])
  },
)

eachDatabase(t, 'parts of mail that was never accepted are removed, others not', async (t, database) => {
  await store(database, 'b1', 'the first')
  await database.write(tx => insertInboundPart(tx.db, '0 orphan', 0, Buffer.from('x')))
  await database.write(tx => deleteOrphanedInboundParts(tx.db, LAST_ID))
  const rows = await database.reader.selectFrom('inbound_parts').select('body_id').execute()
  t.same(
    rows.map(row => row.body_id),
    ['b1', 'b1'],
  )
})

eachDatabase(t, 'bounces, complaints and wishes go their whole way', async (t, database) => {
  const { take, message } = await openInboundTest(t, { database })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  const eve = await sentMessage(database, 3, 'eve@x.example')
  await take(ann.returnPath, dsn({ recipient: ann.to, diagnostic: '550 5.1.1 no such user "\u00e4\u0000"' }))
  await take(`fbl@${BOUNCE_DOMAIN}`, arf({ original: `X-Postroad-ID: ${bob.token}` }))
  await take(eve.unsubscribe, 'x\r\n')
  await take(`fbl@${BOUNCE_DOMAIN}`, arf({ original: `X-Postroad-ID: ${eve.token}` }))
  t.match(await message(ann.id), { status: 'bounced', bounceType: 'permanent' })
  t.match(await message(bob.id), { complainedAt: NOW })
  t.match(await listBounces(database.reader, 'w1', {}, PAGE), { total: 1, items: [{ messageId: ann.id }] })
  t.match(await listSuppressions(database.reader, 'w1', PAGE), [
    { email: 'eve@x.example', reason: 'complaint', scope: 'all' },
    { email: 'bob@x.example', reason: 'complaint', scope: 'all' },
    { email: 'ann@x.example', reason: 'hard_bounce', scope: 'all' },
  ])
})

eachDatabase(t, 'reports are kept once, filtered and removed when they are old', async (t, database) => {
  const report = {
    id: '01900000-0000-7000-8000-000000000001',
    kind: 'dmarc' as const,
    domain: 'example.com',
    orgName: 'Receiver',
    reportId: 'r1',
    beginAt: NOW - 86_400_000,
    endAt: NOW,
    receivedAt: NOW + 5,
    authenticatedAs: null,
    summary: { messages: 3 },
    recordsJson: '[{"source_ip":"192.0.2.1"}]',
  }
  const add = (more: object) => database.write(tx => insertReport(tx.db, { ...report, ...more }))
  t.equal(await add({}), 'stored')
  t.equal(await add({ id: 'other' }), 'known')
  t.equal(await add({ id: '01900000-0000-7000-8000-000000000002', kind: 'tlsrpt' }), 'stored')
  t.match(await listReports(database.reader, 'example.com', { kind: 'dmarc' }, PAGE), {
    total: 1,
    items: [{ id: report.id, summary: { messages: 3 }, beginAt: NOW - 86_400_000 }],
  })
  t.match(await listReports(database.reader, 'example.com', { since: NOW }, PAGE), { total: 0 })
  t.same((await findReport(database.reader, 'example.com', report.id))?.records, [{ source_ip: '192.0.2.1' }])
  t.equal(await findReport(database.reader, 'example.org', report.id), undefined)
  t.equal(await database.write(tx => deleteReportsBefore(tx.db, NOW + 6, 1)), 1)
  t.equal(await database.write(tx => deleteReportsBefore(tx.db, NOW + 6, 10)), 1)
})

eachDatabase(t, 'a day full of forged reports keeps no authenticated reporter out', async (t, database) => {
  const begin = { kind: 'dmarc' as const, domain: 'example.com', beginAt: NOW - 86_400_000, endAt: NOW }
  const add = async (reporter: string | null, names: readonly string[]) => {
    const verdicts: string[] = []
    for (const [at, name] of names.entries())
      verdicts.push(
        await database.write(tx =>
          insertReport(tx.db, {
            ...begin,
            ...{ id: `${reporter} ${name}`, orgName: 'Receiver', reportId: name, receivedAt: NOW + at },
            ...{ authenticatedAs: reporter, summary: {}, recordsJson: '[]' },
          }),
        ),
      )
    return verdicts
  }
  const names = (what: string, count: number) => Array.from({ length: count }, (_, at) => `${what} ${at}`)
  const count = async (reporter: string | null) =>
    (await listReports(database.reader, 'example.com', {}, { limit: 1_000, offset: 0 })).items.filter(
      ({ authenticatedAs }) => authenticatedAs === reporter,
    ).length
  await add(null, names('forged', 500))
  t.same(await add(null, ['late']), ['too_many'], 'what is not authenticated takes nobody else out')
  t.same(await add('receiver.example', ['real']), ['stored'])
  t.same(await add('receiver.example', ['forged 3']), ['stored'], 'even if its id was used before')
  const read = (page: PageOf) => listReports(database.reader, 'example.com', {}, page)
  t.same(await walkPages(read, 100), (await read({ limit: 1_000, offset: 0 })).items, 'by cursor')
  t.same([await count(null), await count('receiver.example')], [498, 2])
  // Somebody with a domain of his own is authenticated as well.
  await add('a.flood.example', names('flood', 300))
  await add('b.flood.example', names('more', 300))
  t.same([await count(null), await count('receiver.example')], [0, 2])
  t.same(await add('flood.example', ['own']), ['too_many'], 'subdomains have one share')
  t.same(await add('small.co.uk', names('small', 3)), ['stored', 'stored', 'stored'])
  t.same(await add('other.co.uk', names('other', 3)), ['stored', 'stored', 'stored'])
  t.same(await add('receiver.example', names('next', 100)), Array(100).fill('stored'))
  t.same(
    [await count('receiver.example'), await count('small.co.uk'), await count('other.co.uk')],
    [102, 3, 3],
  )
})
