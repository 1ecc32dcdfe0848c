/** A/B tests over HTTP on the running appliance: the sample, the decision, the rest, and what is refused. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { longAfter, until, untilLater } from '../support/until.js'
import { addresses, openCampaigns, type Shown } from './open-campaigns.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const TWO = [{ subject: 'Alpha' }, { subject: 'Beta' }]
const MINUTE_MS = 60_000

type Opened = Awaited<ReturnType<typeof openCampaigns>>

interface Variant {
  readonly id: string
  readonly recipients: number
  readonly pending: number
  readonly stats: Readonly<Record<string, number>>
  readonly conversions: number
  readonly revenue: readonly object[]
}

interface Result {
  readonly phase: string
  readonly winner: string | null
  readonly variants: readonly Variant[]
  readonly rest: Variant
}

interface ClickMap {
  readonly variant: string | null
  readonly html: string | null
  readonly links: readonly object[]
}

interface Recipient {
  readonly email: string
  readonly status: string
  readonly variant: string | null
  readonly message_id: string | null
}

async function open(t: Parameters<typeof openCampaigns>[0], options: { isTracked?: boolean } = {}) {
  const opened = await openCampaigns(t, { env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' } })
  if (options.isTracked === false)
    await opened.run('workspace', 'set', opened.workspaceId, 'track_clicks=false')
  const { get, one, clock, baseUrl } = opened
  const result = async (id: string) => (await get(`/campaigns/${id}/ab-test`)).body.data as Result
  return {
    ...opened,
    result,
    resultOnce: async (id: string, what: string, isSo: (result: Result) => boolean) => {
      await untilLater(clock, what, async () => isSo(await result(id)))
      return result(id)
    },
    /** The campaign, once it is over in this way; time goes on meanwhile. */
    ended: (id: string, isSo: (campaign: Shown) => boolean) =>
      untilLater(clock, 'the end', async () => isSo((await get(`/campaigns/${id}`)).body.data as Shown)),
    recipients: async (id: string) =>
      (await get(`/campaigns/${id}/recipients?limit=100`)).body.data as Recipient[],
    /** By a person, unless another agent is given. @returns the status */
    click: async ({ message_id: message }: Recipient, link = 0, agent = BROWSER) => {
      const path = (await linksIn(opened, message ?? ''))[link] ?? ''
      await clock.advance(30_000)
      const { status } = await fetch(baseUrl + path, { redirect: 'manual', headers: { 'User-Agent': agent } })
      return status
    },
    /** How many messages were made with each subject. */
    mails: (subject: string) =>
      Number(
        one(
          `select count(*) from messages inner join message_contents as c on c.id = content_id where c.subject = '${subject}'`,
        ),
      ),
  }
}

/** Paths of the tracked links of a mail in the local inbox. */
async function linksIn({ capture }: Pick<Opened, 'capture'>, message: string): Promise<string[]> {
  const raw = String((await capture(message)).body.data.raw)
  const { html } = await simpleParser(Buffer.from(raw, 'latin1'))
  const found = String(html).matchAll(/href="https:\/\/mail\.shop\.test(\/c\/[^"]+)"/g)
  return [...found].map(([, path]) => path!)
}

