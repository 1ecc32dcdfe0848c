/** The activity log: who changed what, recorded with the change and read over the API. */
import t, { type Test } from 'tap'
import { activityRoute } from '../../src/accounts/activity-routes.js'
import { createKey, revokeKey, DEFAULT_KEY_LIMITS } from '../../src/accounts/keys.js'
import type { Database } from '../../src/db/database.js'
import { domainRoutes } from '../../src/deliverability/domains/domain-routes.js'
import { addDomain } from '../../src/deliverability/domains/domains.js'
import { rotateDomain } from '../../src/deliverability/domains/dkim/rotate-dkim.js'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { suppressionRoutes } from '../../src/deliverability/suppressions/suppression-routes.js'
import { SHELL } from '../../src/core/actor.js'
import { recordActivity, type RecordedActivity } from '../../src/events/activity-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { serveRoutes } from '../support/api/api.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { domainOffice } from '../support/domains.js'
import { addWorkspace, NOW } from '../support/mailroom.js'

async function serve(t: Test, database: Database) {
  const clock = new FakeClock()
  const { ask } = await serveRoutes(t, [
    activityRoute(database.reader),
    ...suppressionRoutes({ suppressedContacts: followSuppressions(), database, clock }),
  ])
  return {
    clock,
    ask,
    record: ({
      workspaceId = 'w1',
      actor = SHELL,
      createdAt = NOW,
      ...activity
    }: Partial<RecordedActivity>) =>
      database.write(tx =>
        recordActivity(tx, { workspaceId, actor }, createdAt, {
          action: 'domain.added',
          subject: 'example.com',
          ...activity,
        }),
      ),
    activities: async (query = '') =>
      (await ask({ path: `/api/v1/activity${query}` })).json as {
        data: Record<string, unknown>[]
        pagination: object
      },
  }
}

eachDatabase(t, 'activities are listed newest first, for their workspace alone', async (t, database) => {
  const { record, activities } = await serve(t, database)
  await record({ details: { id: 'd1', vouched: true } })
  await record({
    action: 'domain.removed',
    actor: { type: 'api_key', id: 'k9', name: 'shop' },
    createdAt: NOW + 1,
  })
  await record({ workspaceId: 'w2' })
  const { data, pagination } = await activities()
  t.match(data, [
    {
      action: 'domain.removed',
      actor: { type: 'api_key', id: 'k9', name: 'shop' },
      details: {},
      created_at: '2026-01-05T10:00:00.001Z',
    },
    {
      action: 'domain.added',
      actor: { type: 'shell' },
      subject: 'example.com',
      details: { id: 'd1', vouched: true },
    },
  ])
  t.equal(data.length, 2)
  t.match(pagination, { total: 2, has_more: false })
  t.match(await activities('?limit=1&offset=1'), { data: [{ action: 'domain.added' }] })
  t.match(await activities('?action=domain.removed'), {
    data: [{ subject: 'example.com' }],
    pagination: { total: 1 },
  })
})

eachDatabase(t, 'making and revoking a key is recorded without the key', async (t, database) => {
  const { activities, clock } = await serve(t, database)
  await addWorkspace(database)
  let ids = 0
  const parts = { database, clock, random: new SeededRandom(), newId: () => `key-${++ids}` }
  const { row, key } = await createKey(
    parts,
    {
      workspaceId: 'w1',
      name: 'shop',
      isSandbox: false,
      ...DEFAULT_KEY_LIMITS,
    },
    SHELL,
  )
  await revokeKey(parts, row.id, SHELL)
  await t.rejects(revokeKey(parts, row.id, SHELL), { code: 'not_found' })
  await t.rejects(revokeKey(parts, 'key-99', SHELL), { code: 'not_found' })
  const { data } = await activities()
  t.match(data, [
    { action: 'api_key.revoked', subject: 'shop', actor: { type: 'shell' }, details: { id: row.id } },
    { action: 'api_key.created', subject: 'shop', details: { id: row.id, hint: row.hint } },
  ])
  t.equal(data.length, 2)
  t.notOk(JSON.stringify(data).includes(key))
})

t.test('changes are recorded under the name of the key; refused ones are not recorded', async t => {
  const { ask, activities } = await serve(t, await sqliteDatabase(t))
  const path = '/api/v1/suppressions'
  const add = () => ask({ method: 'POST', path, body: { email: 'Ann@x.example', reason: 'unsubscribe' } })
  t.equal((await add()).status, 201)
  t.equal((await add()).status, 409)
  const remove = () => ask({ method: 'DELETE', path: `${path}/ann@x.example` })
  t.equal((await remove()).status, 200)
  t.equal((await remove()).status, 404)
  const { data } = await activities()
  const actor = { type: 'api_key', id: 'k1', name: 'test' }
  t.match(data, [
    { action: 'suppression.removed', subject: 'ann@x.example', actor },
    {
      action: 'suppression.added',
      subject: 'ann@x.example',
      actor,
      details: { reason: 'unsubscribe', scope: 'marketing' },
    },
  ])
  t.equal(data.length, 2)
})

t.test('adding, rotating and removing a domain is recorded with its name', async t => {
  const database = await sqliteDatabase(t)
  const { parts } = domainOffice(database)
  const { ask } = await serveRoutes(t, [activityRoute(database.reader), ...domainRoutes(parts)])
  const { id } = await addDomain(parts, 'w1', 'lan.example', SHELL, 'vouched')
  await rotateDomain(parts, 'w1', id, SHELL, true)
  const path = '/api/v1/domains'
  const added = await ask({ method: 'POST', path, body: { domain: 'Shop.example' } })
  const shop = (added.json as { data: { id: string } }).data
  t.equal((await ask({ method: 'POST', path: `${path}/${shop.id}/rotate-dkim` })).status, 409)
  t.equal((await ask({ method: 'DELETE', path: `${path}/${shop.id}` })).status, 200)
  t.equal((await ask({ method: 'DELETE', path: `${path}/${shop.id}` })).status, 404)
  const { data } = (await ask({ path: '/api/v1/activity' })).json as { data: object[] }
  t.match(data, [
    { action: 'domain.removed', subject: 'shop.example', actor: { name: 'test' }, details: { id: shop.id } },
    { action: 'domain.added', subject: 'shop.example', actor: { name: 'test' } },
    {
      action: 'domain.rotated',
      subject: 'lan.example',
      actor: { type: 'shell' },
      details: { forced: true },
    },
    {
      action: 'domain.added',
      subject: 'lan.example',
      actor: { type: 'shell' },
      details: { vouched: true },
    },
  ])
  t.equal(data.length, 4)
})

t.test('the activity log requires activity:read', async t => {
  const { ask } = await serve(t, await sqliteDatabase(t))
  t.match(await ask({ path: '/api/v1/activity', key: 'reader' }), { status: 403 })
})
