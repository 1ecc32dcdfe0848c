/** Pausing campaigns whose mail is on its way to a real server: what is queued is held, released, or withdrawn. */
import t from 'tap'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

const COUNT = 300

async function openPaused(t: Parameters<typeof openSink>[0]) {
  const sink = await openSink(t)
  const postroad = await openCampaigns(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false' },
    toml: `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${sink.port}\ntls = "none"`,
  })
  const { draft, sendIt, campaignOnce, post, one } = postroad
  // Many domains, and so many lanes.
  const id = await draft(addresses(COUNT).map((address, at) => address.replace('x.test', `x${at % 50}.test`)))
  sink.atDot = 'hold'
  await sendIt(id)
  await campaignOnce(id, 'the hand-over', ({ progress }) => progress.queued === COUNT)
  await sink.arrivedOnce(1)
  const act = (what: string) => post(`/campaigns/${id}/${what}`, {})
  t.match(await act('pause'), { status: 200, body: { data: { status: 'paused', stats: { held: COUNT } } } })
  sink.release()
  await until(
    'nothing to be under way',
    () => one('select count(*) from queue where claimed_by is not null') === 0,
  )
  const onWire = sink.accepted.length
  await campaignOnce(id, 'its counts', ({ stats }) => stats['held'] === COUNT - onWire)
  return { ...postroad, sink, id, act, onWire }
}

// proves: decisions: Added after the whole contract > Campaigns A scheduled campaign evaluates
t.test(
  'pause holds what is queued, also over a command of another process; resume sends each once',
  async t => {
    const { sink, id, act, onWire, send, key, clock, one, run, workspaceId, campaignOnce } =
      await openPaused(t)
    t.ok(onWire < 50, `${onWire} were past their final dot`)
    clock.skip(3_600_000)
    await clock.advance(60_000)
    await run('queue', 'release', '--all', '--yes')
    await run('queue', 'retry', '--all')
    await clock.advance(2_000)
    await send(key, { to: 'ann@single.test', subject: 'x', text: 'x' })
    await sink.acceptedOnce(onWire + 1)
    t.same(sink.accepted.at(-1)?.recipients, ['ann@single.test'], 'the queue continues for others')
    await until('its end', () => one('select count(*) from queue') === COUNT - onWire)

    t.match(await act('resume'), { body: { data: { status: 'sending', stats: { held: 0 } } } })
    await sink.acceptedOnce(onWire + 11)
    await run('campaign', 'pause', id, '--workspace', workspaceId)
    await clock.advance(1_000)
    await until(
      'nothing under way',
      () => one('select count(*) from queue where claimed_by is not null') === 0,
    )
    await run('campaign', 'resume', id, '--workspace', workspaceId)
    await until('all of it', async () => {
      await clock.advance(1_000)
      return sink.accepted.length >= COUNT + 1
    })
    t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
      progress: { done: COUNT, queued: 0 },
      stats: { delivered: COUNT, held: 0 },
    })
    const to = sink.accepted.flatMap(({ recipients }) => recipients)
    t.equal(new Set(to).size, COUNT + 1)
    t.equal(to.length, COUNT + 1, 'nobody twice')
    t.equal(one('select count(*) from campaign_holds'), 0)
  },
)

// proves: decisions: Added after the whole contract > Campaigns A scheduled campaign evaluates
t.test('cancel withdraws what is held, and its recipients read cancelled', async t => {
  const { sink, id, act, onWire, get, one, campaignOnce } = await openPaused(t)
  t.match(await act('cancel'), { status: 200, body: { data: { status: 'cancelled' } } })
  t.match(await campaignOnce(id, 'the end', ({ progress }) => progress.cancelled === COUNT - onWire), {
    progress: { done: onWire, queued: 0, pending: 0 },
    stats: { held: 0 },
  })
  await until('an empty queue', () => one('select count(*) from queue') === 0)
  t.equal((await get(`/campaigns/${id}/recipients?status=cancelled`)).body.pagination.total, COUNT - onWire)
  await until('the end of the hold', () => one('select count(*) from campaign_holds') === 0)
  t.equal(sink.accepted.length, onWire)
})

t.test('cancel without a pause stops what is queued as well', async t => {
  const sink = await openSink(t)
  const { draft, sendIt, campaignOnce, post, one } = await openCampaigns(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false' },
    toml: `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${sink.port}\ntls = "none"`,
  })
  const id = await draft(addresses(COUNT))
  sink.atDot = 'hold'
  await sendIt(id)
  await campaignOnce(id, 'the hand-over', ({ progress }) => progress.queued === COUNT)
  await sink.arrivedOnce(1)
  await post(`/campaigns/${id}/cancel`, {})
  sink.release()
  const end = await campaignOnce(id, 'the end', ({ progress: { pending, queued } }) => pending + queued === 0)
  t.equal(end.progress.cancelled + end.progress.done, COUNT)
  t.equal(end.progress.done, sink.accepted.length)
  t.ok(end.progress.done < 50)
  await until('an empty queue', () => one('select count(*) from queue') === 0)
})