// proves: Campaigns and templates > POST /campaigns
t.test('a sample gets the variants in equal parts, and the rest the one that people clicked', async t => {
  const opened = await open(t)
  const { draft, sendIt, get, clock, ended } = opened
  const { result, resultOnce, recipients, mails, click } = opened
  const id = await draft(addresses(20), {
    ab_test: { variants: TWO, sample_percent: 40, decide_after_minutes: 60 },
  })
  t.match((await get(`/campaigns/${id}`)).body.data.ab_test, {
    variants: [{ subject: 'Alpha', template_id: null }, { subject: 'Beta' }],
    ...{
      sample_percent: 40,
      sample_size: null,
      metric: 'clicks',
      decide_after_minutes: 60,
      if_unclear: 'best',
    },
  })
  t.match(await result(id), {
    phase: 'draft',
    winner: null,
    variants: [{ id: 'A', recipients: 0 }, { id: 'B' }],
  })
  await sendIt(id)
  const waiting = await resultOnce(id, 'the sample', one =>
    one.variants.every(v => v.stats['delivered'] === 4),
  )
  t.match(waiting, { phase: 'waiting', winner: null, rest: { recipients: 12, pending: 12 } })
  t.same([mails('Alpha'), mails('Beta')], [4, 4])
  const sample = (await recipients(id)).filter(({ variant }) => variant !== null)
  t.same(sample.map(({ variant }) => variant).sort(), ['A', 'A', 'A', 'A', 'B', 'B', 'B', 'B'])

  const ofVariant = (variant: string) => sample.filter(one => one.variant === variant)
  // Machines follow every link of A; one person follows one of B.
  for (const one of ofVariant('A')) t.equal(await click(one, 0, 'Barracuda Sentinel (EE)'), 302)
  t.equal(await click(ofVariant('B')[0]!), 302)
  t.match(await resultOnce(id, 'the click', one => one.variants[1]?.stats['unique_clicks'] === 1), {
    leader: 'B',
    is_clear: false,
    variants: [{ stats: { clicks: 0 } }, { rates: { click_rate: 0.25 } }],
  })
  await longAfter(clock, 60 * MINUTE_MS)
  await ended(id, ({ status }) => status === 'completed')
  t.same([mails('Alpha'), mails('Beta')], [4, 16])
  t.match(await result(id), {
    ...{ phase: 'decided', winner: 'B', decided_by: 'rule', decide_at: null, sample_percent: 40 },
    variants: [{ recipients: 4, pending: 0, stats: { sends: 4 } }, { stats: { sends: 4, unique_clicks: 1 } }],
    rest: { recipients: 12, pending: 0, stats: { sends: 12, delivered: 12, unique_clicks: 0 } },
  })
  t.match((await get(`/campaigns/${id}`)).body.data, { stats: { sends: 20 }, progress: { done: 20 } })
  t.equal(new Set((await recipients(id)).map(({ message_id }) => message_id)).size, 20)
})

// proves: Campaigns and templates > POST /campaigns
t.test('what was bought counts for the variant that the buyer got, or for the others', async t => {
  const { draft, sendIt, post, get, ended, result, resultOnce, recipients, click } = await open(t)
  const id = await draft(addresses(8), {
    ab_test: { variants: TWO, sample_percent: 50, decide_after_minutes: null },
  })
  t.match(await result(id), {
    variants: [
      { conversions: 0, revenue: [] },
      { conversions: 0, revenue: [] },
    ],
    rest: { conversions: 0, revenue: [] },
  })
  await sendIt(id)
  await resultOnce(id, 'the sample', one => one.variants.every(v => v.stats['delivered'] === 2))
  const buy = async ({ email }: Recipient, value: number, currency = 'EUR') => {
    const [contact] = (await get(`/contacts?search=${email}`)).body.data as { id: string }[]
    return (await post('/conversions', { contact_id: contact?.id, value, currency })).body.data
  }
  const all = await recipients(id)
  const of = (variant: string | null) => all.filter(one => one.variant === variant)
  const [inA, [fromB, other], [later]] = [of('A'), of('B'), of(null)]
  for (const one of [...inA, fromB!]) await click(one)
  await resultOnce(id, 'the clicks', ({ variants: [a, b] }) =>
    [a?.stats['unique_clicks'] === 2, b?.stats['unique_clicks'] === 1].every(Boolean),
  )
  t.match(await buy(inA[0]!, 20), { campaign_id: id, message_id: inA[0]!.message_id })
  await buy(inA[0]!, -5)
  await buy(inA[1]!, 100, 'USD')
  await buy(fromB!, 7.5)
  t.match(await buy(other!, 99), { campaign_id: null }, 'who never saw the email')
  const bought = [
    {
      conversions: 3,
      revenue: [
        { currency: 'USD', conversions: 1, value: 100 },
        { currency: 'EUR', conversions: 2, value: 15 },
      ],
    },
    { conversions: 1, revenue: [{ currency: 'EUR', conversions: 1, value: 7.5 }] },
  ]
  const shown = ({ conversions, revenue }: Variant) => ({ conversions, revenue })
  t.same((await result(id)).variants.map(shown), bought)

  const { data: chosen } = (await post(`/campaigns/${id}/ab-test/winner`, { variant: 'B' })).body
  t.same((chosen as Result).variants.map(shown), bought, 'the answer to the choice has them too')
  await ended(id, ({ status }) => status === 'completed')
  const mailed = (await recipients(id)).find(({ email }) => email === later!.email)
  await click(mailed!)
  await resultOnce(id, 'the click', ({ rest }) => rest.stats['unique_clicks'] === 1)
  await buy(mailed!, 1)
  const { variants, rest } = await result(id)
  t.same(variants.map(shown), bought)
  t.same(shown(rest), { conversions: 1, revenue: [{ currency: 'EUR', conversions: 1, value: 1 }] })
  t.same((await get(`/campaigns/${id}/report`)).body.data.revenue, [
    { currency: 'USD', conversions: 1, value: 100 },
    { currency: 'EUR', conversions: 4, value: 23.5 },
  ])
})

