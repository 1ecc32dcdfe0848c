/** kill -9 while a feed is run: its new items are one campaign, which everybody gets once. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t from 'tap'
import { openFeedServer, rss } from '../feeds/feed-server.js'
import { initialise, type Initialised } from '../support/program/process.js'
import { until } from '../support/until.js'

const CONTACTS = 200

function withDatabase<T>({ dataDir }: Initialised, work: (handle: BetterSqlite.Database) => T): T {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  try {
    return work(handle)
  } finally {
    handle.close()
  }
}

const number = (postroad: Initialised, sql: string) =>
  Number(withDatabase(postroad, handle => handle.prepare(sql).pluck().get()))

/** As if its scheduled time had just passed; the server is stopped. */
const makeDue = (postroad: Initialised) =>
  withDatabase(postroad, handle =>
    handle.prepare('update feeds set due_at = ?, next_at = ?').run(Date.now() - 1_000, Date.now() - 1_000),
  )

t.test('a server killed while it reads a feed, and again once it sends, sends it once', async t => {
  const feeds = await openFeedServer(t)
  const postroad = await initialise(t, {
    env: { POSTROAD_MTA_CAPTURE: 'true', POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' },
  })
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await postroad.run('workspace', 'set', postroad.workspaceId, ...settings)
  let server = await postroad.serve()
  const post = async (path: string, body: object) =>
    (await server.post(`/api/v1${path}`, body, { key: postroad.key })).body.data
  const list = await post('/lists', { name: 'News' })
  const template = await post('/templates', {
    name: 'T',
    html: '<p>{{#each items}}{{this.title}}{{/each}}</p>',
  })
  const contacts = Array.from({ length: CONTACTS }, (_, at) => ({
    email: `c${at}@x.example`,
    list_ids: [list.id],
  }))
  await post('/contacts/batch', { contacts })
  feeds.answer('/feed', { body: rss(['old']) })
  const { id } = await post('/feeds', {
    ...{
      name: 'Blog',
      url: `${feeds.url}/feed`,
      subject: 'News',
      template_id: template.id,
      list_id: list.id,
    },
    schedule: { every: 'monthly', at: '03:00', day: new Date(Date.now() - 48 * 3_600_000).getUTCDate() },
  })
  await server.end('SIGTERM')
  makeDue(postroad)
  feeds.answer('/feed', { body: rss(['new', 'old']), after: new Promise(() => {}) })
  server = await postroad.serve()
  await until('it to read the feed', () => feeds.asked.length > 1)
  await server.end('SIGKILL')
  t.equal(number(postroad, 'select count(*) from campaigns'), 0)
  feeds.answer('/feed', { body: rss(['new', 'old']) })
  server = await postroad.serve()
  await until('the campaign', () => number(postroad, 'select count(*) from campaigns') > 0)
  await server.end('SIGKILL')
  server = await postroad.serve()
  await until(
    'the end',
    () => number(postroad, "select count(*) from campaigns where status = 'completed'") > 0,
  )
  await server.end('SIGTERM')
  makeDue(postroad)
  server = await postroad.serve()
  await until('another run', () => number(postroad, 'select count(*) from feed_runs') > 1)
  t.same(
    [
      number(postroad, 'select count(*) from campaigns'),
      number(postroad, 'select count(*) from messages'),
      number(postroad, 'select count(distinct recipient) from messages'),
    ],
    [1, CONTACTS, CONTACTS],
  )
  const { body } = await server.get(`/api/v1/feeds/${id}/runs`, { key: postroad.key })
  t.match(body.data, [{ status: 'nothing_new' }, { status: 'sent', new_items: 1, attempts: 1 }])
})
