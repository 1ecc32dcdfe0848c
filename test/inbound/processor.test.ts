/** Parsing in a thread: mails that break it, threads that do not start, reprocessing, removal of old mail. */
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { findInboundMail, markUnprocessed } from '../../src/inbound/inbound-mail-store.js'
import { oldest, prune } from '../../src/scheduler/prune.js'
import { spawnThread, type SpawnThread } from '../../src/world/threads.js'
import { nextTurn } from '../../src/world/time/clock.js'
import { BOUNCE_DOMAIN, dsn, openInboundTest, sentMessage } from '../support/inbound.js'
import { until } from '../support/until.js'

const DAY_MS = 86_400_000

/** Another program in place of the reader, while the test says so. */
function programs(program: string) {
  const state = { isReplaced: true, started: 0 }
  const spawn: SpawnThread = (entry, options) => {
    state.started += 1
    return spawnThread(
      state.isReplaced ? pathToFileURL(`build/test/support/program/${program}.js`) : entry,
      options,
    )
  }
  return { state, spawn }
}

async function openBreakable(t: Test) {
  const { spawn, state } = programs('failing-parser')
  return { state, ...(await openInboundTest(t, { spawn })) }
}

t.test('a mail that ends the reading thread twice is failed; all others are read', async t => {
  const { database, receive, settled, mailOf, state, log } = await openBreakable(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const replies: string[] = []
  for (const text of ['one', 'two', 'DIE', 'three', 'four'])
    replies.push(await receive(ann.returnPath, `Subject: ${text}\r\n\r\n`))
  await settled()
  const results: (string | null)[] = []
  for (const reply of replies) results.push((await mailOf(reply)).result)
  t.same(results, ['auto_reply', 'auto_reply', 'failed', 'auto_reply', 'auto_reply'])
  t.match((await mailOf(replies[2]!)).findings, [{ detail: /twice/ }])
  t.ok(state.started >= 3, 'each was replaced')
  t.ok(log.lines.some(({ event }) => event === 'inbound mail not parsed'))
})

t.test('a mail whose reading fails is failed at once and kept', async t => {
  const { database, take, state } = await openBreakable(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  t.match(await take(ann.returnPath, 'THROW\r\n'), {
    result: 'failed',
    findings: [{ detail: 'cannot make sense of it' }],
  })
  t.equal(state.started, 1)
})

t.test('an unsubscribe mail needs no reader', async t => {
  const { database, take, state } = await openBreakable(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  t.equal((await take(ann.unsubscribe, 'DIE\r\n')).result, 'unsubscribe')
  t.equal(state.started, 0)
  t.equal((await take([ann.unsubscribe, ann.returnPath], 'THROW\r\n')).result, 'unsubscribe_known, failed')
})

t.test('a thread that does not start is no fault of the mail, which waits until one does', async t => {
  const { spawn, state } = programs('absent-parser')
  const { database, receive, settled, mailOf, log, clock } = await openInboundTest(t, { spawn })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const reply = await receive(ann.returnPath, dsn({ recipient: ann.to }))
  for (let failures = 1; failures <= 3; failures += 1) {
    await until('it failed', () => errorsOf(log).length === failures)
    t.match(await mailOf(reply), { processedAt: null, tries: 0 })
    if (failures === 3) state.isReplaced = false
    // Less than the time for reading.
    await clock.advance(10_000)
  }
  await settled()
  t.equal((await mailOf(reply)).result, 'bounce')
})

function errorsOf(log: { lines: readonly { event: string }[] }) {
  return log.lines.filter(({ event }) => event === 'inbound processing failed, retrying')
}

t.test('reading that takes too long ends with its thread', async t => {
  const posted: unknown[] = []
  let ends = 0
  const spawn: SpawnThread = (_, { onMessage, onEnd }) => {
    queueMicrotask(() => onMessage({ kind: 'ready' }))
    return {
      post: message => void posted.push(message),
      async terminate() {
        ends += 1
        onEnd({ exitCode: 1 })
      },
    }
  }
  const { database, receive, mailOf, clock, settled } = await openInboundTest(t, { spawn })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const reply = await receive(ann.returnPath, 'x\r\n')
  for (let tries = 1; tries <= 2; tries += 1) {
    await until('it is being read', () => posted.length === tries)
    t.equal(ends, tries - 1)
    await clock.advance(10_000)
  }
  await settled()
  t.match(await mailOf(reply), { result: 'failed', findings: [{ detail: /timed out twice/ }] })
})

t.test('mail with a token of ours is read while a mail without one keeps its thread busy', async t => {
  const { spawn } = programs('failing-parser')
  const { database, receive, mailOf, message } = await openInboundTest(t, { spawn })
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const busy = await receive(`fbl@${BOUNCE_DOMAIN}`, 'Subject: SPIN\r\n\r\n')
  const waiting = await receive(`fbl@${BOUNCE_DOMAIN}`, 'Subject: one\r\n\r\n')
  const reply = await receive(ann.returnPath, 'Subject: two\r\n\r\n')
  await until('it is read', async () => (await mailOf(reply)).result === 'auto_reply')
  t.equal((await mailOf(busy)).processedAt, null)
  t.equal((await mailOf(waiting)).processedAt, null)
  t.equal((await message(ann.id)).status, 'sent')
})

t.test('what was read before the mail that ended the thread counts, and is not read again', async t => {
  const { database, receive, settled, mailOf, state } = await openBreakable(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const texts = ['DIE', 'one', 'two', 'DIE', 'three']
  const replies = await Promise.all(texts.map(text => receive(ann.returnPath, `Subject: ${text}\r\n\r\n`)))
  await settled()
  const results = await Promise.all(replies.map(async reply => (await mailOf(reply)).result))
  t.same(results, ['failed', 'auto_reply', 'auto_reply', 'failed', 'auto_reply'])
  t.ok(state.started <= 5, 'each of the two was tried twice')
})

t.test('a stop while mail is read logs no error, and the mail stays queued', async t => {
  const { database, receive, stop, mailOf, state, log } = await openBreakable(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const reply = await receive(ann.returnPath, 'Subject: SPIN\r\n\r\n')
  await until('it is being read', () => state.started === 1)
  await stop()
  t.same(
    log.lines.filter(({ level }) => level === 'error'),
    [],
  )
  t.match(await mailOf(reply), { processedAt: null, tries: 0 })
})

t.test('no reading thread outlives a stop, at whatever moment it comes', async t => {
  for (let turns = 0; turns < 12; turns += 1) {
    let alive = 0
    const spawn: SpawnThread = (entry, options) => {
      alive += 1
      const onEnd: typeof options.onEnd = end => {
        alive -= 1
        options.onEnd(end)
      }
      return spawnThread(entry, { ...options, onEnd })
    }
    const { database, receive, stop } = await openInboundTest(t, { spawn })
    const ann = await sentMessage(database, 1, 'ann@x.example')
    await receive(ann.returnPath, dsn({ recipient: ann.to }))
    for (let turn = 0; turn < turns; turn += 1) await nextTurn()
    await stop()
    t.equal(alive, 0, `stopped ${turns} turns after the mail came`)
  }
})

t.test('a mail that a command marked is read again within a second', async t => {
  const { database, take, clock, processor } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  processor.start()
  const mail = await take(ann.returnPath, dsn({ recipient: ann.to }))
  t.equal(await database.write(tx => markUnprocessed(tx, mail.seq)), true)
  t.equal(await database.write(tx => markUnprocessed(tx, 999)), false)
  await clock.advance(1_000)
  await until('it is read again', async () => {
    const again = await findInboundMail(database.reader, mail.seq)
    return again?.result === 'bounce_known'
  })
})

t.test('what was processed is removed after its time, with its octets; what waits is not', async t => {
  const { database, take, receive, clock, log, settled, stop, quota } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const others = [
    await sentMessage(database, 2, 'bob@x.example'),
    await sentMessage(database, 3, 'cyd@x.example'),
  ]
  const sent = Array.from({ length: 250 }, (_, n) => [ann, ...others][n % 3] ?? ann)
  await Promise.all(sent.map(({ returnPath, to }) => receive(returnPath, dsn({ recipient: to }))))
  await settled()
  await clock.advance(6 * DAY_MS)
  await take(ann.returnPath, dsn({ recipient: ann.to }))
  await stop()
  await receive(ann.returnPath, dsn({ recipient: ann.to }))
  const removeBefore = (before: number) =>
    prune(
      { database, clock, log },
      'inbound mail',
      oldest((tx, limit) => quota.removeBefore(tx, before, limit)),
      new AbortController().signal,
    )
  const count = async (table: 'inbound_mails' | 'inbound_parts') =>
    (await database.reader.selectFrom(table).select('body_id').execute()).length
  await removeBefore(clock.now() - 6 * DAY_MS)
  t.equal(await count('inbound_mails'), 252)
  await removeBefore(clock.now() - 6 * DAY_MS + 1)
  t.equal(await count('inbound_mails'), 2)
  t.equal(await count('inbound_parts'), 2)
  await removeBefore(clock.now() + DAY_MS)
  t.equal(await count('inbound_mails'), 1, 'the one that was not processed yet')
})

t.test('mail is processed in the order of its arrival, many at a time', async t => {
  const { database, receive, settled, events } = await openInboundTest(t)
  const sent = []
  for (let n = 1; n <= 120; n += 1) sent.push(await sentMessage(database, n, `p${n}@x.example`))
  await Promise.all(sent.map(one => receive(one.returnPath, dsn({ recipient: one.to }))))
  await settled()
  t.same((await events()).map(({ payload }) => payload.to).sort(), sent.map(({ to }) => to).sort())
})