// proves: Campaigns and templates > GET /campaigns/:id
t.test('the click map of a variant shows its own email with the clicks of its sample', async t => {
  const { draft, sendIt, post, get, make, ended, resultOnce, recipients, click } = await open(t)
  const link = (name: string) => `<a href="https://shop.test/${name}">${name}</a>`
  const [first, second] = [
    await make('/templates', { name: 'One', html: `<p>First ${link('jugs')} ${link('cups')}</p>` }),
    await make('/templates', { name: 'Two', html: `<p>Second ${link('cups')} ${link('pans')}</p>` }),
  ]
  const id = await draft(addresses(6), {
    template_id: first,
    ab_test: { variants: [{}, { template_id: second }], sample_size: 4, decide_after_minutes: null },
  })
  const ask = (query = '') => get(`/campaigns/${id}/click-map${query}`)
  const map = async (variant?: string) =>
    (await ask(variant === undefined ? '' : `?variant=${variant}`)).body.data as ClickMap
  t.same(await map('B'), { variant: 'B', html: null, links: [] }, 'of a draft')
  await sendIt(id)
  await resultOnce(id, 'the sample', one => one.variants.every(v => v.stats['delivered'] === 2))
  const all = await recipients(id)
  const of = (variant: string | null) => all.filter(one => one.variant === variant)
  const [inA, inB, rest] = [of('A'), of('B'), of(null)]
  const [jugs, cupsOfA, cupsOfB, pans] = [0, 1, 0, 1]
  await click(inA[0]!, jugs)
  await click(inA[0]!, jugs)
  await click(inA[1]!, cupsOfA)
  await click(inB[0]!, cupsOfB)
  await click(inB[0]!, pans)
  await click(inB[1]!, pans)
  await resultOnce(
    id,
    'the clicks',
    ({ variants: [a, b] }) => a?.stats['clicks'] === 3 && b?.stats['clicks'] === 3,
  )
  const at = (name: string, number: number | null, clicks: number, people: number) => ({
    ...{ url: `https://shop.test/${name}`, number, clicks, unique_clicks: people },
  })
  const ofA = await map('A')
  t.match(ofA, { variant: 'A', html: /First/, links: [at('jugs', 1, 2, 1), at('cups', 2, 1, 1)] })
  t.match(ofA.html, /1 · 66\.7%[^]*2 · 33\.3%/)
  const ofB = await map('B')
  t.match(ofB, { variant: 'B', html: /Second/, links: [at('cups', 1, 1, 1), at('pans', 2, 2, 2)] })
  t.same([ofA.links.length, ofB.links.length], [2, 2], 'none of the other')
  t.match(
    await map(),
    {
      ...{ variant: null, html: /First/ },
      links: [at('jugs', 1, 2, 1), at('cups', 2, 2, 2), at('pans', null, 2, 2)],
    },
    'all clicks, on the first variant as long as there is no winner',
  )

  await post(`/campaigns/${id}/ab-test/winner`, { variant: 'B' })
  await ended(id, ({ status }) => status === 'completed')
  const mailed = (await recipients(id)).find(({ email }) => email === rest[0]!.email)
  await click(mailed!, cupsOfB)
  await resultOnce(id, 'the click', one => one.rest.stats['clicks'] === 1)
  t.match(await map(), {
    html: /Second/,
    links: [at('cups', 1, 3, 3), at('pans', 2, 2, 2), at('jugs', null, 2, 1)],
  })
  t.same(await map('A'), ofA, 'the rest is not in the sample')
  t.same(await map('B'), ofB)

  const refused = { status: 400, body: { error: { code: 'validation_error', path: 'variant' } } }
  t.match(await ask('?variant=C'), { ...refused, body: { error: { message: /no variant C/ } } })
  t.match(await ask('?variant=E'), refused)
  t.match(await ask('?variant=A&variant=B'), { status: 400 })
  const plain = await draft(addresses(1, 'plain.test'))
  t.match(await get(`/campaigns/${plain}/click-map?variant=A`), {
    ...refused,
    body: { error: { message: /no variant A/ } },
  })
})

