/** What forms send of what was typed, and how they show what is stored. */
import t from 'tap'
import { sampleSizes } from '../../../src/campaigns/model/ab-test'
import { kindOf, KINDS, textOf, valueOf } from '../../../src/console/web/lib/typed-value'
import { ageColumns, countIn } from '../../../src/console/web/screens/delivery/ages'
import {
  NEW_TEST,
  NO_DIFFERENCE,
  sizesOf,
  testDraftOf,
  testOf,
  type AbTest,
  type AbTestDraft,
} from '../../../src/console/web/screens/campaigns/ab-test'
import {
  needsChoice,
  remainingMs,
  settledOf,
  STATUSES,
  toneOf,
  type Campaign,
} from '../../../src/console/web/screens/campaigns/campaigns'
import { changesOf, draftOf } from '../../../src/console/web/screens/campaigns/draft'
import {
  errorsIn,
  reachOf,
  senderOf,
  verdictOf,
} from '../../../src/console/web/screens/campaigns/send-dialog'
import {
  NEW_WINDOW,
  windowDraftOf,
  windowOf,
  windowText,
} from '../../../src/console/web/screens/campaigns/send-window'
import * as feeds from '../../../src/console/web/screens/feeds/feeds'
import * as forms from '../../../src/console/web/screens/forms/form-draft'
import * as workspaces from '../../../src/console/web/screens/workspaces/draft'

const NOW = Date.parse('2026-03-10T12:00:00Z')

const CAMPAIGN = {
  name: 'May news',
  subject: 'News of May',
  template_id: 't1',
  list_id: 'l1',
  segment_id: null,
  audience: null,
  from_email: null,
  from_name: null,
  reply_to: null,
  rate_per_hour: null,
  send_time: 'at_once',
  send_window: null,
  archive: false,
  ab_test: null,
  status: 'draft',
  started_at: null,
  total_recipients: 0,
  progress: { done: 0, skipped: 0, cancelled: 0 },
} as unknown as Campaign

t.test('a campaign that was opened and saved is as it was', t => {
  const { name, subject, ...others } = changesOf(draftOf(CAMPAIGN))
  t.same([name, subject], ['May news', 'News of May'])
  t.same(others, {
    template_id: 't1',
    list_id: 'l1',
    from_email: null,
    from_name: null,
    reply_to: null,
    preheader: null,
    rate_per_hour: null,
    send_time: 'at_once',
    send_window: null,
    archive: false,
    ab_test: null,
  })
  t.end()
})

t.test('fields of a campaign that are left empty are sent as not set, without spaces around others', t => {
  const draft = draftOf({
    ...CAMPAIGN,
    from_email: 'news@shop.test',
    rate_per_hour: 500,
    reply_to: 'a@shop.test',
  })
  t.equal(draft.ratePerHour, '500')
  t.match(changesOf({ ...draft, fromEmail: ' ', replyTo: '', ratePerHour: ' ', name: ' June ' }), {
    from_email: null,
    reply_to: null,
    rate_per_hour: null,
    name: 'June',
  })
  t.equal(changesOf({ ...draft, ratePerHour: ' 60 ' }).rate_per_hour, 60)
  t.equal(changesOf({ ...draft, isAtUsualHour: true }).send_time, 'usual_hour')
  t.end()
})

t.test('the last dialog counts who gets mail at once: of an A/B test, its sample', t => {
  const test: AbTestDraft = { ...NEW_TEST, sample: '20' }
  t.same(reachOf(test, 980), { first: 196, later: 784 })
  t.same(reachOf(null, 980), { first: 980, later: 0 })
  t.same(reachOf({ ...NEW_TEST, sample: '100' }, 980), { first: 980, later: 0 })
  t.end()
})

