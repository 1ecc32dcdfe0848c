/** What is counted of a campaign, as people and machines act on its mail, over HTTP on the running appliance. */
import t from 'tap'
import { follow } from '../../src/campaigns/results/campaign-consumer.js'
import { simpleParser } from 'mailparser'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

/** The tracked links of a mail in the local inbox. */
async function linksIn(raw: string) {
  const { html, headers } = await simpleParser(Buffer.from(raw, 'latin1'))
  const found = [...String(html).matchAll(/(?:href|src)="https:\/\/mail\.shop\.test(\/[co]\/[^"]+)"/g)]
  const list = headers.get('list') as unknown as { unsubscribe?: { url?: string } } | undefined
  return {
    click: found.find(([, path]) => path!.startsWith('/c/'))?.[1] ?? '',
    open: found.find(([, path]) => path!.startsWith('/o/'))?.[1] ?? '',
    unsubscribe: (list?.unsubscribe?.url ?? '').replace('https://mail.shop.test', ''),
  }
}

t.test('opens, clicks and unsubscribes are counted, each recipient once where that is asked', async t => {
  const { draft, sendIt, campaignOnce, get, capture, clock, baseUrl } = await openCampaigns(t, {
    env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' },
  })
  const id = await draft(addresses(4))
  await sendIt(id)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  const recipients = (await get(`/campaigns/${id}/recipients`)).body.data as { message_id: string }[]
  const links = await Promise.all(
    recipients.map(async ({ message_id: message }) =>
      linksIn(String((await capture(message)).body.data.raw)),
    ),
  )
  const visit = async (path: string) => {
    await clock.advance(30_000)
    const { status } = await fetch(baseUrl + path, { redirect: 'manual', headers: { 'User-Agent': BROWSER } })
    return status
  }
  t.equal(await visit(links[0]!.open), 200)
  t.equal(await visit(links[0]!.open), 200)
  t.equal(await visit(links[0]!.click), 302)
  t.equal(await visit(links[1]!.click), 302)
  t.equal(await visit(links[1]!.click), 302)
  const { status } = await fetch(baseUrl + links[2]!.unsubscribe, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'List-Unsubscribe=One-Click',
  })
  t.equal(status, 200)
  await until('the counts', async () => {
    await clock.advance(30_000)
    const { stats } = (await get(`/campaigns/${id}`)).body.data as { stats: Record<string, number> }
    return stats['clicks'] === 3 && stats['unsubscribes'] === 1
  })
  t.match((await get(`/campaigns/${id}`)).body.data, {
    stats: {
      sends: 4,
      delivered: 4,
      opens: 3,
      unique_opens: 2,
      clicks: 3,
      unique_clicks: 2,
      unsubscribes: 1,
    },
    rates: { open_rate: 0.5, click_rate: 0.5, unsubscribe_rate: 0.25 },
  })
  t.match((await get(`/campaigns/${id}/links`)).body, {
    data: [{ url: 'https://shop.test/jugs', clicks: 3, unique_clicks: 2 }],
    pagination: { total: 1 },
  })
  const statuses = async (query: string) =>
    ((await get(`/campaigns/${id}/recipients${query}`)).body.data as { status: string; email: string }[]).map(
      ({ email, status }) => `${email} ${status}`,
    )
  t.same(await statuses(''), [
    'c0@x.test clicked',
    'c1@x.test clicked',
    'c2@x.test delivered',
    'c3@x.test delivered',
  ])
  t.same(await statuses('?status=clicked&limit=1&offset=1'), ['c1@x.test clicked'])
  t.same(await statuses('?status=bounced'), [])
  const [first] = (await get(`/campaigns/${id}/recipients?limit=1`)).body.data
  t.ok(first.delivered_at && first.opened_at && first.clicked_at && first.sent_at)
  t.equal((await get(`/campaigns/${id}/recipients?status=nonsense`)).status, 400)
})

