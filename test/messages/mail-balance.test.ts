/** The balance of all mail: accepted = delivered + bounced + failed + cancelled + suppressed + waiting, whatever happens. */
import t, { type Test } from 'tap'
import { deleteMessagesOf } from '../../src/appliance/purge/purge-store.js'
import type { Frame } from '../../src/cli/mail/top.js'
import type { Database } from '../../src/db/database.js'
import { differenceOf, readMailBalance } from '../../src/messages/mail-totals-store.js'
import { recordTransitions, type Transition } from '../../src/messages/message-history.js'
import type { TransitionKind } from '../../src/messages/message-status.js'
import type { MailBalanceView } from '../../src/metrics/live.js'
import { deleteEntries } from '../../src/queue/operator/queue-admin-store.js'
import { measureLiveQueue } from '../../src/queue/operator/queue-status-store.js'
import { claimEntries } from '../../src/queue/queue-store.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW } from '../support/mailroom.js'
import { tokenWith } from '../support/program/operators.js'
import { initialise, type Serving } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const seen = { ip: '192.0.2.1', userAgent: 'test', isBot: false }
const FACTS: Readonly<Partial<Record<TransitionKind, object>>> = {
  delivered: { remoteMta: 'mx.x.example' },
  opened: seen,
  bounced: {
    bounceType: 'permanent',
    cause: 'recipient',
    scope: 'address',
    subtype: 'x',
    smtpStatus: '5.1.1',
    diagnosticCode: 'x',
  },
  failed: { reason: 'deleted' },
}

const record = (database: Database, messageId: string, ...kinds: TransitionKind[]) =>
  database.write(tx =>
    recordTransitions(
      tx,
      kinds.map(
        kind => ({ kind, messageId, at: NOW, ...(FACTS[kind] ? { facts: FACTS[kind] } : {}) }) as Transition,
      ),
    ),
  )

/** What is counted, zeros left out, once it is certain that the sum comes out. */
async function balanced(t: Test, { reader }: Database, workspaceId?: string): Promise<object> {
  const balance = await readMailBalance(reader, workspaceId)
  t.equal(differenceOf(balance), 0, JSON.stringify(balance))
  return Object.fromEntries(Object.entries(balance).filter(([, count]) => count !== 0))
}

eachDatabase(t, 'each message counts once, wherever its history ends', async (t, database) => {
  await enqueue(database, letters('x.example', 8))
  await enqueue(database, letters('x.example', 2, 'other'), { workspaceId: 'w2' })
  t.same(await balanced(t, database), { accepted: 10, waiting: 10 })
  t.same(await balanced(t, database, 'w2'), { accepted: 2, waiting: 2 })
  t.same(await balanced(t, database, 'unknown'), {})
  await record(database, 'm1', 'offered', 'delivered', 'opened')
  await record(database, 'm2', 'bounced', 'bounced')
  await record(database, 'm2', 'delivered')
  await record(database, 'm3', 'failed')
  await record(database, 'm3', 'bounced')
  await record(database, 'm4', 'suppressed')
  await record(database, 'm5', 'withheld')
  // The queue removes what it has delivered.
  await database.write(tx => tx.db.deleteFrom('queue').where('message_id', '=', 'm1').execute())
  const ended = { delivered: 1, bounced: 1, failed: 1, suppressed: 2 }
  t.same(await balanced(t, database, 'w1'), { accepted: 8, ...ended, waiting: 3 })
  await record(database, 'm1', 'bounced')
  t.same(
    await balanced(t, database, 'w1'),
    { accepted: 8, bounced: 2, failed: 1, suppressed: 2, waiting: 3 },
    'returned after it was delivered',
  )
  await database.write(tx => claimEntries(tx.db, ['m6', 'other1'], NOW, 'run'))
  t.match(await balanced(t, database, 'w1'), { waiting: 3 }, 'claimed and deferred mail waits as well')
  t.match(await balanced(t, database), { accepted: 10, waiting: 5 })
  t.match(await measureLiveQueue(database.reader, NOW), { accepted: 10, waiting: 5, held: 0, due: 5 })
  await database.write(tx => deleteMessagesOf(tx.db, ['w2'], 100))
  t.same(await balanced(t, database, 'w2'), {}, 'deleted with its workspace')
  t.match(await balanced(t, database), { accepted: 8, waiting: 3 })
})

