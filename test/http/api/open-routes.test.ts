/** Open routes of the running appliance: health, description, and unknown paths. */
import t from 'tap'
import { openTestAppliance } from '../../support/program/appliance.js'
import { tokenWith } from '../../support/program/operators.js'

// proves: What the service does > Health check endpoint that needs
// proves: Deliverability, domains, analytics, tracking > GET /health
t.test('health needs no key, below the version and at the root', async t => {
  const postroad = await openTestAppliance(t)
  for (const path of ['/api/v1/health', '/health'])
    t.match(await postroad.get(path), {
      status: 200,
      body: { data: { status: 'ok', version: /^\d+\.\d+\.\d+/ } },
    })
  t.match(
    await postroad.get('/health', { key: 'ts_live_wrong' }),
    { status: 200 },
    'nor is a wrong one looked at',
  )
})

t.test('strangers learn from health whether mail is accepted, and nothing else', async t => {
  const metricsToken = 'of-the-monitor'
  const postroad = await openTestAppliance(t, {
    toml: `[metrics]\ntoken = "${metricsToken}"`,
    env: { POSTROAD_LIMITS_DISK_RESERVE: '1MB' },
  })
  const ask = async (headers: Readonly<Record<string, string>>, path = '/health') =>
    (await postroad.get(path, { headers })).body.data
  const short = { status: 'ok', ready: true }
  for (const path of ['/health', '/api/v1/health'])
    for (const headers of [
      { 'X-Forwarded-For': '198.51.100.7' },
      { Forwarded: 'for=198.51.100.7' },
      { Via: '1.1 proxy' },
      { 'X-Forwarded-For': '198.51.100.7', Authorization: 'Bearer wrong' },
      { 'X-Forwarded-For': '198.51.100.7', Authorization: 'Bearer pa_wrong' },
      { 'X-Forwarded-For': '198.51.100.7', Authorization: `Bearer ${postroad.key}` },
      { 'X-Forwarded-For': '198.51.100.7', Cookie: 'postroad_session=wrong' },
      { Origin: 'https://elsewhere.example' },
    ])
      t.same(await ask(headers, path), short, JSON.stringify(headers))
  const forwarded = { 'X-Forwarded-For': '198.51.100.7' }
  const details = { version: String, node: { name: 'mx.postroad.test' }, captures_mail: true, reasons: [] }
  t.match(await ask({}), details, 'a program of this machine')
  t.match(await ask({ ...forwarded, Authorization: `Bearer ${metricsToken}` }), details)
  const operator = await tokenWith(postroad, 'viewer')
  t.match(await ask({ ...forwarded, Authorization: `Bearer ${operator}` }), details)
  postroad.disk.free = 1
  await postroad.clock.advance(2_000)
  t.match(await postroad.get('/health', { headers: forwarded }), { status: 503 })
  t.same(await ask(forwarded), { status: 'failing', ready: false })
})

// operations: GET /health/ready
t.test('a load balancer reads whether the node is ready, without a key', async t => {
  const postroad = await openTestAppliance(t)
  for (const path of ['/api/v1/health/ready', '/health/ready'])
    t.match(await postroad.get(path), { status: 200, body: { data: { ready: true } } })
  t.match((await postroad.get('/health')).body.data.node, {
    name: 'mx.postroad.test',
    state: 'active',
    roles: ['http', 'submission', 'inbound', 'mta', 'scheduler'],
    leases: ['jobs'],
    shared: false,
    heartbeat_age_seconds: 0,
    consumer_lag_events: Number,
  })
})

// proves: Postroad > the API describes itself, without anything internal
t.test('the description is at /openapi.json, with the base URL, and contains nothing internal', async t => {
  const postroad = await openTestAppliance(t)
  const { status, body } = await postroad.get('/openapi.json')
  t.match({ status, body }, { status: 200, body: { openapi: /^3\.1\./, paths: Object } })
  t.match(body.servers, [{ url: /^http:\/\/127\.0\.0\.1:\d+\/api\/v1$/ }])
  const paths = Object.keys(body.paths as object)
  t.ok(paths.includes('/email/send'))
  t.same(
    paths.filter(path => /^\/(api\/|capture|docs|openapi|queue)/.test(path)),
    [],
  )
})

// proves: Limits > Rate-limit response headers
t.test('an unknown path is a 404 in the form of every error', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  for (const [name, answer] of Object.entries({
    root: await postroad.get('/', { key }),
    'unknown path': await postroad.get('/api/v1/nothing', { key }),
    'other version': await postroad.get('/api/v2/health'),
  })) {
    t.same(
      [answer.status, answer.body],
      [404, { error: { code: 'not_found', message: 'no such path' } }],
      name,
    )
    t.match(answer.headers.get('x-ratelimit-limit'), /^\d+$/, name)
  }
})

// proves: Errors > 429
t.test('callers without a valid key are counted by address, and refused beyond their rate', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '3' } })
  const { key } = postroad
  const statuses: number[] = []
  for (let guess = 0; guess < 5; guess += 1)
    statuses.push((await postroad.get('/api/v1/analytics', { key: `ts_live_${guess}` })).status)
  t.same(statuses, [401, 401, 401, 429, 429])
  const refused = await postroad.get('/api/v1/analytics')
  t.match(refused, { status: 429, body: { error: { code: 'rate_limited' } } })
  t.match(refused.headers.get('Retry-After'), /^\d+$/)
  t.match(
    await postroad.get('/api/v1/analytics', { key }),
    { status: 200 },
    'a valid key has its own rate limit',
  )
  t.match(await postroad.get('/health'), { status: 200 }, 'and health is always told')
})

t.test('the local inbox is read by nobody but this machine, and by no page of another origin', async t => {
  const postroad = await openTestAppliance(t)
  const { port } = new URL(postroad.baseUrl)
  t.match(await postroad.get('/capture'), { status: 200 })
  const own = `http://127.0.0.1:${port}`
  for (const headers of [{ 'Sec-Fetch-Site': 'same-origin', Origin: own }, { 'Sec-Fetch-Site': 'none' }])
    t.match(await postroad.get('/capture', { headers }), { status: 200 }, JSON.stringify(headers))
  for (const headers of [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: `http://localhost:${port}` },
    { Origin: `${own}1` },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { 'X-Forwarded-For': '192.0.2.7' },
  ] as Record<string, string>[])
    for (const path of ['/capture', '/capture/1'])
      t.match(await postroad.get(path, { headers }), { status: 404 }, `${path} ${JSON.stringify(headers)}`)
})
