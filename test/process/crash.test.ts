/** What a kill -9 at the worst moments leaves behind: every mail that was answered with 200, and at most one copy more. */
import t, { type Test } from 'tap'
import { initialise, routeTo, type Initialised } from '../support/program/process.js'
import { openSink, unusedPort, type Sink } from '../support/smtp/sink.js'

const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

/** Starts the server, has it accept one mail, and kills it once the moment has come. @returns the message's id */
async function acceptAndDie(
  postroad: Initialised,
  moment: () => Promise<unknown> = async () => {},
): Promise<string> {
  const server = await postroad.serve()
  const { status, body } = await server.send(postroad.key, mail)
  if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`)
  await moment()
  const { signal } = await server.end('SIGKILL')
  if (signal !== 'SIGKILL') throw new Error('the server ended by itself')
  return String(body.data.results[0].message_id)
}

async function deliverAfterRestart(t: Test, postroad: Initialised, id: string) {
  const server = await postroad.serve()
  const message = await server.messageOnce(postroad.key, id, 'delivered')
  t.same(await postroad.json('queue', 'list'), [])
  return message
}

t.test('a server killed right after its 200 has the mail on disk and delivers it later', async t => {
  const port = await unusedPort()
  const postroad = await initialise(t, { env: routeTo(port) })
  const id = await acceptAndDie(postroad)
  t.match(await postroad.json('message', 'show', id), { message_id: id, status: 'sent', to: mail.to })
  t.match(await postroad.json('queue', 'list'), [{ message_id: id, destination: 'one.test' }])
  const sink = await openSink(t, { port })
  await deliverAfterRestart(t, postroad, id)
  t.equal(sink.accepted.length, 1)
})

t.test('a server killed in the middle of DATA delivers the mail once', async t => {
  const sink = await openSink(t)
  sink.inData = 'stall'
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const id = await acceptAndDie(postroad, () => sink.begunOnce(1))
  t.match(await postroad.json('queue', 'show', id), { attempts: 1 })
  sink.inData = 'read'
  const message = await deliverAfterRestart(t, postroad, id)
  t.equal(sink.accepted.length, 1)
  t.equal(message.attempts, 2, 'the attempt that was broken off counts')
})

t.test('a server killed between the final dot and the reply sends the mail again', async t => {
  const sink = await openSink(t)
  sink.atDot = 'hold'
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const id = await acceptAndDie(postroad, () => sink.arrivedOnce(1))
  sink.atDot = 'accept'
  await deliverAfterRestart(t, postroad, id)
  t.equal(sink.arrived.length, 2)
  t.equal(sink.accepted.length, 1)
})

t.test('a server killed right after the reply delivers at most one extra copy', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const id = await acceptAndDie(postroad, () => sink.acceptedOnce(1))
  const message = await deliverAfterRestart(t, postroad, id)
  t.equal(sink.accepted.length, message.attempts)
  t.ok(sink.accepted.length <= 2)
})

t.test('a connection cut between the final dot and the reply is not a delivery', async t => {
  const sink = await openSink(t)
  sink.atDot = 'drop'
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const server = await postroad.serve()
  const { body } = await server.send(postroad.key, mail)
  await sink.arrivedOnce(1)
  sink.atDot = 'accept'
  const message = await server.messageOnce(postroad.key, String(body.data.results[0].message_id), 'delivered')
  t.match(message.trace, [
    { outcome: 'deferred', hosts: [{ stage: 'final_dot', reply: null }] },
    { outcome: 'delivered' },
  ])
  t.equal(sink.accepted.length, 1)
})

const SENDS = 200

/** Sends in parallel and kills the server in the middle. @returns recipients, by message id, of what was answered 200 */
async function floodAndDie(postroad: Initialised, killAfter: number) {
  const server = await postroad.serve()
  const answered = new Map<string, string>()
  const sends = Array.from({ length: SENDS }, async (_, index) => {
    const to = `user${index}@d${index % 7}.test`
    const { status, body } = await server.send(postroad.key, { ...mail, to })
    if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`)
    answered.set(String(body.data.results[0].message_id), to)
    if (answered.size === killAfter) server.signal('SIGKILL')
  })
  const results = await Promise.allSettled(sends)
  await server.ended
  return { answered, unanswered: results.filter(({ status }) => status === 'rejected').length }
}

async function missing(postroad: Initialised, ids: Iterable<string>): Promise<string[]> {
  const lost: string[] = []
  for (const id of ids)
    if ((await postroad.json<{ message_id: string }>('message', 'show', id)).message_id !== id) lost.push(id)
  return lost
}

function copies(sink: Sink): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { recipients } of sink.accepted)
    counts.set(recipients.join(), (counts.get(recipients.join()) ?? 0) + 1)
  return counts
}

for (const killAfter of [1, 100])
  t.test(`of ${SENDS} sends at once, a kill after ${killAfter} answers loses none of them`, async t => {
    const sink = await openSink(t)
    const postroad = await initialise(t, { env: routeTo(sink.port) })
    const { answered, unanswered } = await floodAndDie(postroad, killAfter)
    t.ok(answered.size >= killAfter)
    t.equal(answered.size + unanswered, SENDS)
    t.same(await missing(postroad, answered.keys()), [], 'every answered id is in the database')

    const server = await postroad.serve()
    for (const id of answered.keys()) await server.messageOnce(postroad.key, id, 'delivered')
    const arrived = copies(sink)
    t.same(
      [...answered.values()].filter(to => !arrived.has(to)),
      [],
      'every answered mail arrived',
    )
    t.same(
      [...arrived].filter(([, count]) => count > 2),
      [],
      'none more than twice',
    )
  })
