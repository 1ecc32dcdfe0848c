/** The activity log of the running appliance: what keys and the operator changed, told to their workspace alone. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const ACTIVITY = '/api/v1/activity'

// operations: GET /activity
t.test('changes by keys and operators are logged, newest first', async t => {
  const postroad = await openTestAppliance(t)
  const { key, clock } = postroad
  const domain = await postroad.post('/api/v1/domains', { domain: 'shop.example' }, { key })
  await clock.advance(1)
  await postroad.post('/api/v1/suppressions', { email: 'Ann@x.example' }, { key })
  await clock.advance(1)
  await postroad.delete('/api/v1/suppressions/ann@x.example', { key })
  await clock.advance(1)
  await postroad.delete(`/api/v1/domains/${domain.body.data.id}`, { key })
  await clock.advance(1)
  await postroad.delete(`/api/v1/domains/${domain.body.data.id}`, { key })
  await postroad.json('key', 'create', '--workspace', postroad.workspaceId, '--name', 'other')
  const { status, body } = await postroad.get(ACTIVITY, { key })
  t.equal(status, 200)
  const actor = { type: 'api_key', name: 'of the tests' }
  t.match(
    body.data.filter(({ actor: { type } }: { actor: { type: string } }) => type === 'api_key'),
    [
      { action: 'domain.removed', subject: 'shop.example', actor, created_at: '2026-01-05T10:00:00.003Z' },
      { action: 'suppression.removed', subject: 'ann@x.example', actor },
      {
        action: 'suppression.added',
        subject: 'ann@x.example',
        actor,
        details: { reason: 'manual', scope: 'all' },
      },
      { action: 'domain.added', subject: 'shop.example', actor, created_at: '2026-01-05T10:00:00.000Z' },
    ],
  )
  const made = await postroad.get(`${ACTIVITY}?action=api_key.created`, { key })
  t.ok(made.body.data.some((one: { subject: string; actor: object }) => one.subject === 'other'))
  t.match(made.body.data[0].actor, { type: 'shell' })
  t.notMatch(JSON.stringify(body), /ts_live_\w{20}/, 'no key')
})

// operations: GET /activity
t.test('the log can be filtered and paged, and shows only its own workspace', async t => {
  const postroad = await openTestAppliance(t)
  const { key, clock } = postroad
  for (const name of ['a', 'b', 'c']) {
    await postroad.post('/api/v1/suppressions', { email: `${name}@x.example` }, { key })
    await clock.advance(1)
  }
  const subjects = async (query: string, asker = key) => {
    const { body } = await postroad.get(`${ACTIVITY}?action=suppression.added${query}`, { key: asker })
    return body.data.map(({ subject }: { subject: string }) => subject)
  }
  t.same(await subjects(''), ['c@x.example', 'b@x.example', 'a@x.example'])
  t.same(await subjects('&limit=1&offset=1'), ['b@x.example'])
  t.match((await postroad.get(`${ACTIVITY}?action=suppression.added&limit=2`, { key })).body, {
    pagination: { total: 3, limit: 2, offset: 0, has_more: true },
  })
  t.same((await postroad.get(`${ACTIVITY}?action=none`, { key })).body.data, [])
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  t.same(await subjects('', await postroad.makeKey('--workspace', id)), [])
})
