/** The queue in the admin API: lists, selections, roles, dry runs, and the hold after a restore. */
import t, { type Test } from 'tap'
import { setRestoreHold } from '../../src/accounts/restore-hold-store.js'
import { changeQueue } from '../../src/queue/operator/change-queue.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { tokenWith } from '../support/program/operators.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW } from '../support/mailroom.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { beside } from '../support/program/beside.js'
import { until } from '../support/until.js'

const QUEUE = '/api/admin/v1/queue'
const DUE_IN_A_CENTURY = NOW + 100 * 365 * 86_400_000
const OTHER = '01890a5d-ac96-774b-bcce-0000000000ff'
const id = (last: number) => `01890a5d-ac96-774b-bcce-${String(last).padStart(12, '0')}`

/** Three messages of the workspace to `one.test` and `two.test`, and one of another workspace to `one.test`. */
async function filled(t: Test) {
  const postroad = await openTestAppliance(t)
  await beside(postroad, async database => {
    const one = (last: number, to: string) => ({ id: id(last), to, dueAt: DUE_IN_A_CENTURY })
    const own = [one(1, 'ann@one.test'), one(2, 'bob@one.test'), one(4, 'cyd@two.test')]
    await enqueue(database, own, { workspaceId: postroad.workspaceId })
    await enqueue(database, [one(3, 'dan@one.test')], { workspaceId: OTHER })
  })
  const all = await tokenWith(postroad, 'operator')
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'operator' }])
  const list = async (query: string, key = all) => {
    const { status, body } = await postroad.get(`${QUEUE}${query}`, { key })
    return status === 200 ? (body.data as { message_id: string }[]).map(row => row.message_id) : status
  }
  const change = async (action: string, part: object, key = all) => {
    const { status, body } = await postroad.post(`${QUEUE}/${action}`, part, { key })
    return status === 200 ? (body.data as unknown) : status
  }
  return { postroad, all, own, list, change }
}

t.test('the queue is listed by destination, site, workspace and hold, page after page', async t => {
  const { postroad, all, own, list, change } = await filled(t)
  t.same(await list(''), [id(1), id(2), id(3), id(4)])
  t.same(await list('?destination=ONE.test'), [id(1), id(2), id(3)])
  t.same(await list(`?workspace_id=${OTHER}`), [id(3)])
  await change('hold', { message_ids: [id(2), id(3)] })
  t.same(await list('?held=true&destination=one.test'), [id(2), id(3)])
  t.same(await list('?held=false'), [id(1), id(4)])
  const first = await postroad.get(`${QUEUE}?limit=3`, { key: all })
  t.match(first.body.pagination, { total: 4, has_more: true })
  t.same(await list(`?limit=3&after=${first.body.pagination.next_cursor as string}`), [id(4)])
  t.equal(await list('', own), 403, 'a role in one workspace names it')
  t.same(await list(`?workspace_id=${postroad.workspaceId}`, own), [id(1), id(2), id(4)])
  t.equal(await list(`/${id(3)}`, own), 404, 'of another workspace')
  t.equal((await postroad.get(`${QUEUE}/${id(1)}`, { key: own })).body.data.to, 'ann@one.test')
  t.equal(await list('?destination=a&site=b'), 400)
})

t.test('a dry run counts what the change then changes', async t => {
  const { list, change } = await filled(t)
  for (const part of [{ domain: 'one.test' }, { all: true }, { message_ids: [id(1), 'unknown'] }]) {
    const planned = await change('hold', { ...part, dry_run: true })
    t.same(await list('?held=true'), [])
    t.same(await change('hold', part), planned)
    t.same(await change('hold', { ...part, dry_run: true }), { changed: 0, next: null })
    t.same(await change('release', part), planned)
  }
  t.match(await change('retry', { domain: 'one.test', workspace_id: OTHER, dry_run: true }), { changed: 1 })
})

t.test('a part that reaches into other workspaces needs a role in all of them', async t => {
  const { postroad, own, all, list, change } = await filled(t)
  const { workspaceId } = postroad
  for (const part of [{ all: true }, { domain: 'one.test' }, { site: 'one.test' }])
    t.equal(await change('delete', part, own), 403, JSON.stringify(part))
  t.equal(await change('delete', { message_ids: [id(1), id(3)] }, own), 404)
  t.equal(await change('delete', { workspace_id: OTHER }, own), 404)
  t.same(await list(''), [id(1), id(2), id(3), id(4)])
  t.match(await change('delete', { domain: 'one.test', workspace_id: workspaceId }, own), { changed: 2 })
  t.match(await change('delete', { workspace_id: workspaceId }, own), { changed: 1 })
  t.same(await list(''), [id(3)])
  const viewer = await tokenWith(postroad, 'viewer')
  t.equal(await change('hold', { all: true }, viewer), 403)
  const { body } = await postroad.get('/api/v1/activity', { key: postroad.key })
  t.match(body.data, [
    {
      action: 'queue.deleted',
      subject: `all queued mail of workspace ${workspaceId}`,
      details: { messages: 1 },
    },
    { action: 'queue.deleted', actor: { type: 'operator_token' }, details: { messages: 2 } },
  ])
  t.match(await change('delete', { all: true }, all), { changed: 1 })
})

