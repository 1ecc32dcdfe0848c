/** The setup checklist of the console: when it is shown, which step is open, where steps lead. */
import t from 'tap'
import {
  checkPoll,
  isShown,
  nextStep,
  placeOf,
  type Step,
} from '../../../src/console/web/screens/overview/setup'

const step = (name: Step['name'], more: Partial<Step> = {}): Step => ({
  name,
  done: false,
  record_id: null,
  detail: null,
  problems: [],
  ...more,
})

t.test(
  'the checklist is shown until it is done or dismissed, and opens the first step to be done',
  async t => {
    const steps = [step('company', { done: true }), step('sender'), step('mail')]
    t.equal(nextStep(steps), 'sender')
    t.ok(isShown({ dismissed_at: null, steps }))
    t.notOk(isShown({ dismissed_at: '2026-01-01T00:00:00.000Z', steps }))
    t.notOk(isShown({ dismissed_at: null, steps: steps.map(one => ({ ...one, done: true })) }))
  },
)

t.test('a step leads to where it is done, or to what came of it', async t => {
  const place = (one: Step) => placeOf(one, 'w')
  t.equal(place(step('company')), '/workspaces/w')
  t.equal(place(step('sender')), '/domains')
  t.equal(place(step('sender', { record_id: 'd' })), '/domains/d')
  t.equal(place(step('mail', { record_id: null })), '/keys')
  t.equal(place(step('mail', { done: true, record_id: 'm' })), '/messages/m')
  t.equal(place(step('contacts')), '/contacts/import')
  t.equal(place(step('campaign', { record_id: 'c' })), '/campaigns/c')
})

t.test('the checks are asked for again while they run, and no longer', async t => {
  t.ok(checkPoll([step('delivery')]))
  t.equal(checkPoll([step('delivery', { problems: ['dns.ptr'] })]), undefined)
  t.equal(checkPoll([step('delivery', { done: true })]), undefined)
  t.equal(checkPoll([step('mail')]), undefined)
})
