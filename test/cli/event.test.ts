/** `postroad event`: events set aside are shown, retried on request, or dropped. */
import { join } from 'node:path'
import t from 'tap'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { setAside } from '../../src/events/set-aside-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

t.test('an event set aside is listed, retried within a minute, or dropped', async t => {
  const postroad = await openTestAppliance(t)
  const database = await openSqlite({ file: join(postroad.dataDir, 'postroad.db'), clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  const put = (seq: number) =>
    database.write(({ db }) =>
      setAside(db, {
        consumer: 'bounces',
        event: {
          seq,
          kind: 'email.complained',
          workspaceId: postroad.workspaceId,
          messageId: `m${seq}`,
          isSandbox: false,
          occurredAt: Date.UTC(2026, 0, 5),
          payload: { to: `p${seq}@one.test`, feedbackType: 'abuse' },
        },
        error: 'not today',
        setAsideAt: Date.UTC(2026, 0, 5, 1),
      }),
    )
  t.same(await postroad.json('event', 'list'), [])
  await put(7)
  await put(8)
  t.match(await postroad.get('/health'), { status: 200, body: { data: { set_aside_events: 2 } } })
  t.same((await postroad.json<object[]>('event', 'list', '--limit', '1'))[0], {
    consumer: 'bounces',
    number: 7,
    event: 'email.complained',
    workspace_id: postroad.workspaceId,
    message_id: 'm7',
    occurred_at: '2026-01-05T00:00:00.000Z',
    set_aside_at: '2026-01-05T01:00:00.000Z',
    error: 'not today',
  })
  t.match(await postroad.run('event', 'list'), { out: /bounces +7 +email\.complained +m7 .*not today/ })
  t.same(await postroad.json('event', 'retry', 'bounces', '7'), { changed: 1 })
  t.same(await postroad.json('event', 'drop', '--all'), { changed: 2 })
  await put(9)
  t.same(await postroad.json('event', 'retry', '--all'), { changed: 1 })
  await postroad.clock.advance(60_000)
  await until('it is taken', async () => (await postroad.json<object[]>('event', 'list')).length === 0)
  const suppressed = await postroad.json<{ email: string }[]>(
    'suppress',
    'list',
    '--workspace',
    postroad.workspaceId,
  )
  t.match(suppressed, [{ email: 'p9@one.test', reason: 'complaint' }])
  t.match(await postroad.get('/health'), { body: { data: { status: 'ok', set_aside_events: 0 } } })
})
