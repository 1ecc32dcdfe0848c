/** kill -9 during a campaign: it resumes, everybody is mailed once, and counts are correct. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t from 'tap'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { addPairs, LIST_MEMBERS } from '../../src/audience/pair-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { often } from '../support/long.js'
import { initialise, type Initialised } from '../support/program/process.js'
import { until } from '../support/until.js'

const CONTACTS = often(2_000, 4_000)
const KILLS = often(2, 5)
const NOW = 1_767_607_200_000

/** Contacts in the only list, one in ten unsubscribed. */
async function fill({ dataDir, workspaceId }: Initialised): Promise<void> {
  const database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  for (let start = 0; start < CONTACTS; start += 2_000)
    await database.write(async ({ db }) => {
      const made = await insertContacts(
        db,
        workspaceId,
        Array.from({ length: 2_000 }, (_, index) => {
          const at = start + index
          return {
            ...{ id: uuidv7(NOW, Buffer.from(String(at).padStart(10, '0'))), email: `c${at}@x.example` },
            ...{ firstName: null, lastName: null, attributes: {}, subscribed: at % 10 > 0, createdAt: NOW },
          }
        }),
      )
      await addPairs(
        db,
        LIST_MEMBERS,
        1,
        made.map(({ seq }) => seq),
        NOW,
      )
    })
  await database[Symbol.asyncDispose]()
}

function look({ dataDir }: Initialised) {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  const one = (sql: string) => handle.prepare(sql).pluck().get()
  const number = (sql: string) => Number(one(sql))
  const seen = {
    status: one('select status from campaigns'),
    rows: number('select count(*) from campaign_recipients'),
    waiting: number("select count(*) from campaign_recipients where status = 'pending'"),
    messages: number('select count(*) from messages'),
    recipients: number('select count(distinct recipient) from messages'),
    delivered: number("select count(*) from messages where status = 'delivered'"),
    marked: number("select count(*) from campaign_recipients where status = 'delivered'"),
    /** Deliveries active at a kill were retried. */
    attempts: number('select count(*) from attempts'),
    counted: handle
      .prepare('select recipients, pending, queued, done, sends, deliveries from campaigns')
      .get(),
    told: number("select count(*) from events where kind in ('campaign.sent', 'campaign.completed')"),
  }
  handle.close()
  return seen
}

t.test('a server killed repeatedly during a campaign mails everybody once and counts correctly', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await postroad.run('workspace', 'set', postroad.workspaceId, ...settings)
  let server = await postroad.serve()
  const post = async (path: string, body: object, headers = {}) =>
    (await server.post(`/api/v1${path}`, body, { key: postroad.key, headers })).body.data
  const list = await post('/lists', { name: 'News' })
  const template = await post('/templates', { name: 'T', html: '<p>Hello</p>' })
  await server.end('SIGTERM')
  await fill(postroad)
  server = await postroad.serve()
  const about = { name: 'January', subject: 'News', template_id: template.id, list_id: list.id }
  const { id } = await post('/campaigns', about)
  const mailable = (CONTACTS * 9) / 10
  const sent = await post(`/campaigns/${id}/send/api`, {}, { 'Idempotency-Key': 'once' })
  t.match(sent, { total_recipients: mailable, excluded: { unsubscribed: CONTACTS / 10 } })
  // The first while recipients get their rows, or right after it, the others while mail is handed over and delivered.
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = look(postroad)
    await until('some more', () => {
      const { rows, messages, delivered } = look(postroad)
      return kill === 0 ? rows > 0 : messages > before.messages || delivered > before.delivered + 200
    })
    await server.end('SIGKILL')
    const { messages, recipients, waiting, rows } = look(postroad)
    t.equal(messages, recipients, 'nobody twice')
    t.equal(rows - waiting, messages, 'marks and messages are one')
    server = await postroad.serve()
  }
  for (let share = 1; share < 8; share += 1)
    await until('more of it', () => look(postroad).delivered >= (share * mailable) / 8)
  const end = await until('the end', () => {
    const seen = look(postroad)
    return seen.status === 'completed' && seen
  })
  t.match(end, {
    ...{ rows: mailable, waiting: 0, messages: mailable, recipients: mailable },
    ...{ delivered: mailable, marked: mailable, told: 2 },
    counted: { recipients: mailable, pending: 0, queued: 0, done: mailable, deliveries: mailable },
  })
  t.comment(`${end.attempts - mailable} mails were in flight at a kill`)
  const answer = await server.get(`/api/v1/campaigns/${id}`, { key: postroad.key })
  t.match(answer.body.data, {
    status: 'completed',
    stats: { sends: mailable, delivered: mailable },
    rates: { delivery_rate: 1 },
  })
})
