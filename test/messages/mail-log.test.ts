/** Delivery time in the log. */
import t from 'tap'
import { delays, logMessage } from '../../src/messages/mail-log.js'
import { FakeLog } from '../../src/world/fake-log.js'

t.test('the delay of an attempt is logged in total and by phase', async t => {
  t.same(
    delays({ acceptedAt: 1_000, dueAt: 61_000, startedAt: 61_250, finishedAt: 62_000, transmissionMs: 500 }),
    { delay: 61, delays: '60/0.25/0.25/0.5' },
  )
  t.same(delays({ acceptedAt: 1_000, startedAt: 1_004, finishedAt: 1_016 }), {
    delay: 0.016,
    delays: '0.004/0/0.012/0',
  })
  const skewed = { acceptedAt: 5_000, dueAt: 9_000, startedAt: 4_000, finishedAt: 4_100, transmissionMs: 900 }
  t.same(delays(skewed), { delay: 0, delays: '0/0/0/0.1' }, 'a clock that was set makes nothing negative')
})

t.test('unknown fields are omitted', async t => {
  const log = new FakeLog()
  logMessage(log, 'bounced', 'm1', {}, 'ann@x.example', { status: '5.1.1' })
  t.match(log.lines, [
    {
      level: 'info',
      event: 'message bounced',
      fields: { messageId: 'm1', to: 'ann@x.example', status: '5.1.1' },
    },
  ])
  logMessage(undefined, 'bounced', 'm1', {}, 'ann@x.example')
})
