/** How long a campaign takes at today's limits. */
import t from 'tap'
import { estimateSending, type SendingPlan } from '../../src/campaigns/sending/estimate.js'

const HOUR = 3_600_000
const PLAN: SendingPlan = {
  recipients: 976,
  startsAt: Date.parse('2026-01-05T10:20:00Z'),
  timezone: 'UTC',
  limits: { hour: 0, day: 0 },
  left: { hour: Infinity, day: Infinity },
  ratePerHour: null,
  sendWindow: null,
  sendTime: 'at_once',
  abTest: null,
}
const hourly = (limit: number, left = limit) => ({
  limits: { hour: limit, day: 0 },
  left: { hour: left, day: Infinity },
})
const of = (plan: Partial<SendingPlan>) => estimateSending({ ...PLAN, ...plan })

t.test('without limits it takes no time', t => {
  t.match(of({}), { durationMs: 0, limitedBy: undefined, detail: 'Less than a minute.' })
  t.match(of(hourly(1_000)), { durationMs: 0 })
  t.match(of({ recipients: 0, ...hourly(1, 0) }), { durationMs: 0 })
  t.end()
})

t.test('the hourly limit makes it wait for the next hours, less what is used of this one', t => {
  t.match(of({ recipients: 3_500, ...hourly(1_000) }), {
    durationMs: 2 * HOUR + 40 * 60_000,
    limitedBy: 'hourly_limit',
    limit: 1_000,
    detail: 'About 3 hours: the workspace may send 1,000 emails an hour (hourly_limit).',
  })
  t.match(of({ ...hourly(1_000, 23) }), { durationMs: 40 * 60_000, limitedBy: 'hourly_limit' })
  t.end()
})

t.test('so do the daily limit, the rate and the sending hours, and the longest is named', t => {
  const day = { limits: { hour: 1_000, day: 2_000 }, left: { hour: 1_000, day: 2_000 } }
  t.match(of({ recipients: 6_000, ...day }), { limitedBy: 'daily_limit', limit: 2_000 })
  t.match(of({ recipients: 101, ratePerHour: 50 }), {
    durationMs: 2 * HOUR,
    limitedBy: 'rate',
    limit: 50,
    detail: 'About 2 hours: the campaign sends 50 emails an hour (rate_per_hour).',
  })
  const window = { sendWindow: { from: '09:00', until: '11:00' } }
  t.match(of({ recipients: 1_500, ...hourly(1_000), ...window }), {
    durationMs: 22 * HOUR + 40 * 60_000,
    limitedBy: 'sending_hours',
    detail: 'About 23 hours: the campaign is sent from 09:00 to 11:00 (send_window).',
  })
  t.match(of({ startsAt: Date.parse('2026-01-05T06:00:00Z'), ...window, timezone: 'Europe/Berlin' }), {
    durationMs: 2 * HOUR,
  })
  t.end()
})

t.test('usual hours take a day, a test its time, and what would take months says so', t => {
  t.match(of({ sendTime: 'usual_hour' }), { durationMs: 24 * HOUR, limitedBy: 'usual_hour' })
  const test = {
    variants: [],
    samplePercent: 20,
    sampleSize: null,
    metric: 'clicks',
    ifUnclear: 'best',
  } as const
  t.match(of({ abTest: { ...test, decideAfterMinutes: 240 } }), {
    durationMs: 4 * HOUR,
    limitedBy: 'ab_test',
  })
  t.match(of({ abTest: { ...test, decideAfterMinutes: null } }).detail, /until somebody chooses the winner/)
  t.match(of({ recipients: 1_000_000_000, ...hourly(10) }), {
    durationMs: undefined,
    limitedBy: 'hourly_limit',
    detail: /^More than 90 days/,
  })
  const open = { sendWindow: { from: '09:00', until: '17:00' } }
  t.match(of({ recipients: 1_000_000_000, ratePerHour: 1, ...open }), { durationMs: undefined })
  t.end()
})
