/** Many submissions at once: stored together, each with its own result. */
import t from 'tap'
import { sql } from 'kysely'
import { AppError } from '../../src/core/errors.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { SlidingWindow } from '../../src/http/sliding-window.js'
import { SubmissionGatherer, type GatheredSubmission } from '../../src/msa/submission-gatherer.js'
import type { Workspace } from '../../src/accounts/workspace-store.js'
import { findAnyMessage } from '../../src/messages/message-store.js'
import { findEntries, listLanes } from '../../src/queue/queue-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from '../support/db/database.js'
import { addWorkspace } from '../support/mailroom.js'

function openGatherer(database: Database) {
  const clock = new FakeClock()
  const random = new SeededRandom()
  return new SubmissionGatherer({
    database,
    clock,
    newId: () => uuidv7(clock.now(), random.bytes(10)),
    emailWindows: new SlidingWindow(clock),
    expireMs: 86_400_000,
    onEnqueued: () => {},
  })
}

interface Key {
  readonly keyId: string
  readonly emailRateLimit: number
}

let contents = 0

function submission(
  workspace: Workspace,
  to: string,
  key: Partial<Key> = {},
  isSandbox = false,
): GatheredSubmission {
  const message = Buffer.from(`From: <app@sender.test>\r\nTo: <${to}>\r\n\r\nHello.\r\n`)
  const content = {
    id: `c${(contents += 1)}`,
    from: { address: 'app@sender.test' },
    signingDomainId: null,
    subject: 'Hello',
    relayed: { firstPart: message, size: message.length, submitter: 'app@sender.test' },
    trackOpens: false,
    trackClicks: false,
  }
  return {
    workspace,
    isSandbox,
    submission: { content, to: [to], key: { keyId: 'k1', emailRateLimit: 0, ...key } },
  }
}

const outcomes = async (all: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(all)).map(one =>
    one.status === 'fulfilled'
      ? 'accepted'
      : one.reason instanceof AppError
        ? one.reason.code
        : String(one.reason),
  )

t.test('a hundred submissions at once are stored, each under its own id, and queued', async t => {
  const database = await sqliteDatabase(t)
  const workspace = await addWorkspace(database)
  const gatherer = openGatherer(database)
  const addresses = Array.from({ length: 100 }, (_, n) => `user${n}@x.example`)
  const submitted = (
    await Promise.all(addresses.map(to => gatherer.submit(submission(workspace, to))))
  ).flat()
  t.same(
    submitted.map(one => one.asked),
    addresses,
    'each caller gets the result of its own recipient',
  )
  t.equal(new Set(submitted.map(one => one.messageId)).size, 100)
  for (const { messageId, asked } of submitted)
    t.match(await findAnyMessage(database.reader, messageId), { recipient: asked, status: 'sent' })
  t.equal(
    (
      await findEntries(
        database.reader,
        submitted.map(one => one.messageId),
      )
    ).length,
    100,
  )
})

t.test('what crosses the workspace limit is refused alone, in the order in which it came', async t => {
  const database = await sqliteDatabase(t)
  const workspace = await addWorkspace(database, 'w1', { hourlyLimit: 2 })
  const gatherer = openGatherer(database)
  const three = ['a@x.example', 'b@x.example', 'c@x.example']
  t.same(await outcomes(three.map(to => gatherer.submit(submission(workspace, to)))), [
    'accepted',
    'accepted',
    'limit_reached',
  ])
  t.same(await outcomes([gatherer.submit(submission(workspace, 'd@x.example'))]), ['limit_reached'])
})

t.test(
  "what crosses the key's rate is refused alone and uses up nothing of the workspace's limit",
  async t => {
    const database = await sqliteDatabase(t)
    const workspace = await addWorkspace(database, 'w1', { hourlyLimit: 3 })
    const gatherer = openGatherer(database)
    const slow = { keyId: 'slow', emailRateLimit: 1 }
    t.same(
      await outcomes([
        gatherer.submit(submission(workspace, 'a@x.example', slow)),
        gatherer.submit(submission(workspace, 'b@x.example', slow)),
        gatherer.submit(submission(workspace, 'c@x.example')),
        gatherer.submit(submission(workspace, 'd@x.example')),
        gatherer.submit(submission(workspace, 'e@x.example')),
      ]),
      ['accepted', 'rate_limited', 'accepted', 'accepted', 'limit_reached'],
    )
  },
)

t.test('workspaces and sandboxes that come together stay apart', async t => {
  const database = await sqliteDatabase(t)
  const one = await addWorkspace(database, 'w1')
  const other = await addWorkspace(database, 'w2', { dailyLimit: 1 })
  const gatherer = openGatherer(database)
  t.same(
    await outcomes([
      gatherer.submit(submission(one, 'a@x.example')),
      gatherer.submit(submission(other, 'b@x.example', {}, true)),
      gatherer.submit(submission(other, 'c@y.example')),
      gatherer.submit(submission(other, 'd@y.example')),
    ]),
    ['accepted', 'accepted', 'accepted', 'limit_reached'],
  )
  const lanes = (await listLanes(database.reader)).map(({ lane }) => lane)
  t.same(lanes, ['x.example 0 w1', 'y.example 0 w2'], 'nothing of a sandbox is queued')
})

t.test(
  'when the database cannot write, everybody who waited hears of it, and later ones are taken',
  async t => {
    const database = await sqliteDatabase(t)
    const workspace = await addWorkspace(database)
    let isBroken = true
    const gatherer = openGatherer({
      ...database,
      write: (work, options) =>
        isBroken ? Promise.reject(new Error('disk full')) : database.write(work, options),
    })
    const two = ['a@x.example', 'b@x.example'].map(to => gatherer.submit(submission(workspace, to)))
    t.same(await outcomes(two), ['Error: disk full', 'Error: disk full'])
    isBroken = false
    t.same(await outcomes([gatherer.submit(submission(workspace, 'c@x.example'))]), ['accepted'])
  },
)

t.test('a transaction that the database runs again accepts each submission once', async t => {
  const database = await sqliteDatabase(t)
  const workspace = await addWorkspace(database)
  const gatherer = openGatherer({
    ...database,
    write: async (work, options) => {
      const first = database.write(async tx => {
        await work(tx)
        throw new Error('could not serialize access')
      }, options)
      await first.catch(() => {})
      return database.write(work, options)
    },
  })
  const addresses = Array.from({ length: 100 }, (_, n) => `user${n}@x.example`)
  const all = addresses.map(to => gatherer.submit(submission(workspace, to)))
  t.same(new Set(await outcomes(all)), new Set(['accepted']))
  const { rows } = await sql<{ count: number }>`select count(*) as count from messages`.execute(
    database.reader,
  )
  t.equal(rows[0]?.count, 100)
})
