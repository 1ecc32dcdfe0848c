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
