/** The console's files as a browser gets them. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

t.test(
  'the console is one page at every path, under a policy that allows nothing from elsewhere',
  async t => {
    const { baseUrl } = await openTestAppliance(t)
    const paths = ['/console/', '/console/messages/1', '/console/contacts?search=ann', '/console/assets']
    for (const path of paths) {
      const answer = await fetch(baseUrl + path)
      t.equal(answer.status, 200, path)
      t.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
      t.equal(answer.headers.get('content-security-policy'), POLICY)
      t.equal(answer.headers.get('cross-origin-opener-policy'), 'same-origin')
      t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
      t.equal(answer.headers.get('cache-control'), 'no-cache')
      const html = await answer.text()
      t.match(html, /<div id="app">/)
      t.notMatch(html, /<script>|<style|style=|https?:/, 'nothing inline, nothing from elsewhere')
    }
  },
)

t.test('its files may be kept for good, and are compressed for those who can read that', async t => {
  const { baseUrl } = await openTestAppliance(t)
  const html = await (await fetch(`${baseUrl}/console/`)).text()
  const [, script = ''] = /src="([^"]+\.js)"/.exec(html) ?? []
  t.match(script, /^\/console\/assets\/[\w-]+\.js$/)
  const plain = await fetch(baseUrl + script, { headers: { 'Accept-Encoding': 'identity' } })
  t.equal(plain.headers.get('content-encoding'), null)
  t.equal(plain.headers.get('content-type'), 'text/javascript')
  t.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  t.equal(plain.headers.get('vary'), 'Accept-Encoding')
  const text = await plain.text()
  const compressed = await fetch(baseUrl + script, { headers: { 'Accept-Encoding': 'gzip' } })
  t.equal(compressed.headers.get('content-encoding'), 'gzip')
  t.equal(await compressed.text(), text)
  const head = await fetch(baseUrl + script, { method: 'HEAD', headers: { 'Accept-Encoding': 'gzip' } })
  t.ok(Number(head.headers.get('content-length')) < text.length / 2)
  t.equal(await head.text(), '')
})

t.test('a page that the browser has is not sent again', async t => {
  const { baseUrl } = await openTestAppliance(t)
  const etag = (await fetch(`${baseUrl}/console/`)).headers.get('etag') ?? ''
  const again = await fetch(`${baseUrl}/console/messages`, { headers: { 'If-None-Match': etag } })
  t.equal(again.status, 304)
  t.equal(await again.text(), '')
})

t.test('what is not there, or is not asked for as a page, is refused', async t => {
  const { baseUrl } = await openTestAppliance(t)
  t.equal((await fetch(`${baseUrl}/console/assets/none.js`)).status, 404)
  const posted = await fetch(`${baseUrl}/console/`, { method: 'POST', body: 'x' })
  t.equal(posted.status, 405)
  t.equal(posted.headers.get('allow'), 'GET, HEAD')
  for (const path of ['/console/..%2f..%2fetc/passwd', '/console/%00', '/console/%'])
    t.match(await (await fetch(baseUrl + path)).text(), /<div id="app">/, path)
})

t.test('mail is shown in a frame that has no origin, and may run one script: its own', async t => {
  const { baseUrl } = await openTestAppliance(t)
  const answer = await fetch(`${baseUrl}/console/mail-frame.html`)
  const script = /<script>([^]*?)<\/script>/.exec(await answer.text())?.[1] ?? ''
  const digest = createHash('sha256').update(script).digest('base64')
  const policy = answer.headers.get('content-security-policy') ?? ''
  const directives = policy.split('; ')
  for (const wanted of [
    'sandbox allow-scripts',
    "default-src 'none'",
    "frame-ancestors 'self'",
    "form-action 'none'",
  ])
    t.ok(directives.includes(wanted), wanted)
  t.ok(directives.includes(`script-src 'sha256-${digest}'`), 'the policy has the digest of the script')
  t.notMatch(policy, /allow-same-origin|connect-src/)
})

t.test('a browser that opens the server is sent to the console; a program is not', async t => {
  const { baseUrl } = await openTestAppliance(t)
  const browser = await fetch(baseUrl, { redirect: 'manual', headers: { Accept: 'text/html,*/*;q=0.8' } })
  t.equal(browser.status, 302)
  t.equal(browser.headers.get('location'), '/console/')
  const bare = await fetch(`${baseUrl}/console`, { redirect: 'manual' })
  t.equal(bare.headers.get('location'), '/console/')
  t.match(await (await fetch(baseUrl)).json(), { error: { code: 'not_found' } })
})
