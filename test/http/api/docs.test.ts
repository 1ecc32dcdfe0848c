/** The page at /docs: the description of the API for people, without script or network. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import Type from 'typebox'
import { documentationRoutes } from '../../../src/http/openapi/routes.js'
import { openRoute } from '../../../src/http/route.js'
import { serveRoutes } from '../../support/api/api.js'
import { TEST_CHAPTERS, testRoutes } from '../../support/api/test-routes.js'

const hostile = openRoute({
  method: 'POST',
  path: '/hostile',
  access: 'public',
  operationId: 'sendHostile',
  chapter: 'Email',
  summary: 'Says <script>alert(1)</script> & `</code><img src=x>`.',
  description: '"quoted" <b>',
  body: Type.Object({ text: Type.String({ description: '</td><script>' }) }),
  example: { text: '</pre><script>' },
  response: Type.Object({}),
  handle: async () => ({}),
})

async function readPage(t: Test) {
  const routes = [...testRoutes, hostile]
  const { port } = await serveRoutes(t, [
    ...routes,
    ...documentationRoutes(routes, {
      version: '1.2.3',
      origin: 'http://127.0.0.1:8025',
      chapters: TEST_CHAPTERS,
    }),
  ])
  const response = await fetch(`http://127.0.0.1:${port}/docs`)
  return { response, page: await response.text() }
}

t.test('it is served to anybody as a page of HTML', async t => {
  const { response, page } = await readPage(t)
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  t.match(page, /^<!doctype html>/)
  t.match(page, /1\.2\.3/)
})

t.test('every operation is on it, with its permission, fields, example and errors', async t => {
  const { page } = await readPage(t)
  for (const text of [
    '<code>/notes/{id}</code>',
    'Base URL: <code>http://127.0.0.1:8025/api/v1</code>',
    'curl &#39;http://127.0.0.1:8025/api/v1/notes&#39; \\\n  -H &quot;Authorization: Bearer $POSTROAD_KEY&quot;',
    'curl -X DELETE &#39;http://127.0.0.1:8025/api/v1/notes/',
    '<section id="Email">',
    '<a href="#Note">Note</a>',
    '<h3 id="Note">Note</h3>',
    'Requires the permission <code>email:send</code>.',
    '<code>has_more</code>',
    '<a href="#Pagination">Pagination</a>',
    '<code>limit_reached</code>',
    '&quot;text&quot;: &quot;Thank you for your order.&quot;',
  ])
    t.ok(page.includes(text), text)
})

t.test('nothing is fetched or run: its own style alone is allowed, by its digest', async t => {
  const { response, page } = await readPage(t)
  const policy = response.headers.get('content-security-policy') ?? ''
  t.match(policy, /default-src 'none'/)
  t.notMatch(policy, /unsafe|https?:|script-src/)
  const style = /<style>([^]*?)<\/style>/.exec(page)?.[1] ?? ''
  t.ok(policy.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`))
  t.notMatch(page, /<(script|link|img|iframe)|<[a-z][^>]*\s(src|style|on\w+)=|@import|url\(/)
})

t.test('no text of the description becomes markup', async t => {
  const { page } = await readPage(t)
  t.notMatch(page, /<script|<img|<b>"|<\/pre>&lt;/)
  t.ok(
    page.includes('&lt;script&gt;alert(1)&lt;/script&gt; &amp; <code>&lt;/code&gt;&lt;img src=x&gt;</code>'),
  )
})
