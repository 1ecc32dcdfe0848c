/** An operator's hand in the queue while the server runs. */
import t from 'tap'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

interface Entry {
  readonly message_id: string
  readonly to: string
  readonly held: boolean
  readonly last_reply: string | null
}

t.test('queued mail is shown, held, released, retried and deleted beside a running server', async t => {
  const sink = await openSink(t)
  sink.atRcpt = 'defer'
  // Nothing is retried unless requested.
  const env = { ...routeTo(sink.port), POSTROAD_MTA_RETRY_FIRST: '1h' }
  const postroad = await initialise(t, { env })
  const server = await postroad.serve()
  const { body } = await server.send(postroad.key, {
    to: ['ann@one.test', 'bob@one.test', 'eve@two.test'],
    from_email: 'me@sender.test',
    subject: 'Hello',
    text: 'Hello.\n',
  })
  const [ann, bob, eve] = (body.data.results as { message_id: string }[]).map(result => result.message_id)
  const list = (...args: string[]) => postroad.json<Entry[]>('queue', 'list', ...args)
  const tried = await until('three first attempts', async () => {
    const entries = await list()
    return entries.every(entry => entry.last_reply !== null) && entries
  })

  t.equal(tried.length, 3)
  t.match(await postroad.json('queue', 'show', ann!), {
    message_id: ann,
    workspace_id: postroad.workspaceId,
    to: 'ann@one.test',
    destination: 'one.test',
    attempts: 1,
    held: false,
    next_attempt_at: /Z$/,
    expires_at: /Z$/,
    enqueued_at: /Z$/,
    last_reply: /full/i,
  })
  t.same((await list('--domain', 'one.test')).map(({ to }) => to).sort(), ['ann@one.test', 'bob@one.test'])
  t.equal((await list('--limit', '1')).length, 1)
  t.match(await postroad.run('queue', 'list'), { status: 0, out: /eve@two\.test +1 +\d{4}-/ })
  t.match(await postroad.json('queue', 'summary'), [
    { destination: 'one.test', total: 2, held: 0, by_age: { '5m': 2, older: 0 } },
    { destination: 'two.test', total: 1, held: 0, by_age: { '5m': 1 } },
  ])

  t.same(await postroad.json('queue', 'hold', '--domain', 'ONE.test'), { changed: 2 })
  t.match(await postroad.json('queue', 'summary'), [
    { destination: 'one.test', total: 2, held: 2 },
    { held: 0 },
  ])
  t.match(await postroad.run('queue', 'list', '--domain', 'one.test'), { out: /ann@one\.test +1 +held/ })
  t.match(await postroad.run('queue', 'hold', ann!), {
    status: 0,
    out: '0 changed\n',
    err: /is already held/,
  })

  sink.atRcpt = 'accept'
  t.same(await postroad.json('queue', 'retry', '--all'), { changed: 3 })
  await server.messageOnce(postroad.key, eve!, 'delivered')
  t.equal(sink.accepted.length, 1, 'what is held stays')

  t.same(await postroad.json('queue', 'release', ann!), { changed: 1 })
  await server.messageOnce(postroad.key, ann!, 'delivered')
  t.match(await list(), [{ message_id: bob, held: true }])

  t.same(await postroad.json('queue', 'delete', bob!), { changed: 1 })
  const { body: log } = await server.get('/api/v1/activity', { key: postroad.key })
  const done = (action: string) => (log.data as { action: string }[]).filter(one => one.action === action)
  t.match(done('queue.deleted'), [
    { subject: `message ${bob!}`, actor: { type: 'shell', name: /./ }, details: { messages: 1 } },
  ])
  t.match(done('queue.held'), [{ subject: 'all queued mail for one.test', details: { messages: 2 } }])
  t.same(await list(), [])
  t.match(await postroad.json('message', 'show', bob!), { status: 'failed', next_attempt_at: null })
  t.equal(sink.accepted.length, 2)
  t.match(await postroad.run('queue', 'list'), { status: 0, out: '(none)\n' })
})

t.test('changing a message that is not queued fails, changing a domain without mail does not', async t => {
  const postroad = await initialise(t)
  for (const action of ['hold', 'release', 'retry', 'delete']) {
    const yes = action === 'delete' ? ['--yes'] : []
    t.match(
      await postroad.run('queue', action, 'none'),
      { status: 1, out: '', err: /message none is not in the queue/ },
      action,
    )
    const nothing = { status: 0, out: '0 changed\n' }
    t.match(await postroad.run('queue', action, '--domain', 'one.test', ...yes), nothing)
    t.match(await postroad.run('queue', action, '--all', ...yes), nothing)
  }
  t.same(await postroad.json('queue', 'summary'), [])
})
