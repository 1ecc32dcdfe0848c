/** Feeds over HTTP on the running appliance: settings, runs on schedule and on request, previews, faults. */
import t from 'tap'
import { MADE_UP } from '../campaigns/open-campaigns.js'
import { HOUR, openFeeds, PAGE } from './open-feeds.js'
import { rss } from './feed-server.js'
import { clientOf } from '../support/api/client.js'
import { until, untilLater } from '../support/until.js'

// answers: GET /feeds/{id}: not_found
t.test('a feed is made, read, listed, changed and deleted, and the activity log says so', async t => {
  const { body, post, get, patch, remove, list, template } = await openFeeds(t)
  const made = await post('/feeds', { ...body, timezone: 'America/New_York', max_items: 3 })
  const shown = {
    ...{ name: 'Blog', url: body.url, subject: body.subject, template_id: template, list_id: list },
    ...{ segment_id: null, schedule: { every: 'daily', at: '09:00' }, timezone: 'America/New_York' },
    ...{
      max_items: 3,
      enabled: true,
      next_run_at: '2026-01-05T14:00:00.000Z',
      failures: 0,
      last_error: null,
    },
  }
  t.match(made, { status: 201, body: { data: shown } })
  const { id } = made.body.data
  t.match(await get(`/feeds/${id}`), { status: 200, body: { data: shown } })
  t.match(await get('/feeds'), { body: { data: [{ id }], pagination: { total: 1 } } })
  const weekly = { every: 'weekly', at: '08:00', weekday: 2 }
  t.match(await patch(`/feeds/${id}`, { schedule: weekly, timezone: null, name: 'News' }), {
    status: 200,
    body: {
      data: { name: 'News', schedule: weekly, timezone: null, next_run_at: '2026-01-06T08:00:00.000Z' },
    },
  })
  t.match(await patch(`/feeds/${id}`, { enabled: false }), { body: { data: { next_run_at: null } } })
  t.match(await remove(`/feeds/${id}`), { status: 200 })
  t.match(await get(`/feeds/${id}`), { status: 404, body: { error: { code: 'not_found' } } })
  const actions = ((await get('/activity')).body.data as { action: string }[]).map(({ action }) => action)
  t.same(
    actions.filter(action => action.startsWith('feed.')),
    ['feed.deleted', 'feed.changed', 'feed.changed', 'feed.created'],
  )
})

// operations: POST /feeds
t.test(
  'new items are sent once to everybody at the scheduled time, and what was there before is not',
  async t => {
    const { makeFeed, publish, runAfter, mailsOf, mailCount, get } = await openFeeds(t)
    const id = await makeFeed()
    publish(['two', 'one', 'old'])
    const run = await runAfter(23 * HOUR, id, ({ status }) => status === 'sent')
    t.match(run, {
      ...{ new_items: 2, sent_items: 2, attempts: 1, is_manual: false, due_at: '2026-01-06T09:00:00.000Z' },
    })
    const mails = await mailsOf(run.campaign_id ?? '')
    t.match((await get(`/campaigns/${run.campaign_id}`)).body.data, {
      name: 'Blog, 2026-01-06',
      total_recipients: 2,
    })
    t.match(mails, [
      { to: 'ann@x.test', subject: 'Our blog: two' },
      { to: 'bob@x.test', subject: 'Our blog: two' },
    ])
    const [{ html } = { html: '' }] = mails
    t.match(html, /<h1>Our blog<\/h1>/)
    t.match(html, />two<\/a> About two January 5, 2026<\/p>.*>one<\/a> About one/s)
    t.notMatch(html, />old</)
    t.equal(await mailCount(), 2)
    t.match((await get(`/feeds/${id}`)).body.data, { next_run_at: '2026-01-07T09:00:00.000Z' })
  },
)

// operations: POST /feeds
t.test(
  'on request a run is at once, its answer kept for the same key; more than max_items are left out for good',
  async t => {
    const { makeFeed, publish, runNow, post, get, mailsOf } = await openFeeds(t)
    const id = await makeFeed({ max_items: 2, enabled: false })
    publish(['four', 'three', 'two', 'one', 'old'])
    const headers = { 'Idempotency-Key': 'same' }
    const first = await post(`/feeds/${id}/run`, {}, { headers })
    t.match(first, {
      status: 200,
      body: { data: { status: 'sent', is_manual: true, new_items: 4, sent_items: 2 } },
    })
    t.same((await post(`/feeds/${id}/run`, {}, { headers })).body, first.body)
    const [{ html } = { html: '' }] = await mailsOf(first.body.data.campaign_id)
    t.match(html, />four<.*>three</s)
    t.notMatch(html, />two</)
    t.match(await runNow(id), { body: { data: { status: 'nothing_new' } } })
    t.match(await post(`/feeds/${id}/run`, {}), { status: 400, body: { error: { path: 'Idempotency-Key' } } })
    t.match(await get(`/feeds/${id}/runs`), { body: { pagination: { total: 2 } } })
  },
)

