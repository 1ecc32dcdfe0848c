/**
 * The report of a campaign in the console: over time, the click map, providers, a segment, revenue, and two campaigns compared.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { takePicture, type Looking } from '../support/program/browser.js'
import { openConsole, WIDE } from '../support/program/console.js'
import { until, untilLater } from '../support/until.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const HTML =
  '<h1>Hello {{first_name|reader}}</h1><p>This is new in the shop this month: <a href="https://shop.example/jugs">jugs</a>, and ' +
  '<a href="https://shop.example/cups">cups for every kitchen</a>.</p><p><a href="https://shop.example/sale" ' +
  'style="display:inline-block;padding:12px 20px;background:#14532d;color:#fff">To the sale</a></p>'
const DOMAINS = ['gmail.com', 'gmail.com', 'outlook.com', 'yahoo.com', 'one.example', 'two.example']

async function open(t: Test, looking: Looking = WIDE) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_PUBLIC_URL: 'https://mail.shop.test' } })
  const { clock, baseUrl, workspaceId } = appliance
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await appliance.run('workspace', 'set', workspaceId, ...settings, 'company_address=1 High Street')
  const { key } = appliance
  const get = async (path: string) => (await appliance.get(`/api/v1${path}`, { key })).body.data
  const post = async (path: string, body: object, headers = {}) =>
    (await appliance.post(`/api/v1${path}`, body, { key, headers })).body.data
  const { id: list } = await post('/lists', { name: 'Readers' })
  for (let at = 0; at < 24; at += 1)
    await post('/contacts', { email: `reader${at}@${DOMAINS[at % DOMAINS.length]}`, list_id: list })
  const { id: template } = await post('/templates', { name: 'News', html: HTML })
  const segment = { match: 'all', rules: [{ field: 'email', operator: 'contains', value: '@gmail' }] }
  await post('/segments', { name: 'At Gmail', conditions: segment })

  const visit = async (path: string) => {
    await fetch(baseUrl + path, { redirect: 'manual', headers: { 'User-Agent': BROWSER } })
    await clock.advance(20_000)
  }
  /** The tracked paths of a mail in the local inbox. */
  async function pathsIn(message: string) {
    const { raw } = (await appliance.get(`/capture/${message}`)).body.data
    const { html } = await simpleParser(Buffer.from(String(raw), 'latin1'))
    const paths = [...String(html).matchAll(/"https:\/\/mail\.shop\.test(\/[co]\/[^"]+)"/g)].map(
      ([, path]) => path!,
    )
    return {
      open: paths.find(path => path.startsWith('/o/')) ?? '',
      links: paths.filter(path => path.startsWith('/c/')),
    }
  }

  const send = (id: string) => post(`/campaigns/${id}/send/api`, {}, { 'Idempotency-Key': id })

  /** A campaign that so many have opened, and fewer clicked. */
  async function sent(name: string, opens: number, clicks: number): Promise<string> {
    const { id } = await post('/campaigns', { name, subject: name, template_id: template, list_id: list })
    await send(id)
    await untilLater(clock, 'the end', async () => (await get(`/campaigns/${id}`)).status === 'completed')
    const recipients = (await get(`/campaigns/${id}/recipients?limit=50`)) as { message_id: string }[]
    for (const [at, { message_id: message }] of recipients.slice(0, opens).entries()) {
      const { open: pixel, links } = await pathsIn(message)
      await visit(pixel)
      if (at < clicks) await visit(links[at % 3 === 0 ? 0 : 2] ?? '')
      if (at % 4 === 3) await clock.advance(1_800_000)
    }
    await until('the counts', async () => {
      await clock.advance(30_000)
      const { stats } = await get(`/campaigns/${id}`)
      return stats.unique_opens === opens && stats.unique_clicks === clicks
    })
    return id
  }
  return {
    ...{ post, get, sent, send, clock, visit, pathsIn, template, list },
    /** Late: the clock of the appliance moves on by hours before. */
    signIn: () => openConsole(t, appliance, { looking }),
  }
}

