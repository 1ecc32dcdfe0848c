/** Steps tell linear work from quadratic work, and counting changes nothing. */
import t from 'tap'
import { countSteps } from './count-steps.js'

/** How many times as much work is done for a text twice as long. */
function growth(work: (text: string) => unknown): number {
  const [once, twice] = [200, 400].map(length => countSteps(() => work('a'.repeat(length))))
  return (twice ?? 0) / (once ?? 0)
}

t.test('a regular expression that tries every start to the end is quadratic', async t => {
  t.ok(growth(text => /a*b/.test(text)) > 3.5, 'greedy')
  t.ok(growth(text => /a+?b/.test(text)) > 3.5, 'lazy')
})

t.test('one that passes each character a bounded number of times is linear', async t => {
  t.ok(growth(text => /b/.test(text)) < 2.1)
  t.ok(growth(text => text.replaceAll(/(?<!b)a{0,9}/g, 'c')) < 2.1)
  t.ok(growth(text => text.split(/(?=a)/u)) < 2.1)
})

t.test('searches in strings count the characters that they pass', async t => {
  t.equal(
    countSteps(() => 'aaab'.indexOf('b')),
    4,
  )
  const searchEverywhere = (text: string) =>
    Array.from({ length: text.length }, (_, at) => text.includes('b', at))
  t.ok(growth(searchEverywhere) > 3.5)
})

t.test('results are those of the engine, and everything is put back', async t => {
  const exec: unknown = Reflect.get(RegExp.prototype, 'exec')
  const dates = 'from 2026-01-05 to 2026-02-07'
  const read = () => [...dates.matchAll(/(?<year>\d{4})-(\d\d)-(\d\d)\b/g)].map(match => match.slice(1))
  let counted: string[][] = []
  countSteps(() => (counted = read()))
  t.same(counted, read())
  t.throws(() => countSteps(() => JSON.parse('{')), SyntaxError)
  t.equal(Reflect.get(RegExp.prototype, 'exec'), exec)
})