// operations: POST /feeds
t.test('without a new item nothing is sent, and the history says so', async t => {
  const { makeFeed, runAfter, mailCount, server, get } = await openFeeds(t)
  server.answer('/feed', { body: rss(['old']), headers: { etag: '"1"' } })
  const id = await makeFeed()
  const nothing = await runAfter(23 * HOUR, id, ({ status }) => status === 'nothing_new')
  t.match(nothing, { reason: 'no item that was not sent before', campaign_id: null, new_items: 0 })
  const unchanged = await runAfter(24 * HOUR, id, ({ due_at: at }) => at > nothing.due_at)
  t.match(unchanged, { status: 'nothing_new', reason: 'the feed has not changed' })
  t.equal(server.asked.at(-1)?.headers['if-none-match'], '"1"', 'an unchanged feed is not loaded again')
  t.equal(await mailCount(), 0)
  t.match(await get('/campaigns'), { body: { pagination: { total: 0 } } })
})

t.test('the newest items that a feed contains already are sent with the first run if asked for', async t => {
  const { makeFeed, publish, runNow } = await openFeeds(t)
  publish(['three', 'two', 'one'])
  const id = await makeFeed({ initial_items: 2 })
  t.match(await runNow(id), { body: { data: { status: 'sent', new_items: 2, sent_items: 2 } } })
})

// operations: POST /feeds
t.test('a preview renders what would be sent, and sends and remembers nothing', async t => {
  const { makeFeed, publish, runNow, post, mailCount } = await openFeeds(t)
  const id = await makeFeed()
  t.match((await post(`/feeds/${id}/preview`, {})).body.data, { new_items: 0, items: [{ title: 'old' }] })
  publish(['two', 'old'])
  const preview = await post(`/feeds/${id}/preview`, {})
  t.match(preview.body.data, {
    ...{ new_items: 1, subject: 'Our blog: two', text: /About two/ },
    items: [{ title: 'two', summary: 'About two', published_at: '2026-01-05T09:59:00.000Z' }],
  })
  t.match(preview.body.data.html, />two<\/a> About two January 5, 2026/)
  t.equal(await mailCount(), 0)
  t.match(await runNow(id), { body: { data: { status: 'sent', new_items: 1 } } })
})

t.test('a feed that cannot be read is refused when it is made, saying why', async t => {
  const { body, post, server } = await openFeeds(t)
  server.answer('/page', { body: '<html><p>Hello</p></html>', headers: { 'Content-Type': 'text/html' } })
  server.answer('/gone', { status: 410 })
  server.answer('/large', { body: `<rss><channel>${' '.repeat(2 * 1_024 * 1_024)}</channel></rss>` })
  server.answer('/loop', { status: 302, headers: { Location: '/loop' } })
  server.answer('/inside', { status: 302, headers: { Location: 'http://192.168.7.1/feed' } })
  server.answer('/file', { status: 302, headers: { Location: 'file:///etc/passwd' } })
  for (const [path, message] of [
    ['/page', /it is not a feed: the document is <html>/],
    ['/gone', /the feed is gone \(HTTP 410\)/],
    ['/none', /the server answered HTTP 404/],
    ['/large', /the feed is larger than 2MB/],
    ['/loop', /more than 5 redirects/],
    ['/inside', /a redirect’s URL points to an address that is not public/],
    ['/file', /is neither http nor https/],
  ] as const)
    t.match(await post('/feeds', { ...body, url: server.url + path }), {
      status: 400,
      body: { error: { code: 'validation_error', path: 'url', message } },
    })
  for (const url of [
    'http://10.1.2.3/feed',
    'ftp://blog.test/feed',
    'http://u:p@blog.test/',
    'nothing',
    'http://[::1]/',
  ])
    t.match(await post('/feeds', { ...body, url }), {
      status: 400,
      body: { error: { code: 'validation_error', path: 'url' } },
    })
})

