/** Why a campaign waits, for each reason, and when a closed window opens. */
import t from 'tap'
import { campaignWaitsFor, type CampaignState } from '../../src/campaigns/sending/waiting.js'
import { opensAt, isWithin } from '../../src/campaigns/model/send-window.js'
import { NOTHING_SAID } from '../../src/campaigns/model/campaigns.js'
import type { Campaign } from '../../src/campaigns/model/campaign.js'

const at = (text: string) => Date.parse(text)
/** A Monday. */
const NOW = at('2026-01-05T10:20:00Z')
const ROOM_ABOVE = 9_750

const COUNTS = {
  ...{ recipients: 100, pending: 77, queued: 0, done: 23, skipped: 0, cancelled: 0 },
  ...{ unsubscribed: 0, bounced: 0, suppressed: 0, sends: 23, deliveries: 23, opens: 0, uniqueOpens: 0 },
  ...{ clicks: 0, uniqueClicks: 0, bounces: 0, complaints: 0, unsubscribes: 0 },
}

const CAMPAIGN: Campaign = {
  ...NOTHING_SAID,
  ...COUNTS,
  ...{ seq: 1, id: 'c', workspaceId: 'w', isSandbox: false, name: 'News', subject: 'News', templateId: 't' },
  ...{ status: 'sending', error: null, createdAt: 0, updatedAt: 0, requestedAt: 0, scheduledAt: null },
  ...{ startedAt: NOW - 60_000, finishedAt: null, nextAt: NOW, who: { list: 1 }, fixedBefore: null },
  ...{
    fixedThrough: null,
    fixedAt: NOW - 60_000,
    recipientsPrunedAt: null,
    contentId: null,
    contentAt: null,
    waitingSince: null,
    waitingAnnounced: null,
  },
}

const STATE: CampaignState = {
  now: NOW,
  campaign: CAMPAIGN,
  timezone: 'UTC',
  isRestoreHeld: false,
  fault: undefined,
  test: undefined,
  allowance: { mails: 977, moreAt: at('2026-01-05T11:00:00Z'), fullest: { kind: 'hour', limit: 1_000 } },
  nextDueAt: undefined,
  queued: undefined,
}

const waits = (campaign: Partial<Campaign>, state: Partial<CampaignState> = {}) =>
  campaignWaitsFor({ ...STATE, ...state, campaign: { ...CAMPAIGN, ...campaign } }, ROOM_ABOVE)

const VARIANT = { ...COUNTS, variant: 0, recipients: 10, pending: 0, contentId: null, contentAt: null }
const TEST: NonNullable<CampaignState['test']> = {
  ...{ campaign: 1, drawn: 100, drawnThrough: 100, drawnAt: NOW, sampledAt: NOW, decideAt: null },
  ...{ pausedAt: null, winner: null, decidedAt: null, decidedBy: null, variants: [VARIANT] },
}

t.test('a campaign that goes on, or has not begun or is over, waits for nothing', t => {
  t.equal(waits({}), undefined)
  t.equal(waits({ status: 'draft', startedAt: null }), undefined)
  t.equal(waits({ status: 'completed' }, { isRestoreHeld: true }), undefined)
  t.equal(
    waits({ status: 'scheduled', startedAt: null, scheduledAt: NOW + 1 }, { isRestoreHeld: true }),
    undefined,
  )
  t.equal(waits({ startedAt: null, fixedAt: null }), undefined, 'its recipients are being determined')
  t.end()
})

t.test('a used up limit of the workspace is named with its number and the end of its window', t => {
  const hour = {
    mails: 0,
    moreAt: at('2026-01-05T11:00:00Z'),
    fullest: { kind: 'hour', limit: 1_000 },
  } as const
  const found = waits({}, { allowance: hour })
  t.match(found, { reason: 'hourly_limit', until: hour.moreAt, limit: 1_000 })
  t.match(found?.detail, /hourly limit of 1,000 emails \(hourly_limit\); an operator can raise it/)
  const day = {
    mails: 0,
    moreAt: at('2026-01-06T00:00:00Z'),
    fullest: { kind: 'day', limit: 5_000 },
  } as const
  t.match(waits({}, { allowance: day }), { reason: 'daily_limit', until: day.moreAt, limit: 5_000 })
  t.equal(waits({ isSandbox: true }, { allowance: undefined }), undefined)
  t.equal(waits({ pending: 0 }, { allowance: hour }), undefined, 'nothing is left to be queued')
  t.end()
})

t.test('the sending hours are waited for until they open, in the time zone of the workspace', t => {
  const sendWindow = { from: '09:00', until: '17:00', days: [1] }
  t.equal(waits({ sendWindow }), undefined)
  t.match(waits({ sendWindow }, { timezone: 'America/New_York' }), {
    reason: 'sending_hours',
    until: at('2026-01-05T14:00:00Z'),
  })
  t.match(waits({ sendWindow: { ...sendWindow, days: [2] } }), {
    reason: 'sending_hours',
    until: at('2026-01-06T09:00:00Z'),
  })
  t.end()
})

t.test('its own rate and the usual hours of its recipients are named with the next turn', t => {
  t.match(waits({ ratePerHour: 30, nextAt: NOW + 120_000 }), {
    reason: 'rate',
    until: NOW + 120_000,
    limit: 30,
  })
  t.equal(waits({ ratePerHour: 30, nextAt: NOW }), undefined)
  t.match(waits({ sendTime: 'usual_hour' }, { nextDueAt: NOW + 3_600_000 }), {
    reason: 'usual_hour',
    until: NOW + 3_600_000,
  })
  t.equal(waits({ sendTime: 'usual_hour' }, { nextDueAt: NOW }), undefined)
  t.end()
})