t.test('the report shows the clicks on the mail itself, and two campaigns are compared', async t => {
  const { get, post, sent, signIn } = await open(t)
  const first = await sent('May news', 12, 6)
  await sent('June news', 8, 2)
  const [{ id: contact }] = await get('/contacts?search=reader10%40')
  await post('/conversions', { contact_id: contact, value: 49.9, currency: 'EUR' })
  const { page, go, inspect } = await signIn()
  await go(`/campaigns/${first}`)
  const mail = page.frameLocator('iframe[title="The mail with the clicks of each link"]')
  await mail.getByText('1 · 33.3%').waitFor()
  await mail.getByText('3 · 66.7%').waitFor()
  await mail.getByText('2 · 0%').waitFor()
  await page.getByRole('row', { name: '3. https://shop.example/sale 4 4 66.7%' }).waitFor()
  await page.getByRole('row', { name: 'Gmail 8 100% 50% 25%' }).waitFor()
  await page.getByText('€49.90').waitFor()
  await page.getByLabel('Segment', { exact: true }).selectOption({ label: 'At Gmail' })
  await page.getByRole('row', { name: 'Recipients 8 24' }).waitFor()
  await inspect('console-campaign-report-full')
  // Frames out of sight are blank in a picture of the whole page.
  await page.locator('iframe[title^="The mail"]').scrollIntoViewIfNeeded()
  await takePicture(page, 'console-click-map', WIDE, false)
  await page.getByLabel('Figure').selectOption('clicks')
  await page.getByRole('img', { name: 'Over time: Clicks' }).waitFor()

  await page.getByRole('link', { name: 'Compare' }).click()
  await page.getByText('Choose two campaigns').waitFor()
  await page.getByLabel('Second campaign').selectOption({ label: 'June news' })
  await page.getByRole('row', { name: 'Opened 50% 33.3% -16.7 points' }).waitFor()
  await page.getByRole('row', { name: 'Clicked 25% 8.3% -16.7 points' }).waitFor()
  await inspect('console-campaign-compare')
})

t.test('the report is read on a phone in the dark', async t => {
  const { sent, signIn } = await open(t, { shape: 'narrow', scheme: 'dark' })
  const id = await sent('May news', 5, 2)
  const { page, go, inspect } = await signIn()
  await go(`/campaigns/${id}`)
  await page.frameLocator('iframe[title^="The mail"]').getByText('1 · 50%').waitFor()
  await inspect('console-campaign-report-full')
  await go(`/campaigns/compare?a=${id}&b=${id}`)
  await page.getByRole('row', { name: /Opened/ }).waitFor()
  await inspect('console-campaign-compare')
})

t.test('of an A/B test, each variant has its own click map, conversions and revenue', async t => {
  const opened = await open(t)
  const { get, post, send, clock, visit, pathsIn, template, list, signIn } = opened
  const { id: other } = await post('/templates', {
    name: 'Teapots',
    html: '<h1>Tea time</h1><p>Have a look at our <a href="https://shop.example/teapots">teapots</a>.</p>',
  })
  const { id } = await post('/campaigns', {
    ...{ name: 'June news', subject: 'June', template_id: template, list_id: list },
    ab_test: { variants: [{}, { template_id: other }], sample_size: 12, decide_after_minutes: null },
  })
  await send(id)
  await untilLater(clock, 'the sample', async () => (await get(`/campaigns/${id}`)).stats.delivered === 12)
  const recipients = (await get(`/campaigns/${id}/recipients?limit=50`)) as {
    readonly message_id: string
    readonly contact_id: string
    readonly variant: string | null
  }[]
  const of = (variant: string) => recipients.filter(one => one.variant === variant)
  const click = async ({ message_id: message }: { message_id: string }, link: number) =>
    visit((await pathsIn(message)).links[link] ?? '')
  const [inA, inB] = [of('A'), of('B')]
  await click(inA[0]!, 0)
  for (const one of inB.slice(0, 3)) await click(one, 0)
  await until('the counts', async () => {
    await clock.advance(30_000)
    return (await get(`/campaigns/${id}`)).stats.unique_clicks === 4
  })
  const { page, go, inspect } = await signIn()
  await go(`/campaigns/${id}`)
  const card = (name: string) => page.getByRole('listitem').filter({ hasText: name })
  await card('Variant B').getByText('3 (50%)').first().waitFor()
  t.equal(await page.getByText('Revenue', { exact: true }).count(), 0, 'nothing was bought')
  const buy = (contact: string, value: number, currency: string) =>
    post('/conversions', { contact_id: contact, value, currency })
  await buy(inA[0]!.contact_id, 20, 'EUR')
  await buy(inB[0]!.contact_id, 49.9, 'EUR')
  await buy(inB[1]!.contact_id, 30, 'USD')
  await page.reload()
  await card('Variant A').getByText('€20.00').waitFor()
  await card('Variant B').getByText('€49.90').waitFor()
  await card('Variant B').getByText('$30.00').waitFor()

  const mail = page.frameLocator('iframe[title="The mail with the clicks of each link"]')
  await mail.getByText('1 · 25%').waitFor()
  await page.getByLabel('Clicks of').selectOption({ label: 'Variant B' })
  await mail.getByText('Tea time').waitFor()
  await mail.getByText('1 · 100%').waitFor()
  await page.getByRole('row', { name: '1. https://shop.example/teapots 3 3 100%' }).waitFor()
  t.equal(new URL(page.url()).searchParams.get('variant'), 'B')
  await page.getByText('Clicks by the recipients in the sample').waitFor()
  await inspect('console-ab-test-figures')
  await page.locator('iframe[title^="The mail"]').scrollIntoViewIfNeeded()
  await takePicture(page, 'console-click-map-variant', WIDE, false)
  await page.getByLabel('Clicks of').selectOption({ label: 'Variant A' })
  await page.getByRole('row', { name: '1. https://shop.example/jugs 1 1 100%' }).waitFor()
})
