/** The mail in a browser, over plain HTTP on the running appliance. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { visit } from '../support/api/pages.js'
import { openTestAppliance } from '../support/program/appliance.js'

const VIEW = /\/v\/[\w-]+/

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  return {
    ...postroad,
    post: (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key }),
    /** The path of `{{view_url}}` in the delivered mail. */
    viewOf: async (body: object): Promise<{ id: string; path: string }> => {
      const mail = {
        to: 'ann@one.test',
        from_email: 'me@sender.test',
        subject: 'Hello {{first_name}}',
        ...body,
      }
      const { body: answer } = await postroad.send(key, mail)
      const id = String(answer.data.message_id ?? answer.data.results[0].message_id)
      await postroad.messageOnce(key, id, 'delivered')
      const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
      const { html, text } = await simpleParser(Buffer.from(raw, 'latin1'))
      return { id, path: VIEW.exec(`${html || ''}${text ?? ''}`)?.[0] ?? '' }
    },
    see: (path: string) => visit(postroad.baseUrl + path),
  }
}

t.test('the view link shows the merged message without pixel and tracked links', async t => {
  const { post, viewOf, see } = await open(t)
  await post('/contacts', { email: 'ann@one.test', first_name: 'Ann & Co' })
  const { path } = await viewOf({
    html: '<p>Hi {{first_name}}, <a href="https://shop.example/">shop</a> <a href="{{view_url}}">browser</a></p>',
  })
  const page = await see(path)
  t.match(page, { status: 200, headers: { 'content-type': /^text\/html/, 'cache-control': 'no-store' } })
  t.match(page.text, '<p>Hi Ann &amp; Co, <a href="https://shop.example/">shop</a>')
  t.match(page.text, '/u/', 'it can be unsubscribed from here too')
  t.notMatch(page.text, '/o/')
  const policy = String(page.headers['content-security-policy'])
  t.match(policy, /default-src 'none'.*sandbox /)
  t.notMatch(policy, /allow-scripts|allow-same-origin|allow-forms|script-src/)
})

t.test('a plain text message is shown escaped in the page layout', async t => {
  const { viewOf, see } = await open(t)
  const { path } = await viewOf({ text: 'a < b\n{{view_url}}', subject: 'Tea & milk' })
  const page = await see(path)
  t.match(page, { status: 200, text: /<h1>Tea &amp; milk<\/h1>[^]*a &lt; b/ })
})

t.test('many requests from one address are rate limited', async t => {
  const postroad = await open(t)
  const key = await postroad.makeKey()
  const { body } = await postroad.send(key, {
    ...{ to: Array.from({ length: 20 }, (_, n) => `r${n}@one.test`), from_email: 'me@sender.test' },
    ...{ subject: 'News', html: `<p>Hello {{first_name}}</p>${'<p>News</p>'.repeat(5_000)}{{view_url}}` },
  })
  const paths: string[] = []
  for (const { message_id: id } of body.data.results as { message_id: string }[]) {
    await postroad.messageOnce(key, id, 'delivered')
    const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
    paths.push(VIEW.exec((await simpleParser(Buffer.from(raw, 'latin1'))).text ?? '')?.[0] ?? '')
  }
  const seen = await Promise.all(paths.map(path => postroad.see(path)))
  const refused = seen.filter(({ status }) => status === 429)
  t.ok(refused.length > 0)
  t.match(refused[0], { headers: { 'retry-after': '1' }, text: /<h1>/ })
  t.equal(seen.filter(({ status }) => status === 200).length, seen.length - refused.length)
  for (const path of paths) t.equal((await postroad.see(path)).status, 200, 'one after the other')
})

t.test('invalid tokens and pruned messages give a 404', async t => {
  const { viewOf, see, sql } = await open(t)
  const { path } = await viewOf({ html: '<p>{{view_url}}</p>' })
  t.match(await see(`/v/${'A'.repeat(40)}`), { status: 404, text: /This link does not work/ })
  t.match(await see(`${path.slice(0, -1)}${path.endsWith('A') ? 'B' : 'A'}`), { status: 404 })
  sql('update message_contents set html = null, merging = null')
  const gone = await see(path)
  t.match(gone, { status: 404, text: /<h1>/ })
  t.notMatch(gone.text, /does not work/, 'the link is ours, the mail is gone')
})