// proves: Campaigns and templates > POST /campaigns
// answers: POST /campaigns/{id}/ab-test/winner: conflict
t.test('a person chooses the winner, once, and the archive shows it', async t => {
  const opened = await open(t)
  const { draft, sendIt, get, post, patch, ended, resultOnce, mails, baseUrl } = opened
  const id = await draft(addresses(10), {
    archive: true,
    ab_test: { variants: [...TWO, {}], sample_size: 3, decide_after_minutes: null },
  })
  const choose = (variant: string, path = id) => post(`/campaigns/${path}/ab-test/winner`, { variant })
  t.match(await choose('A'), { status: 409 }, 'a draft')
  await sendIt(id)
  await resultOnce(id, 'the sample', one => one.variants.every(v => v.stats['delivered'] === 1))
  t.match(await opened.result(id), { phase: 'waiting', decide_at: null })
  const { url } = (await get('/archive')).body.data
  const page = () => fetch(`${baseUrl}${new URL(`${url}/${id}`).pathname}`)
  t.equal((await page()).status, 404, 'not in the archive yet')
  t.equal((await patch(`/campaigns/${id}`, { archive: false })).status, 200)
  t.equal((await patch(`/campaigns/${id}`, { archive: true })).status, 200)
  t.match(await choose('D'), { status: 400, body: { error: { message: /no variant D/ } } })
  t.match(await choose('E'), { status: 400 })
  const made = await choose('B')
  t.match(made, { status: 200, body: { data: { phase: 'decided', winner: 'B', decided_by: 'person' } } })
  t.match(await choose('A'), {
    status: 409,
    body: { error: { code: 'conflict', message: /a winner already/ } },
  })
  await ended(id, ({ status }) => status === 'completed')
  t.same([mails('Alpha'), mails('Beta'), mails('News')], [1, 8, 1])
  t.equal((await page()).status, 200)
  const archive = await fetch(`${baseUrl}${new URL(url as string).pathname}`)
  t.match(await archive.text(), /Beta/)
  const acts = (await get('/activity?limit=100')).body.data as { action: string }[]
  t.equal(acts.filter(({ action }) => action === 'campaign.winner_chosen').length, 1)

  const again = await post(`/campaigns/${id}/duplicate`, {})
  t.match(again.body.data.ab_test, {
    variants: [{ subject: 'Alpha' }, { subject: 'Beta' }, {}],
    sample_size: 3,
  })
  const resend = await post(`/campaigns/${id}/resend`, {})
  t.match(resend.body.data, { ab_test: null, subject: 'Beta', resend_of: id })
})

