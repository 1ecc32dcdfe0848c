/** The log's lines, and that a reader who is slow, or gone, holds nobody up. */
import t from 'tap'
import { journalPrefix, jsonLine, textLine } from '../../src/world/log.js'
import { LineWriter, type WriteSome } from '../../src/world/line-writer.js'
import { until } from '../support/turns.js'

const TIME = '2026-01-05T10:00:00.000Z'

t.test('an event is one line of JSON or text, whatever its fields', async t => {
  const fields = { to: 'ann@x.example', summary: 'said "no"\r\nand more', size: 3, ok: true, none: undefined }
  t.same(JSON.parse(jsonLine('warn', TIME, 'message bounced', fields)), {
    level: 'warn',
    time: TIME,
    event: 'message bounced',
    ...{ to: 'ann@x.example', summary: 'said "no"\r\nand more', size: 3, ok: true },
  })
  t.notMatch(jsonLine('warn', TIME, 'event', fields), /\n/)
  t.equal(
    textLine('warn', TIME, 'message bounced', fields),
    `${TIME} warn  message bounced: to=ann@x.example summary="said \\"no\\"\\r\\nand more" size=3 ok=true`,
  )
  t.equal(textLine('info', TIME, 'server stopped', {}), `${TIME} info  server stopped`)
  t.equal(textLine('info', TIME, 'event', { a: '', b: 'x=y' }), `${TIME} info  event: a="" b="x=y"`)
})

t.test('lines for the journal carry a priority', async t => {
  t.same((['debug', 'info', 'warn', 'error'] as const).map(journalPrefix), ['<7>', '<6>', '<4>', '<3>'])
})

/** Accepts writes when released. */
function slowReader() {
  const written: string[] = []
  let finish: (() => void) | undefined
  let error: NodeJS.ErrnoException | null = null
  let most = Infinity
  const writeSome: WriteSome = (_, octets, offset, done) => {
    finish = () => {
      const count = error ? 0 : Math.min(most, octets.length - offset)
      if (!error) written.push(octets.subarray(offset, offset + count).toString())
      done(error, count)
    }
  }
  return {
    writer: new LineWriter(1, writeSome),
    written,
    isWriting: () => finish !== undefined,
    take: (atMost = Infinity, fault: string | null = null) => {
      const now = finish
      finish = undefined
      most = atMost
      error = fault === null ? null : Object.assign(new Error(fault), { code: fault })
      now?.()
    },
  }
}

t.test('lines logged together share one write, in order', async t => {
  const { writer, written, take } = slowReader()
  t.ok(writer.add('one'))
  t.ok(writer.add('two'))
  const flushed = writer.flush()
  writer.add('three')
  take(4)
  take()
  take()
  await flushed
  t.same(written, ['one\n', 'two\n', 'three\n'])
})

t.test('with a stalled reader, lines beyond the buffer are dropped and counted', async t => {
  const { writer, take, written } = slowReader()
  writer.add('first')
  void writer.flush()
  const line = 'x'.repeat(1_023)
  let kept = 0
  while (writer.add(line)) kept += 1
  t.equal(kept, 4 * 1_024)
  t.notOk(writer.add(line))
  t.notOk(writer.hasRoom)
  t.equal(writer.takeDropped(), 2)
  t.equal(writer.takeDropped(), 0)
  const flushed = writer.flush()
  take()
  take()
  await flushed
  t.ok(writer.hasRoom)
  t.equal(written.join('').length, 6 + kept * 1_024)
})

t.test('a full pipe is retried, a closed one is given up', async t => {
  const { writer, written, take, isWriting } = slowReader()
  writer.add('full')
  const flushed = writer.flush()
  take(0, 'EAGAIN')
  t.notOk(isWriting())
  await until('it is tried again', isWriting)
  take()
  await flushed
  t.same(written, ['full\n'])
  writer.add('lost')
  const lost = writer.flush()
  take(0, 'EPIPE')
  await lost
  t.equal(writer.takeDropped(), 1)
})
