/** What campaigns wait for, over HTTP on the running appliance: never "sending" without a word. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

type Opened = Awaited<ReturnType<typeof openCampaigns>>

/** `waiting_for`, once it is not null. */
const waitingOf = ({ get }: Pick<Opened, 'get'>, id: string) =>
  until('it waits', async () => (await get(`/campaigns/${id}`)).body.data.waiting_for ?? false)

t.test(
  'a campaign at the hourly limit says until when it waits, alone and in lists, for as long as it does',
  async t => {
    const opened = await openCampaigns(t)
    const { draft, sendIt, get, clock, run, workspaceId, one, campaignOnce } = opened
    await run('workspace', 'set', workspaceId, 'hourly_limit=10')
    const id = await draft(addresses(15))
    t.equal((await get(`/campaigns/${id}`)).body.data.waiting_for, null)
    await sendIt(id)
    await until('the hour', () => one('select count(*) from messages') === 10)
    const waiting = await waitingOf(opened, id)
    const hour = 3_600_000
    const next = new Date(Math.ceil((clock.now() + 1) / hour) * hour).toISOString()
    t.same(waiting, {
      reason: 'hourly_limit',
      until: next,
      limit: 10,
      detail:
        'The workspace has used its hourly limit of 10 emails (hourly_limit); an operator can raise it.',
    })
    t.match((await get('/campaigns')).body.data, [{ id, waiting_for: waiting }])
    clock.skip(Date.parse(next) - clock.now() - 10_000)
    await clock.advance(45_000)
    const { waiting_for: over } = (await campaignOnce(
      id,
      'the end',
      ({ status }) => status === 'completed',
    )) as {
      waiting_for?: unknown
    }
    t.equal(over, null)
  },
)

t.test('what it waits for changes with its settings and with those who pause and resume it', async t => {
  const opened = await openCampaigns(t)
  const { draft, sendIt, get, post, run, workspaceId, one } = opened
  await run('workspace', 'set', workspaceId, 'hourly_limit=2')
  const id = await draft(addresses(3))
  await sendIt(id)
  await until('the hour', () => one('select count(*) from messages') === 2)
  t.match(await waitingOf(opened, id), { reason: 'hourly_limit' })
  t.match((await post(`/campaigns/${id}/pause`, {})).body.data.waiting_for, { reason: 'hold' })
  t.match((await post(`/campaigns/${id}/resume`, {})).body.data.waiting_for, { reason: 'hourly_limit' })
  await run('workspace', 'set', workspaceId, 'hourly_limit=0', 'daily_limit=2')
  t.match((await get(`/campaigns/${id}`)).body.data.waiting_for, { reason: 'daily_limit', limit: 2 })
})

t.test('a closed window, a rate and a test each say when the next mail goes out', async t => {
  const opened = await openCampaigns(t)
  const { draft, sendIt, one, clock } = opened
  // Ten in the morning of a Monday.
  const later = await draft(addresses(2, 'a.test'), { send_window: { from: '14:00', until: '15:00' } })
  await sendIt(later)
  t.match(await waitingOf(opened, later), { reason: 'sending_hours', until: '2026-01-05T14:00:00.000Z' })
  const slow = await draft(addresses(3, 'b.test'), { rate_per_hour: 10 })
  await sendIt(slow)
  await until('the first', () => one('select count(*) from messages') === 1)
  const { reason, limit, until: next } = (await waitingOf(opened, slow)) as Record<string, string>
  t.match({ reason, limit }, { reason: 'rate', limit: 10 })
  t.ok(Date.parse(String(next)) - clock.now() <= 360_000)
  const test = { variants: [{ subject: 'A' }, { subject: 'B' }], sample_size: 2, decide_after_minutes: null }
  const tested = await draft(addresses(5, 'c.test'), { ab_test: test })
  await sendIt(tested)
  const winner = await waitingOf(opened, tested)
  t.match(winner, { reason: 'ab_test', detail: /person/ })
  t.notOk('until' in (winner as object))
})

/** Nobody answers there. */
const NOBODY = {
  env: { POSTROAD_MTA_CAPTURE: 'false', POSTROAD_MTA_RETRY_FIRST: '10m' },
  toml: '[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = 9\ntls = "none"',
}

