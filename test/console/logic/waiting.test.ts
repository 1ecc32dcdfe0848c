/** What the console says of waits and of how long sending takes. */
import t from 'tap'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import { keepLanguageIn } from '../../../src/console/web/i18n/i18n'
import {
  nextAttempt,
  sendingTimeText,
  waitingSentence,
  waitingUntil,
} from '../../../src/console/web/lib/waiting'
import { WAIT_REASONS } from '../../../src/core/waiting.js'

process.env['TZ'] = 'UTC'

t.beforeEach(() => keepLanguageIn({ language: 'en', locale: 'en', texts: en }))

t.test('each reason of the API has a sentence and a short name', t => {
  for (const reason of WAIT_REASONS) {
    t.match(waitingSentence({ reason, limit: 5, detail: '' }), /\w\.$/, reason)
    t.ok(en.waiting.short[reason])
  }
  t.end()
})

t.test('a limit is named as people read numbers, with the moment at which it goes on', t => {
  const waiting = {
    reason: 'hourly_limit',
    limit: 1_000,
    detail: '',
    until: '2031-01-05T11:00:00.000Z',
  } as const
  t.equal(waitingSentence(waiting), 'Waiting: the workspace has used its limit of 1,000 emails an hour.')
  t.match(waitingUntil(waiting), /^Continues: Jan 5, 2031, 11:00/)
  t.equal(waitingUntil({ reason: 'hold', detail: '' }), '')
  keepLanguageIn({ language: 'de', locale: 'de', texts: de })
  t.match(waitingSentence(waiting), /Grenze von 1\.000 Mails pro Stunde/)
  t.end()
})

t.test('before sending it says how long that takes and why', t => {
  const hour = { duration_seconds: 10_800, limited_by: 'hourly_limit', limit: 1_000, detail: '' } as const
  t.equal(
    sendingTimeText(hour),
    'Sending takes about 3h at today’s limits. The workspace may send 1,000 emails an hour.',
  )
  t.match(sendingTimeText({ ...hour, duration_seconds: null }), /more than 90 days/)
  t.notMatch(sendingTimeText({ ...hour, limited_by: null }), /an hour/)
  t.end()
})

t.test('mail that is held has no next attempt, and one whose time has come is due', t => {
  const now = Date.parse('2026-03-10T12:00:00Z')
  const [past, later] = ['2026-03-10T11:59:49.000Z', '2026-03-10T12:05:00.000Z']
  const held = { reason: 'hold', detail: '' } as const
  t.equal(nextAttempt(held, past, now), 'held')
  t.equal(nextAttempt({ reason: 'restore_hold', detail: '' }, later, now), 'held')
  t.equal(nextAttempt(null, past, now), 'due', 'not “11 seconds ago”')
  t.equal(nextAttempt(null, later, now), later)
  t.equal(nextAttempt({ reason: 'back_off', detail: '', until: later }, past, now), later)
  t.end()
})
