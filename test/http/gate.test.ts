/** Who may pass, over real HTTP: keys, permissions, limits, and the headers that every answer carries. */
import t from 'tap'
import { documentationRoutes } from '../../src/http/openapi/routes.js'
import { serveRoutes } from '../support/api/api.js'
import { TEST_CHAPTERS, testRoutes } from '../support/api/test-routes.js'

const NOTES = '/api/v1/notes'

t.test('a right key passes', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  t.match(await ask({ path: NOTES }), { status: 200, json: { data: Array } })
  t.match(await ask({ path: NOTES, key: null, headers: { Authorization: 'bearer  all ' } }), { status: 200 })
})

t.test('no key, a malformed one and an unknown one are answered 401 and told how', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  for (const headers of [
    {},
    { Authorization: 'Basic YWxsOg==' },
    { Authorization: 'Bearer' },
    { Authorization: 'all' },
    { Authorization: `Bearer ${'x'.repeat(5_000)}` },
  ])
    t.match(await ask({ path: NOTES, key: null, headers }), {
      status: 401,
      headers: { 'www-authenticate': 'Bearer' },
      json: { error: { code: 'unauthorized', message: /Authorization: Bearer/ } },
    })
  t.match(await ask({ path: NOTES, key: 'wrong' }), {
    status: 401,
    json: { error: { code: 'unauthorized', message: 'the API key is unknown or revoked' } },
  })
})

t.test('a key of a removed workspace gets an error that says so', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  t.match(await ask({ path: NOTES, key: 'orphan' }), {
    status: 404,
    json: { error: { code: 'workspace_not_found' } },
  })
})

t.test('a key without the permission is answered 403, naming it', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  t.equal((await ask({ path: NOTES, key: 'reader' })).status, 200)
  t.match(await ask({ method: 'POST', path: NOTES, key: 'reader', body: {} }), {
    status: 403,
    json: { error: { code: 'forbidden', message: 'this key lacks the permission email:send' } },
  })
})

t.test('errors come in the order 401, 429, 403, 400', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const post = (key: string | null) => ask({ method: 'POST', path: NOTES, key, body: { nonsense: true } })
  t.equal((await post(null)).status, 401)
  t.equal((await post('slow_reader')).status, 403)
  t.equal((await post('slow_reader')).status, 429)
  t.equal((await post('all')).status, 400)
})

t.test('a key over its limit gets Retry-After and passes afterwards', async t => {
  const { ask, clock } = await serveRoutes(t, testRoutes)
  const remaining = async () => (await ask({ path: NOTES, key: 'slow' })).headers['x-ratelimit-remaining']
  t.equal(await remaining(), '1')
  t.equal(await remaining(), '0')
  const refused = await ask({ path: NOTES, key: 'slow' })
  t.match(refused, {
    status: 429,
    headers: {
      'retry-after': '60',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '2026-01-05T10:01:00.000Z',
    },
    json: { error: { code: 'rate_limited' } },
  })
  t.equal((await ask({ path: NOTES })).status, 200, 'other keys are not held back')
  await clock.advance(60_000)
  t.equal((await ask({ path: NOTES, key: 'slow' })).status, 200)
})

t.test('a key without limit reads a very large number', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  t.match(await ask({ path: NOTES, key: 'unlimited' }), {
    status: 200,
    headers: { 'x-ratelimit-limit': '2147483647', 'x-ratelimit-remaining': '2147483647' },
  })
})

t.test('guessing keys is limited by address, and a right key still passes', async t => {
  const { ask } = await serveRoutes(t, testRoutes, { anonymousRateLimit: 3 })
  const statuses: number[] = []
  for (let guess = 0; guess < 5; guess += 1)
    statuses.push((await ask({ path: NOTES, key: `guess${guess}` })).status)
  t.same(statuses, [401, 401, 401, 429, 429])
  t.match((await ask({ path: NOTES, key: 'guess' })).headers, { 'retry-after': '60' })
  t.equal((await ask({ path: NOTES })).status, 200)
})