t.test('what operators of all workspaces held, those of one do not release', async t => {
  const { all, own, list, change } = await filled(t)
  t.match(await change('hold', { message_ids: [id(1)] }, own), { changed: 1 })
  t.match(await change('hold', { message_ids: [id(1), id(2)] }, all), { changed: 2 }, 'also what is held')
  t.match(await change('hold', { message_ids: [id(4)] }, own), { changed: 1 })
  for (const part of [{ message_ids: [id(1), id(2)] }, { message_ids: [id(1)], dry_run: true }])
    t.match(await change('release', part, own), { changed: 0 })
  t.match(await change('release', { message_ids: [id(4)] }, own), { changed: 1 }, 'their own hold')
  t.same(await list('?held=true'), [id(1), id(2)])
  t.match(await change('release', { message_ids: [id(1), id(2)] }, all), { changed: 2 })
  t.match(await change('hold', { message_ids: [id(1)] }, own), { changed: 1 })
  t.match(await change('release', { message_ids: [id(1)] }, own), { changed: 1 }, 'nothing of it is left')
})

t.test('a change names exactly one part', async t => {
  const { change } = await filled(t)
  for (const part of [
    {},
    { all: true, domain: 'one.test' },
    { all: true, workspace_id: OTHER },
    { message_ids: [] },
    { all: false },
    { domain: 'not a domain' },
    { domain: 'one.test', colour: 'red' },
  ])
    t.equal(await change('hold', part), 400, JSON.stringify(part))
  t.equal(await change('reset-backoff', {}), 400)
  t.same(await change('reset-backoff', { domain: 'one.test' }), { success: true })
})

t.test('the summary counts by age, in one workspace or in all', async t => {
  const { postroad, all, own } = await filled(t)
  const summary = async (query: string, key = all) =>
    (await postroad.get(`${QUEUE}/summary${query}`, { key })).body
  t.match(await summary(''), {
    data: {
      held_since_restore: null,
      rows: [
        { destination: 'one.test', total: 3, held: 0 },
        { destination: 'two.test', total: 1 },
      ],
      ...{ found: 2, total: 4, held: 0 },
    },
  })
  t.match(await summary('?limit=1'), { data: { rows: [{ total: 3 }], found: 2, total: 4 } })
  t.match(await summary('?limit=1&by=site'), { data: { rows: [{ total: 3 }], found: 2, total: 4 } })
  t.match(await summary(`?by=site&workspace_id=${postroad.workspaceId}`, own), {
    data: {
      rows: [
        { site: 'one.test', destinations: 1, total: 2 },
        { site: 'two.test', total: 1 },
      ],
    },
  })
  t.match(await summary('?limit=0'), { error: { code: 'validation_error' } })
})

t.test('releasing the whole queue ends the hold after a restore, releasing a part does not', async t => {
  const { postroad, all, change } = await filled(t)
  await beside(postroad, database => database.write(tx => setRestoreHold(tx.db, NOW)))
  const since = async () =>
    (await postroad.get(`${QUEUE}/hold-after-restore`, { key: all })).body.data.held_since
  t.match(await since(), /Z$/)
  await change('release', { domain: 'one.test' })
  await change('release', { all: true, dry_run: true })
  t.match(await since(), /Z$/)
  t.match(await postroad.run('queue', 'release', '--all'), {
    status: 0,
    out: '0 changed\n',
    err: /the hold since the restore of .*Z has ended/,
  })
  t.equal(await since(), null)
})

t.test('released mail is delivered without a restart', async t => {
  const { postroad, change, list } = await filled(t)
  await change('hold', { all: true })
  await change('retry', { all: true })
  await change('release', { domain: 'two.test' })
  await until('it has left', async () => {
    await postroad.clock.advance(1_000)
    const left = await list('')
    return Array.isArray(left) && left.length === 3
  })
  t.same(await list('?destination=two.test'), [])
})

eachDatabase(
  t,
  'a change that takes too long stops after a batch, and continues where it stopped',
  async (t, database) => {
    const clock = new FakeClock()
    await enqueue(database, [...letters('x.example', 300, 'x'), ...letters('y.example', 30, 'y')])
    const selection = { destinations: ['y.example', 'x.example'] }
    const parts = { database, clock, isServing: false }
    const first = await changeQueue(parts, { kind: 'delete', selection, limitMs: -1 })
    t.match(first, { changed: 250, end: { destination: 'x.example' } })
    const second = await changeQueue(parts, { kind: 'delete', selection, after: first.end, limitMs: -1 })
    t.match(second, { changed: 80, end: undefined })
    t.same([...second.byWorkspace.values()], [80])
  },
)
