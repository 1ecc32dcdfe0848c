/** The webhook consumer on a PostgreSQL that nodes share. */
import t from 'tap'
import { Dispatcher } from '../../src/events/dispatcher.js'
import type { Event } from '../../src/events/event.js'
import { appendEvents } from '../../src/events/store.js'
import { soonestDue } from '../../src/webhooks/delivery/delivery-store.js'
import { webhookConsumer } from '../../src/webhooks/events/webhook-consumer.js'
import { SubscriptionRegister } from '../../src/webhooks/subscriptions/subscription-register.js'
import { insertSubscription } from '../../src/webhooks/subscriptions/subscription-store.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { postgresUrl, realPostgres } from '../support/db/real-postgres.js'
import { addWorkspace, enqueue, NOW } from '../support/mailroom.js'
import { until } from '../support/until.js'

const sent: Event = {
  ...{ kind: 'email.sent', workspaceId: 'w1', messageId: 'm1', isSandbox: false, occurredAt: NOW },
  payload: { to: 'ann@x.example' },
}

t.test(
  'an event is delivered to a webhook that another node made before it, and has not notified yet',
  async t => {
    const url = await postgresUrl(t)
    const [here, there] = [await realPostgres(t, { url }), await realPostgres(t, { url })]
    await addWorkspace(here)
    await enqueue(here, [{ id: 'm1', to: 'ann@x.example' }])
    const register = new SubscriptionRegister(here)
    const parts = { clock: new FakeClock(), newId: () => 'd1', register, onDue: () => undefined }
    const dispatcher = new Dispatcher({ database: here, clock: parts.clock, log: new FakeLog() }, [
      webhookConsumer(parts),
    ])
    await dispatcher.start()
    t.teardown(() => dispatcher.stop())
    await register.refresh()
    await there.write(tx =>
      insertSubscription(tx.db, {
        ...{ id: 'h1', workspaceId: 'w1', isSandbox: false, event: 'email.sent' },
        ...{ targetUrl: 'https://hooks.example/', secret: 'whsec_c2VjcmV0', formerSecret: null },
        ...{ formerUntil: null, createdAt: NOW, failingSince: null, disabledAt: null, disabledReason: null },
      }),
    )
    await there.write(tx => appendEvents(tx, [sent]))
    dispatcher.wake()
    await until('the event to be read', async () => (await dispatcher.lags())[0]?.events === 0)
    t.equal(await soonestDue(here.reader, 'h1'), parts.clock.now())
  },
)