eachDatabase(
  t,
  'what was opened and then deleted from the queue counts as delivered',
  async (t, database) => {
    await enqueue(database, letters('x.example', 3))
    await record(database, 'm1', 'opened')
    await record(database, 'm2', 'opened')
    t.same(await balanced(t, database), { accepted: 3, waiting: 3 })
    const remove = (...messageIds: string[]) =>
      database.write(tx => deleteEntries(tx, { messageIds }, NOW, false))
    await remove('m1', 'm3')
    t.same(await balanced(t, database), { accepted: 3, delivered: 1, failed: 1, waiting: 1 })
    await record(database, 'm2', 'suppressed')
    await record(database, 'm2', 'suppressed', 'delivered', 'failed')
    t.same(await balanced(t, database), { accepted: 3, delivered: 2, failed: 1 })
  },
)

eachDatabase(t, 'a transaction that fails counts nothing', async (t, database) => {
  await enqueue(database, letters('x.example', 1))
  await t.rejects(
    database.write(async tx => {
      await recordTransitions(tx, [{ kind: 'failed', messageId: 'm1', at: NOW, facts: { reason: 'x' } }])
      throw new Error('later')
    }),
  )
  t.same(await balanced(t, database), { accepted: 1, waiting: 1 })
})

const mailTo = (to: string | string[], more = {}) => ({
  ...{ to, from_email: 'me@sender.test', subject: 'Hi', text: 'Hi.\n' },
  ...more,
})

t.test('the balance holds through sending, bouncing, cancelling, deleting and restarts', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, {
    env: {
      POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '127.0.0.1', port: sink.port }]),
      POSTROAD_MTA_RETRY_FIRST: '1h',
    },
  })
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const key = await tokenWith(postroad, 'viewer')
  const balanceOf = async (server: Serving, workspaceId?: string) => {
    const query = workspaceId === undefined ? '' : `?workspace_id=${workspaceId}`
    const { status, body } = await server.get(`/api/admin/v1/live/balance${query}`, { key })
    t.equal(status, 200)
    const balance = body.data as MailBalanceView
    t.equal(balance.difference, 0, JSON.stringify(balance))
    return balance
  }
  const settled = (server: Serving, expected: Partial<MailBalanceView>) =>
    until(`the balance to be ${JSON.stringify(expected)}`, async () => {
      const balance = await balanceOf(server)
      return Object.entries(expected).every(
        ([name, count]) => balance[name as keyof MailBalanceView] === count,
      )
    })

  const first = await postroad.serve()
  t.match(await balanceOf(first), { accepted: 0, waiting: 0 })
  await first.send(
    postroad.key,
    mailTo(['ann@one.test', 'bob@one.test', 'unknown@one.test', 'not an address']),
  )
  await settled(first, { accepted: 3, delivered: 2, bounced: 1, waiting: 0 })
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const scheduled = await first.send(postroad.key, mailTo('cyd@one.test', { send_at: soon }))
  t.match(await balanceOf(first), { accepted: 4, waiting: 1 })
  const { message_id: id } = scheduled.body.data as { message_id: string }
  t.equal((await first.delete(`/api/v1/email/${id}`, { key: postroad.key })).status, 200)
  t.match(await balanceOf(first), { accepted: 4, cancelled: 1, waiting: 0 })
  sink.atRcpt = 'defer'
  await first.send(postroad.key, mailTo(['dan@one.test', 'eve@one.test', 'fay@one.test']))
  await until('all three to be deferred', async () => {
    const queue = await postroad.json<{ attempts: number; in_progress: boolean }[]>('queue', 'list')
    return queue.length === 3 && queue.every(({ attempts, in_progress: isBusy }) => attempts === 1 && !isBusy)
  })
  t.match(await balanceOf(first), { accepted: 7, waiting: 3 })
  const queue = await postroad.json<{ message_id: string; to: string }[]>('queue', 'list')
  await postroad.json('queue', 'delete', queue.find(({ to }) => to.startsWith('dan@'))?.message_id ?? '')
  t.match(await balanceOf(first), { accepted: 7, failed: 1, waiting: 2 })
  await postroad.json('suppress', 'add', 'eve@one.test', '--workspace', postroad.workspaceId)
  await first.end('SIGKILL')

  const second = await postroad.serve()
  t.match(await balanceOf(second), { accepted: 7, failed: 1, waiting: 2 }, 'after a crash')
  sink.atRcpt = 'accept'
  await postroad.json('queue', 'retry', '--all')
  const end = { accepted: 7, delivered: 3, bounced: 1, failed: 1, cancelled: 1, suppressed: 1, waiting: 0 }
  await settled(second, end)
  t.match(await balanceOf(second, postroad.workspaceId), end)
  t.match(await balanceOf(second, other), { accepted: 0, waiting: 0 })
  t.equal((await second.get('/api/admin/v1/live/balance?workspace_id=none', { key })).status, 404)
  t.match(await postroad.json<Frame>('top'), { balance: { ...end, difference: 0 } })
  await second.end('SIGTERM')
  t.match(await postroad.json<Frame>('top'), { serving: false, balance: { ...end, difference: 0 } })
})
