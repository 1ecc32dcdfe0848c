/** Numbers, sizes, times and durations as people read them. */
import t from 'tap'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import {
  dayName,
  duration,
  fullTime,
  keepLanguageIn,
  localeOf,
  money,
  number,
  octets,
  percent,
  relativeTime,
  shortTime,
  signed,
  tr,
  weekdayName,
} from '../../../src/console/web/i18n/i18n'
import { calendarOf, fromLocalField, toLocalField } from '../../../src/console/web/lib/local-time'

process.env['TZ'] = 'Europe/Berlin'

/** Formatters put no-break and narrow spaces between number and unit. */
const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ')

const NOW = Date.parse('2026-03-10T12:00:00Z')
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

t.beforeEach(() => keepLanguageIn({ language: 'en', locale: 'en', texts: en }))

t.test('sizes have the unit that leaves the fewest digits', t => {
  for (const [size, text] of [
    [0, '0 byte'],
    [1, '1 byte'],
    [999, '999 byte'],
    [1_000, '1 kB'],
    [1_240, '1.2 kB'],
    [9_940, '9.9 kB'],
    [9_960, '10 kB'],
    [25_400_000, '25 MB'],
    [3_000_000_000, '3 GB'],
    [7_200_000_000_000, '7.2 TB'],
    [5_000_000_000_000_000, '5,000 TB'],
  ] as const)
    t.equal(plain(octets(size)), text)
  t.end()
})

t.test('a size just below the next unit is not shown as a thousand', t => {
  t.equal(plain(octets(999_499)), '999 kB')
  t.equal(plain(octets(999_500)), '1 MB')
  t.equal(plain(octets(999_999)), '1 MB')
  t.equal(plain(octets(999_999_999)), '1 GB')
  t.end()
})

t.test('durations are told in one unit', t => {
  for (const [ms, text] of [
    [0, '0ms'],
    [12.4, '12ms'],
    [1_000, '1s'],
    [1_540, '1.5s'],
    [59_900, '59.9s'],
    [MINUTE, '1m'],
    [45 * MINUTE, '45m'],
    [HOUR, '1h'],
    [2.5 * HOUR, '2.5h'],
    [47 * HOUR, '47h'],
    [48 * HOUR, '2d'],
    [10 * DAY, '10d'],
  ] as const)
    t.equal(plain(duration(ms)), text)
  t.end()
})

t.test('a duration just below the next unit is told in that unit', t => {
  t.equal(plain(duration(999.7)), '1s')
  t.equal(plain(duration(59_970)), '1m')
  t.equal(plain(duration(HOUR - 10 * SECOND)), '1h')
  t.equal(plain(duration(48 * HOUR - MINUTE)), '2d')
  t.end()
})

t.test('no duration is told as more than its unit has', t => {
  const most: Readonly<Record<string, number>> = { ms: 999, s: 59.9, m: 59, h: 47.9 }
  for (let ms = 1; ms < 3 * DAY; ms = Math.ceil(ms * 1.003)) {
    const [, value = '', unit = ''] = /^([\d.,]+)(\w+)$/.exec(plain(duration(ms))) ?? []
    if (unit !== 'd' && !(Number(value) <= (most[unit] ?? 0))) t.fail(`${ms} ms is told as ${value}${unit}`)
  }
  t.end()
})

t.test('times near by are told by how long ago they are', t => {
  const ago = (ms: number) => relativeTime(new Date(NOW - ms).toISOString(), NOW)
  for (const [ms, text] of [
    [0, 'now'],
    [20 * SECOND, '20 seconds ago'],
    [3 * MINUTE, '3 minutes ago'],
    [HOUR, '1 hour ago'],
    [DAY, 'yesterday'],
    [12 * DAY, '12 days ago'],
    [60 * DAY, '2 months ago'],
    [400 * DAY, 'last year'],
    [-5 * MINUTE, 'in 5 minutes'],
    [-DAY, 'tomorrow'],
  ] as const)
    t.equal(ago(ms), text)
  t.end()
})

t.test('nothing was sixty seconds, sixty minutes or twenty-four hours ago', t => {
  const ago = (ms: number) => relativeTime(new Date(NOW - ms).toISOString(), NOW)
  t.equal(ago(59.6 * SECOND), '1 minute ago')
  t.equal(ago(59 * MINUTE + 50 * SECOND), '1 hour ago')
  t.equal(ago(23 * HOUR + 45 * MINUTE), 'yesterday')
  t.equal(ago(29.8 * DAY), 'last month')
  t.equal(ago(359 * DAY), 'last year')
  t.equal(ago(-(59 * MINUTE + 50 * SECOND)), 'in 1 hour')
  t.end()
})

