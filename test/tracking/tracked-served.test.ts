/** Links and pixel of delivered mail, followed over plain HTTP on the running appliance. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { visit } from '../support/api/pages.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const BROWSER = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
const MACHINE = { 'User-Agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' }
const PIXEL = /src="[^"]*(\/o\/[\w-]+\.gif)"/
/** A mail is looked at by machines in its first seconds; later visits are people's. */
const LATER_MS = 600_000

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const get = (path: string) => postroad.get(`/api/v1${path}`, { key })
  return {
    ...postroad,
    /** Sends. @returns the delivered html */
    async delivered(body: object) {
      const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'News', ...body }
      const { body: answer } = await postroad.send(key, mail)
      const id = String(answer.data.results[0].message_id)
      await postroad.messageOnce(key, id, 'delivered')
      const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
      const { html } = await simpleParser(Buffer.from(raw, 'latin1'))
      await postroad.clock.advance(LATER_MS)
      return { id, html: html || '' }
    },
    make: async (path: string, body: object) => {
      const { status, body: answer } = await postroad.post(`/api/v1${path}`, body, { key })
      if (status > 202) throw new Error(JSON.stringify(answer))
      return answer.data
    },
    /** @returns the id of an active automation */
    async flow(body: object): Promise<string> {
      const { body: made } = await postroad.post('/api/v1/automations', { name: 'x', ...body }, { key })
      const path = `/api/v1/automations/${made.data.id}`
      const { status, body: answer } = await postroad.patch(path, { status: 'active' }, { key })
      if (status !== 200) throw new Error(JSON.stringify(answer))
      return made.data.id
    },
    shown: async (path: string) => (await get(path)).body.data,
    follow: (path: string, headers: Record<string, string> = BROWSER, method = 'GET') =>
      visit(postroad.baseUrl + path, { method, headers }),
    /** The message once it has the status; the clock advances until visits are counted. */
    message: async (id: string, status: string) =>
      until(`the message to be ${status}`, async () => {
        await postroad.clock.advance(1_000)
        const { data } = (await get(`/email/${id}`)).body
        return data.status === status ? data : undefined
      }),
    /** The report once it counts so many opens and clicks. */
    counted: (opens: number, clicks: number) =>
      until(`${opens} opens and ${clicks} clicks to be counted`, async () => {
        await postroad.clock.advance(1_000)
        const { data } = (await get('/analytics?period=1d')).body
        return data.opens === opens && data.clicks === clicks
      }),
  }
}

const hrefs = (html: string) => [...html.matchAll(/href="([^"]*)"/g)].map(([, url = '']) => url)
const pathOf = (url: string) => new URL(url).pathname

// proves: Other resources > Analytics totals sends campaign_sends api_sends
t.test('a tracked link redirects to its target, and a person is counted once', async t => {
  const postroad = await open(t)
  const { id, html } = await postroad.delivered({
    html: '<p><a href="https://shop.example/tea?a=1&amp;b=2">Tea</a></p>',
  })
  const [tea = ''] = hrefs(html)
  t.match(pathOf(tea), /^\/c\//)
  t.match(await postroad.follow(pathOf(tea)), {
    status: 302,
    headers: {
      location: 'https://shop.example/tea?a=1&b=2',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': /^default-src 'none'/,
    },
  })
  const clicked = (await postroad.message(id, 'clicked')) as { opened_at: unknown; clicked_at: unknown }
  t.ok(clicked.opened_at && clicked.clicked_at, 'who clicks has opened')
  await postroad.follow(pathOf(tea))
  await t.resolves(postroad.counted(1, 2))
})

// proves: decisions: Added after the whole contract > Opens and clicks A click
t.test('a click without a loaded pixel is an open for contacts, triggers and waiting runs too', async t => {
  const postroad = await open(t)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'default_from_email=me@sender.test')
  const { id: contact } = await postroad.make('/contacts', { email: 'ann@one.test' })
  const [starts, waits] = await Promise.all([
    postroad.flow({
      trigger_type: 'email_opened',
      trigger_config: { frequency: 'every_time' },
      steps: [{ step_type: 'tag', config: { tagName: 'opened' } }],
    }),
    postroad.flow({
      trigger_type: 'manual',
      steps: [{ step_type: 'wait_for_event', config: { eventType: 'email_opened', timeoutDays: 30 } }],
    }),
  ])
  const waiting = await postroad.make(`/automations/${waits}/trigger`, { contact_id: contact })
  const { html } = await postroad.delivered({ html: '<body><a href="https://shop.example/">Tea</a></body>' })
  const [tea = ''] = hrefs(html)
  const [, pixel = ''] = PIXEL.exec(html) ?? []
  await postroad.follow(pathOf(tea))
  await t.resolves(postroad.counted(1, 1))
  const visited = await until('the contact to show the click', async () => {
    const shown = await postroad.shown(`/contacts/${contact}`)
    return shown['last_clicked_at'] !== null && shown
  })
  t.equal(visited['last_opened_at'], visited['last_clicked_at'])
  const run = await until('the waiting run to continue', async () => {
    const shown = await postroad.shown(`/automations/${waits}/runs/${waiting.id}`)
    return shown['status'] === 'completed' && shown
  })
  t.match(run, { steps: [{ outcome: 'waiting' }, { detail: { event: 'email_opened' } }] })
  t.equal((await postroad.shown(`/automations/${starts}/runs`)).length, 1)
  await postroad.follow(pixel)
  await t.resolves(postroad.counted(2, 1), 'a pixel that is loaded later is one more open, not the first')
})

