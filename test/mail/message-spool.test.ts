/** A message that arrives in pieces is written in parts and never held as a whole. */
import t from 'tap'
import { MessageSpool, PART_OCTETS } from '../../src/mail/message-spool.js'

function openSpool() {
  const parts: Buffer[] = []
  const removed: number[] = []
  const spool = new MessageSpool({
    async write(part, octets) {
      parts[part] = Buffer.from(octets)
    },
    async remove() {
      removed.push(parts.length)
    },
  })
  return { spool, parts, removed }
}

/** No two parts of it are alike. */
function message(octets: number): Buffer {
  return Buffer.from(Array.from({ length: octets }, (_, at) => at % 251))
}

for (const piece of [1_000, 65_536, PART_OCTETS, 700_001])
  t.test(`in pieces of ${piece} octets, written parts and buffer add up to the message`, async t => {
    const { spool, parts } = openSpool()
    const whole = message(3 * PART_OCTETS + 1_234)
    for (let at = 0; at < whole.length; at += piece) {
      const buffer = Buffer.from(whole.subarray(at, at + piece))
      spool.add(buffer)
      // Its memory may be used again.
      buffer.fill(0)
      await spool.writeWholeParts()
      t.ok(spool.bufferedBytes < PART_OCTETS)
    }
    t.same(
      parts.map(({ length }) => length),
      [PART_OCTETS, PART_OCTETS, PART_OCTETS],
    )
    t.match(
      { written: spool.writtenBytes, partsWritten: spool.partsWritten },
      { written: 3 * PART_OCTETS, partsWritten: 3 },
    )
    t.ok(Buffer.concat([...parts, spool.take()]).equals(whole))
    t.equal(spool.bufferedBytes, 0)
  })

t.test('taking from the front and early writes keep the order', async t => {
  const { spool, parts } = openSpool()
  const whole = message(1_000)
  for (let at = 0; at < whole.length; at += 1) spool.add(whole.subarray(at, at + 1))
  const front = spool.take(400)
  await spool.write(100)
  await spool.write()
  await spool.write()
  t.same(
    parts.map(({ length }) => length),
    [100, 500],
    'nothing is written of nothing',
  )
  t.ok(Buffer.concat([front, ...parts]).equals(whole))
})

t.test('a discarded message is forgotten and its parts removed', async t => {
  const short = openSpool()
  short.spool.add(message(10))
  await short.spool.discard()
  t.same([short.spool.bufferedBytes, short.removed], [0, []])
  const long = openSpool()
  long.spool.add(message(PART_OCTETS + 10))
  await long.spool.writeWholeParts()
  await long.spool.discard()
  t.same([long.spool.bufferedBytes, long.removed], [0, [1]])
})

t.test('parts are removed even if the last write failed', async t => {
  const removed: string[] = []
  const spool = new MessageSpool({
    write: () => Promise.reject(new Error('disk full')),
    remove: async () => void removed.push('all'),
  })
  spool.add(message(10))
  await t.rejects(spool.write(), { message: 'disk full' })
  await spool.discard()
  t.same(removed, ['all'])
})
