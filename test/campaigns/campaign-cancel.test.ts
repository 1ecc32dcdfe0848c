/** Ended campaigns on the running appliance: how their recipients are shown. */
import t from 'tap'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

/** More than are found in one look. */
const CONTACTS = 9_000

t.test('a campaign cancelled while its recipients are being found shows each as cancelled', async t => {
  const { make, post, get, sendIt, campaignOnce, one } = await openCampaigns(t)
  const list = await make('/lists', { name: 'News' })
  const file = ['email', ...Array.from({ length: CONTACTS }, (_, at) => `c${at}@x.test`)].join('\n')
  const headers = { 'Content-Type': 'text/csv' }
  t.equal((await post(`/contacts/import?list_id=${list}`, file, { headers })).status, 202)
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const about = { name: 'January', subject: 'News', template_id: template, list_id: list }
  const id = await make('/campaigns', about)
  await campaignOnce(id, 'the contacts', () => one('select count(*) from contacts') === CONTACTS)
  const sent = await sendIt(id)
  t.match(sent.body.data, { total_recipients: CONTACTS })
  const answer = await post(`/campaigns/${id}/cancel`, {})
  t.match(answer, { status: 200, body: { data: { status: 'cancelled', total_recipients: CONTACTS } } })
  t.match(await campaignOnce(id, 'the end', ({ progress }) => progress.cancelled === CONTACTS), {
    status: 'cancelled',
    total_recipients: CONTACTS,
    progress: { pending: 0, queued: 0, done: 0, skipped: 0 },
    stats: { sends: 0 },
  })
  const page = { total: CONTACTS, limit: 1, offset: CONTACTS - 1, has_more: false }
  for (const query of ['', '&status=cancelled'])
    t.match((await get(`/campaigns/${id}/recipients?limit=1&offset=${CONTACTS - 1}${query}`)).body, {
      data: [{ email: /@x\.test$/, status: 'cancelled', message_id: null }],
      pagination: page,
    })
  t.equal(one('select count(*) from messages'), 0)
})

t.test('once the recipients of an old campaign are forgotten its pages end, and its counts stay', async t => {
  const { draft, get, sendIt, campaignOnce, clock } = await openCampaigns(t)
  const id = await draft(addresses(3))
  await sendIt(id)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  clock.skip(401 * 24 * 3_600_000)
  const page = await until('the forgetting', async () => {
    await clock.advance(600_000)
    const { body } = await get(`/campaigns/${id}/recipients`)
    return body.data.length === 0 && body.pagination.total === 0 && body.pagination
  })
  t.match(page, { has_more: false })
  t.match((await get(`/campaigns/${id}`)).body.data, { total_recipients: 3, progress: { done: 3 } })
})
