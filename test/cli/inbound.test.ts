/** Looking at the mail that came back, beside the server or without it. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import {
  findInboundMail,
  insertInboundMail,
  insertInboundPart,
  markProcessed,
} from '../../src/inbound/inbound-mail-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { NOW } from '../support/mailroom.js'
import { initialise } from '../support/program/process.js'

const RAW = 'Subject: \x1b[31mred\r\n\r\ncaf\xe9\x9b31m\r\n'

async function withMails(t: Test) {
  const postroad = await initialise(t)
  const database = await openSqlite({ file: join(postroad.dataDir, 'postroad.db'), clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  const add = (bodyId: string) =>
    database.write(async tx => {
      const octets = Buffer.from(RAW, 'latin1')
      await insertInboundPart(tx.db, bodyId, 0, octets)
      return insertInboundMail(tx.db, {
        bodyId,
        receivedAt: NOW,
        session: 's1',
        peerAddress: '192.0.2.1',
        heloName: 'mx.\x1b.example',
        envelopeSender: 'mailer@x.example',
        recipients: [{ address: 'r1-1-abc@bounce.example', purpose: 'return_path', messageId: 'm1' }],
        size: octets.length,
      })
    })
  const first = await add('b1')
  const second = await add('b2')
  await database.write(tx =>
    markProcessed(tx.db, first, NOW + 1_000, [
      {
        recipient: 'r1-1-abc@bounce.example',
        result: 'bounce',
        messageId: 'm1',
        detail: '5.1.1 no such user',
      },
    ]),
  )
  return { postroad, database, first, second }
}

t.test('mail is listed newest first, all or by result', async t => {
  const { postroad, first, second } = await withMails(t)
  const ids = async (...args: string[]) =>
    (await postroad.json<{ id: number }[]>('inbound', 'list', ...args)).map(({ id }) => id)
  t.same(await ids(), [second, first])
  t.same(await ids('--limit', '1'), [second])
  t.same(await ids('--result', 'bounce'), [first])
  t.same(await ids('--result', 'forged'), [])
  t.same(await ids('--waiting'), [second])
  const { out } = await postroad.run('inbound', 'list')
  t.match(out, /bounce +r1-1-abc@bounce\.example/)
  t.match(out, /waiting/)
})

t.test('a mail is shown with its effect; its control characters do not reach the terminal', async t => {
  const { postroad, first } = await withMails(t)
  const { out, status } = await postroad.run('inbound', 'show', String(first))
  t.equal(status, 0)
  t.match(out, /sender +<mailer@x\.example>/)
  t.match(out, /result +bounce, message m1, 5\.1\.1 no such user/)
  t.match(out, /Subject: \?\[31mred/)
  t.notOk(out.includes('\x1b') || out.includes('\x9b'))
  t.match(await postroad.json('inbound', 'show', String(first)), {
    id: first,
    result: 'bounce',
    sender: 'mailer@x.example',
    recipients: [{ purpose: 'return_path', message_id: 'm1' }],
    findings: [{ result: 'bounce', message_id: 'm1' }],
    received_at: new Date(NOW).toISOString(),
    raw: RAW,
    content: { text: String, html: null, attachments: [] },
  })
  const folder = join(t.testdir({}), 'saved')
  t.match(await postroad.run('inbound', 'show', String(first), '--save', folder), {
    status: 0,
    out: /saved .*text\.txt/,
  })
  t.match(await postroad.run('inbound', 'show', String(first), '--save', folder), {
    status: 1,
    err: /exists/,
  })
  t.match((await postroad.run('inbound', 'show', String(first), '--raw')).out, /caf.\?31m/)
  t.match(await postroad.run('inbound', 'show', '999'), { status: 1, err: /no inbound mail 999/ })
  t.match(await postroad.run('inbound', 'show', 'x'), { status: 2 })
})

t.test('a mail is marked for reprocessing', async t => {
  const { postroad, database, first } = await withMails(t)
  t.same(await postroad.json('inbound', 'reprocess', String(first)), { id: first, status: 'waiting' })
  t.match(await findInboundMail(database.reader, first), { processedAt: null, result: null, findings: [] })
  t.match(await postroad.run('inbound', 'reprocess', '999'), { status: 1 })
})
