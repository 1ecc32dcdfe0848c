/** Conversions over the API: what is taken, and which message it is put down to. */
import t, { type Test } from 'tap'
import { lastEngagement } from '../../src/analytics/conversions/conversion-store.js'
import { conversionRoutes } from '../../src/analytics/conversions/conversion-routes.js'
import { findVariantOf } from '../../src/campaigns/model/recipient-store.js'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { serveRoutes } from '../support/api/api.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { addWorkspace, DAY_MS, enqueue, NOW } from '../support/mailroom.js'

const ANN = { id: '0192f000-0000-7000-8000-00000000000a', email: 'Ann@X.example' }
const BOB = { id: '0192f000-0000-7000-8000-00000000000c', email: 'bob@x.example' }

async function serve(t: Test, database: Database) {
  await addWorkspace(database, 'w1', { currency: 'EUR' })
  const clock = new FakeClock()
  let ids = 0
  let wakes = 0
  const api = await serveRoutes(
    t,
    conversionRoutes({
      database,
      clock,
      newId: () => `conversion-${++ids}`,
      findContact: async (_, workspaceId, by) =>
        workspaceId === 'w1'
          ? [ANN, BOB].find(one => ('id' in by ? by.id === one.id : by.email.toLowerCase() === one.email))
          : undefined,
      findAttribution: lastEngagement,
      findVariant: findVariantOf,
      onEvents: () => (wakes += 1),
    }),
  )
  const path = '/api/v1/conversions'
  return {
    clock,
    wakes: () => wakes,
    convert: (body: unknown, key = 'all') => api.ask({ method: 'POST', path, body, key }),
    convertAnn: async () =>
      (
        (await api.ask({ method: 'POST', path, body: { contact_id: ANN.id, value: 1 } })).json as {
          data: Record<string, unknown>
        }
      ).data,
    list: (query = '', key = 'all') => api.ask({ path: path + query, key }),
  }
}

/** Messages to an address, with the moments at which they were opened and clicked. */
async function engage(
  database: Database,
  to: string,
  moments: Record<string, { opened?: number; clicked?: number; sandbox?: 1 }>,
): Promise<void> {
  await enqueue(
    database,
    Object.keys(moments).map(id => ({ id, to })),
  )
  for (const [id, { opened, clicked, sandbox = 0 }] of Object.entries(moments))
    await database.write(async tx => {
      await tx.db
        .updateTable('messages')
        .set({ opened_at: opened ?? clicked ?? null, clicked_at: clicked ?? null, is_sandbox: sandbox })
        .where('id', '=', id)
        .execute()
    })
}

eachDatabase(t, 'a conversion is kept, listed newest first, and told as an event', async (t, database) => {
  const { convert, list, wakes } = await serve(t, database)
  const first = await convert({
    contact_id: ANN.id.toUpperCase(),
    value: 19.99,
    currency: 'usd',
    metadata: { order: 'A-1', lines: [{ sku: 'x', n: 2 }], odd: '\u0000' },
  })
  t.match(first, {
    status: 201,
    json: {
      data: {
        id: 'conversion-1',
        contact_id: ANN.id,
        value: 19.99,
        currency: 'USD',
        metadata: { order: 'A-1', lines: [{ sku: 'x', n: 2 }] },
        message_id: null,
        campaign_id: null,
        is_sandbox: false,
        created_at: '2026-01-05T10:00:00.000Z',
      },
    },
  })
  t.match(await convert({ contact_id: ANN.id, value: -5 }), {
    status: 201,
    json: { data: { value: -5, currency: 'EUR', metadata: {} } },
  })
  const { data } = first.json as { data: object }
  t.match((await list()).json, {
    data: [{ id: 'conversion-2' }, data],
    pagination: { total: 2, limit: 100, offset: 0, has_more: false },
  })
  t.match((await list('?limit=1')).json, { data: [{ id: 'conversion-2' }], pagination: { has_more: true } })
  const events = await readEventsAfter(database.reader, 0, ['conversion.created'], 10)
  t.match(events[0], { workspaceId: 'w1', isSandbox: false, messageId: null, payload: data })
  t.equal(events.length, 2)
  t.equal(wakes(), 2)
})

