/** When a cron expression comes next, in UTC. */
import t from 'tap'
import { readCron } from '../../src/scheduler/cron.js'

const next = (expression: string, from: string, count = 1) => {
  const times = readCron(expression)
  const found: string[] = []
  let moment = Date.parse(from)
  for (let n = 0; n < count; n += 1) {
    moment = times.after(moment)
    found.push(new Date(moment).toISOString().slice(0, 16))
  }
  return found
}

t.test('minutes, hours and steps run in order, excluding the given moment', async t => {
  t.same(next('* * * * *', '2026-01-05T10:00:00.000Z', 2), ['2026-01-05T10:01', '2026-01-05T10:02'])
  t.same(next('* * * * *', '2026-01-05T10:00:59.999Z'), ['2026-01-05T10:01'])
  t.same(next('7 * * * *', '2026-01-05T10:07:00Z', 2), ['2026-01-05T11:07', '2026-01-05T12:07'])
  t.same(next('7 * * * *', '2026-01-05T10:06:59Z'), ['2026-01-05T10:07'])
  t.same(next('*/20 */8 * * *', '2026-01-05T16:10:00Z', 3), [
    '2026-01-05T16:20',
    '2026-01-05T16:40',
    '2026-01-06T00:00',
  ])
})

t.test('days, months and weekdays cross months, years and leap years', async t => {
  t.same(next('30 3 1 * *', '2026-12-01T03:30:00Z'), ['2027-01-01T03:30'])
  t.same(next('0 0 31 * *', '2026-01-31T00:00:00Z'), ['2026-03-31T00:00'])
  t.same(next('0 0 29 2 *', '2026-01-01T00:00:00Z', 2), ['2028-02-29T00:00', '2032-02-29T00:00'])
  t.same(next('0 4 * * sun', '2026-01-05T10:00:00Z', 2), ['2026-01-11T04:00', '2026-01-18T04:00'])
  t.same(next('0 0 29 2 mon', '2026-01-01T00:00:00Z'), ['2044-02-29T00:00'])
})

t.test('an invalid expression, or one that never matches, is refused', async t => {
  for (const expression of ['', 'hourly', '@daily', '60 * * * *', '* * * *', '0 0 * * * *', '0 0 L * *'])
    t.throws(() => readCron(expression), Error, JSON.stringify(expression))
  t.throws(() => readCron('0 0 30 2 *'), Error, 'the 30th of February')
})
