/** `postroad automation`: flows and their runs, looked at beside the running server. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

t.test('automations are listed and shown, and their runs listed by status', async t => {
  const postroad = await openTestAppliance(t)
  const own = ['--workspace', postroad.workspaceId]
  const { key } = postroad
  const flow = { name: 'Welcome', trigger_type: 'manual', steps: [{ step_type: 'delay' }] }
  const made = await postroad.post('/api/v1/automations', flow, { key })
  const { id } = made.body.data
  await postroad.post('/api/v1/contacts', { email: 'ann@one.test' }, { key })
  await postroad.patch(`/api/v1/automations/${id}`, { status: 'active' }, { key })
  await postroad.post(`/api/v1/automations/${id}/trigger`, { email: 'ann@one.test' }, { key })
  t.match(await postroad.json('automation', 'list', ...own), [{ id, name: 'Welcome', stats: { active: 1 } }])
  t.same(await postroad.json('automation', 'list', '--status', 'draft', ...own), [])
  t.match(await postroad.run('automation', 'list', ...own), {
    status: 0,
    out: /NAME +STATUS.*\nWelcome +active +manual +1 +1 +0/,
  })
  t.match(await postroad.json('automation', 'show', id, ...own), { steps: [{ step_type: 'delay' }] })
  t.match(await postroad.json('automation', 'runs', id, ...own), [
    { contact_email: 'ann@one.test', status: 'active' },
  ])
  t.same(await postroad.json('automation', 'runs', id, '--status', 'failed', ...own), [])
  t.match(await postroad.run('automation', 'runs', id, '--status', 'lost', ...own), {
    ...{ status: 2, err: /lost is not one of active/ },
  })
  t.match(await postroad.run('automation', 'show', 'none', ...own), { status: 1, err: /no such automation/ })
})
