/** Finding a lost mail: the log, and the commands that search messages. */
import nodemailer from 'nodemailer'
import t from 'tap'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

interface Found {
  readonly message_id: string
  readonly to: string
  readonly from: string
  readonly key_id: string | null
  readonly peer: string | null
}

t.test('each message is logged from acceptance to its final status, and can be found', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, {
    env: {
      ...routeTo(sink.port),
      POSTROAD_SUBMISSION_REQUIRE_TLS: 'false',
      // What is deferred stays so until the end.
      POSTROAD_MTA_RETRY_FIRST: '5m',
    },
  })
  const server = await postroad.serve()
  const submission = Number(
    String(server.log.find(({ event }) => event === 'server started')?.['submission']).split(':')[1],
  )
  const { body } = await server.send(postroad.key, {
    to: 'ann@one.test',
    from_email: 'me@sender.test',
    subject: 'Your invoice 7',
    text: 'Hello.\n',
  })
  const id = (body.data.results as { message_id: string }[])[0]!.message_id
  const accepted = await server.logged('message accepted')
  t.match(accepted, {
    messageId: id,
    from: 'notify@mail.postroad.test',
    to: 'ann@one.test',
    peer: '127.0.0.1',
  })
  const keyId = String(accepted['keyId'])
  t.match(await server.logged('message delivered'), {
    ...{
      messageId: id,
      keyId,
      from: 'notify@mail.postroad.test',
      to: 'ann@one.test',
      destination: 'one.test',
    },
    ...{ host: '127.0.0.1', status: /^2/, delay: Number, delays: /^[\d.]+(\/[\d.]+){3}$/, attempt: 1 },
  })

  sink.atRcpt = 'refuse'
  await server.send(postroad.key, {
    to: 'bob@two.test',
    subject: 'Other',
    text: 'x',
    from_email: 'me@sender.test',
  })
  t.match(await server.logged('message bounced'), {
    to: 'bob@two.test',
    status: /^5\./,
    keyId,
    cause: 'recipient',
  })
  t.match(await server.logged('address suppressed'), { to: 'bob@two.test', reason: 'hard_bounce' })
  await server.send(postroad.key, {
    to: 'bob@two.test',
    subject: 'Again',
    text: 'x',
    from_email: 'me@sender.test',
  })
  t.match(await server.logged('message suppressed'), { to: 'bob@two.test', reason: 'suppressed' })
  sink.atRcpt = 'defer'
  await server.send(postroad.key, {
    to: 'eve@one.test',
    subject: 'Later',
    text: 'x',
    from_email: 'me@sender.test',
  })
  t.match(await server.logged('message deferred'), { to: 'eve@one.test', nextAttemptAt: /Z$/, status: /^4/ })

  await server.post('/api/v1/email/send', { to: 'x' }, { key: postroad.key })
  t.match(await server.logged('request refused'), {
    code: 'validation_error',
    keyId,
    peer: '127.0.0.1',
    status: 400,
  })

  const mailer = nodemailer.createTransport({
    ...{ host: '127.0.0.1', port: submission, secure: false, ignoreTLS: true },
    auth: { user: 'apikey', pass: postroad.key },
  })
  await mailer.sendMail({
    ...{ from: 'app@sender.test', to: 'carl@one.test', subject: 'By SMTP', text: 'Hello' },
    messageId: '<abc.1@client.test>',
  })
  const wrong = nodemailer.createTransport({
    ...{ host: '127.0.0.1', port: submission, secure: false, ignoreTLS: true },
    auth: { user: 'apikey', pass: 'guessed-password' },
  })
  await t.rejects(wrong.sendMail({ from: 'a@b.test', to: 'c@d.test', text: 'x' }))
  t.match(await server.logged('login failed'), { peer: '127.0.0.1', reply: /^535/ })
  t.notMatch(JSON.stringify(server.log), postroad.key.slice(8), 'no key stands in the log')
  t.notMatch(JSON.stringify(server.log), /guessed-password|invoice/)

  const list = (...args: string[]) => postroad.json<Found[]>('message', 'list', ...args)
  const subjectsOf = async (...args: string[]) => (await list(...args)).map(({ to }) => to)
  t.match(await list('--to', 'ANN@one.test'), [{ message_id: id, key_id: keyId, peer: '127.0.0.1' }])
  t.same(await subjectsOf('--to', '@two.test'), ['bob@two.test', 'bob@two.test'])
  t.same(await subjectsOf('--subject', 'INVOICE'), ['ann@one.test'])
  t.same(await subjectsOf('--status', 'bounced', '--since', '1h'), ['bob@two.test'])
  t.match(await list('--status', 'deferred', '--to', 'eve@one.test'), [
    { to: 'eve@one.test', status: 'sent', delivery_state: 'deferred' },
  ])
  t.same(await subjectsOf('--status', 'queued', '--to', 'eve@one.test'), [])
  t.match(await postroad.run('message', 'list', '--to', 'eve@one.test'), { out: /sent \(deferred\)/ })
  const deferred = await server.get('/api/v1/email?status=deferred&to=eve@one.test', { key: postroad.key })
  t.match(deferred.body, {
    data: [{ to: 'eve@one.test', status: 'sent', delivery_state: 'deferred' }],
    pagination: { total: 1 },
  })
  const [{ message_id: deferredId }] = deferred.body.data
  t.match((await server.get(`/api/v1/email/${deferredId}/status`, { key: postroad.key })).body.data, {
    ...{ status: 'sent', delivery_state: 'deferred', next_attempt_at: String },
  })
  t.match((await server.get(`/api/v1/email/${id}`, { key: postroad.key })).body.data, {
    delivery_state: null,
  })
  t.same(await subjectsOf('--until', '1h'), [])
  t.equal((await list('--key', keyId)).length, 5)
  t.same(await list('--key', 'another'), [])
  t.equal((await list('--limit', '2')).length, 2)
  t.same(await subjectsOf('--message-id', '<abc.1@client.test>'), ['carl@one.test'])
  t.match(await postroad.run('message', 'list', '--from', '@mail.postroad.test'), { out: /Your invoice 7/ })
  for (const named of [id, `<${id}@mx.postroad.test>`, id.toUpperCase()])
    t.match(await postroad.json('message', 'show', named), { to: 'ann@one.test', key_id: keyId })
  t.match(await postroad.run('message', 'show', 'abc.1@client.test'), {
    out: /submitted by +key .* from 127/,
  })
  t.match(await postroad.json('message', 'show', id), { bounce: null })
  t.match(await postroad.run('message', 'show', 'none@mx.postroad.test'), { status: 1, err: /no message/ })

  const owner = ['--workspace', postroad.workspaceId]
  const [bounce] = await until('the bounce', async () => {
    const found = await postroad.json<{ email: string }[]>('bounce', 'list', ...owner)
    return found.length > 0 && found
  })
  t.match(bounce, { email: 'bob@two.test', type: 'permanent' })
  t.same(await postroad.json('bounce', 'list', ...owner, '--to', 'ann@one.test'), [])
  t.match(await postroad.run('bounce', 'list', ...owner, '--since', '1h'), {
    out: /bob@two\.test +permanent/,
  })
})

t.test('invalid searches are usage errors', async t => {
  const postroad = await initialise(t)
  for (const [args, err] of [
    [['message', 'list', '--status', 'lost'], /lost is not one of .*, queued, deferred/],
    [['message', 'list', '--since', 'yesterday'], /--since yesterday/],
    [['message', 'list', '--to', 'ann'], /--to must be an address/],
    [['message', 'list', '--message-id', 'a@b', '--to', 'ann@x.test'], /other options/],
    [['bounce', 'list', '--workspace', postroad.workspaceId, '--type', 'hard'], /hard is not one of/],
    [['login', 'unlock', 'localhost'], /not a valid IP address/],
    [['key', 'set', 'x'], /nothing to change/],
    [['workspace', 'remove', postroad.workspaceId], /--yes/],
    [['queue', 'delete', '--all'], /all queued mail.*--yes/],
  ] as const)
    t.match(await postroad.run(...args), { status: 2, err }, args.join(' '))
  t.match(await postroad.run('login', 'unlock', '192.0.2.1'), { status: 0, out: /no failed logins/ })
  t.match(await postroad.run('key', 'set', 'none', '--name', 'x'), { status: 1, err: /no key none/ })
})
