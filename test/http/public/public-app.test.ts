/** The frame of public pages over real HTTP: headers, languages, limits, forms, and what goes wrong. */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import t from 'tap'
import { AppError } from '../../../src/core/errors.js'
import { html } from '../../../src/http/public/html.js'
import type { PublicRoute, Sender } from '../../../src/http/public/public-route.js'
import { servePages } from '../../support/api/pages.js'
import { readByServer } from '../../support/read-by-server.js'

const SENDER: Sender = { name: '<Shop> & "Sons"', address: '1 High St\nTown', color: '#ffcc00' }

const routes: readonly PublicRoute[] = [
  {
    method: 'GET',
    path: '/h/:name',
    isLimited: true,
    handle: async ({ params, method, language, visitor }) => ({
      page: {
        title: `Hello ${params['name'] ?? ''}`,
        content: html`<p title="${params['name']}">${method} ${language} ${visitor.address}</p>`,
        sender: SENDER,
      },
    }),
  },
  {
    method: 'POST',
    path: '/h/:name',
    isLimited: false,
    handle: async ({ form }) => ({
      page: { title: 'Sent', content: html`<p>${form.all('a').join('+')} ${form.get('b')}</p>` },
    }),
  },
  {
    method: 'POST',
    path: '/any/:name',
    isLimited: false,
    takesAnyBody: true,
    handle: async ({ form }) => ({ json: { a: form.get('a') ?? null } }),
  },
  {
    method: 'POST',
    path: '/open',
    isLimited: false,
    isOpenToOrigins: true,
    handle: async ({ form }) => ({ json: { email: form.get('email') } }),
  },
  {
    method: 'GET',
    path: '/fail/:how',
    isLimited: false,
    handle: async ({ params }) => {
      if (params['how'] === 'full') throw new AppError('unavailable', 'no room', { retryAfterMs: 1_500 })
      throw new Error('a secret of the inside')
    },
  },
  {
    method: 'GET',
    path: '/go',
    isLimited: false,
    handle: async () => ({ redirect: 'https://shop.example/' }),
  },
]

