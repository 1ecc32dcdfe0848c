/** Product views over the API. */
import t, { type Test } from 'tap'
import { productViewRoute } from '../../src/analytics/conversions/conversion-routes.js'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { serveRoutes } from '../support/api/api.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

async function serve(t: Test, database: Database) {
  const api = await serveRoutes(t, [
    productViewRoute({
      database,
      clock: new FakeClock(),
      newId: () => 'view-1',
      findContact: async (_, workspaceId, by) =>
        workspaceId === 'w1' && 'email' in by && by.email.toLowerCase() === 'ann@x.example'
          ? { id: 'contact-1', email: 'ann@x.example' }
          : undefined,
      onEvents: () => undefined,
    }),
  ])
  return (body: unknown, key = 'all') =>
    api.ask({ method: 'POST', path: '/api/v1/track/product-view', body, key })
}

eachDatabase(t, 'a view is stored with its product data and reported as an event', async (t, database) => {
  const view = await serve(t, database)
  const product = {
    product_name: 'Blue jug',
    product_url: 'https://shop.example/jug',
    image_url: 'https://shop.example/jug.png',
    price: 12.5,
    currency: 'EUR',
    category: 'Kitchen',
    metadata: { colour: 'blue' },
  }
  t.match(await view({ contact_email: 'Ann@X.example', product_id: 'jug-1', ...product }), {
    status: 201,
    json: {
      data: {
        id: 'view-1',
        contact_id: 'contact-1',
        product_id: 'jug-1',
        ...product,
        is_sandbox: false,
        viewed_at: '2026-01-05T10:00:00.000Z',
      },
    },
  })
  const rows = await database.reader.selectFrom('product_views').selectAll().execute()
  t.match(rows, [{ workspace_id: 'w1', contact_id: 'contact-1', product_id: 'jug-1', viewed_at: NOW }])
  t.same(JSON.parse(rows[0]?.product ?? ''), product)
  t.match(await readEventsAfter(database.reader, 0, ['product.viewed'], 10), [
    { workspaceId: 'w1', messageId: null, payload: { contactId: 'contact-1', productId: 'jug-1' } },
  ])
})

t.test('an unknown contact is a 404 contact_not_found, and nothing is stored', async t => {
  const database = await sqliteDatabase(t)
  const view = await serve(t, database)
  t.match(await view({ contact_email: 'bob@x.example', product_id: 'jug-1' }), {
    status: 404,
    json: { error: { code: 'contact_not_found', path: 'contact_email' } },
  })
  t.same(await database.reader.selectFrom('product_views').selectAll().execute(), [])
})

t.test('an invalid view is refused, naming the field', async t => {
  const view = await serve(t, await sqliteDatabase(t))
  const usual = { contact_email: 'ann@x.example', product_id: 'jug-1' }
  for (const [body, path] of [
    [{ product_id: 'jug-1' }, 'contact_email'],
    [{ ...usual, contact_email: 'nobody' }, 'contact_email'],
    [{ contact_email: 'ann@x.example' }, 'product_id'],
    [{ ...usual, product_id: 7 }, 'product_id'],
    [{ ...usual, product_id: '' }, 'product_id'],
    [{ ...usual, product_id: 'a\u0000b' }, 'product_id'],
    [{ ...usual, product_url: 'javascript:alert(1)' }, 'product_url'],
    [{ ...usual, image_url: '/jug.png' }, 'image_url'],
    [{ ...usual, price: '12.50' }, 'price'],
    [{ ...usual, currency: 'XX1' }, 'currency'],
    [{ ...usual, metadata: { note: 'x'.repeat(9_000) } }, 'metadata'],
    [{ ...usual, colour: 'blue' }, 'colour'],
  ] as const)
    t.match(await view(body), { status: 400, json: { error: { code: 'validation_error', path } } })
})

t.test('product views require tracking:write', async t => {
  const view = await serve(t, await sqliteDatabase(t))
  t.match(await view({ contact_email: 'ann@x.example', product_id: 'j' }, 'reader'), { status: 403 })
})