t.test(
  'the last mails of a campaign that are tried again say when, and held ones that they are held',
  async t => {
    const opened = await openCampaigns(t, NOBODY)
    const { draft, sendIt, get, run, one, clock, key, messageOnce } = opened
    const id = await draft(addresses(1))
    await sendIt(id)
    const isTried = () => one('select count(*) from queue where attempts = 1 and claimed_by is null') === 1
    await until('tried', isTried)
    const waiting = (await waitingOf(opened, id)) as { reason: string; until: string }
    t.equal(waiting.reason, 'retry')
    t.equal(Date.parse(waiting.until), one('select next_attempt_at from queue'))
    t.ok(Date.parse(waiting.until) > clock.now())
    const message = String(one('select message_id from queue'))
    const { until: next } = waiting
    for (const path of [`/email/${message}`, `/email/${message}/status`])
      t.match((await get(path)).body.data.waiting_for, { reason: 'retry', until: next })
    t.match((await get('/email')).body.data, [{ waiting_for: { reason: 'retry', until: next } }])
    await run('queue', 'hold', '--all')
    for (const path of [`/campaigns/${id}`, `/email/${message}`])
      t.match((await get(path)).body.data.waiting_for, { reason: 'hold', detail: /operator/ })
    await run('queue', 'release', '--all')
    await run('queue', 'delete', message)
    await messageOnce(key, message, 'failed')
    t.equal((await get(`/email/${message}`)).body.data.waiting_for, null)
    t.match((await get('/email')).body.data, [{ status: 'failed', waiting_for: null }])
  },
)

t.test(
  'mail that is due while its hosts are in back-off says so, and so do its campaign and its site',
  async t => {
    const opened = await openCampaigns(t, NOBODY)
    const { draft, sendIt, get, one, json, clock } = opened
    const id = await draft(addresses(8))
    await sendIt(id)
    await until('a back-off', async () => {
      const { waiting_for: waiting } = (await get(`/campaigns/${id}`)).body.data
      return waiting?.reason === 'back_off'
    })
    const waiting = (await waitingOf(opened, id)) as { until: string }
    t.ok(Date.parse(waiting.until) > clock.now())
    const message = String(one('select message_id from queue where attempts = 0'))
    t.match((await get(`/email/${message}`)).body.data.waiting_for, {
      reason: 'back_off',
      until: waiting.until,
    })
    const entries = await json<{ message_id: string; waiting_for: object }[]>('queue', 'list')
    t.match(entries.find(({ message_id: one }) => one === message)?.waiting_for, { reason: 'back_off' })
  },
)

t.test(
  'before it is sent, the check and the preview of its audience say how long it takes at the limits',
  async t => {
    const { draft, get, post, run, workspaceId, sendIt, campaignOnce } = await openCampaigns(t)
    await run('workspace', 'set', workspaceId, 'hourly_limit=2')
    const id = await draft(addresses(5))
    const expected = {
      ...{ duration_seconds: 2 * 3_600, limited_by: 'hourly_limit', limit: 2 },
      detail: 'About 2 hours: the workspace may send 2 emails an hour (hourly_limit).',
    }
    t.match((await get(`/campaigns/${id}/audience`)).body.data, { mailable: 5, sending_time: expected })
    await post(`/campaigns/${id}/check`, {})
    const check = await until('the check', async () => {
      const { data } = (await get(`/campaigns/${id}/check`)).body
      return data.status === 'completed' && data
    })
    t.match(check, { total: 5, sending_time: expected })
    await run('workspace', 'set', workspaceId, 'hourly_limit=0')
    t.match((await get(`/campaigns/${id}/check`)).body.data.sending_time, {
      duration_seconds: 0,
      limited_by: null,
    })
    await sendIt(id)
    await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
    t.equal((await get(`/campaigns/${id}/audience`)).body.data.sending_time, null)
  },
)

t.test('operators list the campaigns that are sent and wait, of all workspaces', async t => {
  const opened = await openCampaigns(t)
  const { draft, sendIt, post, run, workspaceId, clock, baseUrl, one } = opened
  const headers = { Authorization: `Bearer ${await tokenWith(opened, 'owner')}` }
  const listed = async () => {
    const response = await fetch(`${baseUrl}/api/admin/v1/campaigns?waits=true`, { headers })
    return ((await response.json()) as { data: { id: string; waiting_for: object | null }[] }).data
  }
  await run('workspace', 'set', workspaceId, 'hourly_limit=2')
  const id = await draft(addresses(3))
  const done = await draft(addresses(1, 'done.test'))
  await sendIt(done)
  await until('the first', () => one('select count(*) from messages') === 1)
  await sendIt(id)
  await until('the hour', () => one('select count(*) from messages') === 2)
  const found = await until('it to be noted', async () => {
    await clock.advance(5_000)
    const data = await listed()
    return data.length > 0 && data
  })
  t.match(found, [{ id, workspace_id: workspaceId, waiting_for: { reason: 'hourly_limit', limit: 2 } }])
  await post(`/campaigns/${id}/pause`, {})
  t.same(await listed(), [], 'somebody paused it, and knows')
})
