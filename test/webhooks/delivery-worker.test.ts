/** The worker that attempts deliveries: when it looks for those that are due. */
import t from 'tap'
import { plainBox } from '../../src/accounts/secret-box.js'
import type { WebhookParts } from '../../src/webhooks/webhook-parts.js'
import { DeliveryWorker } from '../../src/webhooks/delivery/delivery-worker.js'
import { insertDeliveries, insertPayloads } from '../../src/webhooks/delivery/delivery-store.js'
import { insertSubscription } from '../../src/webhooks/subscriptions/subscription-store.js'
import { SubscriptionRegister } from '../../src/webhooks/subscriptions/subscription-register.js'
import { nextTurn } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from '../support/db/database.js'
import { addWorkspace } from '../support/mailroom.js'
import { comeToRest, until } from '../support/turns.js'

const RETRY_AFTER_S = 60

t.test('a retry that falls due while the worker looks for others is attempted', async t => {
  const database = await sqliteDatabase(t)
  const clock = new FakeClock()
  await addWorkspace(database)
  await database.write(async tx => {
    await insertSubscription(tx.db, {
      id: 'h1',
      workspaceId: 'w1',
      isSandbox: false,
      event: 'email.sent',
      targetUrl: 'https://hooks.example/',
      secret: 'whsec_c2VjcmV0',
      formerSecret: null,
      formerUntil: null,
      createdAt: clock.now(),
      failingSince: null,
      disabledAt: null,
      disabledReason: null,
    })
    const [payload = 0] = await insertPayloads(tx.db, [
      { event: 'email.sent', body: '{}', createdAt: clock.now() },
    ])
    await insertDeliveries(tx.db, [{ id: 'd1', subscriptionId: 'h1', payload, createdAt: clock.now() }])
  })
  let attempts = 0
  const http = {
    request: async () => {
      attempts += 1
      const headers = { 'retry-after': String(RETRY_AFTER_S) }
      return { status: attempts === 1 ? 503 : 200, headers, body: Buffer.alloc(0) }
    },
  }
  const parts = {
    database,
    clock,
    random: new SeededRandom(1),
    log: new FakeLog(),
    box: plainBox,
    outgoingCalls: () => ({ http }),
    register: new SubscriptionRegister(database),
  }
  const worker = new DeliveryWorker(parts as unknown as WebhookParts & typeof parts)
  const stopping = new AbortController()
  const running = worker.run(stopping.signal)
  await until('the first attempt', () => attempts === 1)
  await comeToRest()
  // A millisecond before the retry is due, something wakes the worker: it finds nothing, and pauses.
  clock.skip(RETRY_AFTER_S * 1_000 - 1)
  worker.noteDue([])
  await nextTurn()
  clock.skip(1)
  await comeToRest()
  await clock.advance(2_000)
  await until('the second attempt', () => attempts === 2)
  t.equal(attempts, 2)
  stopping.abort()
  await running
})
