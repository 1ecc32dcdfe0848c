/** Batches in the database. */
import t from 'tap'
import {
  findBatch,
  findLastRelease,
  insertBatch,
  listResults,
  type Batch,
} from '../../../src/msa/batch-store.js'
import { findContents, insertContents, type MessageContent } from '../../../src/messages/content-store.js'
import { insertAllMessages } from '../../../src/messages/message-store.js'
import { eachDatabase } from '../../support/db/database.js'

const batch: Batch = {
  id: 'b1',
  workspaceId: 'w',
  keyId: 'k',
  isSandbox: false,
  total: 3,
  sent: 1,
  skipped: 1,
  failed: 1,
  errors: [{ index: 1, to: 'x@one.test', code: 'no_content', message: 'give html' }],
  createdAt: 10,
  releasedAt: 70,
}

const content = (id: string, index: number): MessageContent => ({
  id,
  workspaceId: 'w',
  from: { address: 'me@sender.test' },
  subject: `No. ${index}`,
  text: 'Hello',
  headers: [{ name: 'X-Order', value: '7' }],
  addressees: {
    to: [{ name: 'Ann', address: 'ann@one.test' }],
    cc: [{ address: 'carl@one.test' }],
    hasCopies: true,
  },
  attachments: [{ filename: 'a', contentType: 'text/csv', contentId: 'x', size: 3 }],
  tags: ['a'],
  batch: { id: 'b1', index },
  signingDomainId: null,
  trackOpens: false,
  trackClicks: true,
  createdAt: 10,
})

eachDatabase(t, 'a batch is read unchanged, by its own workspace only', async (t, database) => {
  await database.write(({ db }) => insertBatch(db, batch))
  t.same(await findBatch(database.reader, 'w', 'b1'), batch)
  t.equal(await findBatch(database.reader, 'other', 'b1'), undefined)
  t.equal(await findBatch(database.reader, 'w', 'b2'), undefined)
})

eachDatabase(t, 'the last release is that of the key, sandboxes aside', async (t, database) => {
  t.equal(await findLastRelease(database.reader, 'k'), undefined)
  await database.write(async ({ db }) => {
    await insertBatch(db, { ...batch, id: 'b1', releasedAt: 70 })
    await insertBatch(db, { ...batch, id: 'b2', releasedAt: 50 })
    await insertBatch(db, { ...batch, id: 'b3', releasedAt: 90, keyId: 'other' })
    await insertBatch(db, { ...batch, id: 'b4', releasedAt: 90, isSandbox: true })
  })
  t.equal(await findLastRelease(database.reader, 'k'), 70)
})

eachDatabase(t, 'results are those of the messages asked for, in their order', async (t, database) => {
  const contents = [content('c0', 0), content('c2', 2)]
  await database.write(async ({ db }) => {
    await insertContents(db, contents)
    const to = (id: string, recipient: string, reason: 'suppressed' | null = null) =>
      ({ id, recipient, reason, status: reason ?? 'sent' }) as const
    await insertAllMessages(db, false, [
      {
        content: contents[1]!,
        messages: [to('c2', 'gone@one.test', 'suppressed'), to('copy', 'carl@one.test')],
      },
      { content: contents[0]!, messages: [to('c0', 'ann@one.test')] },
    ])
  })
  t.same(await findContents(database.reader, ['c0']), [contents[0]])
  t.same(await listResults(database.reader, 'b1', { limit: 10, offset: 0 }), [
    { index: 0, to: 'ann@one.test', messageId: 'c0', reason: null },
    { index: 2, to: 'gone@one.test', messageId: 'c2', reason: 'suppressed' },
  ])
  t.match(await listResults(database.reader, 'b1', { limit: 1, offset: 2 }), [{ index: 2 }])
  t.same(await listResults(database.reader, 'b2', { limit: 10, offset: 0 }), [])
})