// proves: Campaigns and templates > POST /campaigns
// answers: POST /campaigns/{id}/resend: conflict
t.test(
  'a resend goes to those who had it and have not opened it, or not clicked, when it starts',
  async t => {
    const { draft, sendIt, campaignOnce, get, post, patch, capture, clock, baseUrl } = await openCampaigns(
      t,
      {
        env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' },
      },
    )
    const id = await draft(addresses(5), { from_name: 'Shop' })
    t.match(
      await post(`/campaigns/${id}/resend`, {}),
      { status: 409, body: { error: { code: 'conflict' } } },
      'a draft',
    )
    await sendIt(id)
    await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
    const made = await post(`/campaigns/${id}/resend`, { subject: 'In case you missed it' })
    const resend = { list_id: null, segment_id: null, resend_of: id, resend_to: 'not_opened' }
    t.match(made, {
      status: 201,
      body: {
        data: {
          ...{ ...resend, name: 'Resend of January', subject: 'In case you missed it', status: 'draft' },
          ...{ from_name: 'Shop', total_recipients: 0, stats: { sends: 0 } },
        },
      },
    })
    const unclicked = await post(`/campaigns/${id}/resend`, { who: 'not_clicked', name: 'Again' })
    t.match(unclicked.body.data, { name: 'Again', subject: 'News', resend_to: 'not_clicked' })
    // c0 opens, c1 clicks, c2 unsubscribes; c3 and c4 do nothing. All of it after the drafts were made.
    const recipients = (await get(`/campaigns/${id}/recipients`)).body.data as { message_id: string }[]
    for (const [at, kind] of (['open', 'click'] as const).entries()) {
      const links = await linksIn(String((await capture(recipients[at]!.message_id)).body.data.raw))
      await clock.advance(30_000)
      await fetch(baseUrl + links[kind], { redirect: 'manual', headers: { 'User-Agent': BROWSER } })
    }
    await until('the opens', async () => {
      await clock.advance(30_000)
      const { stats } = (await get(`/campaigns/${id}`)).body.data as { stats: Record<string, number> }
      return stats['unique_opens'] === 2
    })
    const [c2] = (await get('/contacts?search=c2')).body.data
    await patch(`/contacts/${c2.id}`, { subscribed: false })
    const audience = async (of: string) => (await get(`/campaigns/${of}/audience`)).body.data
    t.has(await audience(made.body.data.id), {
      ...{ total: 3, mailable: 2, unsubscribed: 1, bounced: 0, suppressed: 0 },
    })
    const mailed = async (of: string) => {
      t.match(await sendIt(of), { status: 202, body: { data: { excluded: { unsubscribed: 1 } } } })
      await campaignOnce(of, 'the end', ({ status }) => status === 'completed')
      return ((await get(`/campaigns/${of}/recipients`)).body.data as { email: string }[]).map(
        ({ email }) => email,
      )
    }
    t.same(await mailed(made.body.data.id), ['c3@x.test', 'c4@x.test'])
    t.same(await mailed(unclicked.body.data.id), ['c0@x.test', 'c3@x.test', 'c4@x.test'])
    const copy = await post(`/campaigns/${made.body.data.id}/duplicate`, {})
    t.match(copy, { status: 201, body: { data: { ...resend, name: 'Copy of Resend of January' } } })
    const segment = (await post('/segments', { name: 'All' })).body.data.id
    t.match((await patch(`/campaigns/${copy.body.data.id}`, { segment_id: segment })).body, {
      data: { segment_id: segment, resend_of: null, resend_to: null },
    })
    t.match(await post(`/campaigns/${id}/resend`, { who: 'opened' }), {
      status: 400,
      body: { error: { code: 'validation_error', path: 'who' } },
    })
    t.match(await post(`/campaigns/${id}/resend`, { subject: '<b></b>' }), { status: 400 })
    t.equal((await post('/campaigns/x/resend', {})).status, 404)
  },
)

t.test('what leaves `sent` is settled once, whatever comes in which order', t => {
  const recipient: Parameters<typeof follow>[0] = {
    ...{ campaign: 1, contact: 1, status: 'sent', reason: null, messageId: 'm' },
    ...{ hasOpened: false, hasClicked: false, variant: null },
  }
  const kinds = ['sent', 'delivered', 'opened', 'clicked', 'bounced', 'failed', 'suppressed'] as const
  for (const first of kinds)
    for (const second of kinds)
      for (const third of kinds) {
        let now = recipient
        const sums = new Map<string, number>()
        for (const kind of [first, second, third]) {
          const event = { kind: `email.${kind}`, payload: { reason: 'x', isBot: false, url: 'u' } }
          const step = follow(now, event as never)
          now = step.recipient
          for (const [name, by] of Object.entries(step.counted)) sums.set(name, (sums.get(name) ?? 0) + by)
        }
        const ended = (sums.get('done') ?? 0) + (sums.get('skipped') ?? 0) + (sums.get('cancelled') ?? 0)
        const name = `${first} ${second} ${third}`
        t.equal(ended, now.status === 'sent' ? 0 : 1, name)
        t.equal(sums.get('queued') ?? 0, -ended, name)
        t.equal(sums.get('uniqueOpens') ?? 0, now.hasOpened ? 1 : 0, name)
        t.equal(sums.get('uniqueClicks') ?? 0, now.hasClicked ? 1 : 0, name)
      }
  t.end()
})