t.test(
  'a page is escaped, in its frame, and shown under a policy that allows nothing but its own style',
  async t => {
    const { see } = await servePages(t, routes)
    const { status, headers, text } = await see(`/h/${encodeURIComponent('<b>"Ann"')}`)
    t.equal(status, 200)
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex, nofollow',
      'content-language': 'en',
    })
    t.match(text, '<h1>Hello &lt;b&gt;&quot;Ann&quot;</h1>')
    t.match(text, '<p title="&lt;b&gt;&quot;Ann&quot;">')
    t.match(text, '&lt;Shop&gt; &amp; &quot;Sons&quot;')
    t.notMatch(text, /<script|<b>|http:|https:/)
    const policy = String(headers['content-security-policy'])
    t.match(policy, /^default-src 'none'; style-src /)
    t.match(policy, "form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
    const styles = [...text.matchAll(/<style>([^]*?)<\/style>/g)].map(([, style = '']) => style)
    t.equal(styles.length, 2)
    for (const style of styles)
      t.ok(policy.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`))
    t.match(styles[1], /--brand:#ffcc00;--on-brand:#000/, 'what is written on a light colour is black')
  },
)

t.test('the language is the one that the visitor likes best of those there are', async t => {
  const { see } = await servePages(t, routes)
  for (const [header, language] of [
    ['de-CH,de;q=0.9,en;q=0.8', 'de'],
    ['it, fr;q=0.5, es;q=0.7', 'es'],
    ['FR', 'fr'],
    ['nl, *', 'en'],
    ['de;q=0, en;q=0.1', 'en'],
    ['de;q=nonsense', 'en'],
    [',;=;q', 'en'],
  ] as const) {
    const { headers, text } = await see('/h/x', { headers: { 'Accept-Language': header } })
    t.equal(headers['content-language'], language, header)
    t.match(text, `<html lang="${language}">`)
  }
})

t.test('HEAD is answered like GET without a body; other methods get Allow', async t => {
  const { see } = await servePages(t, routes)
  const head = await see('/h/x', { method: 'HEAD' })
  t.match(head, { status: 200, text: '', headers: { 'content-type': /html/ } })
  t.match(await see('/h/x', { method: 'PUT' }), {
    status: 405,
    headers: { allow: 'GET, HEAD, OPTIONS, POST' },
    text: /<h1>This does not work here/,
  })
  t.match(await see('/h/x', { method: 'OPTIONS' }), { status: 204, headers: { allow: /POST/ } })
})

t.test('unknown and malformed paths get a helpful page', async t => {
  const { see, log } = await servePages(t, routes)
  for (const path of ['/', '/h', '/h/a/b', '/nothing', '/h/%ff', '/h/%'])
    t.match(await see(path, { headers: { 'Accept-Language': 'de' } }), {
      status: 404,
      text: /<h1>Hier ist nichts/,
    })
  t.equal((await see('/h/x/')).status, 200, 'a slash at the end counts for nothing')
  t.equal((await see('/H/x')).status, 200)
  t.match(await see('/fail/full'), {
    status: 503,
    headers: { 'retry-after': '2' },
    text: /Temporarily unavailable/,
  })
  const failed = await see('/fail/x')
  t.match(failed, { status: 500, text: /Something went wrong/ })
  t.notMatch(failed.text, 'secret')
  t.match(
    log.lines.filter(({ level }) => level === 'error'),
    [{ event: 'page failed', fields: { error: 'a secret of the inside' } }],
  )
})

t.test('what is logged names the declared path and no token', async t => {
  const { see, log } = await servePages(t, routes)
  await see('/h/secret-token')
  await see('/secret-path')
  t.notMatch(JSON.stringify(log.lines), 'secret')
  t.match(JSON.stringify(log.lines), 'GET /h/:name')
})

t.test('a form is read as browsers send it, and as JSON', async t => {
  const { see } = await servePages(t, routes)
  t.match(await see('/h/x', { form: { a: ['1', '<2>'], b: 'é ü' } }), {
    status: 200,
    text: /<p>1\+&lt;2&gt; é ü</,
  })
  t.match(await see('/h/x', { json: { a: [1, true], b: null } }), { status: 200, text: /<p>1\+true </ })
  t.match(await see('/h/x', { form: '' }), { status: 200 })
  t.match(await see('/open', { json: { email: { a: 1 } } }), {
    status: 400,
    text: '{"error":{"code":"validation_error","message":"fields must be strings, numbers or booleans","path":"email"}}',
  })
  for (const json of [[1], 'x', 7]) t.equal((await see('/open', { json })).status, 400)
  t.equal((await see('/open', { form: '{', headers: { 'Content-Type': 'application/json' } })).status, 400)
})

t.test('a form has bounds: of octets, of fields, and of what it may be', async t => {
  const { see } = await servePages(t, routes)
  t.match(await see('/h/x', { form: { a: 'x'.repeat(33_000) } }), { status: 400, text: /Invalid request/ })
  t.equal((await see('/h/x', { form: Array.from({ length: 501 }, () => 'a=1').join('&') })).status, 400)
  t.equal((await see('/h/x', { form: Array.from({ length: 500 }, () => 'a=1').join('&') })).status, 200)
  const type = { 'Content-Type': 'text/plain' }
  t.equal((await see('/h/x', { form: 'a=1', headers: type })).status, 415)
  t.equal((await see('/h/x', { form: 'a=1', headers: { 'Content-Encoding': 'gzip' } })).status, 415)
})

t.test('a POST that needs no fields accepts any body or none', async t => {
  const { see } = await servePages(t, routes)
  const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const body = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'
  t.match(await see('/any/x', { form: body, headers: multipart }), { status: 200, text: '{"a":null}' })
  t.match(await see('/any/x', { form: 'a=1' }), { status: 200, text: '{"a":"1"}' })
  t.match(await see('/any/x', { method: 'POST' }), { status: 200, text: '{"a":null}' })
})

t.test('a stalled form is given up, and its sender told', async t => {
  const { port, clock } = await servePages(t, routes)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'POST /h/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na=1',
  )
  await new Promise(resolve => socket.once('ready', resolve))
  const answer = textOf(socket)
  await readByServer(socket)
  await clock.advance(61_000)
  await clock.advance(61_000)
  t.match(await answer, /^HTTP\/1\.1 408 /)
})

t.test('each address has its own limit; unlimited pages are not counted', async t => {
  const { see, clock } = await servePages(t, routes, { rateLimit: 3, trustedProxies: ['127.0.0.1/32'] })
  const as = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
  for (let n = 0; n < 3; n++) t.equal((await see('/h/x', as('198.51.100.1'))).status, 200)
  t.match(await see('/h/x', as('198.51.100.1')), {
    status: 429,
    headers: { 'retry-after': String },
    text: /Too many requests/,
  })
  t.equal((await see('/h/x', as('198.51.100.2'))).status, 200)
  t.equal((await see('/h/x', { form: 'a=1', ...as('198.51.100.1') })).status, 200)
  await clock.advance(61_000)
  t.equal((await see('/h/x', as('198.51.100.1'))).status, 200)
})

t.test('X-Forwarded-For is believed of proxies that are ours, and of nobody else', async t => {
  const ours = await servePages(t, routes, { trustedProxies: ['127.0.0.1/32', '10.0.0.0/8'] })
  const others = await servePages(t, routes)
  const see = async (served: typeof ours, header: string) =>
    /<p title="x">GET en ([^<]*)</.exec(
      (await served.see('/h/x', { headers: { 'X-Forwarded-For': header } })).text,
    )?.[1]
  t.equal(await see(others, '198.51.100.1'), '127.0.0.1')
  t.equal(await see(ours, '198.51.100.1'), '198.51.100.1')
  t.equal(
    await see(ours, '203.0.113.9, 198.51.100.1, 10.1.2.3'),
    '198.51.100.1',
    'what a visitor says stands before',
  )
  t.equal(await see(ours, '[2001:db8::1]:4711'), '2001:db8::1')
  t.equal(await see(ours, 'unknown'), '127.0.0.1')
})

t.test('pages of other origins may ask where that is allowed, and nowhere else', async t => {
  const { see } = await servePages(t, routes)
  t.match(await see('/open', { method: 'OPTIONS', headers: { Origin: 'https://a.example' } }), {
    status: 204,
    headers: { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'Content-Type' },
  })
  t.match(await see('/open', { json: { email: 'a@b.example' } }), {
    status: 200,
    headers: { 'access-control-allow-origin': '*' },
  })
  t.equal((await see('/h/x', { method: 'OPTIONS' })).headers['access-control-allow-origin'], undefined)
})

t.test('a redirect and JSON carry the policy that allows nothing', async t => {
  const { see } = await servePages(t, routes)
  for (const path of ['/go', '/open'])
    t.match((await see(path, path === '/open' ? { json: {} } : {})).headers, {
      'content-security-policy':
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'referrer-policy': 'no-referrer',
    })
  t.match(await see('/go'), { status: 303, headers: { location: 'https://shop.example/' }, text: '' })
})

t.test('a client that does not speak HTTP gets a 400', async t => {
  const { port } = await servePages(t, routes)
  const socket = connect(port, '127.0.0.1')
  socket.write('HELO there\r\n\r\n')
  t.match(await textOf(socket), /^HTTP\/1\.1 400 [^]*<h1>Invalid request/)
})
