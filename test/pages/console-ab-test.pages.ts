/**
 * A/B tests in the console: composed with a campaign, checked, started, watched and decided, as a person does it.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import type { Looking } from '../support/program/browser.js'
import { openConsole } from '../support/program/console.js'

const TICK_MS = 250
const CONTACTS = 20

async function open(t: Test, looking: Looking) {
  const appliance = await openTestAppliance(t)
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await appliance.run('workspace', 'set', appliance.workspaceId, ...settings, 'company_address=1 High Street')
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  const { key } = appliance
  const post = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  const { id: list } = await post('/lists', { name: 'Readers' })
  const contacts = Array.from({ length: CONTACTS }, (_, at) => ({
    email: `reader${at}@one.example`,
    list_ids: [list],
  }))
  await post('/contacts/batch', { contacts })
  const { id: template } = await post('/templates', { name: 'News', html: '<p>Hello, here is the news.</p>' })
  const { id: campaign } = await post('/campaigns', {
    ...{ name: 'May news', subject: 'News of May', template_id: template, list_id: list },
  })
  // A check that there is none of yet, and a test that is refused, answer 404 and 400.
  const { page, go, inspect } = await openConsole(t, appliance, { looking, expected: /status of 40[04]/ })
  return {
    page,
    go,
    inspect,
    campaign: String(campaign),
    get: async (path: string) => (await appliance.get(`/api/v1${path}`, { key })).body.data,
    post,
    send: (id: string) =>
      appliance.post(`/api/v1/campaigns/${id}/send/api`, {}, { key, headers: { 'Idempotency-Key': id } }),
  }
}

t.test('an A/B test is composed, sent, watched, and its winner chosen', async t => {
  const { page, campaign, go, get, inspect } = await open(t, { shape: 'wide', scheme: 'light' })
  await go(`/campaigns/${campaign}`)
  await page.getByText('Will receive it').waitFor()
  await page.getByRole('button', { name: 'Add an A/B test' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('variants A and B are the same').waitFor()
  const variant = (name: string) => page.getByRole('group', { name: `Variant ${name}` })
  await variant('B').getByLabel('Subject').fill('What is new in May')
  await page.getByRole('button', { name: 'Add a variant' }).click()
  await variant('C').getByLabel('Subject').fill('May, and what it brings')
  await page.getByLabel('Sample').fill('50')
  await page.getByText('A: 4 recipients').waitFor()
  await page.getByText('C: 3 recipients').waitFor()
  await page.getByText('Winner: 10 recipients').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  t.match((await get(`/campaigns/${campaign}`)).ab_test, {
    variants: [{ subject: null }, { subject: 'What is new in May' }, { subject: 'May, and what it brings' }],
    ...{ sample_percent: 50, metric: 'clicks', decide_after_minutes: 240, if_unclear: 'best' },
  })
  await page.reload()
  t.equal(await variant('B').getByLabel('Subject').inputValue(), 'What is new in May')
  await page.getByText('Winner: 10 recipients').waitFor()
  await inspect('console-ab-test-compose')

  await page.getByRole('button', { name: 'Send a test' }).click()
  const test = page.getByRole('dialog', { name: 'Send a test' })
  await test.getByLabel('Variant to send').selectOption('C')
  await test.getByLabel('To', { exact: true }).fill('reader1@one.example')
  await test.getByRole('button', { name: /^Send/ }).click()
  await test.waitFor({ state: 'hidden' })
  t.match(await get('/email?limit=1'), [{ subject: 'May, and what it brings' }])

  await page.getByRole('button', { name: 'Send…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send to 10' }).click()
  await page.getByText('The sample has been sent.').waitFor()
  await page.getByText('Decision:').waitFor()
  await page.getByText('The difference may be chance').waitFor({ state: 'hidden' })
  const card = (name: string) => page.getByRole('listitem').filter({ hasText: name })
  await card('Variant B').getByText('What is new in May').waitFor()
  await page.getByText('10 of 20 done').waitFor()
  await inspect('console-ab-test-waiting')
  await card('Variant B').getByRole('button', { name: 'Choose B' }).click()
  const sure = page.getByRole('dialog', { name: 'Choose variant B?' })
  await sure.getByText('10 recipients get this variant').waitFor()
  await inspect('console-ab-test-choose')
  await sure.getByRole('button', { name: 'Choose B' }).click()
  await page.getByText('20 of 20 done').waitFor()
  await page.getByText('Variant B was chosen as the winner').waitFor()
  await card('The others').getByText('They get variant B.').waitFor()
  t.equal(await page.getByRole('button', { name: /^Choose/ }).count(), 0)
  await inspect('console-ab-test-decided')
  t.match(await get(`/campaigns/${campaign}/ab-test`), {
    ...{ phase: 'decided', winner: 'B', decided_by: 'person' },
    rest: { recipients: 10, stats: { delivered: 10 } },
  })
})

t.test('a test that waits for a person stands on the overview until somebody chooses', async t => {
  const { page, campaign, go, post, send, inspect } = await open(t, { shape: 'narrow', scheme: 'light' })
  const { id } = await post(`/campaigns/${campaign}/duplicate`, { name: 'June news' })
  await go(`/campaigns/${id}`)
  await page.getByRole('button', { name: 'Add an A/B test' }).click()
  await page.getByRole('group', { name: 'Variant B' }).getByLabel('Subject').fill('What is new in June')
  await page.getByLabel('The winner is chosen').selectOption('person')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await go('/')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const attention = page.getByRole('region', { name: 'Needs attention' })
  const item = attention.getByText('The A/B test of “June news” waits for somebody to choose the winner')
  t.equal(await item.count(), 0, 'a draft')
  await send(id)
  await item.waitFor()
  await inspect('console-overview-winner')
  await attention.getByRole('link', { name: /June news/ }).click()
  await page.getByText('Choose the winner when you have seen enough.').waitFor()
  t.match(page.url(), /\/campaigns\/[^?]+\?workspace=/)
  await page.goBack()
  await item.waitFor()
  await post(`/campaigns/${id}/ab-test/winner`, { variant: 'A' })
  await item.waitFor({ state: 'hidden' })
})

t.test('a test of the sender decides by itself, and can be taken out of a draft', async t => {
  const { page, campaign, go, get, post, inspect } = await open(t, { shape: 'narrow', scheme: 'dark' })
  await go(`/campaigns/${campaign}`)
  await page.getByRole('button', { name: 'Add an A/B test' }).click()
  await page.getByLabel('Subject', { exact: true }).last().waitFor()
  const differs = page.getByRole('group', { name: 'What differs' })
  await differs.getByLabel('Subject').uncheck()
  await differs.getByLabel('Sender').check()
  const variant = page.getByRole('group', { name: 'Variant B' })
  await variant.getByLabel('Sender’s name').fill('Ann of the shop')
  await page.getByLabel('Counted in').selectOption('people')
  await page.getByLabel('Sample').fill('4')
  await page.getByText('Winner: 16 recipients').waitFor()
  await page.getByLabel('After').fill('1')
  await page.getByLabel('Unit').selectOption('minutes')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await inspect('console-ab-test-compose')
  const copy = await post(`/campaigns/${campaign}/duplicate`, { name: 'Without' })
  await page.getByRole('button', { name: 'Send…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send to 4' }).click()
  await page.getByText('Variant A won automatically').waitFor()
  await page.getByText('20 of 20 done').waitFor()
  await inspect('console-ab-test-decided')

  await go(`/campaigns/${copy.id}`)
  await page.getByRole('button', { name: 'Remove the A/B test' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  t.equal((await get(`/campaigns/${copy.id}`)).ab_test, null)
})