eachDatabase(
  t,
  'it is put down to the message clicked last, else to the one opened last',
  async (t, database) => {
    const { convertAnn } = await serve(t, database)
    t.match(await convertAnn(), { message_id: null })
    await engage(database, 'ann@x.example', {
      m1: {},
      m2: { opened: NOW - 2_000 },
      m3: { opened: NOW - 3_000 },
    })
    t.match(await convertAnn(), { message_id: 'm2' })
    await engage(database, 'ANN@x.example', { m4: { clicked: NOW - 6_000 }, m5: { clicked: NOW - 5_000 } })
    t.match(await convertAnn(), { message_id: 'm5' })
    await engage(database, 'bob@x.example', { m6: { clicked: NOW - 1 } })
    await engage(database, 'ann@x.example', { m7: { clicked: NOW - 1, sandbox: 1 } })
    t.match(await convertAnn(), { message_id: 'm5' })
  },
)

eachDatabase(t, 'an address beyond ASCII is one however its case is written', async (t, database) => {
  await addWorkspace(database, 'w1', {})
  await engage(database, 'Jörg.ЖУК@x.example', { m1: { clicked: NOW - 2 } })
  await engage(database, 'jÖRG@x.example', { m2: { clicked: NOW - 1 } })
  const found = (email: string) =>
    lastEngagement(database.reader, { workspaceId: 'w1', email, isSandbox: false, convertedAt: NOW })
  t.match(await found('JÖRG.жук@x.example'), { messageId: 'm1' })
  t.match(await found('jörg@x.example'), { messageId: 'm2' })
  t.equal(await found('jorg@x.example'), undefined)
})

t.test('clicks and opens older than seven days are not credited', async t => {
  const database = await sqliteDatabase(t)
  const { convertAnn, clock } = await serve(t, database)
  await engage(database, 'ann@x.example', { m1: { opened: NOW, clicked: NOW }, m2: { opened: NOW + DAY_MS } })
  await clock.advance(7 * DAY_MS)
  t.match(await convertAnn(), { message_id: 'm1' })
  await clock.advance(1)
  t.match(await convertAnn(), { message_id: 'm2' })
  await clock.advance(DAY_MS)
  t.match(await convertAnn(), { message_id: null })
})

eachDatabase(t, 'the list can be narrowed by contact and by time', async (t, database) => {
  const { convert, list, clock } = await serve(t, database)
  const add = async (contact_id: string) => convert({ contact_id, value: 1 })
  await add(ANN.id)
  await clock.advance(DAY_MS)
  await add(BOB.id)
  await clock.advance(DAY_MS)
  await add(ANN.id)
  const ids = async (query: string) => {
    const { data, pagination } = (await list(query)).json as {
      data: { id: string }[]
      pagination: { total: number }
    }
    t.equal(pagination.total, data.length, query)
    return data.map(({ id }) => Number(id.replace('conversion-', '')))
  }
  t.same(await ids(''), [3, 2, 1])
  t.same(await ids(`?contact_id=${ANN.id.toUpperCase()}`), [3, 1])
  t.same(await ids('?email=BOB@x.example'), [2])
  t.same(await ids(`?email=bob@x.example&contact_id=${ANN.id}`), [])
  t.same(await ids('?email=nobody@x.example'), [])
  t.same(await ids('?since=2026-01-06'), [3, 2])
  t.same(await ids('?until=2026-01-06'), [2, 1], 'a date alone includes that day')
  t.same(await ids(`?since=2026-01-06T10:00:00Z&until=2026-01-07T10:00:00Z`), [2])
  t.same(await ids(`?contact_id=${ANN.id}&since=2026-01-06`), [3])
  t.match(await list('?since=yesterday'), {
    status: 400,
    json: { error: { code: 'validation_error', path: 'since' } },
  })
  t.match(await list('?contact=x'), { status: 400 })
})

