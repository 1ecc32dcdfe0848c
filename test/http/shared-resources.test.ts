/**
 * Each bounded resource that several workspaces or clients share (the table in `src/core/fair-shares.md`): while one of them takes all it can
 * get, with as many keys or addresses as it likes, what others ask for is answered.
 */
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { Passwords } from '../../src/accounts/operators/password.js'
import { ImageThread } from '../../src/content/media/resizing/image-thread.js'
import { RenderQueue } from '../../src/content/rendering/render-queue.js'
import { AppError } from '../../src/core/errors.js'
import { actFor, type Holder } from '../../src/core/holder.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { DownloadPlaces } from '../../src/http/answer/download.js'
import { answerBudget, bodyBudget } from '../../src/http/memory-budget.js'
import { LiveStreams, MAX_PER_OPERATOR } from '../../src/metrics/live-streams.js'
import { AttemptShares } from '../../src/webhooks/delivery/lane.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { addressHolder } from '../../src/world/net/ip-address.js'
import { spawnThread, type SpawnThread } from '../../src/world/threads.js'
import { nextTurn } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { onPostgres, sqliteFile } from '../support/db/database.js'

/** One use of the resource, which is never given back. Rejects if it is refused. */
type Use = (holder: Holder) => Promise<unknown>

const MEGABYTE = 1_024 * 1_024
const COUNTING = sql`with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 2000)
  select max(n) as n from counted`

const RESOURCES: Readonly<Record<string, (t: Test) => Use | Promise<Use>>> = {
  'memory of request bodies': () => {
    const budget = bodyBudget(MEGABYTE)
    return async holder => budget.hold(holder).reach(MEGABYTE)
  },
  'memory of answers that nobody reads': () => {
    const budget = answerBudget()
    return async holder => budget.hold(holder).reach(MEGABYTE)
  },
  downloads: () => {
    const places = new DownloadPlaces()
    return async holder => places.take(holder)
  },
  'live streams': openStreams,
  'hashing of passwords': () => {
    const passwords = new Passwords(new SeededRandom(), { ln: 4, r: 8, p: 1 })
    return () => passwords.matches(undefined, 'correct horse battery')
  },
  'searches and long lists': async t => {
    const file = sqliteFile(t)
    const clock = new FakeClock()
    const database = await openSqlite({
      file,
      clock,
      slowReads: { spawn: spawnThread, log: new FakeLog(), clock },
    })
    t.teardown(() => database[Symbol.asyncDispose]())
    return () => COUNTING.execute(database.slowReader)
  },
  'images that are resized': () => {
    const images = new ImageThread({ spawn: promptThreads, clock: new FakeClock(), log: new FakeLog() })
    return () => images.prepare(new Uint8Array(1), 1)
  },
  renderings: () => {
    const render = async () => {
      await nextTurn()
      return { kind: 'parsed' } as const
    }
    const queue = new RenderQueue({ clock: new FakeClock(), render })
    let asked = 0
    return ({ owner, key }) =>
      queue.render({
        key: String(asked++),
        workspaceId: owner,
        ...(key === undefined ? {} : { network: key }),
        load: () => Promise.resolve({ kind: 'parse', sources: [] }),
      })
  },
  'webhook attempts': () => {
    const shares = new AttemptShares()
    return async ({ owner, key = '' }) => {
      const lane = {
        workspaceId: owner,
        subscriptionId: `${owner} ${key}`,
        host: owner,
        standing: 'unknown',
      } as const
      if (!shares.hasRoom(lane)) throw new AppError('unavailable', 'waits')
      return shares.take(lane)
    }
  },
  'slow webhook attempts': () => {
    const shares = new AttemptShares()
    let hosts = 0
    return async ({ owner, key = '' }) => {
      const host = `${(hosts += 1)}.example`
      const lane = {
        workspaceId: owner,
        subscriptionId: `${owner} ${key}`,
        host,
        standing: 'steady',
      } as const
      if (!shares.hasRoom(lane)) throw new AppError('unavailable', 'waits')
      shares.take(lane).slow()
    }
  },
}

/** Threads that answer in the next turn. */
const promptThreads: SpawnThread = (_, { onMessage }) => ({
  post: () => void nextTurn().then(() => onMessage({ image: {} })),
  terminate: () => Promise.resolve(),
})

function openStreams(): Use {
  const streams = new LiveStreams({
    clock: new FakeClock(),
    changes: { begin: async () => {}, take: async () => new Map(), end: () => {} } as never,
    recheckOperator: async operator => operator,
    sandboxIdOf: id => id,
    readFigures: async () => '{}',
  })
  return ({ owner, key = '' }) => {
    const operator = { id: key, grants: [{ workspaceId: owner, role: 'owner' }] } as never
    const stream = streams.open(operator, { workspaceId: owner, hasFigures: false })
    return stream.pieces(new AbortController().signal)[Symbol.asyncIterator]().next()
  }
}

const MANY = 1_500
const keysOf = (workspace: string): Holder[] =>
  Array.from({ length: MANY }, (_, at) => ({ owner: workspace, key: `${workspace} key ${at % 300}` }))
const FLOODS: Readonly<Record<string, readonly Holder[]>> = {
  'one key': Array.from({ length: MANY }, () => ({ owner: 'w1', key: 'k1' })),
  'a workspace with many keys': keysOf('w1'),
  'an address': Array.from({ length: MANY }, () => addressHolder('198.51.100.7')),
  'all of an IPv6 network': Array.from({ length: MANY }, (_, at) =>
    addressHolder(`2001:db8:1:${(at % 300).toString(16)}::7`),
  ),
}
const OTHERS: readonly Holder[] = [
  { owner: 'w2', key: 'k2' },
  { owner: 'w3', key: 'k3' },
  addressHolder('203.0.113.9'),
  addressHolder('2001:db8:2::9'),
]

for (const [resource, open] of Object.entries(RESOURCES))
  for (const [who, flood] of Object.entries(FLOODS))
    t.test(`${resource}: while ${who} takes all it can get, others are answered`, async t => {
      const use = await open(t)
      const as = (holder: Holder) => actFor(holder, () => use(holder))
      const flooding = flood.map(as)
      const settled = Promise.allSettled(flooding)
      await nextTurn()
      for (const other of OTHERS) await t.resolves(as(other))
      const codes = (await settled).flatMap(one =>
        one.status === 'rejected'
          ? [one.reason instanceof AppError ? one.reason.code : String(one.reason)]
          : [],
      )
      t.ok(codes.length > 0, 'and it was refused at some point')
      t.same(
        codes.filter(code => code !== 'unavailable' && code !== 'rate_limited'),
        [],
      )
    })

for (const [who, flood] of Object.entries(FLOODS))
  onPostgres(t, `searches: while ${who} takes all it can get, others are answered`, async (t, database) => {
    const search = (holder: Holder) => actFor(holder, () => COUNTING.execute(database.slowReader))
    const settled = Promise.allSettled(flood.map(search))
    await nextTurn()
    for (const other of OTHERS) await t.resolves(search(other))
    await settled
  })

t.test('an operator opens as many streams as before', async t => {
  const use = openStreams()
  for (let n = 0; n < MAX_PER_OPERATOR; n += 1) await t.resolves(use({ owner: 'w1', key: 'ann' }))
  await t.rejects(use({ owner: 'w1', key: 'ann' }), { code: 'rate_limited' })
})