t.test('the last dialog says what the check found, and whether that is still so', t => {
  const check = (more: object) =>
    ({
      status: 'completed',
      started_at: '2026-03-10T10:00:00.000Z',
      errors: 0,
      warnings: 0,
      findings: [],
      ...more,
    }) as unknown as Parameters<typeof verdictOf>[0]
  const before = '2026-03-10T09:00:00.000Z'
  t.equal(verdictOf(undefined, before), 'unchecked')
  t.equal(verdictOf(check({ status: 'running' }), before), 'running')
  t.equal(verdictOf(check({ status: 'failed' }), before), 'failed')
  t.equal(verdictOf(check({ errors: 2 }), before), 'errors')
  t.equal(verdictOf(check({ warnings: 2 }), before), 'warnings')
  t.equal(verdictOf(check({}), before), 'fine')
  t.equal(verdictOf(check({ errors: 2 }), '2026-03-10T11:00:00.000Z'), 'stale')
  const findings = [
    { severity: 'error', code: 'link_empty' },
    { severity: 'warning', code: 'too_large' },
    { severity: 'error', code: 'link_empty' },
  ]
  t.same(errorsIn(check({ findings })), ['link_empty'])
  t.end()
})

t.test('the last dialog names the sender that the mail will have', t => {
  const workspace = { default_from_email: 'shop@shop.test', default_from_name: 'Shop' }
  t.equal(senderOf({ fromEmail: '', fromName: '' }, workspace), 'Shop <shop@shop.test>')
  t.equal(senderOf({ fromEmail: ' news@shop.test ', fromName: 'News' }, workspace), 'News <news@shop.test>')
  t.equal(senderOf({ fromEmail: 'Ann <ann@shop.test>', fromName: '' }, workspace), 'Ann <ann@shop.test>')
  t.equal(senderOf({ fromEmail: '', fromName: 'News' }, undefined), '')
  t.end()
})

t.test('a campaign whose A/B test waits for a person says so instead of “Sending”', t => {
  const waits = (more: object, status = 'sending') =>
    needsChoice({ status, waiting_for: { reason: 'ab_test', detail: '', ...more } } as Parameters<
      typeof needsChoice
    >[0])
  t.ok(waits({}))
  t.notOk(waits({ until: '2026-03-10T12:00:00.000Z' }), 'it is decided then')
  t.notOk(waits({ reason: 'rate' }))
  t.notOk(waits({}, 'paused'))
  t.notOk(needsChoice({ status: 'sending', waiting_for: null }))
  t.end()
})

t.test('a campaign goes to a list or to a segment, a resend to whom its campaign went', t => {
  const audience = (campaign: Partial<Campaign>) => {
    const { include, exclude } = draftOf({ ...CAMPAIGN, ...campaign })
    return [include, exclude]
  }
  t.same(audience({}), [['list l1'], []])
  t.same(audience({ list_id: null, segment_id: 's1' }), [['segment s1'], []])
  t.same(audience({ list_id: null, segment_id: null }), [[], []])
  const several = { include: [{ list_id: 'l1' }, { segment_id: 's1' }], exclude: [{ list_id: 'l2' }] }
  t.same(audience({ list_id: null, audience: several }), [['list l1', 'segment s1'], ['list l2']])
  const sent = (include: readonly string[], exclude: readonly string[] = []) => {
    const { list_id, segment_id, audience } = changesOf({ ...draftOf(CAMPAIGN), include, exclude })
    return Object.fromEntries(
      Object.entries({ list_id, segment_id, audience }).filter(([, value]) => value !== undefined),
    )
  }
  t.same(sent(['segment s1']), { segment_id: 's1' })
  t.same(sent([]), {})
  t.same(sent(['list l1', 'segment s1', 'list l1', ''], ['list l2']), { audience: several })
  t.same(sent(['list l1'], ['']), { list_id: 'l1' }, 'rows in which nothing was chosen do not count')
  t.end()
})

