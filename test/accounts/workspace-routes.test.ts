/** Workspaces in the admin API: what a role in one workspace may change, and what it may not. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'

t.test(
  'an owner of one workspace changes its settings, but not the limits that the appliance sets',
  async t => {
    const postroad = await openTestAppliance(t)
    const { workspaceId } = postroad
    const path = `${postroad.baseUrl}/api/admin/v1/workspaces/${workspaceId}`
    const change = async (token: string, body: object) =>
      (
        await fetch(path, {
          method: 'PATCH',
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).status
    const tenant = await tokenWith(postroad, [{ workspaceId, role: 'owner' }])
    t.equal(await change(tenant, { company_name: 'Acme' }), 200)
    for (const body of [{ hourly_limit: 0 }, { daily_limit: 0 }, { allow_private_webhooks: true }])
      t.equal(await change(tenant, { ...body, company_name: 'Other' }), 403)
    const shown = await postroad.json<{ company_name: string; hourly_limit: number }>(
      'workspace',
      'show',
      workspaceId,
    )
    t.match(shown, { company_name: 'Acme', hourly_limit: 1_000 })
    const all = await tokenWith(postroad, 'operator')
    t.equal(await change(all, { hourly_limit: 0 }), 200)
  },
)

// A blocked spammer does not come back by himself.
t.test(
  'what the appliance removed its tenant does not restore, and what a tenant removed both do',
  async t => {
    const postroad = await openTestAppliance(t)
    const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'spam')
    const path = `/api/admin/v1/workspaces/${id}`
    const tenant = { key: await tokenWith(postroad, [{ workspaceId: id, role: 'owner' }]) }
    const appliance = { key: await tokenWith(postroad, 'operator') }
    const removed = async () =>
      (await postroad.get('/api/admin/v1/workspaces?removed=true', tenant)).body.data as {
        removed_by: string
      }[]

    t.equal((await postroad.delete(path, appliance)).status, 200)
    t.match(await removed(), [{ id, removed_by: 'appliance' }])
    t.match(await postroad.post(`${path}/restore`, undefined, tenant), {
      status: 403,
      body: { error: { message: /removed by operators of the appliance/ } },
    })
    t.equal((await postroad.post(`${path}/restore`, undefined, appliance)).status, 200)

    t.equal((await postroad.delete(path, tenant)).status, 200)
    t.match(await removed(), [{ id, removed_by: 'workspace' }])
    t.equal((await postroad.post(`${path}/restore`, undefined, tenant)).status, 200)
    t.equal((await postroad.delete(path, tenant)).status, 200)
    t.equal((await postroad.post(`${path}/restore`, undefined, appliance)).status, 200)

    await postroad.json('workspace', 'remove', id, '--yes')
    t.equal((await postroad.post(`${path}/restore`, undefined, tenant)).status, 403, 'removed on the machine')
  },
)

t.test('a name that is taken does not tell by whom', async t => {
  const postroad = await openTestAppliance(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'mine')
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'Theirs')
  const tenant = { key: await tokenWith(postroad, [{ workspaceId: id, role: 'owner' }]) }
  const answer = await postroad.patch(`/api/admin/v1/workspaces/${id}`, { name: 'theirs' }, tenant)
  t.match(answer, { status: 409, body: { error: { code: 'duplicate' } } })
  t.notMatch(JSON.stringify(answer.body), other.id)
})
