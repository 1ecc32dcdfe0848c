/**
 * Campaigns in the console: composed on one page, checked, sent to everybody, followed and reported, as a person does it.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import type { Looking } from '../support/program/browser.js'
import { openConsole, WIDE } from '../support/program/console.js'
import { until } from '../support/until.js'

const TICK_MS = 250
const CONTACTS = 60
const HTML =
  '<p>Hello {{first_name}}, here is what is new in the shop this month, and there is more of it than there was in the whole of last year.</p>' +
  '<p><a href="{{attributes.page}}">Your page</a></p>'

async function open(t: Test, looking: Looking = WIDE) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' } })
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await appliance.run(
    'workspace',
    'set',
    appliance.workspaceId,
    ...settings,
    'company_address=1 High Street',
    'allow_private_webhooks=true',
    'timezone=Europe/Berlin',
  )
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  const { key } = appliance
  const post = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  const { id: list } = await post('/lists', { name: 'Readers' })
  const contacts = Array.from({ length: CONTACTS }, (_, at) => ({
    ...{ email: `reader${at}@one.example`, list_ids: [list] },
    // One has no name, another no page.
    ...(at === 0 ? {} : { first_name: `Reader ${at}` }),
    attributes: at === 1 ? {} : { page: `https://127.0.0.1:9/${at}` },
  }))
  await post('/contacts/batch', { contacts })
  await post('/templates', { name: 'News', html: HTML })
  // What is refused, and a check that there is none of yet, answer 4xx.
  const expected = /status of 4(00|04|12)/
  const { page, go, inspect } = await openConsole(t, appliance, { looking, expected })
  return {
    page,
    go,
    inspect,
    list,
    get: async (path: string) => (await appliance.get(`/api/v1${path}`, { key })).body.data,
    post,
    patch: (path: string, body: object) => appliance.patch(`/api/v1${path}`, body, { key }),
    send: (id: string) =>
      appliance.post(`/api/v1/campaigns/${id}/send/api`, {}, { key, headers: { 'Idempotency-Key': id } }),
  }
}

t.test('a campaign is composed, checked, sent and reported', async t => {
  const { page, go, get, inspect } = await open(t)
  await go('/campaigns')
  await page.getByText('No campaigns yet').waitFor()
  await page.getByRole('button', { name: 'New campaign' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New campaign' })
  await dialog.getByLabel('Name').fill('May news')
  await dialog.getByLabel('Subject').fill('News of May')
  await dialog.getByRole('button', { name: 'Create' }).click()

  await page.getByRole('heading', { name: 'May news' }).waitFor()
  await page.getByText('Will receive it').waitFor()
  await page.getByLabel('Subject').fill('News of May, {{first_name|dear reader}}')
  await page.getByLabel('Show it in the public archive').check()
  await page.getByText('Counted once you have saved.').waitFor()
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  await page.getByText(/errors?, .* for 60 recipients/).waitFor()
  await page.getByText('A merge tag is empty').first().waitFor()
  await page.getByText('A link leads nowhere').waitFor()
  await page.getByRole('link', { name: 'reader1@one.example' }).first().waitFor()
  await inspect('console-campaign-compose')

  await page.getByRole('button', { name: 'Send…' }).click()
  const send = page.getByRole('dialog', { name: 'Send “May news”' })
  await send.getByText('60 recipients can be mailed now').waitFor()
  await send.getByText('Readers (list)').waitFor()
  await send.getByText('The check found 1 error:').waitFor()
  await inspect('console-campaign-send')
  const now = send.getByRole('button', { name: 'Send to 60' })
  t.ok(await now.isDisabled(), 'not before somebody takes note of the error')
  await send.getByLabel('Send it although these errors remain').check()
  await now.click()
  await page.getByText('60 of 60 done').waitFor()
  t.equal(await page.evaluate('scrollY'), 0, 'the report is read from its top')
  await page.getByText('Completed').first().waitFor()
  await page
    .getByRole('link', { name: /reader/ })
    .first()
    .waitFor()
  await page.getByRole('link', { name: (await get('/archive')).url }).waitFor()
  await inspect('console-campaign-report')
  const [campaign] = await get('/campaigns')
  t.match(campaign, {
    status: 'completed',
    subject: 'News of May, {{first_name|dear reader}}',
    stats: { delivered: 60 },
  })

  await page.getByRole('button', { name: 'Resend to non-openers' }).click()
  await page.getByRole('heading', { name: 'Resend of May news' }).waitFor()
  await page.getByText('Recipients of the earlier campaign').waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('row', { name: /May news.*Completed/ }).waitFor()
})

const WORDS = `<p>${'Here is what is new in our shop this month. '.repeat(5)}</p>`

const PICTURE = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'

t.test('what the check finds leads to its block in the template, by the keyboard too', async t => {
  const { page, list, go, post, inspect } = await open(t)
  const text = (id: string, html: string) => ({ id, type: 'text', content: { html } })
  const columns = [
    { blocks: [text('left', '<p>Dear {{first_name}}</p>')] },
    { blocks: [{ id: 'more', type: 'button', content: { text: 'More', url: 'https://' } }] },
  ]
  const blocks = [
    ...Array.from({ length: 8 }, (_, at) => text(`words${at}`, WORDS)),
    { id: 'photo', type: 'image', content: { src: PICTURE } },
    { id: 'two', type: 'columns', content: { columns } },
    { id: 'code', type: 'html', content: { html: '<div style="display:flex">Jugs</div>' } },
  ]
  const { id: template } = await post('/templates', { name: 'Blocks', json_structure: { blocks } })
  const { id } = await post('/campaigns', {
    ...{ name: 'July news', subject: 'BUY NOW!!', template_id: template, list_id: list },
  })
  await go(`/campaigns/${id}`)
  await page.getByText('Will receive it').waitFor()
  await page.getByRole('button', { name: 'Check', exact: true }).click()

  t.comment('what clients lack by caniemail, and what filters distrust without rspamd')
  const finding = (words: string) => page.getByRole('listitem').filter({ hasText: words })
  const feature = finding('Some mail clients do not support this.').filter({ hasText: 'display:flex' })
  await feature.getByText('Not in Outlook for Windows, GMX and WEB.DE').waitFor()
  await feature.getByRole('link', { name: 'HTML, block 11 of the template' }).waitFor()
  await finding('The subject is in capitals').waitFor()
  await finding('no unsubscribe link of its own').waitFor()
  await finding('An image has no alt text').getByRole('link', { name: 'Image, block 9' }).waitFor()
  t.equal(await page.getByRole('heading', { name: 'Spam score' }).count(), 0, 'there is no score')
  t.equal(await page.getByText('The spam filter could not be asked').count(), 0)
  t.equal(await finding('The subject is in capitals').getByRole('link').count(), 0, 'not in the template')
  await inspect('console-campaign-check')

  t.comment('to the block and back')
  const missing = finding('A merge tag is empty').getByRole('link', { name: 'Text, block 10.1.1' })
  const focused = (name: RegExp) => page.getByRole('group', { name }).and(page.locator(':focus'))
  await missing.focus()
  await page.keyboard.press('Enter')
  await focused(/^Text, 1 of 1/).waitFor()
  const told = page.getByRole('region', { name: 'Found by the check of the campaign' })
  await told.getByText('A merge tag is empty').waitFor()
  await page.getByText('Text selected, 1 of 1 in Columns, column 1.').waitFor({ state: 'attached' })
  const { y = -1, height = 0 } = (await page.locator(':focus').boundingBox()) ?? {}
  t.ok(y > 0 && y + height <= (page.viewportSize()?.height ?? 0), 'it is scrolled to')
  const isWhole = await page.evaluate<boolean>('document.documentElement.scrollHeight <= innerHeight')
  t.ok(isWhole, 'only the mail is scrolled, not the page')
  await inspect('console-template-from-check')
  await page.keyboard.press('Enter')
  await page.keyboard.press('End')
  await page.keyboard.type('!')
  await page.getByText(/^Not saved/).waitFor()
  await told.getByRole('link', { name: 'To the campaign' }).click()
  await page.getByRole('heading', { name: 'July news' }).waitFor()
  await finding('A link leads nowhere').getByRole('link', { name: 'Button, block 10.2.1' }).click()
  await focused(/^Button, 1 of 1/).waitFor()

  t.comment('the place is in the URL; a block that is gone is said')
  await page.reload()
  await focused(/^Button, 1 of 1/).waitFor()
  await page.keyboard.press('Delete')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  await page.reload()
  await told.getByText('no longer in this template').waitFor()
  await told.getByRole('button', { name: 'Dismiss' }).click()
  await told.waitFor({ state: 'hidden' })
  t.notMatch(page.url(), /block=/)
})

t.test('a scheduled campaign is paused, resumed and cancelled', async t => {
  const { page, list, go, get, post, inspect } = await open(t, { shape: 'narrow', scheme: 'dark' })
  const [template] = await get('/templates')
  const { id } = await post('/campaigns', {
    ...{ name: 'June news', subject: 'News of June', template_id: template.id, list_id: list },
    rate_per_hour: 60,
  })
  await go(`/campaigns/${id}`)
  await page.getByText('Will receive it').waitFor()
  await inspect('console-campaign-compose')
  await page.getByRole('button', { name: 'Send…' }).click()
  const send = page.getByRole('dialog', { name: 'Send “June news”' })
  await send.getByRole('button', { name: 'Send to 60' }).click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused: no more mail leaves').waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await inspect('console-campaign-report')
  await page.getByRole('button', { name: 'Cancel the campaign' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the campaign' }).click()
  await page.getByText('Cancelled').first().waitFor()
  t.equal((await get(`/campaigns/${id}`)).status, 'cancelled')
})

t.test('of two people who edit a campaign the second is told, and loses nothing', async t => {
  const { page, list, go, get, post, patch, send, inspect } = await open(t)
  const [template] = await get('/templates')
  const { id } = await post('/campaigns', {
    ...{ name: 'June news', subject: 'News of June', template_id: template.id, list_id: list },
  })
  await go(`/campaigns/${id}`)
  const subject = page.getByLabel('Subject', { exact: true })
  const name = page.getByLabel('Name', { exact: true })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  const conflict = page.getByText('Someone else has changed this')
  await subject.fill('Mine')
  await patch(`/campaigns/${id}`, { name: 'July news', ab_test: null })
  await save.click()
  await conflict.waitFor()
  t.same([await subject.inputValue(), await name.inputValue()], ['Mine', 'June news'])
  t.match(await get(`/campaigns/${id}`), { name: 'July news', subject: 'News of June' })
  await inspect('console-campaign-conflict')
  await page.getByRole('button', { name: 'Save mine anyway' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await conflict.waitFor({ state: 'hidden' })
  t.match(await get(`/campaigns/${id}`), { name: 'June news', subject: 'Mine' })

  await subject.fill('Mine again')
  await patch(`/campaigns/${id}`, { subject: 'Theirs' })
  await page.getByRole('button', { name: 'Send…' }).click()
  await conflict.waitFor()
  t.equal(await page.getByRole('dialog').count(), 0, 'what nobody has seen is not sent')
  await page.getByRole('button', { name: 'Reload', exact: true }).click()
  await conflict.waitFor({ state: 'hidden' })
  // The notice goes when the read begins.
  await until('their subject', async () => (await subject.inputValue()) === 'Theirs')

  await subject.fill('Too late')
  await send(id)
  await save.click()
  await conflict.waitFor()
  t.equal(await subject.inputValue(), 'Too late')
  await page.getByRole('button', { name: 'Reload', exact: true }).click()
  await page.getByText('60 of 60 done').waitFor()
})

t.test('a campaign is sent on the days and at the hours that were set', async t => {
  const { page, list, go, get, post, send, inspect } = await open(t, { shape: 'narrow', scheme: 'light' })
  const [template] = await get('/templates')
  const { id } = await post('/campaigns', {
    ...{ name: 'June news', subject: 'News of June', template_id: template.id, list_id: list },
  })
  const stored = async () => (await get(`/campaigns/${id}`)).send_window as object | null
  await go(`/campaigns/${id}`)
  const save = page.getByRole('button', { name: 'Save', exact: true })
  const days = page.getByRole('group', { name: 'Days' })
  const [from, until] = [page.getByLabel('From', { exact: true }), page.getByLabel('Until', { exact: true })]
  const isOn = page.getByLabel('Send only at certain hours')
  await isOn.check()
  await page.getByText('In the time zone of the workspace: Europe/Berlin.').waitFor()
  for (const day of ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'])
    await days.getByLabel(day).uncheck()
  await save.click()
  await days.getByText('At least 1 entry is needed.').waitFor()
  for (const day of ['Monday', 'Sunday']) await days.getByLabel(day).check()
  await from.fill('20:00')
  await until.fill('20:00')
  await save.click()
  await page.getByText('send_window.from and send_window.until are the same time').waitFor()
  t.equal(await stored(), null)
  await until.fill('08:30')
  await page.getByText('On the next day.').waitFor()
  await save.click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  t.same(await stored(), { days: [1, 7], from: '20:00', until: '08:30' })
  await page.reload()
  t.equal(await until.inputValue(), '08:30')
  t.same(
    [await days.getByLabel('Sunday').isChecked(), await days.getByLabel('Friday').isChecked()],
    [true, false],
  )
  await inspect('console-campaign-window')
  const { id: other } = await post(`/campaigns/${id}/duplicate`, { name: 'Copy' })
  await isOn.uncheck()
  await save.click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  t.equal(await stored(), null)

  await send(other)
  await go(`/campaigns/${other}`)
  await page.getByText('Mon, Sun 20:00–08:30 (Europe/Berlin)').waitFor()
})

/** @returns its URL, and a function that publishes items */
async function openFeed(t: Test) {
  let titles: readonly string[] = ['Old']
  const item = (title: string) =>
    `<item><title>${title}</title><link>https://blog.example/${title}</link><guid>${title}</guid></item>`
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/rss+xml')
    response.end(
      `<rss version="2.0"><channel><title>Blog</title>${titles.map(item).join('')}</channel></rss>`,
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/feed`, publish: (more: readonly string[]) => (titles = more) }
}

t.test('a feed is added, looked into and run, and its campaign followed', async t => {
  const { page, go, get, patch, inspect } = await open(t)
  const { url, publish } = await openFeed(t)
  await go('/feeds')
  await page.getByText('No feeds yet').waitFor()
  await page.getByRole('button', { name: 'Add a feed' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Add a feed' })
  await dialog.getByLabel('Name').fill('Blog')
  await dialog.getByLabel('Subject').fill('New: {{items.0.title}}')
  await dialog.getByLabel('Feed').fill(url)
  await inspect('console-feed-new')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'Blog' }).waitFor()

  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByText('Nothing new: a run would send nothing.').waitFor()
  publish(['Fresh', 'Old'])
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByText('1 new item').waitFor()
  await page.getByRole('link', { name: 'Fresh' }).waitFor()
  await page.getByLabel('Maximum items').fill('3')
  await page.getByLabel('Send only at certain hours').check()
  await page.getByLabel('From', { exact: true }).fill('00:00')
  await page.getByLabel('Until', { exact: true }).fill('23:59')
  for (const day of ['Saturday', 'Sunday']) await page.getByLabel(day, { exact: true }).check()
  const [{ id: feedId }] = await get('/feeds')
  await patch(`/feeds/${feedId}`, { name: 'Weblog' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Someone else has changed this').waitFor()
  await page.getByRole('button', { name: 'Save mine anyway' }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await page.getByRole('button', { name: 'Run now' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Run now' }).click()
  await page.getByRole('row', { name: /Sent/ }).waitFor()
  await inspect('console-feed')
  const [feed] = await get('/feeds')
  t.match(feed, {
    ...{ name: 'Blog', url, max_items: 3, send_window: { from: '00:00', until: '23:59' } },
    schedule: { every: 'weekly', at: '09:00', weekday: 1 },
  })
  await page.getByRole('row', { name: /Sent/ }).getByRole('link').click()
  await page.getByText('60 of 60 done').waitFor()
})

t.test('a campaign is for several lists, without another, on a phone', async t => {
  const { page, go, inspect, post, list, get } = await open(t, { shape: 'narrow', scheme: 'light' })
  const { id: guests } = await post('/lists', { name: 'Guests' })
  const { id: staff } = await post('/lists', { name: 'Staff' })
  await post('/contacts', { email: 'guest@two.example', list_id: guests })
  const [{ id: template }] = (await get('/templates')) as [{ id: string }]
  const { id } = await post('/campaigns', {
    name: 'May news',
    subject: 'News',
    template_id: template,
    list_id: list,
  })
  await go(`/campaigns/${id}`)
  await page.getByText('Will receive it').waitFor()
  await page.getByRole('button', { name: 'Add a list or segment' }).click()
  await page.getByRole('combobox', { name: 'List or segment' }).nth(1).selectOption('Guests (list)')
  await page.getByRole('button', { name: 'Leave out a list or segment' }).click()
  await page.getByRole('combobox', { name: 'Without' }).selectOption('Staff (list)')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until('the audience to be stored', async () => {
    const { audience } = (await get(`/campaigns/${id}`)) as { audience: unknown }
    return audience !== null
  })
  t.match(await get(`/campaigns/${id}`), {
    list_id: null,
    audience: { include: [{ list_id: list }, { list_id: guests }], exclude: [{ list_id: staff }] },
  })
  await page.getByText('61', { exact: true }).waitFor()
  await inspect('campaign for several')

  await page.getByRole('button', { name: /^Remove this list or segment: Staff/ }).click()
  await page.getByRole('button', { name: /^Remove this list or segment: Readers/ }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until('one list', async () => {
    const { list_id: one } = (await get(`/campaigns/${id}`)) as { list_id: string | null }
    return one === guests
  })
})