// proves: Campaigns and templates > POST /campaigns
t.test('a cancelled test sends no rest, and a paused one is not decided', async t => {
  const opened = await open(t)
  const { draft, sendIt, post, clock, ended, resultOnce, result, mails, one } = opened
  const ab_test = { variants: TWO, sample_percent: 20, decide_after_minutes: 60 }
  const id = await draft(addresses(10), { ab_test })
  await sendIt(id)
  // What is still queued would be cancelled too.
  await resultOnce(id, 'the sample', one => one.variants.every(v => v.stats['delivered'] === 1))
  await longAfter(clock, 30 * MINUTE_MS)
  t.equal((await post(`/campaigns/${id}/pause`, {})).status, 200)
  await longAfter(clock, 120 * MINUTE_MS)
  t.match(await result(id), { phase: 'waiting', decide_at: null })
  t.equal((await post(`/campaigns/${id}/resume`, {})).status, 200)
  const until = Date.parse(((await result(id)) as unknown as { decide_at: string }).decide_at)
  t.ok(until > clock.now() + 25 * MINUTE_MS && until <= clock.now() + 30 * MINUTE_MS, 'half an hour is left')
  t.equal((await post(`/campaigns/${id}/cancel`, {})).status, 200)
  await ended(id, ({ progress }) => progress.cancelled === 8)
  await longAfter(clock, 60 * MINUTE_MS)
  t.same([mails('Alpha'), mails('Beta')], [1, 1])
  t.match(await result(id), { phase: 'ended', winner: null, rest: { recipients: 8, pending: 0 } })
  t.match(await post(`/campaigns/${id}/ab-test/winner`, { variant: 'A' }), { status: 409 })
  t.equal(one('select count(*) from campaign_variants where letter is not null'), 0)
})

// proves: Campaigns and templates > POST /campaigns
t.test('where the lead may be chance, a test may wait for a person', async t => {
  const { draft, sendIt, post, clock, ended, resultOnce, mails } = await open(t)
  const ab_test = {
    variants: TWO,
    sample_size: 2,
    decide_after_minutes: 5,
    if_unclear: 'manual',
    metric: 'opens',
  }
  const id = await draft(addresses(5), { ab_test })
  await sendIt(id)
  await resultOnce(id, 'the sample', one => one.phase === 'waiting')
  await longAfter(clock, 5 * MINUTE_MS)
  await resultOnce(id, 'that it is undecided', one => one.phase === 'undecided')
  t.same([mails('Alpha'), mails('Beta')], [1, 1])
  await post(`/campaigns/${id}/ab-test/winner`, { variant: 'A' })
  await ended(id, ({ status }) => status === 'completed')
  t.same([mails('Alpha'), mails('Beta')], [4, 1])
})

// proves: decisions: Added after a day's work > A/B a sample that covers
t.test('a test whose sample is everybody is completed without a winner', async t => {
  const { draft, sendIt, post, ended, result, mails, one } = await open(t)
  for (const [recipients, sample] of [
    [4, { sample_percent: 100 }],
    [3, { sample_size: 10 }],
    [1, { sample_percent: 20 }],
  ] as const) {
    const variants = [{ subject: `First of ${recipients}` }, { subject: `Second of ${recipients}` }]
    const id = await draft(addresses(recipients, `of-${recipients}.test`), {
      rate_per_hour: 100_000,
      ab_test: { variants, ...sample, decide_after_minutes: null },
    })
    await sendIt(id)
    await ended(id, ({ status }) => status === 'completed')
    t.match(await result(id), { phase: 'ended', winner: null, rest: { recipients: 0 } })
    t.equal(mails(`First of ${recipients}`) + mails(`Second of ${recipients}`), recipients)
    t.equal((await post(`/campaigns/${id}/ab-test/winner`, { variant: 'A' })).status, 409)
  }
  t.equal(
    Number(one("select count(*) from events where kind = 'campaign.winner_required'")),
    0,
    'nobody is asked',
  )
})

