/** A campaign's report: over time, by provider, in a segment, revenue, and the click map, over HTTP on the running appliance. */
import { simpleParser } from 'mailparser'
import t from 'tap'
import { drawn, linksIn } from '../../src/campaigns/results/click-map.js'
import { bucketOf, bucketsUpTo } from '../../src/campaigns/results/report-counters.js'
import { until } from '../support/until.js'
import { openCampaigns } from './open-campaigns.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const MACHINE = 'Mozilla/5.0 (compatible; Barracuda Sentinel (EE))'
const CONTACTS = ['a@gmail.com', 'b@googlemail.com', 'c@hotmail.co.uk', 'd@shop.example', 'e@other.example']

/** The tracked paths of a mail in the local inbox. */
async function pathsIn(raw: string) {
  const { html } = await simpleParser(Buffer.from(raw, 'latin1'))
  const found = [...String(html).matchAll(/(?:href|src)="https:\/\/mail\.shop\.test(\/[co]\/[^"]+)"/g)].map(
    ([, path]) => path!,
  )
  return {
    open: found.find(path => path.startsWith('/o/')) ?? '',
    clicks: found.filter(path => path.startsWith('/c/')),
  }
}

// proves: Campaigns and templates > GET /campaigns/:id
// answers: GET /campaigns/{id}/click-map: not_found; GET /campaigns/{id}/report: not_found
// answers: GET /campaigns/{id}/segments/{segment_id}: conflict
t.test('the report says when, at whose provider, in which segment and on which link', async t => {
  const opened = await openCampaigns(t, { env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' } })
  const { draft, sendIt, campaignOnce, get, post, make, change, capture, clock, baseUrl } = opened
  const template = await make('/templates', {
    name: 'Two links',
    html:
      '<p>Hello {{firstName|friend}}, <a href="https://shop.test/jugs">jugs</a>, ' +
      '<a href="https://shop.test/cups?a=1&amp;b=2">cups</a> <a href="{{unsubscribe_url}}">Leave</a></p>',
  })
  const id = await draft(CONTACTS, { template_id: template })
  const empty = { timeline: [], machine_opens: 0, machine_clicks: 0, providers: [], revenue: [] }
  const counted = { counted_at: '2026-01-05T10:00:00.000Z', total_recipients: 0, stats: { sends: 0 } }
  t.match((await get(`/campaigns/${id}/report`)).body.data, { ...counted, ...empty }, 'of a draft')
  t.same((await get(`/campaigns/${id}/click-map`)).body.data, { variant: null, html: null, links: [] })
  await sendIt(id)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  const recipients = (await get(`/campaigns/${id}/recipients`)).body.data as { message_id: string }[]
  const paths = await Promise.all(
    recipients.map(async ({ message_id: message }) =>
      pathsIn(String((await capture(message)).body.data.raw)),
    ),
  )
  const visit = async (path: string, agent = BROWSER) => {
    await clock.advance(30_000)
    await fetch(baseUrl + path, { redirect: 'manual', headers: { 'User-Agent': agent } })
  }
  await visit(paths[0]!.open)
  await visit(paths[3]!.open, MACHINE)
  await visit(paths[0]!.clicks[0]!)
  await visit(paths[2]!.clicks[0]!)
  await visit(paths[2]!.clicks[1]!)
  await clock.advance(2 * 3_600_000)
  await visit(paths[1]!.open)
  await visit(paths[1]!.clicks[0]!)
  const report = async () => (await get(`/campaigns/${id}/report`)).body.data as Report
  await until('the counts', async () => {
    await clock.advance(30_000)
    const { timeline, machine_opens: machine } = await report()
    return machine === 1 && timeline.reduce((sum, { clicks }) => sum + (clicks ?? 0), 0) === 4
  })
  const { timeline, providers } = await report()
  t.match(timeline[0], {
    ...{ starts_at: '2026-01-05T10:00:00.000Z', span: 'hour', opens: 2, unique_opens: 2 },
    ...{ clicks: 3, unique_clicks: 2, machine_opens: 1, machine_clicks: 0 },
  })
  t.match(timeline[1], { starts_at: '2026-01-05T11:00:00.000Z', opens: 0 }, 'without gaps')
  t.match(timeline[2], { starts_at: '2026-01-05T12:00:00.000Z', opens: 1, unique_opens: 1, clicks: 1 })
  t.equal(timeline.length, 3)
  t.match(
    providers.map(({ provider, sends, delivered, unique_opens: opens, unique_clicks: clicks }) => ({
      ...{ provider, sends, delivered, opens, clicks },
    })),
    [
      { provider: 'Gmail', sends: 2, delivered: 2, opens: 2, clicks: 2 },
      { provider: 'Outlook', sends: 1, delivered: 1, opens: 1, clicks: 1 },
      { provider: null, sends: 2, delivered: 2, opens: 0, clicks: 0 },
    ],
  )
  t.match(providers[0], { delivery_rate: 1, open_rate: 1, click_rate: 1, bounce_rate: 0 })
  const { stats, rates } = await report()
  t.match(stats, { sends: 5, delivered: 5, opens: 3, unique_opens: 3, clicks: 4, unique_clicks: 3 })
  t.match(rates, { delivery_rate: 1, open_rate: 0.6, click_rate: 0.6 }, 'of the same moment')

  const map = (await get(`/campaigns/${id}/click-map`)).body.data
  t.match(map.links, [
    { number: 1, url: 'https://shop.test/jugs', clicks: 3, unique_clicks: 3, share: 0.75 },
    { number: 2, url: 'https://shop.test/cups?a=1&b=2', clicks: 1, unique_clicks: 1, share: 0.25 },
  ])
  t.match(map.html, /Hello friend, <a href="https:\/\/shop\.test\/jugs"><span[^]*1 · 75%<\/span><\/span>jugs/)
  t.match(map.html, /2 · 25%/)
  t.notMatch(
    map.html,
    /mail\.shop\.test|<script|3 · /,
    'nothing is tracked in it, and our own links have no badge',
  )

  const at = (value: string) => ({ field: 'email', operator: 'contains', value })
  const segment = await make('/segments', {
    name: 'At Google',
    conditions: { match: 'any', rules: [at('@gmail'), at('@googlemail')] },
  })
  t.match((await get(`/campaigns/${id}/segments/${segment}`)).body.data, {
    ...{ segment_id: segment, segment_name: 'At Google', recipients: 2, delivered: 2 },
    ...{ unique_opens: 2, unique_clicks: 2, bounces: 0, open_rate: 1, click_rate: 1 },
  })
  t.equal((await get(`/campaigns/${id}/segments/${id}`)).status, 404)
  t.equal((await get(`/campaigns/${id}/segments/x`)).status, 404)

  const buy = async (email: string, value: number, currency: string) => {
    const { data } = (await get(`/contacts?search=${encodeURIComponent(email)}`)).body
    return post('/conversions', { contact_id: data[0].id, value, currency })
  }
  t.equal((await buy('b@googlemail.com', 20.5, 'EUR')).status, 201)
  await buy('b@googlemail.com', -0.5, 'EUR')
  await buy('c@hotmail.co.uk', 5, 'USD')
  await buy('e@other.example', 9, 'EUR')
  t.same((await report()).revenue, [
    { currency: 'EUR', conversions: 2, value: 20 },
    { currency: 'USD', conversions: 1, value: 5 },
  ])
  change(['update campaigns set recipients_pruned_at = finished_at'])
  t.match(await get(`/campaigns/${id}/segments/${segment}`), {
    status: 409,
    body: { error: { code: 'conflict', message: 'the recipients of this campaign are no longer kept' } },
  })
  t.equal((await get('/campaigns/x/report')).status, 404)
  t.equal((await get('/campaigns/x/click-map')).status, 404)
})

interface Report {
  readonly stats: object
  readonly rates: object
  readonly timeline: readonly Readonly<Record<string, number>>[]
  readonly machine_opens: number
  readonly providers: readonly Readonly<Record<string, unknown>>[]
  readonly revenue: readonly object[]
}

// proves: Campaigns and templates > GET /campaigns/:id
t.test('hours are counted up to the fourth midnight after the start, then days up to ninety', t => {
  const start = Date.parse('2026-03-01T22:40:00Z')
  const of = (text: string) => {
    const bucket = bucketOf(start, Date.parse(text))
    return bucket && `${new Date(bucket.startsAt).toISOString().slice(0, 13)} ${bucket.lengthMs / 3_600_000}`
  }
  t.equal(of('2026-03-01T21:59:59Z'), undefined)
  t.equal(of('2026-03-01T22:10:00Z'), '2026-03-01T22 1')
  t.equal(of('2026-03-04T23:59:59Z'), '2026-03-04T23 1')
  t.equal(of('2026-03-05T00:00:00Z'), '2026-03-05T00 24')
  t.equal(of('2026-05-29T23:59:59Z'), '2026-05-29T00 24')
  t.equal(of('2026-05-30T00:00:00Z'), undefined)
  t.equal(bucketsUpTo(start, Infinity).length, 2 + 3 * 24 + 86)
  t.end()
})

// proves: Campaigns and templates > GET /campaigns/:id
t.test('badges stand where links are, whatever the HTML', t => {
  const html =
    '<!-- <a href="https://x.test/no"> --><a class=b href=https://x.test/a>A</a><a href="mailto:a@x.test">M</a>' +
    '<map><area href="https://x.test/area"></map><a href="https://x.test/a">again</a><a name="x">no</a>'
  const links = linksIn(html, { utm_source: 'news' })
  t.same(
    links.map(({ url }) => url),
    ['https://x.test/a?utm_source=news', 'https://x.test/a?utm_source=news'],
  )
  const click = (url: string | null, clicks: number) => ({ url, clicks, uniqueClicks: clicks })
  const map = drawn(html, links, [
    click('https://x.test/a?utm_source=news', 1),
    click('https://x.test/area?utm_source=news', 2),
    click(null, 1),
  ])
  t.match(map.links, [
    { number: 1, clicks: 1, share: 0.25 },
    { number: null, clicks: 2, share: 0.5 },
    { number: null, url: null, share: 0.25 },
  ])
  t.equal(map.html?.split('1 · 25%').length, 3, 'both links to it')
  t.equal(
    map.html?.replace(/<span style="all:initial.*?<\/span><\/span>/g, ''),
    html,
    'nothing else is changed',
  )
  t.same(drawn('<p>No links</p>', [], []), { html: '<p>No links</p>', links: [] })
  t.end()
})