t.test('redirects are followed and compressed answers read', async t => {
  const { gzipSync } = await import('node:zlib')
  const { makeFeed, server } = await openFeeds(t)
  server.answer('/moved', { status: 301, headers: { Location: '/zipped' } })
  server.answer('/zipped', { body: gzipSync(rss(['one'])), headers: { 'Content-Encoding': 'gzip' } })
  t.ok(await makeFeed({ url: `${server.url}/moved` }))
})

t.test('private addresses are refused unless the operator allows them', async t => {
  const { body, post } = await openFeeds(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '' } })
  t.match(await post('/feeds', body), {
    status: 400,
    body: { error: { path: 'url', message: /not public/ } },
  })
})

// answers: POST /feeds: not_found, template_not_found
t.test('settings that cannot be meant are refused by name', async t => {
  const { body, post } = await openFeeds(t)
  for (const [fields, path] of [
    [{ schedule: { every: 'daily', at: '24:00' } }, 'schedule.at'],
    [{ schedule: { every: 'weekly', at: '09:00' } }, 'schedule.weekday'],
    [{ schedule: { every: 'daily', at: '09:00', day: 3 } }, 'schedule.day'],
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
    [{ max_items: 51 }, 'max_items'],
    [{ subject: '{{#if' }, 'subject'],
    [{ from_email: 'nobody' }, 'from_email'],
    [{ list_id: undefined }, 'list_id'],
    [{ segment_id: MADE_UP }, 'segment_id'],
  ] as const)
    t.match(await post('/feeds', { ...body, ...fields }), { status: 400, body: { error: { path } } }, path)
  t.match(await post('/feeds', { ...body, list_id: MADE_UP }), {
    status: 404,
    body: { error: { path: 'list_id' } },
  })
  t.match(await post('/feeds', { ...body, template_id: MADE_UP }), {
    status: 404,
    body: { error: { code: 'template_not_found' } },
  })
})

t.test('a run that fails is tried again, then is in the history, the activity log and /health', async t => {
  const { makeFeed, runAfter, server, get, publish, clock, log } = await openFeeds(t)
  const id = await makeFeed()
  server.answer('/feed', { status: 500 })
  const first = await runAfter(23 * HOUR, id, ({ status }) => status === 'retrying')
  t.match(first, { reason: 'the server answered HTTP 500', attempts: 1 })
  t.match((await get(`/feeds/${id}`)).body.data, { failures: 1, last_error: 'the server answered HTTP 500' })
  for (const [ms, attempts] of [
    [5 * 60_000, 2],
    [30 * 60_000, 3],
    [2 * HOUR, 4],
  ] as const)
    await runAfter(ms, id, run => run.attempts === attempts)
  const [failed, ...others] = (await get(`/feeds/${id}/runs`)).body.data
  t.match(failed, { status: 'failed', attempts: 4, reason: 'the server answered HTTP 500' })
  t.same(others, [], 'one scheduled time is one run')
  t.match((await get(`/feeds/${id}`)).body.data, { failures: 4, next_run_at: '2026-01-07T09:00:00.000Z' })
  t.match((await get('/activity')).body.data[0], {
    action: 'feed.failing',
    details: { id, error: 'the server answered HTTP 500' },
  })
  clock.skip(20_000)
  t.match((await get('/health')).body.data, { status: 'ok', reasons: [{ code: 'feed_failing' }] })
  t.ok(log.lines.some(({ event }) => event === 'feed failing'))
  publish(['new', 'old'])
  await runAfter(22 * HOUR, id, ({ status }) => status === 'sent')
  t.match((await get(`/feeds/${id}`)).body.data, { failures: 0, last_error: null })
  clock.skip(20_000)
  t.match((await get('/health')).body.data, { reasons: [] })
})

t.test('feeds of one workspace whose server hangs hold up no feed of another', async t => {
  const { makeFeed, server, clock, as, makeKey, json, run, body, publish } = await openFeeds(t)
  for (let at = 0; at < 20; at++) {
    publish(['old'], `/slow${at}`)
    await makeFeed({ name: `Slow ${at}`, url: `${server.url}/slow${at}` })
    server.answer(`/slow${at}`, { after: new Promise(() => {}) })
  }
  const { id: workspaceId } = await json<{ id: string }>('workspace', 'create', 'other')
  await run('workspace', 'set', workspaceId, 'default_from_email=news@other.test')
  const other = as(await makeKey('--workspace', workspaceId))
  publish(['old'], '/other')
  const own = {
    url: `${server.url}/other`,
    list_id: await other.make('/lists', { name: 'News' }),
    template_id: await other.make('/templates', { name: 'Feed', html: PAGE }),
  }
  const id = await other.make('/feeds', { ...body, ...own, schedule: { every: 'daily', at: '09:01' } })
  publish(['new', 'old'], '/other')
  clock.skip(23 * HOUR + 61_000)
  await untilLater(clock, 'the run', async () => {
    const [newest] = (await other.get(`/feeds/${id}/runs`)).body.data as { status: string }[]
    return newest && newest.status !== 'retrying'
  })
  t.ok(
    server.asked.filter(({ path }) => path.startsWith('/slow')).length > 20,
    'the others were asked before',
  )
})

