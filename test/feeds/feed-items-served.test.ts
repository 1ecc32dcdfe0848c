/** Which items of a feed count as new on the running appliance: changed guids, old dates, feeds read by a former version. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { HOUR, openFeeds } from './open-feeds.js'

interface Item {
  readonly name: string
  readonly guid?: string
  readonly link?: string
  /** Minutes before 2026-01-05T10:00 UTC, when the tests begin; null: no date. */
  readonly age?: number | null
}

function feedOf(items: readonly Item[]): string {
  const written = items.map(({ name, guid = name, link = `http://blog.test/${name}`, age = 60 }) => {
    const date =
      age === null
        ? ''
        : `<pubDate>${new Date(Date.UTC(2026, 0, 5, 10) - age * 60_000).toUTCString()}</pubDate>`
    return `<item><title>${name}</title><guid>${guid}</guid><link>${link.replaceAll('&', '&amp;')}</link>${date}</item>`
  })
  return `<rss version="2.0"><channel><title>Blog</title>${written.join('')}</channel></rss>`
}

/** A feed that contains one item which is not sent, and has then sent another two. */
async function openSent(t: Test) {
  const opened = await openFeeds(t)
  const { server, makeFeed, runNow } = opened
  const publish = (...items: readonly Item[]) => server.answer('/feed', { body: feedOf(items) })
  publish({ name: 'old', age: 90 })
  const id = await makeFeed()
  publish({ name: 'two', age: 30 }, { name: 'one', age: 60 }, { name: 'old', age: 90 })
  t.match(await runNow(id), { body: { data: { status: 'sent', new_items: 2, reason: null } } })
  const run = async () => (await runNow(id)).body.data
  return { ...opened, id, publish, run }
}

t.test('items whose guids change are not sent again, and a new one among them is', async t => {
  const { publish, run, mailsOf } = await openSent(t)
  const names: readonly Item[] = [
    { name: 'two', age: 30 },
    { name: 'one', age: 60 },
    { name: 'old', age: 90 },
  ]
  const secure = (item: Item) => ({ ...item, link: `https://www.blog.test/${item.name}/` })
  publish(...names.map(item => ({ ...secure(item), guid: `https://www.blog.test/${item.name}` })))
  t.match(await run(), { status: 'nothing_new', reason: 'no item that was not sent before' })
  publish(
    ...names.map(item => ({
      ...item,
      guid: `again-${item.name}`,
      link: `https://blog.test/${item.name}?utm_source=rss&utm_campaign=7`,
    })),
  )
  t.match(await run(), { status: 'nothing_new' })
  publish(
    ...[{ name: 'three', age: 5 }, ...names].map(item => ({ ...secure(item), guid: `third-${item.name}` })),
  )
  const sent = await run()
  t.match(sent, { status: 'sent', new_items: 1, sent_items: 1, reason: null })
  const [{ html } = { html: '' }] = await mailsOf(sent.campaign_id)
  t.match(html, />three</)
  t.notMatch(html, />two</)
})

t.test('items whose guids and links change with the site are not sent again', async t => {
  const { publish, run } = await openSent(t)
  const moved = (name: string, age: number) => ({
    name,
    age,
    guid: `m-${name}`,
    link: `https://moved.test/${name}.html`,
  })
  publish(moved('two', 30), moved('one', 60), moved('old', 90))
  t.match(await run(), { status: 'nothing_new' })
})

t.test('an unknown item that is older than the newest one sent is not new, and the run says so', async t => {
  const { publish, run, post, id } = await openSent(t)
  const known: readonly Item[] = [
    { name: 'two', age: 30 },
    { name: 'one', age: 60 },
  ]
  publish(...known, { name: 'archive', age: 500 }, { name: 'archive2', age: 31 })
  t.match((await post(`/feeds/${id}/preview`, {})).body.data, { new_items: 0 })
  t.match(await run(), {
    status: 'nothing_new',
    reason:
      'no item that was not sent before; 2 left out as old, dated before the newest item sent, 2026-01-05T09:30:00.000Z',
  })
  publish({ name: 'three', age: 29 }, { name: 'undated', age: null }, ...known, {
    name: 'archive3',
    age: 600,
  })
  t.match(await run(), { status: 'sent', new_items: 2, reason: /^1 left out as old/ })
})

t.test('an item dated in the future does not make those after it old', async t => {
  const { publish, run } = await openSent(t)
  publish({ name: 'announced', age: -60 * 24 * 365 }, { name: 'two', age: 30 })
  t.match(await run(), { status: 'sent', new_items: 1 })
  publish({ name: 'three', age: 10 }, { name: 'announced', age: -60 * 24 * 365 })
  t.match(await run(), { status: 'sent', new_items: 1 })
})

t.test(
  'a feed all of whose items get one guid fails and says so, instead of finding nothing new',
  async t => {
    const { publish, id, runAfter, get, post, body } = await openSent(t)
    publish({ name: 'three', guid: 'blog' }, { name: 'two', guid: 'blog' })
    const run = await runAfter(23 * HOUR, id, ({ status }) => status === 'retrying')
    const reason =
      'all 2 items have the same guid or id, so new ones cannot be told from those sent before; each item needs a guid of its own'
    t.match(run, { reason })
    t.match((await get(`/feeds/${id}`)).body.data, { last_error: reason })
    t.match(await post('/feeds', body), {
      status: 400,
      body: { error: { path: 'url', message: `url: the feed cannot be read: ${reason}` } },
    })
  },
)

/** As the versions before this one left it: items are remembered by the hash of their guid. */
function asFormerVersion(
  { change }: Pick<Awaited<ReturnType<typeof openFeeds>>, 'change'>,
  items: readonly Item[],
  readAt: number,
): void {
  const digests = items.map(({ name, guid = name }) => createHash('sha256').update(guid).digest('base64url'))
  change([
    'delete from feed_items',
    ...digests.map(
      digest => `insert into feed_items (feed, item, seen_at) select seq, '${digest}', ${readAt} from feeds`,
    ),
    `update feeds set ids_only_until = ${readAt}, newest_sent_at = null`,
  ])
}

const UPGRADED_AT = Date.UTC(2026, 0, 5, 10)

t.test('after an upgrade, known items are not sent, and are known by their links from then on', async t => {
  const opened = await openSent(t)
  const { publish, run } = opened
  const items: readonly Item[] = [
    { name: 'two', age: 30 },
    { name: 'one', age: null },
  ]
  asFormerVersion(opened, items, UPGRADED_AT)
  publish({ name: 'late', age: 5 }, ...items)
  t.match(await run(), { status: 'sent', new_items: 1, reason: null })
  publish(...items.map(item => ({ ...item, guid: `new-${item.name}` })))
  t.match(await run(), { status: 'nothing_new' })
})

t.test(
  'if all guids changed with the upgrade, only what is dated later than the last reading is new',
  async t => {
    const opened = await openSent(t)
    const { publish, run } = opened
    asFormerVersion(opened, [{ name: 'two' }, { name: 'one' }], UPGRADED_AT)
    publish(
      { name: 'three', age: -1 },
      { name: 'two', guid: 'x2', age: 30 },
      { name: 'one', guid: 'x1', age: null },
    )
    t.match(await run(), {
      ...{ status: 'sent', new_items: 1 },
      reason: '2 left out as old, because all guids of the feed have changed',
    })
    publish({ name: 'four', age: -2, guid: 'x4' }, { name: 'two', guid: 'y2', age: 30 })
    t.match(await run(), { status: 'sent', new_items: 1 })
  },
)