t.test(
  'a key that cannot be checked is answered 503, however often, and does not count as a wrong one',
  async t => {
    const { ask } = await serveRoutes(t, testRoutes, { anonymousRateLimit: 3 })
    for (let request = 0; request < 8; request += 1)
      t.match(await ask({ path: NOTES, key: 'away' }), {
        status: 503,
        headers: { 'retry-after': '5', 'x-ratelimit-remaining': '3' },
        json: { error: { code: 'unavailable' } },
      })
    t.equal((await ask({ path: NOTES, key: 'broken' })).status, 500)
    const wrong = await ask({ path: NOTES, key: 'guess' })
    t.match(wrong, { status: 401, headers: { 'x-ratelimit-remaining': '2' } }, 'nothing was counted before')
  },
)

t.test('an open route shows the limit and never refuses', async t => {
  const { ask } = await serveRoutes(t, testRoutes, { anonymousRateLimit: 2 })
  for (const remaining of ['1', '0', '0'])
    t.match(await ask({ path: '/api/v1/open', key: null }), {
      status: 200,
      headers: { 'x-ratelimit-remaining': remaining },
      json: { data: { ok: true } },
    })
})

t.test('an open route with a long answer refuses an address over its limit', async t => {
  const routes = [
    ...testRoutes,
    ...documentationRoutes(testRoutes, { version: '1', origin: 'http://mx.test', chapters: TEST_CHAPTERS }),
  ]
  const { ask, clock } = await serveRoutes(t, routes, { anonymousRateLimit: 2 })
  const statuses = async (...paths: readonly string[]) => {
    const seen: number[] = []
    for (const path of paths) seen.push((await ask({ path, key: null })).status)
    return seen
  }
  t.same(await statuses('/openapi.json', '/openapi.json', '/openapi.json', '/docs'), [200, 200, 429, 429])
  t.match(await ask({ path: '/docs', key: null }), {
    headers: { 'retry-after': '60' },
    json: { error: { code: 'rate_limited' } },
  })
  t.same(await statuses('/api/v1/open'), [200], 'what is short is still answered')
  await clock.advance(60_000)
  t.same(await statuses('/openapi.json'), [200])
})

t.test('every answer carries its limits and its own request id, errors included', async t => {
  const { ask } = await serveRoutes(t, testRoutes)
  const answers = await Promise.all([
    ask({ path: NOTES }),
    ask({ path: '/api/v1/open', key: null }),
    ask({ path: '/local', key: null }),
    ask({ path: NOTES, key: null }),
    ask({ path: NOTES, key: 'broken' }),
    ask({ path: '/nowhere', key: null }),
    ask({ path: `${NOTES}?limit=x` }),
    ask({ path: `${NOTES}/none` }),
    ask({ method: 'DELETE', path: `${NOTES}/n1` }),
    ask({ method: 'POST', path: NOTES, body: '{' }),
    ask({ method: 'PUT', path: NOTES, body: {} }),
  ])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 401, 500, 404, 400, 404, 500, 400, 405],
  )
  for (const { headers } of answers)
    t.match(headers, {
      'x-request-id': /^request-\d+$/,
      'x-ratelimit-limit': /^\d+$/,
      'x-ratelimit-remaining': /^\d+$/,
      'x-ratelimit-reset': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    })
  t.equal(new Set(answers.map(({ headers }) => headers['x-request-id'])).size, answers.length)
})

t.test(
  'a route for this machine alone does not exist for anybody behind a proxy or a foreign name',
  async t => {
    const { ask, port } = await serveRoutes(t, testRoutes)
    for (const host of ['localhost', `localhost:${port}`, '127.0.0.1:8025', '[::1]:8025'])
      t.match(
        await ask({ path: '/local', key: null, headers: { Host: host } }),
        { status: 200, json: { local: true } },
        host,
      )
    const foreign: Record<string, string>[] = [
      { Host: 'mail.example.com' },
      { Host: 'localhost.evil.example' },
      { Host: '127.0.0.1.evil.example' },
      { 'X-Forwarded-For': '198.51.100.7' },
      { Forwarded: 'for=198.51.100.7' },
      { Via: '1.1 proxy' },
    ]
    for (const headers of foreign)
      t.match(
        await ask({ path: '/local', key: null, headers }),
        { status: 404, json: { error: { code: 'not_found', message: 'no such path' } } },
        JSON.stringify(headers),
      )
  },
)