t.test('an unknown contact is a 404 contact_not_found', async t => {
  const { convert, list } = await serve(t, await sqliteDatabase(t))
  for (const unknown of ['0192f000-0000-7000-8000-00000000000b', 'ann'])
    t.match(await convert({ contact_id: unknown, value: 1 }), {
      status: 404,
      json: { error: { code: 'contact_not_found', path: 'contact_id' } },
    })
  t.match((await list()).json, { pagination: { total: 0 } })
})

t.test('an invalid conversion is refused, naming the field', async t => {
  const { convert } = await serve(t, await sqliteDatabase(t))
  const usual = { contact_id: ANN.id, value: 1 }
  for (const [body, path] of [
    [{ value: 1 }, 'contact_id'],
    [{ contact_id: ANN.id }, 'value'],
    [{ ...usual, value: '1' }, 'value'],
    [{ ...usual, value: 1e300 }, 'value'],
    [{ ...usual, currency: 'EURO' }, 'currency'],
    [{ ...usual, currency: 'ZZZ' }, 'currency'],
    [{ ...usual, metadata: [] }, 'metadata'],
    [{ ...usual, metadata: { note: 'ü'.repeat(5_000) } }, 'metadata'],
    [`{"contact_id":"${ANN.id}","value":1,"metadata":${'{"a":'.repeat(40)}1${'}'.repeat(40)}}`, 'metadata'],
    [`{"contact_id":"${ANN.id}","value":1,"metadata":${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}}`, 'body'],
    [{ ...usual, note: 'x' }, 'note'],
  ] as const)
    t.match(await convert(body), { status: 400, json: { error: { code: 'validation_error', path } } })
  t.equal((await convert({ ...usual, metadata: { note: 'x'.repeat(8_000) } })).status, 201)
})

t.test('each route requires its permission', async t => {
  const { convert, list } = await serve(t, await sqliteDatabase(t))
  t.match(await list('', 'reader'), { status: 403 })
  t.match(await convert({ contact_id: ANN.id, value: 1 }, 'reader'), { status: 403 })
})

eachDatabase(t, 'a click counts before a later opening, and goes by its own moment', async (t, database) => {
  const { convertAnn } = await serve(t, database)
  await engage(database, 'ann@x.example', {
    m1: { opened: NOW - 2 * DAY_MS, clicked: NOW - DAY_MS },
    m2: { opened: NOW - 1_000 },
    m3: { opened: NOW - 3 * DAY_MS, clicked: NOW - 2 * DAY_MS },
  })
  t.match(await convertAnn(), { message_id: 'm1' })
})

t.test('if the last click is too old, the last opened message is credited', async t => {
  const database = await sqliteDatabase(t)
  const { convertAnn, clock } = await serve(t, database)
  await engage(database, 'ann@x.example', {
    m1: { opened: NOW, clicked: NOW },
    m2: { opened: NOW + 3 * DAY_MS },
  })
  await clock.advance(7 * DAY_MS + 1)
  t.match(await convertAnn(), { message_id: 'm2' })
})

eachDatabase(t, 'a refund is put down like a purchase, each in its currency', async (t, database) => {
  const { convert, list } = await serve(t, database)
  await engage(database, 'ann@x.example', { m1: { clicked: NOW - 1_000 } })
  for (const [value, currency] of [
    [100, 'usd'],
    [-30, 'USD'],
    [2_000, 'jpy'],
    [0, undefined],
  ] as const)
    t.match(await convert({ contact_id: ANN.id, value, currency }), {
      status: 201,
      json: { data: { value, currency: currency?.toUpperCase() ?? 'EUR', message_id: 'm1' } },
    })
  t.match((await list()).json, {
    data: [{ currency: 'EUR' }, { currency: 'JPY' }, { value: -30, currency: 'USD' }, { value: 100 }],
    pagination: { total: 4 },
  })
})

eachDatabase(t, 'a conversion names the campaign that its message is part of', async (t, database) => {
  const { convertAnn } = await serve(t, database)
  await engage(database, 'ann@x.example', { m1: { clicked: NOW - 1_000 } })
  await database.write(async tx => {
    await tx.db.updateTable('messages').set({ campaign_id: 'spring' }).where('id', '=', 'm1').execute()
  })
  t.match(await convertAnn(), { message_id: 'm1', campaign_id: 'spring' })
})
