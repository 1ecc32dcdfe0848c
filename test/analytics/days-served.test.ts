/** Whose days they are, on the running appliance: those of the workspace's time zone, but for statistics, which count UTC days unless asked. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

// The clock says 10:00 UTC on 5 January, where the 6th begins in Kiritimati.
const ZONE = 'Pacific/Kiritimati'

// proves: decisions: Added after a day's work > Days in segment rules automations
t.test('rules and the daily limit use days of the workspace, statistics those asked for', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.run('workspace', 'set', postroad.workspaceId, `timezone=${ZONE}`, 'daily_limit=1')
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const make = async (path: string, body: object) =>
    String((await postroad.post(at(path), body, { key })).body.data.id)

  for (const day of ['05', '06'])
    await make('/contacts', { email: `${day}@x.test`, attributes: { birthday: `1990-01-${day}` } })
  const rule = { field: 'birthday', operator: 'anniversary_in_next_days', value: 0 }
  const conditions = { match: 'all', rules: [rule] }
  const segment = await make('/segments', { name: 'Birthday', conditions })
  const list = await make('/lists', { name: 'Birthday', type: 'dynamic', conditions })
  for (const path of [
    `/segments/${segment}/contacts`,
    `/lists/${list}/members`,
    `/contacts?segment_id=${segment}`,
  ])
    t.match((await postroad.get(at(path), { key })).body, { data: [{ email: '06@x.test' }] }, path)

  const mail = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n', to: 'ann@one.test' }
  t.match(await postroad.send(key, mail), { status: 200 })
  t.match(await postroad.send(key, mail), {
    status: 403,
    body: { error: { code: 'limit_reached', message: /the next begins at 2026-01-06T10:00:00.000Z/ } },
  })

  const report = async (query: string) =>
    (await postroad.get(at(`/analytics?period=1d${query}`), { key })).body.data
  await until('it is counted', async () => (await report('')).sends === 1)
  t.match(await report(''), { timezone: 'UTC', daily: [{ date: '2026-01-05', sends: 1 }] })
  t.match(await report(`&timezone=${ZONE}`), { timezone: ZONE, daily: [{ date: '2026-01-06', sends: 1 }] })
  t.match(await report('&timezone=Pacific/Honolulu'), { daily: [{ date: '2026-01-05', sends: 1 }] })
})
