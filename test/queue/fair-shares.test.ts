/** A few sites that do not answer beside those that do: connections, memory, and what is given back. */
import t from 'tap'
import type { MessageContent } from '../../src/messages/content-store.js'
import { insertContent, insertPart } from '../../src/messages/content-store.js'
import { laneKey } from '../../src/queue/lane.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertQueueEntries } from '../../src/queue/queue-store.js'
import { listAttempts } from '../../src/messages/attempt-store.js'
import type { Database } from '../../src/db/database.js'
import type { DeliveryJob } from '../../src/queue/delivery-agent.js'
import { CONTENT, enqueue, laneTo, letters, NOW } from '../support/mailroom.js'
import { delivered, unreachable } from '../support/outcomes.js'
import { sqliteQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const isTarpit = ({ recipient }: DeliveryJob) => recipient.includes('@tarpit')
const tarpits = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `stuck${n}`, to: `a@tarpit${n}.example` }))

t.test('150 unresponsive destinations do not delay a responsive one', async t => {
  const { database, runner, look, haveAnswered, agent, becomes } = await sqliteQueue(t, {
    script: job => (isTarpit(job) ? 'wait' : delivered),
    policy: { connections: 100 },
  })
  await haveAnswered('works.example')
  await enqueue(database, tarpits(150))
  await look()
  await until('tarpits have what they get', () => agent.waitingIds.length >= 19)
  await enqueue(database, letters('works.example', 30))
  runner.noteEnqueued(laneTo('works.example'), NOW)
  for (const { id } of letters('works.example', 30)) await becomes(id, 'delivered')
  t.equal(agent.waitingIds.length, 19, 'three quarters of a quarter')
})

t.test('a new destination is served before tarpits that came earlier', async t => {
  const { database, runner, agent, becomes, clock, haveAnswered, look } = await sqliteQueue(t, {
    script: job => (isTarpit(job) ? 'wait' : delivered),
    policy: { connections: 20 },
  })
  await haveAnswered('works.example')
  await enqueue(database, tarpits(100))
  await look()
  await until('tarpits have what they get', () => agent.waitingIds.length >= 4)
  await enqueue(database, [{ id: 'm1', to: 'a@fresh.example' }])
  runner.noteEnqueued(laneTo('fresh.example'), NOW)
  await comeToRest()
  t.notOk(agent.ids.includes('m1'))
  for (let step = 0; step < 43; step += 1) await clock.advance(250)
  await becomes('m1', 'delivered')
  const [attempt] = await listAttempts(database.reader, agent.ids[0]!)
  t.match(attempt, {
    kind: 'deferred',
    summary: 'the server did not answer in time, and other mail was waiting for the connection',
    classification: { subtype: 'too_slow', scope: 'domain' },
  })
})

t.test('no delivery is aborted while nothing waits for its connection', async t => {
  const { database, runner, agent, clock } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connections: 20 },
  })
  await enqueue(database, tarpits(2))
  await runner.start()
  await until('they are under way', () => agent.waitingIds.length === 2)
  for (let minute = 0; minute < 5; minute += 1) await clock.advance(60_000)
  t.equal(agent.waitingIds.length, 2)
})

t.test('deliveries hanging at an unreachable site are aborted and free their connections', async t => {
  const { database, agent, runner, clock, haveAnswered, look } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connections: 20, connectionsPerSite: 20 },
  })
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 4))
  await look()
  await until('four are under way', () => agent.waitingIds.length === 4)
  await clock.advance(40_000)
  agent.script = () => unreachable
  for (const id of agent.waitingIds.slice(0, 3)) agent.finish(id, unreachable)
  await until('nothing is under way', () => runner.activeCount === 0)
  t.match(runner.listSites(), [{ name: 'x.example', active: 0 }])
})

/** Enqueues messages with an attachment of so many octets. */
async function enqueueLarge(database: Database, ids: readonly string[], domain: string, size: number) {
  const content: MessageContent = {
    ...CONTENT,
    id: `content of ${ids[0]}`,
    attachments: [{ filename: 'a.bin', contentType: 'application/octet-stream', size }],
  }
  await database.write(async tx => {
    await insertContent(tx.db, content)
    await insertPart(tx.db, content.id, 1, Buffer.alloc(size))
    await insertMessages(
      tx.db,
      content,
      false,
      ids.map(id => ({ id, recipient: `${id}@${domain}`, status: 'sent', reason: null })),
    )
    await insertQueueEntries(
      tx.db,
      ids.map(messageId => ({
        messageId,
        workspaceId: 'w1',
        destination: domain,
        priority: PRIORITIES.transactional,
        isLarge: size > 262_144,
        nextAttemptAt: NOW,
        expiresAt: NOW + 86_400_000,
        enqueuedAt: NOW,
        contentId: content.id,
        recipient: `${messageId}@${domain}`,
      })),
    )
  })
}

t.test('large mail to a stalled server leaves memory and connections to others', async t => {
  const isStalled = ({ recipient }: DeliveryJob) => recipient.endsWith('@stalls.example')
  const { database, runner, agent, becomes, entryOf, haveAnswered, look } = await sqliteQueue(t, {
    script: job => (isStalled(job) ? 'wait' : delivered),
    policy: { connections: 20, connectionsPerSite: 8 },
  })
  await haveAnswered('stalls.example', 'works.example')
  const stuck = Array.from({ length: 8 }, (_, n) => `stuck${n}`)
  await enqueueLarge(database, stuck, 'stalls.example', 8 * 1_024 * 1_024)
  await look()
  await until('two are under way', () => agent.waitingIds.length === 2)
  await comeToRest()
  t.equal(runner.activeCount, 2, 'a quarter of the memory; what waits for it holds no connection')
  const attempts = await Promise.all(stuck.map(async id => (await entryOf(id))?.attempts))
  t.equal(attempts.filter(count => count === 1).length, 2, 'nor is its attempt counted')
  await enqueueLarge(database, ['small'], 'works.example', 10_000)
  runner.noteEnqueued(laneTo('works.example'), NOW)
  await becomes('small', 'delivered')
  await enqueueLarge(database, ['large'], 'works.example', 20 * 1_024 * 1_024)
  runner.noteEnqueued(laneKey('works.example', PRIORITIES.transactional, 'w1', true), NOW)
  await becomes('large', 'delivered')
  await enqueue(database, [{ id: 'plain', to: 'a@stalls.example' }])
  runner.noteEnqueued(laneTo('stalls.example'), NOW)
  await until('a small one to the stalled site begins as well', () => agent.ids.includes('plain'))
  agent.finish(agent.waitingIds[0]!, delivered)
  await until('the next large one begins', () => agent.ids.filter(id => id.startsWith('stuck')).length === 3)
})