t.test('how long a campaign will take is told from its pace so far', t => {
  const sending = {
    ...CAMPAIGN,
    status: 'sending',
    started_at: new Date(NOW - 60_000).toISOString(),
    total_recipients: 400,
    progress: { done: 90, skipped: 5, cancelled: 5 },
  } as unknown as Campaign
  t.equal(settledOf(sending), 100)
  t.equal(remainingMs(sending, NOW), 180_000)
  t.equal(remainingMs({ ...sending, status: 'paused' }, NOW), undefined)
  t.equal(remainingMs({ ...sending, total_recipients: 100 }, NOW), undefined, 'nothing is left')
  t.equal(remainingMs({ ...sending, started_at: null }, NOW), undefined)
  t.equal(
    remainingMs({ ...sending, started_at: new Date(NOW + 5_000).toISOString() }, NOW),
    undefined,
    'a clock that is slow',
  )
  t.equal(remainingMs({ ...sending, ab_test: {} as AbTest }, NOW), undefined, 'it waits for a winner')
  t.same(
    STATUSES.filter(status => typeof toneOf(status) !== 'string'),
    [],
  )
  t.end()
})

t.test('a send window of every day names no days, and other days stay as they were chosen', t => {
  t.same(windowOf(null), null)
  t.same(windowOf(NEW_WINDOW), { days: [1, 2, 3, 4, 5], from: '09:00', until: '17:00' })
  t.same(windowOf({ ...NEW_WINDOW, days: [1, 2, 3, 4, 5, 6, 7] }), { from: '09:00', until: '17:00' })
  t.same(windowOf({ ...NEW_WINDOW, days: [] })?.days, [], 'which the API refuses')
  t.same(windowDraftOf({ from: '20:00', until: '08:30' })?.days, [1, 2, 3, 4, 5, 6, 7])
  for (const window of [null, { days: [1, 7], from: '20:00', until: '08:30' }])
    t.same(windowOf(windowDraftOf(window)), window)
  t.equal(
    windowText({ days: [1, 7], from: '20:00', until: '08:30' }, 'Europe/Berlin'),
    'Mon, Sun 20:00–08:30 (Europe/Berlin)',
  )
  t.match(windowText({ from: '09:00', until: '17:00' }, 'UTC'), /^(?!Mon).+ 09:00–17:00 \(UTC\)$/)
  t.end()
})

const TEST: AbTest = {
  variants: [
    { subject: null, template_id: null, from_email: null, from_name: null },
    { subject: 'Other words', template_id: null, from_email: null, from_name: null },
  ],
  sample_percent: 30,
  metric: 'opens',
  decide_after_minutes: 2_880,
  if_unclear: 'manual',
}

t.test('an A/B test that was opened and saved is as it was', t => {
  t.same(testOf(testDraftOf(TEST)), TEST)
  t.equal(testOf(testDraftOf(null)), null)
  const { sample_percent: _, ...sized } = TEST
  t.same(testOf(testDraftOf({ ...sized, sample_size: 40, decide_after_minutes: null })), {
    ...sized,
    sample_size: 40,
    decide_after_minutes: null,
  })
  t.end()
})

t.test('the time until an A/B test is decided is shown in the largest whole unit', t => {
  const shown = (minutes: number | null) => {
    const { after, afterUnit, decision } = testDraftOf({ ...TEST, decide_after_minutes: minutes })!
    return [after, afterUnit, decision]
  }
  t.same(shown(2_880), ['2', 'days', 'rule'])
  t.same(shown(240), ['4', 'hours', 'rule'])
  t.same(shown(90), ['90', 'minutes', 'rule'])
  t.same(shown(null), ['4', 'hours', 'person'], 'a person decides')
  const sent = (after: string, afterUnit: AbTestDraft['afterUnit']) =>
    testOf({ ...NEW_TEST, after, afterUnit })?.decide_after_minutes
  t.equal(sent('1.5', 'hours'), 90)
  t.equal(sent('2', 'days'), 2_880)
  t.end()
})

