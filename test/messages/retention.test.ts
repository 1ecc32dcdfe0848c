/** What retention takes of messages and contents, on both databases: nothing that is still to be sent. */
import t from 'tap'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { insertAttempts } from '../../src/messages/attempt-store.js'
import {
  findContents,
  insertContent,
  insertPart,
  type MessageContent,
} from '../../src/messages/content-store.js'
import { JobLoader } from '../../src/queue/claiming/job-loader.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { applyTransition } from '../../src/messages/message-status-store.js'
import { contentPruning, messagePruning } from '../../src/messages/prune-messages.js'
import { setHeld } from '../../src/queue/operator/queue-admin-store.js'
import { findEntries, removeEntries } from '../../src/queue/queue-store.js'
import { prune } from '../../src/scheduler/prune.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { eachDatabase } from '../support/db/database.js'
import { CONTENT, DAY_MS, enqueue, NOW } from '../support/mailroom.js'

/** An id as it would have been made then. */
const idAt = (at: number, number: number) => uuidv7(at, Buffer.alloc(10, number))

const going = new AbortController().signal

async function pruneContents(database: Database, before: number, signal = going): Promise<FakeLog> {
  const [clock, log] = [new FakeClock(before), new FakeLog()]
  await prune({ database, clock, log }, 'contents', contentPruning(database.reader, clock, before), signal)
  return log
}

async function pruneMessages(database: Database, before: number): Promise<void> {
  const [clock, log] = [new FakeClock(before), new FakeLog()]
  await prune({ database, clock, log }, 'messages', messagePruning(database.reader, before), going)
}

/** One message, queued. @returns its id, which is its content's as well */
async function queued(
  database: Database,
  number: number,
  at = NOW,
  content: Partial<MessageContent> = {},
): Promise<string> {
  const id = idAt(at, number)
  await enqueue(database, [{ id, to: `p${number}@x.example` }], { id, createdAt: at, ...content })
  return id
}

async function done(database: Database, number: number, at = NOW, content: Partial<MessageContent> = {}) {
  const id = await queued(database, number, at, content)
  await database.write(tx => removeEntries(tx.db, [id]))
  return id
}

const textOf = async (database: Database, id: string) => (await findContents(database.reader, [id]))[0]?.text

const messageIds = async (database: Database) =>
  (await database.reader.selectFrom('messages').select('id').orderBy('id').execute()).map(({ id }) => id)

eachDatabase(t, 'the text goes of what is old and no longer queued', async (t, database) => {
  const old = await done(database, 1)
  const waiting = await queued(database, 2)
  const held = await queued(database, 3)
  await database.write(tx => setHeld(tx.db, { messageIds: [held] }, true))
  const young = await done(database, 4, NOW + 1)
  const log = await pruneContents(database, NOW + 1)
  t.same(await Promise.all([old, waiting, held, young].map(id => textOf(database, id))), [
    undefined,
    'Thanks',
    'Thanks',
    'Thanks',
  ])
  t.match(log.lines, [{ event: 'old records deleted', fields: { what: 'contents', records: 1 } }])
  t.match((await pruneContents(database, NOW + 1)).lines, [], 'there is nothing left to tell')
  t.match(await findContents(database.reader, [old]), [{ subject: 'Your order', isPruned: true }])
})

eachDatabase(t, 'one recipient still waited for keeps the text for all', async (t, database) => {
  const ids = Array.from(
    { length: 1_200 },
    (_, n) => `${idAt(NOW, 1).slice(0, -4)}${String(n).padStart(4, '0')}`,
  )
  await enqueue(
    database,
    ids.map((id, n) => ({ id, to: `p${n}@x.example` })),
    { id: 'shared' },
  )
  const [last = ''] = ids.slice(-1)
  await database.write(tx => removeEntries(tx.db, ids.slice(0, -1)))
  await pruneContents(database, NOW + 1)
  t.equal(await textOf(database, 'shared'), 'Thanks')
  await database.write(tx => removeEntries(tx.db, [last]))
  await pruneContents(database, NOW + 1)
  t.equal(await textOf(database, 'shared'), undefined)
})

eachDatabase(t, 'recently finished mail keeps its text, for reports about it', async (t, database) => {
  const [delivered, bounced] = [await done(database, 1), await done(database, 2)]
  await database.write(async tx => {
    await applyTransition(tx.db, 'delivered', [delivered], NOW + DAY_MS)
    await applyTransition(tx.db, 'bounced', [bounced], NOW + DAY_MS, { bounceType: 'permanent' })
  })
  await pruneContents(database, NOW + DAY_MS)
  t.equal(await textOf(database, delivered), 'Thanks')
  t.equal(await textOf(database, bounced), 'Thanks')
  await pruneContents(database, NOW + DAY_MS + 1)
  t.equal(await textOf(database, delivered), undefined)
  t.equal(await textOf(database, bounced), undefined)
})