// proves: decisions: Added after a day's work > A/B a sample that covers
t.test('a test in the sandbox runs to its end at once, whatever it would wait for', async t => {
  const { draft, sendIt, makeKey, as, get } = await open(t)
  const sandboxKey = await makeKey('--sandbox')
  const sandbox = as(sandboxKey)
  for (const waits of [{}, { decide_after_minutes: null }, { if_unclear: 'manual' }]) {
    const people = addresses(6, `${Object.keys(waits)[0] ?? 'usual'}.test`.replaceAll('_', '-'))
    const ab_test = { variants: TWO, sample_size: 2, ...waits }
    const id = await draft(people, { ab_test }, sandbox)
    await sendIt(id, {}, sandbox)
    // The clock stands still: nothing is waited for.
    await until(
      'the end',
      async () => (await sandbox.get(`/campaigns/${id}`)).body.data.status === 'completed',
    )
    t.match((await sandbox.get(`/campaigns/${id}/ab-test`)).body.data, {
      phase: 'decided',
      winner: 'A',
      decided_by: 'rule',
      rest: { recipients: 4 },
    })
  }
  t.equal((await get('/campaigns')).body.pagination.total, 0)
})

t.test('a test without recipients ends at once', async t => {
  const { draft, sendIt, ended } = await open(t)
  const id = await draft([], { ab_test: { variants: TWO, sample_percent: 20 } })
  t.match(await sendIt(id), { status: 202, body: { data: { total_recipients: 0 } } })
  await t.resolves(
    ended(id, ({ status }) => status === 'completed'),
    'it is completed',
  )
})

// proves: Campaigns and templates > POST /campaigns
t.test('a scheduled test draws its sample from who is there at its start', async t => {
  const { draft, sendIt, post, get, clock, ended, resultOnce } = await open(t)
  const id = await draft(addresses(6), {
    ab_test: { variants: TWO, sample_percent: 50, decide_after_minutes: 1 },
  })
  await sendIt(id, { send_at: new Date(clock.now() + 10 * MINUTE_MS).toISOString() })
  const { list_id: list } = (await get(`/campaigns/${id}`)).body.data
  for (const email of addresses(6, 'late.test')) await post('/contacts', { email, list_id: list })
  await longAfter(clock, 10 * MINUTE_MS)
  const found = await resultOnce(id, 'the sample', one => one.phase === 'waiting')
  t.same(
    [...found.variants, found.rest].map(({ recipients }) => recipients),
    [3, 3, 6],
  )
  await clock.advance(MINUTE_MS)
  await ended(id, ({ status }) => status === 'completed')
})

