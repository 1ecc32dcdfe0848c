/** The public archive over HTTP on the running appliance: its list, pages and feed, and who decides what is in it. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { parseFeed } from '../../src/feeds/fetch-feed.js'
import { MADE_UP, openCampaigns } from './open-campaigns.js'

const HTML =
  '<h1>Hello {{firstName|friend}}</h1><a href="https://shop.test/jugs">Jugs</a><a href="{{unsubscribe_url}}">Leave</a><a href="{{view_url}}">See</a>'

async function openArchive(t: Test) {
  const opened = await openCampaigns(t)
  const { baseUrl, workspaceId, draft, sendIt, campaignOnce, make, run } = opened
  await run('workspace', 'set', workspaceId, 'company_name=Jug & Co')
  const template = await make('/templates', { name: 'T', html: HTML })
  let made = 0
  /** Another one for each campaign. */
  const next = () => `ann${made++ === 0 ? '' : made}@x.test`
  const page = async (path = '', headers = {}) => {
    const answer = await fetch(`${baseUrl}/archive/${workspaceId}${path}`, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  return {
    ...opened,
    page,
    /** A campaign to ann, sent and completed. */
    sent: async (fields: object = {}) => {
      const id = await draft([next()], { template_id: template, ...fields })
      await sendIt(id)
      await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
      return id
    },
    draftOf: (fields: object = {}) => draft([next()], { template_id: template, ...fields }),
  }
}

// proves: Campaigns and templates > POST /campaigns
// operations: GET /archive
t.test('what is archived is listed once it is sent, newest first, and nothing else is', async t => {
  const { sent, draftOf, page, get, workspaceId } = await openArchive(t)
  t.match((await page()).text, /Nothing has been published here yet/)
  const first = await sent({ archive: true, subject: 'First <3 {{firstName|dear reader}}' })
  await sent({ subject: 'Private' })
  const second = await sent({ archive: true, subject: 'Second' })
  await draftOf({ archive: true, subject: 'Not yet' })
  const { status, headers, text } = await page()
  t.equal(status, 200)
  t.match(text, /Second[\s\S]*January 5, 2026[\s\S]*First &lt;3 dear reader/)
  t.match(text, `/archive/${workspaceId}/${second}`)
  t.notMatch(text, /Private|Not yet/)
  t.match(headers.get('Cache-Control'), 'public, max-age=300')
  t.equal(headers.get('Vary'), 'Accept-Language')
  t.match(headers.get('X-Robots-Tag'), 'noindex')
  t.match(text, /<meta name="robots" content="noindex/)
  t.match((await page('', { 'Accept-Language': 'de' })).text, /Bisherige E-Mails/)
  t.match((await get('/archive')).body.data, {
    ...{ campaigns: 2, url: new RegExp(`/archive/${workspaceId}$`), feed_url: /feed\.xml$/ },
  })
  t.ok(first)
})

t.test('a page shows the mail as nobody gets it: no name, no tracking, nobody to unsubscribe', async t => {
  const { sent, page, get, capture } = await openArchive(t)
  const id = await sent({ archive: true, subject: 'News' })
  const [{ message_id: message }] = (await get(`/campaigns/${id}/recipients`)).body.data
  const mail = await simpleParser(Buffer.from(String((await capture(message)).body.data.raw), 'latin1'))
  t.match(mail.html, /\/c\//, 'the mail itself is tracked')
  const { status, headers, text } = await page(`/${id}`)
  t.equal(status, 200)
  t.match(text, /Hello friend/)
  t.match(text, /<a href="https:\/\/shop\.test\/jugs">/)
  t.match(text, /<a href="#">Leave<\/a>/)
  t.match(text, `/archive/`, 'its own address')
  t.notMatch(text, /ann@x\.test|\/(c|o|u|p|v)\/[\w-]{16,}|<img/)
  t.match(headers.get('Content-Security-Policy'), /default-src 'none'.*sandbox/)
  t.notMatch(headers.get('Content-Security-Policy'), /allow-scripts|allow-same-origin/)
  t.match(headers.get('Cache-Control'), 'public, max-age=300')
  t.match(headers.get('X-Robots-Tag'), 'noindex')
})

t.test('search engines may list what asks for it', async t => {
  const { sent, page } = await openArchive(t)
  const id = await sent({ archive: true, archive_indexed: true })
  t.equal((await page(`/${id}`)).headers.get('X-Robots-Tag'), null)
  const list = await page()
  t.equal(list.headers.get('X-Robots-Tag'), null)
  t.notMatch(list.text, /noindex/)
})

t.test('the feed is RSS with the same campaigns', async t => {
  const { sent, page, workspaceId } = await openArchive(t)
  const id = await sent({ archive: true, subject: 'Tea & <cake>' })
  const { headers, text } = await page('/feed.xml')
  t.match(headers.get('Content-Type'), 'application/rss+xml')
  const feed = await parseFeed(Buffer.from(text), '', 'https://x.test/')
  t.match(feed, { title: 'Jug & Co', items: [{ title: 'Tea &', at: Date.parse('2026-01-05T10:00:00Z') }] })
  t.match(feed.items[0]?.link, new RegExp(`/archive/${workspaceId}/${id}$`))
})

// proves: Campaigns and templates > POST /campaigns
t.test('a campaign is taken out of the archive and put back after it was sent, if it was in it', async t => {
  const { sent, page, patch, get, draftOf, sendIt } = await openArchive(t)
  const id = await sent({ archive: true })
  t.match(await patch(`/campaigns/${id}`, { archive: false }), {
    status: 200,
    body: { data: { archive: false } },
  })
  const gone = await page(`/${id}`)
  t.equal(gone.status, 404)
  t.match(gone.text, /This email is not published/)
  t.notMatch((await page()).text, id)
  await patch(`/campaigns/${id}`, { archive: true })
  t.equal((await page(`/${id}`)).status, 200)
  t.match((await get(`/campaigns/${id}`)).body.data, { status: 'completed', archive: true })
  const conflict = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await patch(`/campaigns/${id}`, { archive: true, name: 'x' }), conflict)
  const other = await sent()
  t.match(await patch(`/campaigns/${other}`, { archive: true }), conflict)
  const late = await draftOf()
  t.match(await sendIt(late, { send_at: '2026-01-06T10:00:00Z' }), { status: 202 })
  t.match(await patch(`/campaigns/${late}`, { archive: true }), { status: 200 })
})

t.test('what is not there is a page with 404, whatever is asked for', async t => {
  const { page, baseUrl, sent } = await openArchive(t)
  const id = await sent({ archive: true })
  for (const path of [`/${MADE_UP}`, '/x', '/%00', `/${id}'`]) t.equal((await page(path)).status, 404, path)
  for (const path of [`/archive/${MADE_UP}`, '/archive/x/feed.xml', `/archive/${MADE_UP}/${id}`, '/archive'])
    t.equal((await fetch(baseUrl + path)).status, 404, path)
  t.equal((await page('?before=x')).status, 200)
  t.notMatch((await page('?before=1')).text, id)
})

t.test('a copy keeps the choice, a resend is not archived again', async t => {
  const { sent, post } = await openArchive(t)
  const id = await sent({ archive: true })
  t.match((await post(`/campaigns/${id}/duplicate`, {})).body.data, { archive: true })
  t.match((await post(`/campaigns/${id}/resend`, {})).body.data, { archive: false })
})