eachDatabase(t, 'a content whose messages were not made yet is kept', async (t, database) => {
  await database.write(tx => insertContent(tx.db, CONTENT))
  await pruneContents(database, NOW + DAY_MS)
  t.equal(await textOf(database, CONTENT.id), 'Thanks')
})

eachDatabase(t, 'attachments and the rest of long messages go with the text', async (t, database) => {
  const attachments = [{ filename: 'a.bin', contentType: 'application/octet-stream', size: 40 }]
  const withFiles = await done(database, 1, NOW, { attachments })
  const relayed = await done(database, 2, NOW, {
    relayed: { firstPart: Buffer.from('Subject: x\r\n\r\n'), size: 54, submitter: 'app@example.com' },
  })
  const waiting = await queued(database, 3, NOW, { attachments })
  for (const id of [withFiles, relayed, waiting])
    for (let part = 1; part <= 40; part += 1)
      await database.write(tx => insertPart(tx.db, id, part, Buffer.alloc(1)))
  await pruneContents(database, NOW + 1)
  const rows = await database.reader.selectFrom('message_parts').select('content_id').execute()
  t.same(
    rows.map(row => row.content_id),
    Array.from({ length: 40 }, () => waiting),
  )
  t.match(
    await findContents(database.reader, [withFiles]),
    [{ attachments }],
    'what they were is still known',
  )
  t.same((await findContents(database.reader, [relayed]))[0]?.relayed, undefined)
})

eachDatabase(
  t,
  'when stopped it ends after the current step, and the next run does the rest',
  async (t, database) => {
    for (let n = 1; n <= 100; n += 1) await done(database, n)
    const stopping = new AbortController()
    stopping.abort()
    t.match((await pruneContents(database, NOW + 1, stopping.signal)).lines, [])
    t.match((await pruneContents(database, NOW + 1)).lines, [{ fields: { records: 100 } }])
  },
)

eachDatabase(
  t,
  'messages go with their attempts, and a content with its last message',
  async (t, database) => {
    const [old, waiting, opened] = [
      await done(database, 1),
      await queued(database, 2),
      await done(database, 3),
    ]
    const young = await done(database, 4, NOW + DAY_MS)
    await database.write(async tx => {
      await insertAttempts(tx.db, [
        {
          messageId: old,
          number: 1,
          startedAt: NOW,
          finishedAt: NOW,
          kind: 'delivered',
          summary: '250 ok',
          replyCode: 250,
          status: null,
          classification: null,
          tried: [],
        },
      ])
      await insertMessages(tx.db, { ...CONTENT, id: young, createdAt: NOW }, false, [
        { id: idAt(NOW, 9), recipient: 'late@x.example', status: 'sent', reason: null },
      ])
      await applyTransition(tx.db, 'opened', [opened], NOW + 2 * DAY_MS)
    })
    await pruneMessages(database, NOW + 1)
    t.equal((await messageIds(database)).length, 5, 'none goes whose content is still whole')
    await pruneContents(database, NOW + 1)
    await pruneMessages(database, NOW + 1)
    t.same(await messageIds(database), [waiting, opened, idAt(NOW, 9), young].sort())
    t.same(
      (await findContents(database.reader, [old, waiting])).map(({ id }) => id),
      [waiting],
    )
    t.same(await database.reader.selectFrom('attempts').selectAll().execute(), [])
    t.equal((await findEntries(database.reader, [waiting])).length, 1)
  },
)

eachDatabase(t, 'messages of campaigns stay, for who unsubscribes years later', async (t, database) => {
  const content = { ...CONTENT, id: 'newsletter' }
  await database.write(async tx => {
    await insertContent(tx.db, content)
    await insertMessages(tx.db, content, false, [
      { id: idAt(NOW, 1), recipient: 'ann@x.example', status: 'sent', reason: null, campaignId: 'k1' },
      { id: idAt(NOW, 2), recipient: 'bob@x.example', status: 'sent', reason: null },
    ])
  })
  await pruneContents(database, NOW + DAY_MS)
  await pruneMessages(database, NOW + DAY_MS)
  t.same(await messageIds(database), [idAt(NOW, 1)])
})

eachDatabase(t, 'a content without its text is never made into a mail', async (t, database) => {
  const id = await queued(database, 1)
  const entries = await findEntries(database.reader, [id])
  await database.write(tx => removeEntries(tx.db, [id]))
  await pruneContents(database, NOW + 1)
  const loader = new JobLoader({
    reader: database.reader,
    clock: new FakeClock(),
    returnPath: () => 'bounce@mail.example.net',
    readSigningKeys: async () => new Map(),
  })
  t.same((await loader.load(entries)).jobs, [])
})
