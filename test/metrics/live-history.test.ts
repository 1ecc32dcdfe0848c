/** `GET /live/history`: mail by minute, hour and day, beside the period before. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { until } from '../support/until.js'

const PATH = '/api/admin/v1/live/history'

interface Period {
  readonly accepted: number
  readonly delivered: number
  readonly points: readonly { readonly at: string; readonly accepted: number; readonly delivered: number }[]
}

t.test('mail is counted in the minute in which it happened, then in the period before', async t => {
  const postroad = await openTestAppliance(t)
  const all = await tokenWith(postroad, 'viewer')
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'marketer' }])
  const read = async (query: string, key = all) => {
    const { body } = await postroad.get(`${PATH}${query}`, { key })
    return body.data as { readonly current: Period; readonly previous: Period }
  }
  await postroad.send(postroad.key, {
    to: ['ann@one.test', 'bob@one.test'],
    subject: 'Hi',
    text: 'Hi.\n',
    from_email: 'me@sender.test',
  })
  const counted = await until('the deliveries', async () => {
    const found = await read('')
    return found.current.delivered === 2 && found
  })
  t.equal(counted.current.points.length, 60)
  t.equal(counted.previous.points.length, 60)
  t.match(counted.current.points.at(-1), { accepted: 2, delivered: 2 }, 'the current minute')
  t.equal(counted.current.accepted, 2)
  t.equal(counted.previous.accepted, 0)
  t.match(await read(`?span=hour&workspace_id=${postroad.workspaceId}`, own), {
    current: { accepted: 2, points: { length: 24 } },
  })
  t.match(await read('?span=day'), { current: { delivered: 2, points: { length: 30 } } })
  // 10:00 UTC on 5 January is where the 6th begins in Kiritimati, and the 5th in Honolulu.
  const east = await read('?span=day&timezone=Pacific/Kiritimati')
  t.match(east.current.points.at(-1), { at: '2026-01-05T10:00:00.000Z', accepted: 2, delivered: 2 })
  const west = await read('?span=day&timezone=Pacific/Honolulu')
  t.match(west.current.points.at(-1), { at: '2026-01-05T10:00:00.000Z', accepted: 2 })
  await postroad.clock.advance(60 * 60_000)
  const later = await read('')
  t.match([later.current.accepted, later.previous.accepted], [0, 2])
})

t.test('counters of another workspace, or of all mail, need a role there', async t => {
  const postroad = await openTestAppliance(t)
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'viewer' }])
  t.equal((await postroad.get(PATH, { key: own })).status, 403)
  t.equal((await postroad.get(`${PATH}?span=week`, { key: own })).status, 403)
  const all = await tokenWith(postroad, 'viewer')
  t.equal((await postroad.get(`${PATH}?span=week`, { key: all })).status, 400)
  t.equal((await postroad.get(`${PATH}?span=day&timezone=Nowhere/Land`, { key: all })).status, 400)
  t.equal((await postroad.get(`${PATH}?workspace_id=nowhere`, { key: all })).status, 404)
})
