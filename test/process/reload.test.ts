/** What a running server takes over when its configuration is read again: routes, networks, limits; and what it refuses whole. */
import t from 'tap'
import { initialise } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'

const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

const routes = (port: number) =>
  `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${port}\ntls = "none"\n`

/** @returns the last reply to these lines */
async function dialogue(port: number, ...lines: string[]): Promise<string> {
  const client = await SmtpClient.connect(port)
  let reply = await client.readReply()
  for (const line of lines) {
    client.send(`${line}\r\n`)
    reply = await client.readReply()
  }
  client.cut()
  return reply.join()
}

t.test('SIGHUP applies routes, networks and limits, and logs what changed', async t => {
  const [first, second] = [await openSink(t), await openSink(t)]
  const postroad = await initialise(t, { toml: `[inbound]\ngreeting_delay = "0"\n${routes(first.port)}` })
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId, '--vouch')
  const [key] = await postroad.json<{ id: string }[]>('key', 'list', '--workspace', postroad.workspaceId)
  const server = await postroad.serve()
  const line = await server.logged('server started')
  const portOf = (name: string) => Number(String(line[name]).split(':').at(-1))
  const [inbound, submission] = [portOf('inbound'), portOf('submission')]
  const relaying = ['EHLO printer.test', 'MAIL FROM:<me@sender.test>', 'RCPT TO:<ann@one.test>']
  t.match(await server.send(postroad.key, mail), { status: 200 })
  await first.arrivedOnce(1)
  t.match(await dialogue(inbound, ...relaying), /^550 5\.7\.1 relaying denied/)
  t.match(await dialogue(submission, ...relaying.slice(0, 2)), /^530 /)

  postroad.writeConfig(
    `[inbound]\ngreeting_delay = "0"\nrelay_trusted = true\n${routes(second.port)}` +
      `[[submission.trusted_networks]]\nnetwork = "127.0.0.0/8"\nkey = "${key?.id ?? ''}"\n` +
      '[http]\nanonymous_rate_limit = 7\n[mta]\nworkers = 2\n[limits]\nmessage_size = "10MB"\n',
  )
  server.signal('SIGHUP')
  const { changed } = await server.logged('configuration reloaded')
  t.same(String(changed).split(', ').sort(), [
    'http.anonymous_rate_limit',
    'inbound.relay_trusted',
    'limits.message_size',
    'mta.routes',
    'submission.trusted_networks',
  ])
  t.match(await server.logged('restart required'), { keys: /limits.message_size/ })
  t.match(await server.send(postroad.key, mail), { status: 200 })
  await second.arrivedOnce(1)
  t.equal(first.accepted.length, 1, 'nothing goes the old way any more')
  t.match(await dialogue(submission, ...relaying), /^250 /)
  t.match(await dialogue(inbound, ...relaying), /^250 /, 'and printers may come to port 25')
  t.match(
    await dialogue(
      inbound,
      ...relaying.slice(0, 2),
      'RCPT TO:<postmaster@mx.postroad.test>',
      ...relaying.slice(2),
    ),
    /^452 4\.5\.3 /,
    'what is for the appliance comes in a message of its own',
  )
  t.equal((await server.get('/health')).headers.get('x-ratelimit-limit'), '7')
  t.match(await server.end('SIGTERM'), { status: 0 })
})

t.test('a faulty file is refused as a whole, whether in syntax or in the files it names', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { toml: routes(sink.port) })
  const server = await postroad.serve()
  for (const [fault, told] of [
    ['[mta]\nconnections = "many"\n', /mta\.connections/],
    ['[tls]\ncert = "/none"\nkey = "/none"\n', /tls\.cert.*cannot be read/],
    ['[mta]\ntls_ca = "/none"\n', /line \d+: mta\.tls_ca.*cannot be read/],
  ] as const) {
    const from = server.log.length
    postroad.writeConfig(`${fault}${routes(1)}[log]\nlevel = "debug"`)
    server.signal('SIGHUP')
    t.match(await server.logged('configuration reload failed', from), { error: told })
    t.notOk(server.log.slice(from).some(({ event }) => event === 'configuration reloaded'))
  }
  t.match(await server.send(postroad.key, mail), { status: 200 })
  await sink.arrivedOnce(1)
  t.notOk(server.log.some(({ level }) => level === 'debug'))
})
