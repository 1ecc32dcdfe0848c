import t from 'tap'
import { LaneLooks } from '../../src/queue/lane-looks.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

function open(durationMs: (from: number) => number) {
  const clock = new FakeClock()
  const froms: number[] = []
  const list = async (from: number) => {
    froms.push(from)
    await clock.advance(durationMs(from))
    return []
  }
  const looks = new LaneLooks({ clock, all: () => list(0), ofNew: list })
  return { clock, looks, froms }
}

t.test('quick looks find everything each time', async t => {
  const { clock, looks, froms } = open(() => 15)
  for (let second = 0; second < 5; second += 1) {
    await looks.next()
    await clock.advance(1_000)
  }
  t.same(froms, [0, 0, 0, 0, 0])
})

t.test('while slow looks at everything rest, mail that was enqueued lately is found', async t => {
  const { clock, looks, froms } = open(from => (from === 0 ? 700 : 10))
  t.match(await looks.next(), { isComplete: true })
  await clock.advance(1_000)
  t.match(await looks.next(), { isComplete: true }, 'one slow look may have met a pause of the database')
  const startedAt = clock.now() - 700
  await clock.advance(1_000)
  t.match(
    await looks.next(),
    { isComplete: false },
    'what others changed of older mail is still to be looked for',
  )
  t.same(froms, [0, 0, startedAt - 20_000])
  await clock.advance(35_000)
  t.match(await looks.next(), { isComplete: true }, 'and everything after the rest')
})

t.test('looks that are all slow take a small part of the time', async t => {
  const { clock, looks, froms } = open(() => 1_000)
  const began = clock.now()
  while (clock.now() < began + 510_000) {
    await looks.next()
    await clock.advance(1_000)
  }
  t.ok(froms.length <= 22, `${froms.length} seconds of 510`)
  t.ok(froms.filter(from => from === 0).length >= 9)
})

t.test('everything is looked at whenever it is asked for', async t => {
  const { looks, froms } = open(() => 1_000)
  await looks.next()
  await looks.all()
  t.same(froms, [0, 0])
})
