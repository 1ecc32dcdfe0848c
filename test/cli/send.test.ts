/** One test mail by the command line. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
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

const MESSAGE = [
  'From ann@sender.test Mon Jan  5 10:00:00 2026',
  'From: Me <me@sender.test>',
  'To: ann@one.test',
  'Cc: Bob <bob@two.test>',
  'Subject: A whole message',
  '',
  'Hello.',
  '',
].join('\n')

/** The program with this on its standard input. */
async function piped(env: Readonly<Record<string, string>>, input: string, ...args: string[]) {
  const child = spawn(process.execPath, [resolve('dist/main.js'), 'send', ...args], {
    env: { PATH: process.env['PATH'], ...env },
  })
  const read = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (read.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (read.err += text))
  child.stdin.end(input)
  const status = await new Promise<number | null>(done => child.on('close', done))
  return { status, ...read }
}

t.test('a whole message from standard input goes to all it names, or to --to', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.serve()
  const { status, out } = await piped(postroad.environment, MESSAGE, '--json')
  t.equal(status, 0)
  t.match(JSON.parse(out), [
    { to: 'ann@one.test', subject: 'A whole message', status: 'delivered' },
    { to: 'bob@two.test', status: 'delivered' },
  ])
  const [mail] = sink.accepted
  t.match(mail?.raw.toString(), /\r\nSubject: A whole message\r\n[^]*\r\n\r\nHello\.\r\n$/)
  t.notMatch(mail?.raw.toString(), /^From ann/m, 'the mbox separator is no part of it')
  const one = await piped(postroad.environment, MESSAGE, '--json', '--to', 'cyd@three.test')
  t.match(JSON.parse(one.out), { to: 'cyd@three.test', status: 'delivered' })
  t.match(await piped(postroad.environment, 'Subject: x\n\nHi.\n'), { status: 1, err: /From/ })
  t.match(await piped(postroad.environment, 'From: me@sender.test\n\nHi.\n'), {
    status: 1,
    err: /no recipient/,
  })
})

t.test('the text of a mail is read from standard input', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.serve()
  t.match(await piped(postroad.environment, 'Read from a pipe.\n', ...mail), { status: 0 })
  t.match(sink.accepted[0]?.raw.toString(), /Read from a pipe\./)
})

t.test('a whole message is queued without a server', async t => {
  const postroad = await initialise(t)
  const { status, out, err } = await piped(postroad.environment, MESSAGE, '--json', '--to', 'ann@one.test')
  t.equal(status, 0)
  t.match(err, /server is not running/)
  t.match(await postroad.json('queue', 'list'), [
    { message_id: JSON.parse(out).message_id, to: 'ann@one.test' },
  ])
})

t.test('send works through a remote appliance, as far as the operator may', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const remote = async (role: 'operator' | 'viewer') => [
    ...['--server', postroad.baseUrl, '--token', await tokenWith(postroad, [{ workspaceId, role }])],
  ]
  const operator = await remote('operator')
  t.match(await postroad.json('send', ...mail, ...operator), {
    status: 'delivered',
    workspace_id: workspaceId,
  })
  const shown = await postroad.json<{ mail: string; route: string[] }>(
    'send',
    ...mail,
    '--dry-run',
    ...operator,
  )
  t.match(shown.mail, 'Reply-To: me@sender.test')
  t.match(await postroad.run('send', ...mail, ...(await remote('viewer'))), {
    status: 1,
    err: /lacks the permission email:send/,
  })
  const piping = {
    ...postroad.environment,
    POSTROAD_SERVER: postroad.baseUrl,
    POSTROAD_TOKEN: operator[3] ?? '',
  }
  const sent = await piped(piping, MESSAGE, '--to', 'dan@one.test')
  t.match(sent, { status: 0, out: /envelope +<[^>]+> to <dan@one\.test>/ })
})
