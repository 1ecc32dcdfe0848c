/** Submission by SMTP on the real program: what a 250 is worth when the process dies, and how it stops. */
import t from 'tap'
import { initialise, routeTo, type Initialised, type Serving } from '../support/program/process.js'
import { openSink, unusedPort } from '../support/smtp/sink.js'
import { idsOf, letter, openServed, type SubmissionClient } from '../support/smtp/submission.js'
import { until } from '../support/until.js'

async function loggedIn(server: Serving, postroad: Initialised): Promise<SubmissionClient> {
  const client = await openServed(server)
  const reply = await client.login(postroad.key)
  if (!reply.startsWith('235 ')) throw new Error(`no login: ${reply}`)
  return client
}

t.test('a server killed right after its 250 has the mail on disk and delivers it later', async t => {
  const port = await unusedPort()
  const postroad = await initialise(t, { env: routeTo(port) })
  const first = await postroad.serve()
  const client = await loggedIn(first, postroad)
  const large = letter().replace('Hello.\r\n', 'Hello once more.\r\n'.repeat(50_000))
  const ids = [
    ...idsOf(await client.submit(letter(), { to: ['ann@one.test', 'bob@two.test'] })),
    ...idsOf(await client.submit(large, { to: 'cem@one.test' })),
  ]
  await first.end('SIGKILL')
  t.equal((await postroad.json<unknown[]>('queue', 'list')).length, 3)

  const sink = await openSink(t, { port })
  const second = await postroad.serve()
  for (const id of ids) await second.messageOnce(postroad.key, id, 'delivered')
  t.same(sink.accepted.map(({ recipients }) => recipients.join()).sort(), [
    'ann@one.test',
    'bob@two.test',
    'cem@one.test',
  ])
  const [whole] = sink.accepted.filter(({ recipients }) => recipients.includes('cem@one.test'))
  t.ok(whole?.raw.toString().endsWith(large.slice(large.indexOf('\r\n\r\n'))), 'also its later parts')
})

const SESSIONS = 20
const EACH = 20

t.test(
  `of ${SESSIONS} sessions with ${EACH} mails each, a kill in the middle loses none that had its 250`,
  async t => {
    const sink = await openSink(t)
    const postroad = await initialise(t, { env: routeTo(sink.port) })
    const first = await postroad.serve()
    const answered = new Map<string, string>()
    await Promise.all(
      Array.from({ length: SESSIONS }, async (_, session) => {
        const client = await loggedIn(first, postroad)
        for (let mail = 0; mail < EACH; mail++) {
          const to = `user${session}x${mail}@d${session % 5}.test`
          const reply = await client.submit(letter(), { to })
          if (reply === '') return
          for (const id of idsOf(reply)) answered.set(id, to)
          if (answered.size === (SESSIONS * EACH) / 2) first.signal('SIGKILL')
        }
      }),
    )
    await first.ended
    t.ok(answered.size >= (SESSIONS * EACH) / 2 && answered.size < SESSIONS * EACH)

    const second = await postroad.serve()
    for (const id of answered.keys()) await second.messageOnce(postroad.key, id, 'delivered')
    const arrived = new Map<string, number>()
    for (const { recipients } of sink.accepted)
      arrived.set(recipients.join(), (arrived.get(recipients.join()) ?? 0) + 1)
    t.same(
      [...answered.values()].filter(to => !arrived.has(to)),
      [],
    )
    t.ok(
      [...arrived.values()].every(copies => copies <= 2),
      'none more than twice',
    )
  },
)

t.test('a message cut off by a crash was never accepted', async t => {
  const postroad = await initialise(t, { env: routeTo(await unusedPort()) })
  const first = await postroad.serve()
  const client = await loggedIn(first, postroad)
  await client.begin()
  client.raw(letter().replace('Hello.', 'x'.repeat(60)) + `${'y'.repeat(998)}\r\n`.repeat(1_500))
  await until('parts', () => (postroad.rowCounts()['message_parts'] ?? 0) > 2)
  await first.end('SIGKILL')
  t.equal(await client.reply(), '')
  await postroad.serve()
  t.match(postroad.rowCounts(), { message_parts: 0, message_contents: 0, messages: 0 })
})

t.test('SIGTERM lets the current message finish and accepts no further ones', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const server = await postroad.serve()
  const client = await loggedIn(server, postroad)
  const idle = await loggedIn(server, postroad)
  t.match(await client.begin(), /^354 /)
  client.raw(letter())
  server.signal('SIGTERM')
  t.match(await idle.reply(), /^421 4\.3\.2 /)
  await t.rejects(openServed(server), 'nobody new comes in')
  client.raw('.\r\n')
  const [id = ''] = idsOf(await client.reply())
  t.match(await client.reply(), /^421 4\.3\.2 /)
  t.match(await server.ended, { status: 0, err: '' })

  const again = await postroad.serve()
  await again.messageOnce(postroad.key, id, 'delivered')
  t.equal(sink.accepted.length, 1)
})
