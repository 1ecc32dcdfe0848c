/** Batches whose texts are long: stored ahead of the transaction that accepts, and nobody's until then. */
import t from 'tap'
import { insertStagedContents } from '../../../src/messages/staged-content-store.js'
import { clearLeftBehind } from '../../../src/msa/store-long-content.js'
import { LAST_ID } from '../../../src/core/ids.js'
import { eachDatabase } from '../../support/db/database.js'
import { CONTENT } from '../../support/mailroom.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

/** 80 messages of 40 KB: three times what one transaction takes. */
function longBatch(change: (at: number) => object = () => ({})): object {
  return {
    messages: Array.from({ length: 80 }, (_, at) => ({
      to: `p${at}@rcpt.test`,
      from_email: 'me@sender.test',
      subject: `Number ${at}`,
      html: `<p>Mail ${at} ${'x'.repeat(40_000)}</p>`,
      ...change(at),
    })),
  }
}

const send = (postroad: TestAppliance, body: object, key = postroad.key) =>
  postroad.post('/api/v1/email/batch', body, { key })
const left = (postroad: TestAppliance) => {
  const {
    message_contents: contents,
    contents_ahead: ahead,
    message_parts: parts,
    messages,
  } = postroad.rowCounts()
  return { contents, ahead, parts, messages }
}

t.test('a batch of long texts is accepted whole, each mail with its own text', async t => {
  const postroad = await openTestAppliance(t)
  const file = { filename: 'a.txt', content: Buffer.from('small').toString('base64') }
  const answer = await send(
    postroad,
    longBatch(at => (at === 3 ? { attachments: [file] } : {})),
  )
  t.match(answer, { status: 202, body: { data: { total: 80, failed: 0 } } })
  t.same(left(postroad), { contents: 80, ahead: 0, parts: 1, messages: 80 })
  const { body } = await postroad.get('/api/v1/email?limit=1&to=p7@rcpt.test', { key: postroad.key })
  t.match(body.data, [{ to: 'p7@rcpt.test', subject: 'Number 7' }])
})

t.test('of one that is refused nothing stays behind', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.run('workspace', 'set', postroad.workspaceId, 'hourly_limit=50')
  const file = { filename: 'a.bin', content: Buffer.alloc(600_000).toString('base64') }
  const answer = await send(
    postroad,
    longBatch(at => (at < 2 ? { attachments: [file] } : {})),
  )
  t.match(answer, { status: 403, body: { error: { code: 'limit_reached' } } })
  t.same(left(postroad), { contents: 0, ahead: 0, parts: 0, messages: 0 })
})

eachDatabase(
  t,
  'what a crash has cut off is cleared at the next start, and nothing else',
  async (t, database) => {
    await database.write(async tx => {
      await insertStagedContents(
        tx.db,
        Array.from({ length: 70 }, (_, at) => ({ ...CONTENT, id: `ahead${at}` })),
      )
      await tx.db.deleteFrom('contents_ahead').where('content_id', '=', 'ahead7').execute()
    })
    await clearLeftBehind(database, LAST_ID)
    t.same(await database.reader.selectFrom('message_contents').select('id').execute(), [{ id: 'ahead7' }])
    t.same(await database.reader.selectFrom('contents_ahead').selectAll().execute(), [])
  },
)
