/** One test mail by the command line. */
import t from 'tap'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'

const mail = ['--from', 'me@sender.test', '--to', 'ann@one.test', '--subject', 'Grüße']

t.test('send delivers through the running server and shows the trace', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.serve()
  t.match(await postroad.json('send', ...mail, '--html', '<p>Hello</p>'), {
    status: 'delivered',
    to: 'ann@one.test',
    subject: 'Grüße',
    trace: [{ outcome: 'delivered', hosts: [{ host: '127.0.0.1', port: sink.port, reply: /^250/ }] }],
  })
  const { status, out } = await postroad.run('send', ...mail)
  t.equal(status, 0)
  t.match(out, /status +delivered/)
  t.match(out, /final_dot: 250/)
  t.equal(sink.accepted.length, 2)
  t.match(sink.accepted[0]!.raw.toString(), '<p>Hello</p>')
})

t.test('send fails if the mail is not delivered', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('suppress', 'add', 'ann@one.test', ...owner)
  t.match(await postroad.run('send', ...mail), { status: 1, out: /suppressed/ })
  t.match(await postroad.run('send', '--from', 'me', '--to', 'ann@one.test', '--subject', 'x'), {
    status: 1,
    err: /from_email/,
  })
  t.match(await postroad.run('send', ...mail, '--workspace', 'none'), { status: 1, err: /no workspace none/ })
})

t.test('send without a running server leaves the mail in the queue and says so', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const { status, out, err } = await postroad.run('send', ...mail, '--json')
  t.equal(status, 0)
  t.match(err, /server is not running/)
  const { message_id: id } = JSON.parse(out) as { message_id: string }
  t.match(await postroad.json('queue', 'list'), [{ message_id: id, attempts: 0 }])
  const server = await postroad.serve()
  await server.messageOnce(postroad.key, id, 'delivered')
})

t.test('a dry run shows the mail and its route, and sends nothing', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.serve()
  const shown = await postroad.json<{ mail: string; route: string[] }>('send', ...mail, '--dry-run')
  t.same(shown.route, [`127.0.0.1 [127.0.0.1]:${sink.port}`])
  for (const field of ['DKIM-Signature: ', 'From: notify@mail.postroad.test', 'Reply-To: me@sender.test'])
    t.match(shown.mail, field)
  t.match(shown.mail, /^Subject: =\?UTF-8\?/im)
  const { status, out } = await postroad.run('send', ...mail, '--dry-run')
  t.equal(status, 0)
  t.match(out, `route:\n  127.0.0.1 [127.0.0.1]:${sink.port}`)
  t.same(await postroad.json('queue', 'list'), [])
  t.equal(sink.begun, 0)
})
