/** The suppression list over the API. */
import t, { type Test } from 'tap'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { suppressionRoutes } from '../../src/deliverability/suppressions/suppression-routes.js'
import {
  insertSuppression,
  type Suppression,
} from '../../src/deliverability/suppressions/suppression-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { serveRoutes } from '../support/api/api.js'
import { sqliteDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

async function serve(t: Test) {
  const database = await sqliteDatabase(t)
  const api = await serveRoutes(
    t,
    suppressionRoutes({
      database,
      clock: new FakeClock(),
      suppressedContacts: followSuppressions(),
    }),
  )
  const path = '/api/v1/suppressions'
  return {
    api,
    path,
    add: (body: object, key = 'all') => api.ask({ method: 'POST', path, body, key }),
    list: async (query = '') =>
      (await api.ask({ path: `${path}${query}` })).json as {
        data: Record<string, unknown>[]
        pagination: object
      },
    remove: (email: string, key = 'all') =>
      api.ask({ method: 'DELETE', path: `${path}/${encodeURIComponent(email)}`, key }),
    store: (suppression: Partial<Suppression>) =>
      database.write(tx =>
        insertSuppression(tx.db, {
          workspaceId: 'w1',
          email: 'ann@x.example',
          reason: 'manual',
          scope: 'all',
          sourceMessageId: null,
          createdAt: NOW,
          ...suppression,
        }),
      ),
  }
}

t.test('an address is suppressed once, whatever its case', async t => {
  const { add } = await serve(t)
  t.match(await add({ email: 'Ann@X.example' }), {
    status: 201,
    json: {
      data: {
        email: 'ann@x.example',
        reason: 'manual',
        scope: 'all',
        source_message_id: null,
        created_at: new Date(NOW).toISOString(),
      },
    },
  })
  t.match(await add({ email: 'ann@x.example', scope: 'marketing' }), {
    status: 409,
    json: { error: { code: 'duplicate', path: 'email' } },
  })
})

t.test('a whole domain, a reason and a scope can be given', async t => {
  const { add, list } = await serve(t)
  t.equal((await add({ email: '@Bücher.example' })).status, 201)
  t.match((await add({ email: 'bob@x.example', reason: 'unsubscribe' })).json, {
    data: { scope: 'marketing' },
  })
  t.match((await add({ email: 'eve@x.example', reason: 'unsubscribe', scope: 'all' })).json, {
    data: { scope: 'all' },
  })
  t.same(
    (await list()).data.map(one => one['email']),
    ['eve@x.example', 'bob@x.example', '@xn--bcher-kva.example'],
  )
})

t.test('an invalid address is rejected, naming the field', async t => {
  const { add } = await serve(t)
  for (const [body, path] of [
    [{ email: 'nonsense' }, 'email'],
    [{ email: '@' }, 'email'],
    [{ email: `${'x'.repeat(400)}@x.example` }, 'email'],
    [{}, 'email'],
    [{ email: 'a@x.example', reason: 'dislike' }, 'reason'],
    [{ email: 'a@x.example', scope: 'some' }, 'scope'],
    [{ email: 'a@x.example', note: 'x' }, 'note'],
  ] as const)
    t.match(await add(body), { status: 400, json: { error: { code: 'validation_error', path } } })
})

t.test('the list is filtered and paged, for its workspace only', async t => {
  const { list, store } = await serve(t)
  await store({ email: 'a@x.example', reason: 'hard_bounce', sourceMessageId: 'm1' })
  await store({ email: 'b@x.example', reason: 'unsubscribe', scope: 'marketing' })
  await store({ email: 'c@x.example', reason: 'hard_bounce' })
  await store({ email: 'd@x.example', workspaceId: 'w2' })
  const emails = async (query: string) => (await list(query)).data.map(one => one['email'])
  t.same(await emails(''), ['c@x.example', 'b@x.example', 'a@x.example'])
  t.same(await emails('?reason=hard_bounce'), ['c@x.example', 'a@x.example'])
  t.same(await emails('?scope=marketing'), ['b@x.example'])
  t.same(await emails('?email=A@X.example'), ['a@x.example'])
  t.match(await list('?reason=hard_bounce&limit=1'), {
    data: [{ email: 'c@x.example' }],
    pagination: { total: 2, limit: 1, has_more: true },
  })
})

t.test('a removed entry is gone; an unknown one is not found', async t => {
  const { add, remove, list } = await serve(t)
  await add({ email: 'ann+news@x.example' })
  await add({ email: '@y.example' })
  t.match(await remove('Ann+News@x.example'), { status: 200, json: { data: { success: true } } })
  t.match(await remove('@y.example'), { status: 200 })
  t.match(await remove('ann+news@x.example'), { status: 404, json: { error: { code: 'not_found' } } })
  t.same((await list()).data, [])
})

t.test('each operation needs its permission', async t => {
  const { api, path, add, remove } = await serve(t)
  t.match(await api.ask({ path, key: 'reader' }), { status: 403 })
  t.match(await add({ email: 'a@x.example' }, 'reader'), { status: 403 })
  t.match(await remove('a@x.example', 'reader'), { status: 403 })
})
