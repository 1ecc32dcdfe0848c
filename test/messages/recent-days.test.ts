/** The recent counters by day of a time zone: UTC days and the hours between the midnights, on both databases. */
import t from 'tap'
import { addRecent, readRecent, sumShifts } from '../../src/messages/recent-counter-store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { midnightShifts, shiftedCount } from '../../src/world/time/zone-days.js'
import { eachDatabase } from '../support/db/database.js'

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000]
/** As calendars there show it. */
const dateIn = (timeZone: string) => new Intl.DateTimeFormat('sv-SE', { timeZone })

eachDatabase(
  t,
  'mail of the last days is counted by day of a time zone, to the hour',
  async (t, database) => {
    // Clocks in Berlin go back on 25 October 2026.
    const [first, last] = [Date.parse('2026-10-20T00:00:00Z'), Date.parse('2026-10-28T24:00:00Z')]
    const random = new SeededRandom(20261025)
    const moments = Array.from({ length: 300 }, () => Math.floor(first + random.fraction() * (last - first)))
    const counted = (at: number, workspaceId: string) => ({
      workspaceId,
      isSandbox: false,
      name: 'sent' as const,
      at,
    })
    await database.write(tx =>
      addRecent(tx.db, [...moments.map(at => counted(at, 'w1')), counted(first, 'w2')]),
    )
    for (const zone of ['Pacific/Kiritimati', 'Pacific/Honolulu', 'Europe/Berlin', 'Asia/Kathmandu', 'UTC']) {
      const days = Array.from({ length: 7 }, (_, at) => Date.parse('2026-10-21') + at * DAY_MS)
      const inUtc = new Map(
        (await readRecent(database.reader, 'w1', 'day', days[0]!)).map(({ startsAt, count }) => [
          startsAt,
          count,
        ]),
      )
      const shifts = midnightShifts(days, zone)
      const sums = await sumShifts(database.reader, 'w1', shifts)
      const calendar = dateIn(zone)
      const beginOfHour = (at: number) => Math.floor(at / HOUR_MS) * HOUR_MS
      t.same(
        days.map((day, at) =>
          shiftedCount(at, inUtc.get(day) ?? 0, shifts, one => sums.get(one.at)?.sent ?? 0),
        ),
        days.map(day => {
          const date = new Date(day).toISOString().slice(0, 10)
          return moments.filter(at => calendar.format(beginOfHour(at)) === date).length
        }),
        zone,
      )
    }
  },
)
