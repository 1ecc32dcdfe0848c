/** When a feed is due, across months, zones and changes of the clocks. */
import t from 'tap'
import { nextTime } from '../../src/feeds/feed-schedule.js'

const next = (schedule: Parameters<typeof nextTime>[0], after: string, zone = 'UTC') =>
  new Date(nextTime(schedule, Date.parse(after), zone)).toISOString()

const daily = { every: 'daily', at: '09:00' } as const

t.test('daily, weekly and monthly times follow each other', t => {
  t.equal(next(daily, '2026-01-05T08:59:59Z'), '2026-01-05T09:00:00.000Z')
  t.equal(next(daily, '2026-01-05T09:00:00Z'), '2026-01-06T09:00:00.000Z')
  t.equal(
    next({ every: 'weekly', at: '09:30', weekday: 1 }, '2026-01-05T10:00:00Z'),
    '2026-01-12T09:30:00.000Z',
  )
  t.equal(
    next({ every: 'weekly', at: '09:30', weekday: 7 }, '2026-01-05T10:00:00Z'),
    '2026-01-11T09:30:00.000Z',
  )
  t.equal(
    next({ every: 'monthly', at: '00:00', day: 15 }, '2026-01-15T00:00:00Z'),
    '2026-02-15T00:00:00.000Z',
  )
  t.end()
})

t.test('a month without the day uses its last day', t => {
  const monthly = { every: 'monthly', at: '12:00', day: 31 } as const
  t.equal(next(monthly, '2026-01-31T12:00:00Z'), '2026-02-28T12:00:00.000Z')
  t.equal(next(monthly, '2028-02-01T00:00:00Z'), '2028-02-29T12:00:00.000Z')
  t.end()
})

t.test('the time is that of the zone, summer and winter', t => {
  t.equal(next(daily, '2026-01-05T10:00:00Z', 'America/New_York'), '2026-01-05T14:00:00.000Z')
  t.equal(next(daily, '2026-07-05T00:00:00Z', 'Europe/Berlin'), '2026-07-05T07:00:00.000Z')
  t.equal(
    next({ ...daily, at: '00:30' }, '2026-01-05T00:00:00Z', 'Pacific/Kiritimati'),
    '2026-01-05T10:30:00.000Z',
  )
  t.equal(next(daily, '2026-01-05T00:00:00Z', 'No/Where'), '2026-01-05T09:00:00.000Z')
  t.end()
})

t.test('a skipped time comes later, and one that occurs twice counts once', t => {
  const night = { every: 'daily', at: '02:30' } as const
  t.equal(
    next(night, '2026-03-29T00:00:00Z', 'Europe/Berlin'),
    '2026-03-29T01:30:00.000Z',
    '03:30 summer time',
  )
  t.equal(next(night, '2026-10-24T22:00:00Z', 'Europe/Berlin'), '2026-10-25T00:30:00.000Z')
  t.equal(next(night, '2026-10-25T00:30:00Z', 'Europe/Berlin'), '2026-10-26T01:30:00.000Z')
  t.end()
})
