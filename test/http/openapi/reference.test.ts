/** The API reference at /docs: complete pages without their script, under a strict policy. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import Type from 'typebox'
import { documentationRoutes } from '../../../src/http/openapi/routes.js'
import { openRoute } from '../../../src/http/route.js'
import { serveRoutes } from '../../support/api/api.js'
import { TEST_CHAPTERS, testRoutes } from '../../support/api/test-routes.js'
import { openTestAppliance } from '../../support/program/appliance.js'

const hostile = openRoute({
  method: 'POST',
  path: '/hostile',
  access: 'public',
  operationId: 'sendHostile',
  chapter: 'Email',
  summary: 'Says <script>alert(1)</script> & `</code><img src=x>`.',
  description: '"quoted" <b>',
  body: Type.Object({ text: Type.String({ description: '</td><script>' }) }),
  example: { text: '</pre></script><script>' },
  response: Type.Object({}),
  handle: async () => ({}),
})

async function serveReference(t: Test) {
  const routes = [...testRoutes, hostile]
  const { port } = await serveRoutes(t, [
    ...routes,
    ...documentationRoutes(routes, {
      version: '1.2.3',
      origin: 'http://127.0.0.1:8025',
      chapters: TEST_CHAPTERS,
    }),
  ])
  return Object.assign((path: string) => fetch(`http://127.0.0.1:${port}${path}`), { port })
}

/** As it is on the wire: `fetch` decompresses. */
function getRaw(port: number, path: string, accepted?: string) {
  return new Promise<{ headers: IncomingHttpHeaders; octets: Buffer }>((resolve, reject) => {
    const headers = accepted === undefined ? {} : { 'Accept-Encoding': accepted }
    httpRequest({ host: '127.0.0.1', port, path, headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ headers: response.headers, octets: Buffer.concat(chunks) }))
    })
      .on('error', reject)
      .end()
  })
}

t.test('pages and files are compressed as the client accepts', async t => {
  const { port } = await serveReference(t)
  const { octets: page } = await getRaw(port, '/docs')
  const [style = ''] = /\/docs\/reference-\w+\.css/.exec(page.toString()) ?? []
  for (const path of ['/docs', '/docs/api/email', '/docs/search.json', '/openapi.json', style]) {
    const plain = await getRaw(port, path)
    t.equal(plain.headers['content-encoding'], undefined, path)
    t.match(plain.headers.vary, /Accept-Encoding/)
    for (const [accepted, coding] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, gzip;q=0.5', 'gzip'],
      ['deflate', undefined],
      ['identity', undefined],
      ['*;q=0', undefined],
      ['gzip;q=nonsense', undefined],
    ] as const) {
      const { headers, octets } = await getRaw(port, path, accepted)
      t.equal(headers['content-encoding'], coding, `${path}: ${accepted}`)
      t.equal(headers['content-type'], plain.headers['content-type'])
      t.equal(headers['content-length'], String(octets.length))
      t.match(headers.vary, /Accept-Encoding/)
      const text =
        coding === 'br' ? brotliDecompressSync(octets) : coding === 'gzip' ? gunzipSync(octets) : octets
      t.ok(text.equals(plain.octets), `${path}: ${accepted}: the same text`)
      if (coding !== undefined) t.ok(octets.length < plain.octets.length / 2)
    }
  }
  const [icon = ''] = /\/docs\/icon-\w+\.svg/.exec(page.toString()) ?? []
  t.equal((await getRaw(port, icon, 'br')).headers['content-encoding'], undefined, 'too short to gain')
})

t.test('it is served to anybody as pages of HTML', async t => {
  const get = await serveReference(t)
  for (const path of ['/docs', '/docs/errors', '/docs/api/email']) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
    const page = await response.text()
    t.match(page, /^<!doctype html>/)
    t.match(page, /1\.2\.3/)
  }
  t.equal((await get('/docs/api/idle')).status, 404, 'a chapter without operations has no page')
  t.equal((await get('/docs/admin')).status, 404, 'nor has an API without routes')
})

t.test(
  'every operation is on the page of its chapter, with its permission, fields, example and errors',
  async t => {
    const get = await serveReference(t)
    const page = await (await get('/docs/api/email')).text()
    for (const text of [
      '<code>/notes/{id}</code>',
      'curl &#39;http://127.0.0.1:8025/api/v1/notes&#39; \\\n  -H &quot;Authorization: Bearer $POSTROAD_KEY&quot;',
      'curl -X DELETE &#39;http://127.0.0.1:8025/api/v1/notes/',
      '<h1>Email</h1>',
      '<a class="object" href="#object-Note">',
      'id="object-Note"',
      'Requires the permission <code>email:send</code>.',
      '<code>has_more</code>',
      '<code>limit_reached</code>',
      '&quot;text&quot;: &quot;Thank you for your order.&quot;',
    ])
      t.ok(page.includes(text), text)
  },
)

