/** When campaigns go out: rates, windows of the day, limits of the workspace, and what ends one on the way. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t from 'tap'
import { isWithin } from '../../src/campaigns/model/send-window.js'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

t.test('rate_per_hour spreads a campaign evenly over the hours', async t => {
  const { draft, sendIt, campaignOnce, one, clock } = await openCampaigns(t)
  const id = await draft(addresses(20), { rate_per_hour: 10 })
  const start = clock.now()
  await sendIt(id)
  await until('the first', () => one('select count(*) from messages') === 1)
  for (let done = 1; done < 20; done += 1) {
    clock.skip(355_000)
    await clock.advance(4_000)
    t.equal(one('select count(*) from messages'), done, 'not before its share of the hour')
    await clock.advance(1_000)
    await until('the next', () => Number(one('select count(*) from messages')) === done + 1)
  }
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  const times = Number(one('select max(created_at) - min(created_at) from messages'))
  t.ok(times >= 19 * 360_000 && times < 20 * 360_000, `${times}`)
  t.ok(clock.now() - start >= times)
})

t.test('a campaign whose first recipients are erased goes on to the others', async t => {
  const { draft, sendIt, campaignOnce, one, clock, post } = await openCampaigns(t)
  const id = await draft(addresses(3), { rate_per_hour: 10 })
  await sendIt(id)
  const isDelivered = () => one("select count(*) from messages where status = 'delivered'") === 1
  await until('the first is delivered', isDelivered)
  const first = String(one('select recipient from messages'))
  t.match(await post('/contacts/erase', { email: first }), { status: 200 })
  t.equal(one('select count(*) from message_contents'), 0)
  for (let minute = 0; minute < 20; minute += 1) await clock.advance(60_000)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.equal(one("select count(*) from messages where status = 'delivered'"), 2)
})

t.test(
  'nothing is handed over outside of the window, which is in the time zone of the workspace',
  async t => {
    const { draft, sendIt, campaignOnce, one, clock, run, workspaceId } = await openCampaigns(t)
    // Ten in the morning of a Monday in UTC is five in New York.
    await run('workspace', 'set', workspaceId, 'timezone=America/New_York')
    const id = await draft(addresses(3), { send_window: { days: [1], from: '09:00', until: '09:30' } })
    await sendIt(id)
    await until('the rows', () => one('select count(*) from campaign_recipients') === 3)
    clock.skip(4 * 3_600_000 - 60_000)
    await clock.advance(50_000)
    t.equal(one('select count(*) from messages'), 0)
    await until('the opening', async () => {
      await clock.advance(10_000)
      return one('select count(*) from messages') === 3
    })
    t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
      stats: { delivered: 3 },
    })
    const at = new Date(Number(one('select min(created_at) from messages'))).toISOString()
    t.match(at, /^2026-01-05T14:0/)
  },
)

t.test('a window is that of the wall: over midnight, by day, and through changes of the clocks', t => {
  const at = (text: string) => Date.parse(text)
  const day = { from: '09:00', until: '17:00' }
  t.equal(isWithin(day, at('2026-01-05T09:00:00Z'), 'UTC'), true)
  t.equal(isWithin(day, at('2026-01-05T08:59:59Z'), 'UTC'), false)
  t.equal(isWithin(day, at('2026-01-05T17:00:00Z'), 'UTC'), false)
  const night = { from: '22:00', until: '02:00', days: [5] }
  t.equal(isWithin(night, at('2026-01-09T23:00:00Z'), 'UTC'), true)
  t.equal(isWithin(night, at('2026-01-10T01:59:00Z'), 'UTC'), true)
  t.equal(isWithin(night, at('2026-01-10T22:30:00Z'), 'UTC'), false)
  t.equal(isWithin(night, at('2026-01-09T01:00:00Z'), 'UTC'), false)
  // Berlin: 8:30 UTC is 9:30 in winter and 10:30 in summer.
  const nine = { from: '09:00', until: '10:00' }
  t.equal(isWithin(nine, at('2026-03-28T08:30:00Z'), 'Europe/Berlin'), true)
  t.equal(isWithin(nine, at('2026-03-29T08:30:00Z'), 'Europe/Berlin'), false)
  t.equal(isWithin(nine, at('2026-03-29T07:30:00Z'), 'Europe/Berlin'), true)
  // The hour from two to three is there twice on the last Sunday of October.
  const two = { from: '02:00', until: '03:00' }
  for (const time of ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'])
    t.equal(isWithin(two, at(time), 'Europe/Berlin'), true)
  t.equal(isWithin(two, at('2026-10-25T02:30:00Z'), 'Europe/Berlin'), false)
  t.equal(isWithin(day, at('2026-01-05T10:00:00Z'), 'Mars/Base'), true, 'an unknown zone is UTC')
  t.end()
})

t.test(
  'where the limit of the hour is used up the campaign waits for the next, and single sends get theirs',
  async t => {
    const { draft, sendIt, campaignOnce, one, clock, run, workspaceId, send, key } = await openCampaigns(t)
    await run('workspace', 'set', workspaceId, 'hourly_limit=10')
    const id = await draft(addresses(25))
    await sendIt(id)
    await until('the hour', () => one('select count(*) from messages') === 10)
    t.match(await send(key, { to: 'a@y.test', subject: 'x', text: 'x' }), {
      status: 403,
      body: { error: { code: 'limit_reached' } },
    })
    for (const count of [20, 25]) {
      clock.skip(3_590_000)
      await clock.advance(45_000)
      await until('the next hour', () => one('select count(*) from messages') === count)
    }
    t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
      stats: { delivered: 25 },
    })
  },
)

t.test(
  'campaigns whose mail waits for another attempt hold up neither each other nor those after them',
  async t => {
    const { make, post, sendIt, one, clock, dataDir } = await openCampaigns(t)
    const list_id = await make('/lists', { name: 'News' })
    await make('/contacts', { email: 'ann@x.test', list_id })
    const template_id = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
    const COUNT = 40
    for (let at = 0; at < COUNT; at += 1) {
      const id = await make('/campaigns', { name: `${at}`, subject: 'News', template_id, list_id })
      await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })
    }
    // Each has had all the mail in the queue that it may have at first, and all of it was tried.
    const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
    handle.prepare('update campaigns set queued = 10000').run()
    handle.close()
    clock.skip(3_590_000)
    await until('mail of all of them', async () => {
      await clock.advance(1_000)
      return one('select count(*) from messages') === COUNT
    })
    t.equal((await post('/email/send', { to: 'b@x.test', subject: 'x', text: 'x' })).status, 200)
  },
)

// proves: States and transitions > Campaign statuses after draft and
t.test('a domain that is taken away before its time comes fails the campaign, which says so', async t => {
  const { draft, sendIt, campaignOnce, get, remove, run, workspaceId, clock } = await openCampaigns(t)
  await run('domain', 'add', 'shop.test', '--workspace', workspaceId, '--vouch')
  const id = await draft(addresses(2), { from_email: 'news@shop.test' })
  await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })
  const [{ id: domain }] = (await get('/domains')).body.data
  await remove(`/domains/${domain}`)
  await run('domain', 'add', 'shop.test', '--workspace', workspaceId)
  clock.skip(3_590_000)
  await clock.advance(10_000)
  t.match(await campaignOnce(id, 'the failure', ({ status }) => status === 'failed'), {
    error: /shop\.test/,
  })
  await campaignOnce(id, 'the end', ({ progress }) => progress.cancelled === 2)
})