t.test('of the variants only what differs is sent', t => {
  const variants = [
    NO_DIFFERENCE,
    { subject: ' B ', templateId: 't2', fromEmail: 'b@shop.test', fromName: '' },
  ]
  const sent = (differs: AbTestDraft['differs']) => testOf({ ...NEW_TEST, differs, variants })?.variants[1]
  t.same(sent(['subject']), { subject: 'B', template_id: null, from_email: null, from_name: null })
  t.same(sent(['template', 'sender']), {
    subject: null,
    template_id: 't2',
    from_email: 'b@shop.test',
    from_name: null,
  })
  t.same(testDraftOf({ ...TEST, variants: [{}, { from_name: 'Ann' }] })?.differs, ['sender'])
  t.end()
})

t.test('a sample is divided as the server divides it', t => {
  const none = { subject: null, templateId: null, fromEmail: null, fromName: null }
  for (const count of [2, 3, 4])
    for (const sample of [0, 1, 4, 10, 33, 50, 100])
      for (const unit of ['percent', 'people'] as const)
        for (const recipients of [0, 1, 3, 7, 20, 1_000]) {
          const draft = {
            ...NEW_TEST,
            sample: String(sample),
            sampleUnit: unit,
            variants: Array.from({ length: count }, () => NO_DIFFERENCE),
          }
          const ofServer = sampleSizes(
            {
              variants: Array.from({ length: count }, () => none),
              samplePercent: unit === 'percent' ? sample : null,
              sampleSize: unit === 'people' ? sample : null,
            },
            recipients,
          )
          t.same(
            sizesOf(draft, recipients),
            ofServer,
            `${count} variants, ${sample} ${unit} of ${recipients}`,
          )
        }
  t.end()
})

const FEED = {
  name: 'Blog',
  url: 'https://blog.test/feed',
  subject: 'New',
  template_id: 't1',
  list_id: null,
  segment_id: 's1',
  schedule: { every: 'weekly', at: '09:00', weekday: 3 },
  max_items: 5,
  send_window: null,
  enabled: true,
} as unknown as feeds.Feed

t.test('a feed sends the day that its rhythm has, and no other', t => {
  const draft = feeds.draftOf(FEED)
  t.same(feeds.bodyOf(draft).schedule, { every: 'weekly', at: '09:00', weekday: 3 })
  t.same(feeds.bodyOf({ ...draft, every: 'daily' }).schedule, { every: 'daily', at: '09:00' })
  t.same(feeds.bodyOf({ ...draft, every: 'monthly', day: '31' }).schedule, {
    every: 'monthly',
    at: '09:00',
    day: 31,
  })
  t.match(feeds.bodyOf(draft), { segment_id: 's1', max_items: 5, name: 'Blog' })
  t.equal(feeds.bodyOf(draft).list_id, undefined)
  t.same(feeds.bodyOf({ ...draft, audience: 'list l1' }).list_id, 'l1')
  t.end()
})

const WORKSPACE = {
  ...{
    name: 'Shop',
    currency: 'EUR',
    timezone: 'UTC',
    hourly_limit: 100,
    daily_limit: 0,
    brand_color: '#112233',
  },
  ...{ default_from_email: null, default_from_name: null, company_name: 'Shop Ltd', company_address: null },
  ...{ utm_source: null, utm_medium: null, utm_campaign: null, attribution: false, marketing: true },
  ...{ track_opens: true, track_clicks: true, allow_private_webhooks: false },
} as unknown as Parameters<typeof workspaces.draftOf>[0]

t.test('of a workspace only what was changed is sent', t => {
  const draft = workspaces.draftOf(WORKSPACE)
  t.same(workspaces.changesOf(WORKSPACE, draft), {})
  t.same(workspaces.changesOf(WORKSPACE, { ...draft, company_name: '  ', hourly_limit: null }), {
    hourly_limit: 0,
    company_name: null,
  })
  t.same(
    workspaces.changesOf(WORKSPACE, { ...draft, company_name: ' Shop Ltd ' }),
    {},
    'a space is no change',
  )
  t.same(workspaces.changesOf(WORKSPACE, { ...draft, track_opens: false }), { track_opens: false })
  t.end()
})

const FORM = {
  ...{
    name: 'News',
    title: null,
    description: 'Monthly',
    redirect_url: null,
    double_opt_in: true,
    list_ids: ['l1'],
  },
  fields: [{ name: 'size', label: 'Size', type: 'select', required: true, options: ['S', 'M'] }],
} as unknown as forms.Form