t.test('nothing inline and nothing from elsewhere is loaded', async t => {
  const get = await serveReference(t)
  for (const path of ['/docs', '/docs/webhooks', '/docs/api/email']) {
    const response = await get(path)
    const policy = response.headers.get('content-security-policy') ?? ''
    t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/)
    t.notMatch(policy, /unsafe|https?:|sha256|nonce/)
    const page = await response.text()
    t.notMatch(page, /<style|<iframe|<[a-z][^>]*\s(style|on\w+)=|@import|url\(/, path)
    const loaded = [...page.matchAll(/<(?:script src|link [^>]*href)="([^"]*)"/g)].map(([, url]) => url ?? '')
    t.equal(loaded.length, 3)
    for (const url of loaded) {
      const file = await get(url)
      t.equal(file.status, 200, url)
      t.match(file.headers.get('cache-control'), 'immutable', 'its name changes with its contents')
      t.notMatch(await file.text(), /@import|url\(|\beval\(|new Function\(|innerHTML/)
    }
    const scripts = [...page.matchAll(/<script(?! src)[^>]*>/g)].map(([tag]) => tag)
    t.ok(
      scripts.every(tag => tag.includes('type="application/json"')),
      'what else is in a script element is data',
    )
  }
})

t.test('no text of the description becomes markup', async t => {
  const get = await serveReference(t)
  const page = await (await get('/docs/api/email')).text()
  t.notMatch(page, /<script>|<img|<b>"|<\/pre>&lt;/)
  t.ok(
    page.includes('&lt;script&gt;alert(1)&lt;/script&gt; &amp; <code>&lt;/code&gt;&lt;img src=x&gt;</code>'),
  )
  const [, data = ''] = /<script type="application\/json" id="calls">(.*?)<\/script>/.exec(page) ?? []
  t.match(JSON.parse(data), {
    operations: { sendHostile: { body: { example: { text: '</pre></script><script>' } } } },
  })
})

t.test(
  'the whole reference: each operation of both documents and each event once, and no dead link',
  async t => {
    const postroad = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
    const pages = new Map<string, string>()
    const read = async (path: string) => {
      const text = await (await fetch(postroad.baseUrl + path)).text()
      pages.set(path, text)
      return text
    }
    const waiting = ['/docs']
    for (const path of waiting) {
      const text = await read(path)
      for (const [, found = ''] of text.matchAll(/href="(\/docs[^"#]*)/g))
        if (!waiting.includes(found) && !/\.\w+$/.test(found)) waiting.push(found)
    }
    t.ok(pages.size > 25, 'guides and chapters')
    const idsOf = (path: string) =>
      [...(pages.get(path) ?? '').matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id ?? '')
    for (const [path, text] of pages) {
      const ids = idsOf(path)
      t.same(ids.length, new Set(ids).size, `${path}: ids are unique`)
      const dead = [...text.matchAll(/href="([^"]*)#([^"]+)"/g)].filter(
        ([, target = '', id = '']) => !idsOf(target === '' ? path : target).includes(id),
      )
      t.same(
        dead.map(([link]) => link),
        [],
        `${path}: links`,
      )
    }
    const all = [...pages.keys()].flatMap(path => idsOf(path))
    for (const [document, hasEvents] of [
      ['/openapi.json', true],
      ['/admin/openapi.json', false],
    ] as const) {
      const { body } = await postroad.get(document)
      const named = (methods: object) =>
        Object.values(methods).map(({ operationId }: { operationId: string }) => operationId)
      const operations = Object.values(body.paths as object).flatMap(named)
      const events = hasEvents ? Object.values(body.webhooks as object).flatMap(named) : []
      for (const id of [...operations, ...events]) t.equal(all.filter(one => one === id).length, 1, id)
    }
  },
)

t.test('the search index names operations, events and guides by pages that exist', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const { body } = await postroad.get('/docs/search.json')
  const find = (title: string) => body.find((one: { title: string }) => one.title === title)
  t.match(find('Create a contact'), { detail: 'POST /contacts', url: '/docs/api/contacts#createContact' })
  t.match(find('email.delivered'), { url: '/docs/api/webhooks#onEmailDelivered' })
  t.match(find('Idempotency'), { url: '/docs/idempotency', group: 'Guides' })
  const paths = new Set(body.map(({ url }: { url: string }) => url.split('#')[0] ?? ''))
  for (const path of paths) t.equal((await fetch(postroad.baseUrl + String(path))).status, 200, String(path))
})

t.test('examples have realistic values', async t => {
  const appliance = await openTestAppliance(t)
  for (const path of ['/openapi.json', '/admin/openapi.json']) {
    const { body } = await appliance.get(path)
    t.same(placeholdersIn(body, ''), [], path)
  }
})

/** Where an example has the text that stands for any text. */
function placeholdersIn(value: unknown, place: string, isExample = false): string[] {
  if (value === 'text') return isExample ? [place] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) =>
    placeholdersIn(one, `${place}/${name}`, isExample || name === 'example'),
  )
}
