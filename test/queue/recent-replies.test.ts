/** Replies of the last hour, alike ones grouped. */
import t from 'tap'
import { RecentReplies } from '../../src/queue/operator/recent-replies.js'
import type { LoggedAttempt } from '../../src/queue/delivery/record-outcomes.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { deferred, delivered } from '../support/outcomes.js'

function attempt(clock: FakeClock, messageId: string, summary: string, to = 'ann@one.test'): LoggedAttempt {
  return {
    job: {
      messageId,
      workspaceId: 'w1',
      envelopeSender: 'r1@bounce.example',
      recipient: to,
      attempt: 1,
      acceptedAt: clock.now(),
      content: { kind: 'composed', from: { address: 'shop@example.com' }, subject: 'Your order' },
      signingKeys: [],
    },
    startedAt: clock.now(),
    finishedAt: clock.now(),
    outcome: { ...deferred, summary },
    verdict: { kind: 'deferred', nextAttemptAt: clock.now() },
  }
}

t.test('replies that differ in addresses and identifiers are one group, with the latest text', async t => {
  const clock = new FakeClock()
  const replies = new RecentReplies(clock)
  replies.note(attempt(clock, 'm1', 'mx.one.test answered 421 4.7.0 try later, id a1b2c3d4 - gsmtp'))
  replies.note(attempt(clock, 'm2', 'mx.one.test answered 421 4.7.0 try later, id ff00aa11 - gsmtp'))
  replies.note(attempt(clock, 'm3', 'mx.one.test answered 452 4.2.2 <ann@one.test> mailbox full'))
  t.match(replies.list(), [
    { reply: /ff00aa11/, count: 2, messageId: 'm2', destination: 'one.test', kind: 'deferred' },
    { count: 1, messageId: 'm3' },
  ])
  t.equal(replies.list().length, 2)
})

t.test('deliveries have no reply to show, and an hour later nothing is left', async t => {
  const clock = new FakeClock()
  const replies = new RecentReplies(clock)
  replies.note({
    ...attempt(clock, 'm1', ''),
    outcome: delivered,
    verdict: { kind: 'delivered', remoteMta: 'mx' },
  })
  t.same(replies.list(), [])
  replies.note(attempt(clock, 'm2', 'timed out'))
  await clock.advance(59 * 60_000 - 5 * 60_000)
  t.equal(replies.list().length, 1)
  await clock.advance(10 * 60_000)
  t.same(replies.list(), [])
})

t.test('memory is bounded: the group seen least recently goes', t => {
  const clock = new FakeClock()
  const replies = new RecentReplies(clock)
  for (let n = 0; n < 2_500; n += 1) replies.note(attempt(clock, `m${n}`, 'busy', `ann@d${n}.test`))
  const listed = replies.list()
  t.equal(listed.length, 2_000)
  t.equal(listed.at(-1)?.messageId, 'm2499')
  t.end()
})

t.test('an operator of one workspace names it', async t => {
  const postroad = await openTestAppliance(t)
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'viewer' }])
  const path = '/api/admin/v1/queue/replies'
  t.equal((await postroad.get(path, { key: own })).status, 403)
  t.match(await postroad.get(`${path}?workspace_id=${postroad.workspaceId}&kind=deferred`, { key: own }), {
    status: 200,
    body: { data: [] },
  })
})