// answers: PATCH /feeds/{id}: template_not_found; POST /feeds/{id}/preview: missing_from_email, template_not_found
t.test(
  'a run fails if template, list or sender are gone, and enabled feeds keep them from being deleted',
  async t => {
    const { makeFeed, publish, runNow, remove, list, template, run, workspaceId, post, patch, make } =
      await openFeeds(t)
    const id = await makeFeed()
    publish(['new', 'old'])
    t.match(await remove(`/lists/${list}`), { status: 409, body: { error: { message: /feed "Blog"/ } } })
    await run('workspace', 'set', workspaceId, 'default_from_email=')
    t.match(await runNow(id), { body: { data: { status: 'failed', reason: /from_email/ } } })
    t.match(await post(`/feeds/${id}/preview`, {}), {
      status: 400,
      body: { error: { code: 'missing_from_email' } },
    })
    await run('workspace', 'set', workspaceId, 'default_from_email=news@shop.test')
    t.match(await remove(`/lists/${list}?force=true`), { status: 200 })
    t.match(await runNow(id), { body: { data: { status: 'failed', reason: 'the list no longer exists' } } })
    t.match(await patch(`/feeds/${id}`, { template_id: MADE_UP }), { status: 404 })
    t.match(await remove(`/templates/${template}?force=true`), { status: 200 })
    const gone = { status: 404, body: { error: { code: 'template_not_found' } } }
    t.match(await post(`/feeds/${id}/preview`, {}), gone)
    t.match(await patch(`/feeds/${id}`, { list_id: await make('/lists', { name: 'Other' }) }), gone)
  },
)

t.test('another URL is read at once, and what it contains is not sent', async t => {
  const { makeFeed, publish, patch, runNow, server } = await openFeeds(t)
  const id = await makeFeed()
  publish(['a', 'b'], '/other')
  t.match(await patch(`/feeds/${id}`, { url: `${server.url}/other` }), { status: 200 })
  t.match(await runNow(id), { body: { data: { status: 'nothing_new' } } })
  t.match(await patch(`/feeds/${id}`, { url: `${server.url}/nowhere` }), {
    status: 400,
    body: { error: { path: 'url' } },
  })
})

t.test('a sandbox has feeds of its own, whose campaigns send nothing', async t => {
  const { body, makeKey, as, get, mailCount } = await openFeeds(t)
  const sandbox = as(await makeKey('--sandbox'))
  const list_id = await sandbox.make('/lists', { name: 'S' })
  await sandbox.make('/contacts', { email: 'cy@x.test', list_id })
  const template_id = await sandbox.make('/templates', { name: 'T', html: '<p>Hi</p>' })
  const id = await sandbox.make('/feeds', { ...body, list_id, template_id, initial_items: 1 })
  t.same((await get('/feeds')).body.data, [])
  const headers = { 'Idempotency-Key': 'sandbox' }
  const { data } = (await sandbox.post(`/feeds/${id}/run`, {}, { headers })).body
  t.match(data, { status: 'sent', sent_items: 1 })
  t.match((await sandbox.get(`/campaigns/${data.campaign_id}`)).body.data, { is_sandbox: true })
  t.equal(await mailCount(), 0)
})

t.test('a key needs campaigns:send to change or run a feed, and campaigns:read to see it', async t => {
  const { makeFeed, makeKey, as, body } = await openFeeds(t)
  const id = await makeFeed()
  const reader = as(await makeKey('--permissions', 'campaigns:read'))
  const writer = as(await makeKey('--permissions', 'campaigns:write'))
  t.match(await reader.get(`/feeds/${id}`), { status: 200 })
  t.match(await reader.post(`/feeds/${id}/preview`, {}), { status: 200 })
  for (const answer of [
    await writer.post('/feeds', body),
    await writer.patch(`/feeds/${id}`, { name: 'x' }),
    await writer.remove(`/feeds/${id}`),
    await writer.post(`/feeds/${id}/run`, {}, { headers: { 'Idempotency-Key': 'k' } }),
    await writer.get('/feeds'),
  ])
    t.match(answer, { status: 403, body: { error: { code: 'forbidden' } } })
})

