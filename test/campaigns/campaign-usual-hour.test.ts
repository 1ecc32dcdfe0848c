/** Campaigns whose mail goes out at each recipient's usual hour, over HTTP on the running appliance. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { simpleParser } from 'mailparser'
import t from 'tap'
import { dueAtHour } from '../../src/campaigns/expansion/usual-hour.js'
import { until } from '../support/until.js'
import { openCampaigns, type Shown } from './open-campaigns.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const HOUR_MS = 3_600_000

// proves: Campaigns and templates > POST /campaigns
t.test(
  'each mail goes out at the hour in which its recipient visits most, once, through a pause',
  async t => {
    const opened = await openCampaigns(t, { env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' } })
    const { draft, sendIt, campaignOnce, get, post, patch, clock, dataDir } = opened
    const id = await draft(['early@x.test', 'late@x.test', 'new@x.test'], { send_time: 'usual_hour' })
    t.equal((await get(`/campaigns/${id}`)).body.data.send_time, 'usual_hour')
    t.match(await patch(`/campaigns/${id}`, { send_time: 'noon' }), { status: 400 })
    const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
    const visit = handle.prepare(
      'insert into contact_hours (contact, hour, visits) select seq, ?, ? from contacts where email = ?',
    )
    visit.run(11, 3, 'early@x.test')
    visit.run(9, 2, 'early@x.test')
    visit.run(12, 1, 'late@x.test')
    handle.close()
    // It is ten.
    await sendIt(id)
    const done = (count: number) =>
      campaignOnce(id, `${count} done`, ({ progress }) => progress.done === count)
    await done(1)
    const mailed = async () =>
      ((await get(`/campaigns/${id}/recipients`)).body.data as { email: string; status: string }[])
        .filter(({ status }) => status === 'delivered')
        .map(({ email }) => email)
    t.same(await mailed(), ['new@x.test'], 'who has no usual hour gets it at the start')
    await clock.advance(0.9 * HOUR_MS)
    t.same(await mailed(), ['new@x.test'])
    await clock.advance(0.15 * HOUR_MS)
    await done(2)
    t.same(await mailed(), ['early@x.test', 'new@x.test'])
    t.match((await get(`/campaigns/${id}`)).body.data, { status: 'sending', progress: { pending: 1 } })
    await post(`/campaigns/${id}/pause`, {})
    await clock.advance(1.2 * HOUR_MS)
    t.equal((await mailed()).length, 2, 'paused at its hour')
    await post(`/campaigns/${id}/resume`, {})
    await done(3)
    await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
    t.match((await get(`/campaigns/${id}`)).body.data, { stats: { sends: 3, delivered: 3 } })

    const other = await post(`/campaigns/${id}/duplicate`, {})
    t.equal(other.body.data.send_time, 'usual_hour')
    await sendIt(other.body.data.id)
    await campaignOnce(other.body.data.id, 'the first one', ({ progress }) => progress.done >= 1)
    t.match(await post(`/campaigns/${other.body.data.id}/cancel`, {}), { status: 200 })
    await campaignOnce(other.body.data.id, 'the end', ({ progress }) => progress.pending === 0)
    const { progress } = (await get(`/campaigns/${other.body.data.id}`)).body.data as Shown
    t.equal(progress.done + progress.cancelled, 3)
    t.ok(progress.cancelled > 0)
  },
)

// proves: Campaigns and templates > POST /campaigns
t.test('a visit by a person counts for its hour, and is erased with the person', async t => {
  const opened = await openCampaigns(t, { env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' } })
  const { draft, sendIt, campaignOnce, get, post, capture, clock, baseUrl, one } = opened
  const id = await draft(['ann@x.test'])
  await sendIt(id)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  const [{ message_id: message }] = (await get(`/campaigns/${id}/recipients`)).body.data
  const raw = Buffer.from(String((await capture(message)).body.data.raw), 'latin1')
  const path = /href="https:\/\/mail\.shop\.test(\/c\/[^"]+)"/.exec(
    String((await simpleParser(raw)).html),
  )?.[1]
  const visit = async (agent: string) => {
    await clock.advance(30_000)
    await fetch(baseUrl + String(path), { redirect: 'manual', headers: { 'User-Agent': agent } })
  }
  await visit('curl/8.0')
  await visit(BROWSER)
  await until('the visit', async () => {
    await clock.advance(5_000)
    return one('select count(*) from contact_hours') === 1
  })
  t.equal(
    one("select hour || ' ' || visits from contact_hours"),
    '10 1',
    'the machine and the inferred open do not count',
  )
  t.equal((await post('/contacts/erase', { email: 'ann@x.test' })).status, 200)
  t.equal(one('select count(*) from contact_hours'), 0)
})

// proves: Campaigns and templates > POST /campaigns
t.test('a usual hour is within a day of the start', t => {
  const start = Date.parse('2026-03-01T22:40:00Z')
  const at = (hour?: number) => new Date(dueAtHour(start, hour)).toISOString().slice(0, 16)
  t.equal(at(), '2026-03-01T22:40')
  t.equal(at(22), '2026-03-01T22:40')
  t.equal(at(23), '2026-03-01T23:00')
  t.equal(at(0), '2026-03-02T00:00')
  t.equal(at(21), '2026-03-02T21:00')
  t.end()
})
