/** Days and times of day by the clocks of a place. */
import t from 'tap'
import { anniversary, dayAt, isoDay, momentOf } from '../../src/world/time/zone-days.js'

const at = (day: string, time: string, zone: string) =>
  new Date(momentOf(Date.parse(day), time, zone)).toISOString().slice(0, 16)

t.test('a time of day is converted in the time zone, in summer and winter', async t => {
  t.equal(at('2026-01-05', '09:00', 'UTC'), '2026-01-05T09:00')
  t.equal(at('2026-01-05', '09:00', 'Europe/Berlin'), '2026-01-05T08:00')
  t.equal(at('2026-07-05', '09:00', 'Europe/Berlin'), '2026-07-05T07:00')
  t.equal(at('2026-01-05', '09:00', 'America/New_York'), '2026-01-05T14:00')
  t.equal(at('2026-01-05', '00:15', 'Asia/Kathmandu'), '2026-01-04T18:30')
  t.equal(at('2026-01-05', '00:00', 'Pacific/Kiritimati'), '2026-01-04T10:00')
  t.equal(at('2026-01-05', '09:00', 'Nowhere/Land'), '2026-01-05T09:00')
})

t.test('a time skipped by DST moves forward; of a repeated time the first counts', async t => {
  t.equal(at('2026-03-29', '01:59', 'Europe/Berlin'), '2026-03-29T00:59')
  t.equal(at('2026-03-29', '02:30', 'Europe/Berlin'), '2026-03-29T01:30', '03:30 there')
  t.equal(at('2026-03-29', '03:00', 'Europe/Berlin'), '2026-03-29T01:00')
  t.equal(at('2026-10-25', '02:30', 'Europe/Berlin'), '2026-10-25T00:30')
  t.equal(at('2026-10-25', '03:00', 'Europe/Berlin'), '2026-10-25T02:00')
  t.equal(at('2026-10-04', '02:15', 'Australia/Lord_Howe'), '2026-10-03T15:45', 'half an hour forward')
  t.equal(at('2018-11-04', '00:00', 'America/Sao_Paulo'), '2018-11-04T03:00', 'there is no midnight')
})

t.test('the day is the one in the time zone', async t => {
  const midnight = Date.parse('2026-01-05T23:30:00Z')
  t.equal(isoDay(dayAt(midnight, 'UTC')), '2026-01-05')
  t.equal(isoDay(dayAt(midnight, 'Europe/Berlin')), '2026-01-06')
  t.equal(isoDay(dayAt(midnight, 'America/New_York')), '2026-01-05')
})

t.test('every day of ten years maps to one moment, in order', async t => {
  for (const zone of ['Europe/Berlin', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Pacific/Apia']) {
    const days = Array.from({ length: 3_653 }, (_, n) => Date.UTC(2020, 0, 1 + n))
    const moments = days.map(day => momentOf(day, '02:30', zone))
    t.same(
      days.filter((day, n) => dayAt(moments[n] ?? 0, zone) !== day).map(isoDay),
      [],
      `${zone}: each on its day`,
    )
    t.same(moments, [...new Set(moments)].sort(), `${zone}: in order`)
  }
})

t.test('anniversaries recur each year; 29 February falls on the 28th outside leap years', async t => {
  const on = (date: string, year: number) => isoDay(anniversary(Date.parse(date), year))
  t.same(
    [on('2024-02-29', 2026), on('2024-02-29', 2028), on('2024-02-29', 2100)],
    ['2026-02-28', '2028-02-29', '2100-02-28'],
  )
  t.same([on('1990-01-31', 2026), on('1990-12-31', 2027)], ['2026-01-31', '2027-12-31'])
})