t.test('a copy or resend of its campaign has the same items', async t => {
  const { makeFeed, publish, runNow, post, sendIt, patch, make, mailsOf } = await openFeeds(t)
  const id = await makeFeed()
  publish(['new', 'old'])
  const { campaign_id: sent } = (await runNow(id)).body.data
  await mailsOf(sent)
  const other = await make('/lists', { name: 'Other' })
  await make('/contacts', { email: 'cy@x.test', list_id: other })
  const copy = (await post(`/campaigns/${sent}/duplicate`, {})).body.data.id
  await patch(`/campaigns/${copy}`, { list_id: other })
  const again = (await post(`/campaigns/${sent}/resend`, {})).body.data.id
  for (const campaign of [copy, again]) {
    t.match(await sendIt(campaign), { status: 202 })
    for (const { subject, html } of await mailsOf(campaign)) {
      t.equal(subject, 'Our blog: new')
      t.match(html, /About new/)
    }
  }
})

// answers: POST /feeds/{id}/run: conflict
t.test('of two runs at the same time one sends, and the other gives way', async t => {
  const { makeFeed, runNow, server, mailsOf, mailCount, until } = await withGate(t)
  const id = await makeFeed()
  const gate = server.hold(rss(['new', 'old']))
  const both = Promise.all([runNow(id), runNow(id)])
  await until('both to be reading', () => server.asked.length >= 3)
  gate.open()
  const answers = await both
  t.same(answers.map(({ status }) => status).sort(), [200, 409])
  const sent = answers.find(({ status }) => status === 200)
  t.equal((await mailsOf(sent?.body.data.campaign_id)).length, 2)
  t.match(await runNow(id), { body: { data: { status: 'nothing_new' } } })
  t.equal(await mailCount(), 2)
})

// answers: PATCH /feeds/{id}: conflict
t.test('a feed that was run while its new URL was being read is not changed', async t => {
  const { makeFeed, runNow, patch, server, until, publish } = await withGate(t)
  const id = await makeFeed()
  publish(['other'], '/feed')
  const gate = server.hold(rss(['slow']), '/slow')
  const change = patch(`/feeds/${id}`, { url: `${server.url}/slow` })
  await until('it to be reading', () => server.asked.some(({ path }) => path === '/slow'))
  t.match(await runNow(id), { status: 200 })
  gate.open()
  t.match(await change, { status: 409, body: { error: { code: 'conflict' } } })
})

async function withGate(t: Parameters<typeof openFeeds>[0]) {
  const opened = await openFeeds(t)
  const hold = (body: string, path = '/feed') => {
    let open = () => {}
    const after = new Promise<void>(resolve => (open = resolve))
    opened.server.answer(path, { body, after })
    return { open: () => open() }
  }
  return { ...opened, until, server: { ...opened.server, hold } }
}

// answers: DELETE /feeds/{id}: precondition_failed; PATCH /feeds/{id}: precondition_failed
t.test('two people who edit a feed do not overwrite each other', async t => {
  const { makeFeed, baseUrl, key, get } = await openFeeds(t)
  const id = await makeFeed()
  const etag = (await get(`/feeds/${id}`)).headers.get('ETag') ?? ''
  const client = clientOf(baseUrl)
  const path = `/api/v1/feeds/${id}`
  const asked = { key, headers: { 'If-Match': etag } }
  t.match(await client.patch(path, { name: 'One' }, asked), { status: 200 })
  const refused = { status: 412, body: { error: { code: 'precondition_failed' } } }
  t.match(await client.patch(path, { name: 'Two' }, asked), refused)
  t.match(await client.delete(path, asked), refused)
  t.match((await get(`/feeds/${id}`)).body.data, { name: 'One' })
})

// answers: POST /feeds: limit_reached
t.test('a workspace has at most a hundred feeds', async t => {
  const { makeFeed, post, body } = await openFeeds(t)
  for (let count = 0; count < 100; count += 1) await makeFeed({ enabled: false })
  t.match(await post('/feeds', body), { status: 403, body: { error: { code: 'limit_reached' } } })
})