// proves: Other resources > Analytics totals sends campaign_sends api_sends
t.test('the pixel at the end of the body records an open', async t => {
  const postroad = await open(t)
  const { id, html } = await postroad.delivered({ html: '<html><body><p>Tea</p></body></html>' })
  const [, pixel = ''] = PIXEL.exec(html) ?? []
  t.match(await postroad.follow(pixel), {
    status: 200,
    headers: { 'content-type': 'image/gif', 'content-security-policy': /^default-src 'none'/ },
  })
  t.match(await postroad.message(id, 'opened'), { clicked_at: null })
  await t.resolves(postroad.counted(1, 0))
})

// proves: decisions: Email > Tracking never rewrites unsubscribe preferences
t.test('links to our own pages are not tracked', async t => {
  const postroad = await open(t)
  const kept = ['mailto:ann@one.test', 'tel:+3312', '#top', 'ftp://files.example/', 'sms:+3312']
  const { html } = await postroad.delivered({
    html: `<p>${kept.map(url => `<a href="${url}">x</a>`).join('')}<a href="{{unsubscribe_url}}">u</a><a href="{{preferences_url}}">p</a></p>`,
  })
  const found = hrefs(html)
  t.same(found.slice(0, kept.length), kept)
  t.match(found.slice(kept.length).map(pathOf).slice(0, 2), [/^\/u\//, /^\/p\//])
})

// proves: decisions: Email > Tracking never rewrites unsubscribe preferences
t.test('visits by machines change neither status nor counters', async t => {
  const postroad = await open(t)
  const { id, html } = await postroad.delivered({ html: '<p><a href="https://shop.example/">Tea</a></p>' })
  const [tea = ''] = hrefs(html)
  t.match(await postroad.follow(pathOf(tea), MACHINE), { status: 302 })
  t.match(await postroad.follow(pathOf(tea), BROWSER, 'HEAD'), { status: 302, text: '' })
  await postroad.clock.advance(120_000)
  t.match(await postroad.message(id, 'delivered'), { opened_at: null, clicked_at: null })
  await t.resolves(postroad.counted(0, 0))
})

// proves: Email > track_opens | track_clicks
t.test('a message without tracking has no pixel and no tracked links', async t => {
  const postroad = await open(t)
  const { html } = await postroad.delivered({
    html: '<p><a href="https://shop.example/">Tea</a></p>',
    track_opens: false,
    track_clicks: false,
  })
  t.equal(hrefs(html)[0], 'https://shop.example/')
  t.notMatch(html, /\/o\//)
  const opensOnly = await postroad.delivered({
    html: '<p><a href="https://shop.example/">Tea</a></p>',
    track_clicks: false,
  })
  t.equal(hrefs(opensOnly.html)[0], 'https://shop.example/')
  t.match(opensOnly.html, PIXEL)
})

t.test('a forged link redirects nowhere', async t => {
  const postroad = await open(t)
  const { html } = await postroad.delivered({ html: '<p><a href="https://shop.example/">Tea</a></p>' })
  const path = pathOf(hrefs(html)[0] ?? '')
  const forged = path.replace(
    /^(\/c\/)(.)/,
    (_, start: string, first: string) => start + (first === 'A' ? 'B' : 'A'),
  )
  t.match(await postroad.follow(forged), {
    status: 404,
    headers: { location: undefined },
    text: /This link does not work/,
  })
})