// proves: Campaigns and templates > POST /campaigns
// answers: GET /campaigns/{id}/ab-test: not_found
t.test('what cannot be a test is refused by name', async t => {
  const { draft, patch, post, get, sendIt, make } = await open(t, { isTracked: false })
  const id = await draft(addresses(2))
  const refused = async (test: object, path: string, message: RegExp) => {
    const { body } = await patch(`/campaigns/${id}`, { ab_test: test })
    t.match(body, { error: { path, message } }, path)
  }
  const percent = { sample_percent: 20 }
  await refused({ variants: [{}], ...percent }, 'ab_test.variants', /./)
  await refused({ variants: [{}, {}, {}, {}, {}], ...percent }, 'ab_test.variants', /./)
  await refused({ variants: TWO }, 'ab_test.sample_percent', /sample_percent or sample_size/)
  await refused({ variants: TWO, sample_size: 5, ...percent }, 'ab_test.sample_percent', /not both/)
  await refused({ variants: TWO, sample_percent: 0 }, 'ab_test.sample_percent', /./)
  await refused({ variants: [{}, {}], ...percent }, 'ab_test.variants.1', /A and B are the same/)
  await refused({ variants: [{}, { subject: 'News' }], ...percent }, 'ab_test.variants.1', /the same/)
  await refused({ variants: [{}, { subject: '{{#if' }], ...percent }, 'ab_test.variants.1.subject', /./)
  await refused(
    { variants: [{}, { from_email: 'nobody' }], ...percent },
    'ab_test.variants.1.from_email',
    /./,
  )
  const gone = { template_id: '0192f000-0000-7000-8000-00000000abcd' }
  await refused({ variants: [{}, gone], ...percent }, 'ab_test.variants.1.template_id', /no template/)
  t.match(await get(`/campaigns/${id}/ab-test`), { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await post(`/campaigns/${id}/ab-test/winner`, { variant: 'A' }), { status: 404 })

  t.equal((await patch(`/campaigns/${id}`, { ab_test: { variants: TWO, ...percent } })).status, 200)
  t.equal((await patch(`/campaigns/${id}`, { subject: 'Alpha' })).status, 200)
  t.match(await sendIt(id), { status: 400, body: { error: { message: /clicks are not tracked/ } } })
  t.equal((await patch(`/campaigns/${id}`, { ab_test: null })).body.data.ab_test, null)
  const template = await make('/templates', { name: 'Used', html: '<p>Hi</p>' })
  const ab_test = { variants: [{}, { template_id: template }], ...percent, decide_after_minutes: null }
  t.equal((await patch(`/campaigns/${id}`, { ab_test })).status, 200)
  t.match(await post(`/campaigns/${id}/test`, { to: 'c0@x.test', variant: 'C' }), { status: 400 })
  t.match(await post(`/campaigns/${id}/test`, { to: 'c0@x.test', variant: 'B' }), { status: 200 })
})

t.test('the template of a variant is not deleted while its campaign may still be sent', async t => {
  const { draft, sendIt, make, remove, clock } = await open(t)
  const template = await make('/templates', { name: 'Used', html: '<p>Hi</p>' })
  const ab_test = { variants: [{}, { template_id: template }], sample_percent: 50 }
  const id = await draft(addresses(2), { ab_test })
  await sendIt(id, { send_at: new Date(clock.now() + 60 * MINUTE_MS).toISOString() })
  t.match(await remove(`/templates/${template}`), {
    status: 409,
    body: { error: { message: /scheduled campaign/ } },
  })
})

t.test('the check renders each variant for everybody, and says which one has what', async t => {
  const { draft, make, post, get, clock } = await open(t)
  const other = await make('/templates', { name: 'Other', html: '<p>{{lastName}}, see all of it</p>' })
  const id = await draft(addresses(3), {
    ab_test: {
      variants: [{}, { subject: 'BUY THIS NOW', template_id: other }, { from_name: 'Ann' }],
      sample_percent: 50,
    },
  })
  await post(`/campaigns/${id}/check`, {})
  await untilLater(
    clock,
    'the end of the check',
    async () => (await get(`/campaigns/${id}/check`)).body.data.status === 'completed',
  )
  const { findings, checked, total } = (await get(`/campaigns/${id}/check`)).body.data
  t.same([checked, total], [3, 3])
  const of = (wanted: string) => (findings as { code: string }[]).filter(({ code }) => code === wanted)
  t.match(of('merge_value_missing'), [{ about: 'lastName', recipients: 3, variants: ['B'] }])
  t.match(of('subject_shouts'), [{ variants: ['B'] }])
  t.match(of('postal_address_missing'), [{ variants: [] }], 'once for all')
  t.equal(of('postal_address_missing').length, 1)
})