t.test('a form that was opened and saved is as it was', t => {
  t.same(forms.changesOf(forms.draftOf(FORM)), FORM)
  t.end()
})

t.test('only choices have options, and empty ones are not sent', t => {
  const draft = forms.draftOf(FORM)
  const [size] = draft.fields
  const sent = (field: forms.FormField) => forms.changesOf({ ...draft, fields: [field] }).fields?.[0]
  t.same(sent({ ...size!, options: [' S', '', 'M '] })?.options, ['S', 'M'])
  t.equal(sent(forms.retyped(size!, 'text'))?.options, undefined)
  t.same(forms.retyped(forms.retyped(size!, 'text'), 'select').options, [], 'they are gone with the type')
  t.end()
})

t.test('the name of a field follows its label until it has a name of its own', t => {
  let field = forms.NEW_FIELD
  for (const label of ['S', 'Sh', 'Shoe size']) field = forms.relabelled(field, label)
  t.equal(field.name, 'shoe_size')
  const named = forms.relabelled({ ...field, name: 'shoes' }, 'Size of shoes')
  t.same([named.name, named.label], ['shoes', 'Size of shoes'])
  for (const [label, name] of [
    ['Größe', 'grosse'],
    ['Prénom', 'prenom'],
    ['1st choice', 'st_choice'],
    ['  Plan!  ', 'plan'],
    ['Имя', ''],
    ['a'.repeat(99) + ' b', 'a'.repeat(99)],
  ] as const)
    t.equal(forms.nameFor(label), name, label)
  t.end()
})

t.test('fields of a form are moved, and none is lost at the ends', t => {
  const fields = ['a', 'b', 'c'].map(label => ({ ...forms.NEW_FIELD, label }))
  const order = (from: number, to: number) =>
    forms
      .moved(fields, from, to)
      ?.map(({ label }) => label)
      .join('')
  t.equal(order(0, 2), 'bca')
  t.equal(order(2, 0), 'cab')
  t.equal(order(1, 2), 'acb')
  for (const [from, to] of [
    [0, -1],
    [2, 3],
    [1, 1],
    [5, 0],
  ] as const)
    t.equal(order(from, to), undefined)
  t.end()
})

t.test('an attribute keeps its type while its text is edited', t => {
  for (const value of [
    'plain',
    42,
    -1.5,
    true,
    false,
    '2026-03-01',
    ['a', 'b'],
    [],
    { city: 'Bonn' },
    [1, 'x'],
    null,
  ]) {
    const kind = kindOf(value)
    const wanted = value === null ? undefined : value
    t.same(valueOf(textOf(value), kind), wanted, JSON.stringify(value))
    t.ok(KINDS.includes(kind))
  }
  t.end()
})

t.test('a text that is no value of its kind is not sent', t => {
  for (const [text, kind] of [
    ['', 'number'],
    ['twelve', 'number'],
    ['1e999', 'number'],
    ['01.03.2026', 'date'],
    ['{"open":', 'json'],
  ] as const)
    t.equal(valueOf(text, kind), undefined, `${text}: ${kind}`)
  t.same(valueOf(' a \n\n b ', 'items'), ['a', 'b'])
  t.equal(valueOf(' 7 ', 'number'), 7)
  t.end()
})

t.test('ages of the queue that share a column are counted together', t => {
  const columns = ageColumns(['5m', '10m', '1h', 'older'], [0, 2])
  t.same(
    columns.map(({ ages, first }) => [ages, first]),
    [
      [['5m', '10m'], 0],
      [['1h', 'older'], 2],
    ],
  )
  t.equal(countIn(columns[0]!, { '5m': 3, '10m': 4, '1h': 9 }), 7)
  t.equal(countIn(columns[1]!, { '1h': 9 }), 9, 'an age without mail')
  t.same(ageColumns([], [0, 2]), [])
  t.end()
})