t.test('a time of today has seconds, one of this year has a day, an older one a year', t => {
  const now = new Date(NOW)
  t.equal(plain(shortTime('2026-03-10T08:05:07Z', now)), '09:05:07 AM')
  t.equal(plain(shortTime('2026-03-09T22:30:00Z', now)), 'Mar 9, 11:30 PM')
  t.equal(plain(shortTime('2026-03-09T23:30:00Z', now)), '12:30:00 AM', 'today where the viewer is')
  t.equal(plain(shortTime('2025-12-31T12:00:00Z', now)), 'Dec 31, 2025, 01:00 PM')
  t.end()
})

t.test('days of statistics are days of UTC, wherever the viewer is', t => {
  t.equal(dayName('2026-03-01'), 'Mar 1')
  t.equal(dayName('2026-12-31'), 'Dec 31')
  t.equal(weekdayName(1), 'Monday')
  t.equal(weekdayName(7), 'Sunday')
  t.equal(weekdayName(3, 'short'), 'Wed')
  t.end()
})

t.test('shares have two digits only where one would say nothing', t => {
  t.equal(percent(0), '0%')
  t.equal(percent(0.0002), '0.02%')
  t.equal(percent(0.042), '4.2%')
  t.equal(percent(0.999), '99.9%')
  t.equal(percent(1), '100%')
  t.equal(signed(1.23), '+1.2')
  t.equal(signed(-16.7), '-16.7')
  t.equal(signed(0.01), '0')
  t.end()
})

t.test('numbers and money follow the language, at once', t => {
  t.equal(number(1_234_567.5), '1,234,567.5')
  t.equal(money(49.9, 'EUR'), '€49.90')
  t.equal(money(1_000, 'JPY'), '¥1,000')
  keepLanguageIn({ language: 'de', locale: 'de', texts: de })
  t.equal(number(1_234_567.5), '1.234.567,5')
  t.equal(plain(money(49.9, 'EUR')), '49,90 €')
  t.equal(weekdayName(1), 'Montag')
  t.equal(relativeTime(new Date(NOW - DAY).toISOString(), NOW), 'gestern')
  t.equal(tr().nav.domains, de.nav.domains)
  t.end()
})

t.test('what is typed into a field of date and time is the viewer’s own time', t => {
  t.equal(toLocalField(Date.parse('2026-01-15T09:30:59Z')), '2026-01-15T10:30', 'winter')
  t.equal(toLocalField(Date.parse('2026-07-15T22:30:00Z')), '2026-07-16T00:30', 'summer')
  t.equal(fromLocalField('2026-01-15T10:30'), '2026-01-15T09:30:00.000Z')
  t.equal(fromLocalField('2026-07-16T00:30'), '2026-07-15T22:30:00.000Z')
  for (let ms = Date.parse('2026-03-28T00:00:00Z'); ms < Date.parse('2026-03-30T00:00:00Z'); ms += HOUR / 2)
    if (Date.parse(fromLocalField(toLocalField(ms))) !== ms)
      t.fail(`${ms} changes on its way through a field`)
  t.end()
})

t.test("times and numbers are written as in the viewer's region", t => {
  const at = '2026-03-01T13:52:32Z'
  const british = localeOf('en', ['fr-CA', 'en-GB', 'en-US'])
  keepLanguageIn({ language: 'en', locale: british, texts: en })
  t.match(plain(fullTime(at)), /^Sunday,? 1 March 2026 at 14:52:32/)
  keepLanguageIn({ language: 'en', locale: localeOf('en', ['en-US']), texts: en })
  t.match(plain(fullTime(at)), /^Sunday, March 1, 2026 at 2:52:32 PM/)
  keepLanguageIn({ language: 'de', locale: localeOf('de', ['de-AT', 'de']), texts: de })
  t.equal(plain(number(12_345)), '12 345')
  t.equal(localeOf('es', ['en-GB', 'essential']), 'es', 'no tag of the browser is of that language')
  t.end()
})

t.test('a time falls on the date that a calendar of its place shows', t => {
  for (const [zone, date] of [
    ['UTC', '2026-01-05'],
    ['Pacific/Kiritimati', '2026-01-06'],
    ['Pacific/Honolulu', '2026-01-05'],
  ] as const)
    t.equal(calendarOf(zone)('2026-01-05T10:00:00.000Z'), date, zone)
  t.equal(calendarOf('Pacific/Kiritimati')('2026-01-05T09:59:59.000Z'), '2026-01-05')
  t.equal(calendarOf('Pacific/Honolulu')('2026-01-05T09:59:59.000Z'), '2026-01-04')
  t.end()
})