t.test('an A/B test is waited for until it is decided, or for a person without an end', t => {
  const decideAt = NOW + 3_600_000
  t.match(waits({}, { test: { ...TEST, decideAt } }), { reason: 'ab_test', until: decideAt })
  const person = waits({}, { test: TEST })
  t.match(person, { reason: 'ab_test', detail: /a person/ })
  t.notOk(person && 'until' in person)
  t.equal(waits({}, { test: { ...TEST, winner: 0 } }), undefined)
  t.equal(
    waits({}, { test: { ...TEST, variants: [{ ...VARIANT, pending: 3 }] } }),
    undefined,
    'the sample is mailed',
  )
  t.equal(waits({}, { test: { ...TEST, drawnAt: null } }), undefined)
  t.notOk(
    'until' in (waits({}, { test: { ...TEST, decideAt: NOW - 1 } }) ?? {}),
    'never a moment that has passed',
  )
  t.end()
})

t.test('a pause, a restore, a full disk and a full queue are named', t => {
  t.match(waits({ status: 'paused' }), { reason: 'hold', detail: /resume/ })
  t.match(waits({}, { isRestoreHeld: true }), { reason: 'restore_hold' })
  t.match(waits({ status: 'scheduled', startedAt: null, scheduledAt: NOW }, { isRestoreHeld: true }), {
    reason: 'restore_hold',
  })
  const fault = { code: 'disk_low', isFatal: false, reason: 'x' } as const
  t.match(waits({}, { fault }), { reason: 'disk', detail: /nearly full/ })
  t.match(waits({ queued: 10_000, nextAt: NOW - 60_000 }), { reason: 'queue_full', detail: /^10,000 / })
  t.equal(waits({ queued: 10_000, nextAt: NOW - 500 }), undefined, 'there is room again and again')
  t.end()
})

t.test('once all its mail is queued it waits for what the mail waits for', t => {
  const queued = { reason: 'back_off', until: NOW + 30_000, detail: 'x' } as const
  t.match(waits({ pending: 0, queued: 2 }, { queued }), queued)
  t.equal(waits({ pending: 0, queued: 2 }), undefined)
  t.equal(waits({ pending: 3, queued: 2 }, { queued }), undefined)
  t.end()
})

t.test('a window opens on the minute, on its days, and over changes of the clocks', t => {
  const opens = (window: object, now: string, zone = 'UTC') => {
    const moment = opensAt({ from: '09:00', until: '17:00', ...window }, at(now), zone)
    return moment === undefined ? undefined : new Date(moment).toISOString().slice(0, 16)
  }
  t.equal(opens({}, '2026-01-05T08:59:59Z'), '2026-01-05T09:00')
  t.equal(opens({}, '2026-01-05T10:00:00Z'), '2026-01-05T10:00', 'it is open')
  t.equal(opens({}, '2026-01-05T17:00:00Z'), '2026-01-06T09:00')
  t.equal(opens({ days: [5] }, '2026-01-05T10:00:00Z'), '2026-01-09T09:00')
  t.equal(opens({ days: [1] }, '2026-01-05T17:00:00Z'), '2026-01-12T09:00')
  t.equal(opens({ from: '22:00', until: '02:00', days: [7] }, '2026-01-05T02:00:00Z'), '2026-01-11T22:00')
  // Berlin goes from 2:00 to 3:00 on 29 March: 9:00 is an hour earlier in UTC, and a window within the missing hour opens with it.
  t.equal(opens({}, '2026-03-28T18:00:00Z', 'Europe/Berlin'), '2026-03-29T07:00')
  t.equal(
    opens({ from: '02:30', until: '03:30' }, '2026-03-28T22:00:00Z', 'Europe/Berlin'),
    '2026-03-29T01:00',
  )
  t.equal(
    opens({ from: '02:10', until: '02:50' }, '2026-03-28T22:00:00Z', 'Europe/Berlin'),
    '2026-03-30T00:10',
  )
  // And from 3:00 back to 2:00 on 25 October.
  t.equal(
    opens({ from: '02:00', until: '02:30' }, '2026-10-25T00:31:00Z', 'Europe/Berlin'),
    '2026-10-25T01:00',
  )
  t.equal(
    opens({ from: '09:07', until: '09:09' }, '2026-01-05T10:00:00Z', 'Asia/Kathmandu'),
    '2026-01-06T03:22',
  )
  t.end()
})

t.test('the opening is the first open minute, as looking at each one finds it', t => {
  const windows = [
    { from: '08:15', until: '09:00', days: [7] },
    { from: '23:30', until: '02:45', days: [6, 7] },
    { from: '02:20', until: '02:40' },
  ]
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia'])
    for (const window of windows)
      for (const from of [
        '2026-03-07',
        '2026-03-28',
        '2026-04-04',
        '2026-10-03',
        '2026-10-24',
        '2026-10-31',
      ]) {
        const start = at(`${from}T03:07:00Z`)
        let first = start
        while (!isWithin(window, first, zone)) first += 60_000
        const found = opensAt(window, start, zone)
        if (found !== first) t.equal(found, first, `${zone} ${JSON.stringify(window)} ${from}`)
      }
  t.pass('all the same')
  t.end()
})
