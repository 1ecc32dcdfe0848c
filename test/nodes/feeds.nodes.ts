/** Two nodes and a feed: its new items are one campaign, whichever node reads it and whichever dies. */
import t from 'tap'
import { openFeedServer, rss } from '../feeds/feed-server.js'
import { expireSign, openTwo } from '../support/program/nodes.js'
import { until } from '../support/until.js'

t.test('a feed that a node was reading when it was killed is sent once, by the other', async t => {
  const feeds = await openFeedServer(t)
  const { first, one, two } = await openTwo(t, { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' })
  await first.run('workspace', 'set', first.workspaceId, 'default_from_email=news@sender.test')
  const count = (what: string) =>
    Number(first.sql<{ n: number }>(`select count(*)::int as n from ${what}`)[0]?.n)
  const post = async (path: string, body: object) =>
    (await two.post(`/api/v1${path}`, body, { key: first.key })).body.data
  const list = await post('/lists', { name: 'News' })
  for (const name of ['ann', 'bob', 'cy'])
    await post('/contacts', { email: `${name}@one.test`, list_id: list.id })
  const template = await post('/templates', {
    name: 'T',
    html: '<p>{{#each items}}{{this.title}}{{/each}}</p>',
  })
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
  feeds.answer('/feed', { body: rss(['new', 'old']), after: new Promise(() => {}) })
  const past = Date.now() - 1_000
  first.sql(`update feeds set due_at = ${past}, next_at = ${past}`)
  await until('it to be read', () => feeds.asked.length > 1, 120_000)
  feeds.answer('/feed', { body: rss(['new', 'old']) })
  await one.end('SIGKILL')
  expireSign(first, one)
  await until('the campaign', () => count("campaigns where status = 'completed'") > 0, 120_000)
  t.same([count('campaigns'), count('messages'), count('feed_runs')], [1, 3, 1])
  const { body } = await two.get(`/api/v1/feeds/${id}/runs`, { key: first.key })
  t.match(body.data, [{ status: 'sent', new_items: 1 }])
})

t.test('a feed that is run at both nodes at the same time is sent once', async t => {
  const feeds = await openFeedServer(t)
  const { first, one, two } = await openTwo(t, { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' })
  await first.run('workspace', 'set', first.workspaceId, 'default_from_email=news@sender.test')
  const post = async (path: string, body: object) =>
    (await one.post(`/api/v1${path}`, body, { key: first.key })).body.data
  const list = await post('/lists', { name: 'News' })
  await post('/contacts', { email: 'ann@one.test', list_id: list.id })
  const template = await post('/templates', { name: 'T', html: '<p>Hi</p>' })
  feeds.answer('/feed', { body: rss(['old']) })
  const { id } = await post('/feeds', {
    ...{
      name: 'Blog',
      url: `${feeds.url}/feed`,
      subject: 'News',
      template_id: template.id,
      list_id: list.id,
    },
    ...{ schedule: { every: 'daily', at: '03:00' }, enabled: false },
  })
  let open = () => {}
  feeds.answer('/feed', { body: rss(['new', 'old']), after: new Promise<void>(resolve => (open = resolve)) })
  const runs = [one, two].map((node, at) =>
    node.post(`/api/v1/feeds/${id}/run`, {}, { key: first.key, headers: { 'Idempotency-Key': `run ${at}` } }),
  )
  await until('both to be reading', () => feeds.asked.length > 2)
  open()
  const answers = await Promise.all(runs)
  t.same(answers.map(({ status }) => status).sort(), [200, 409])
  t.equal(first.sql('select id from campaigns').length, 1)
})
