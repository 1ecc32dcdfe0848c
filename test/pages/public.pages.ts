/**
 * Public pages in a browser, clicked through and looked at: unsubscribe, preferences, form and opt-in.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import { simpleParser } from 'mailparser'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { makeSubscriberToken } from '../../src/mail/links/subscriber-link.js'
import {
  ALL_LOOKS,
  axeFindings,
  isTooWide,
  lookAs,
  openBrowser,
  rulesFor,
  takePicture,
  type Looking,
} from '../support/program/browser.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { linkKeysOf } from '../support/program/links.js'
import { until } from '../support/until.js'

const NARROW: Looking = { shape: 'narrow', scheme: 'light' }
const BOTH_SCHEMES = ALL_LOOKS.filter(({ shape }) => shape === 'narrow')
const LONG_GONE = '0192f000-0000-7000-8000-00000000abcd'
const FIELDS = [
  { name: 'first_name', label: 'First name' },
  { name: 'size', label: 'Size', type: 'select', options: ['S', 'M', 'L'], required: true },
  { name: 'born', label: 'Born on', type: 'date' },
  { name: 'terms', label: 'I have read the terms', type: 'checkbox', required: true },
]

async function open(t: Test, color: string) {
  const postroad = await openTestAppliance(t)
  const { workspaceId, baseUrl } = postroad
  await postroad.run(
    'workspace',
    'set',
    workspaceId,
    'company_name=Corner Shop & Sons',
    'company_address=1 High Street, Springfield',
    'default_from_email=shop@shop.example',
    `brand_color=${color}`,
  )
  const key = await postroad.makeKey()
  const keys = await linkKeysOf(postroad)
  const post = async (path: string, body: object) =>
    String((await postroad.post(`/api/v1${path}`, body, { key })).body.data.id)
  return {
    post,
    see: await openBrowser(t),
    link: (purpose: 'unsubscribe' | 'preferences', recipient: string) =>
      `${baseUrl}/${purpose === 'unsubscribe' ? 'u' : 'p'}/` +
      makeSubscriberToken(keys, purpose, { workspaceId, messageId: LONG_GONE, recipient }),
    /** The archive, once it has a campaign. */
    archive: async () => {
      const list_id = await post('/lists', { name: 'Archived' })
      await post('/contacts', { email: 'cy@mail.example', list_id })
      const template_id = await post('/templates', { name: 'T', html: '<p>Hello</p>' })
      const about = { name: 'x', subject: 'Spring is here: {{firstName|all}} of it', archive: true }
      const id = await post('/campaigns', { ...about, template_id, list_id })
      const headers = { 'Idempotency-Key': 'archive' }
      await postroad.post(`/api/v1/campaigns/${id}/send/api`, {}, { key, headers })
      return until('it to be published', async () => {
        const { data } = (await postroad.get('/api/v1/archive', { key })).body
        return data.campaigns > 0 && String(data.url).replace(/^.*(?=\/archive)/, baseUrl)
      })
    },
    formAt: async (body: object) => `${baseUrl}/f/${await post('/forms', body)}`,
    contact: async (email: string) =>
      (await postroad.get(`/api/v1/contacts?search=${encodeURIComponent(email)}`, { key })).body.data[0],
    confirmLink: async (email: string) => {
      const mail = await until(`mail to ${email}`, async () => {
        const { body } = await postroad.get('/capture?limit=100')
        const found = body.data.find(({ recipient }: { recipient: string }) => recipient === email)
        return found && (await postroad.get(`/capture/${found.id}`)).body.data
      })
      const { text = '' } = await simpleParser(Buffer.from(mail.raw_base64, 'base64'))
      return baseUrl + (/(\/s\/[\w.-]+)/.exec(text)?.[1] ?? '')
    },
    nowhere: `${baseUrl}/u/none`,
  }
}

/** Checks the page in its current state and all forms: no finding, nothing too wide, nothing that the browser complains of. */
async function inspect(
  t: Test,
  { page, complaints }: { page: Page; complaints: readonly string[] },
  name: string,
  looks: readonly Looking[],
): Promise<void> {
  for (const looking of looks) {
    await lookAs(page, looking)
    await takePicture(page, name, looking)
    const at = `${name}, ${looking.shape}, ${looking.scheme}`
    t.same(await axeFindings(page, 'html', looks.length === 1 ? 'all' : rulesFor(looking)), [], `${at}: axe`)
    t.equal(await isTooWide(page), false, `${at}: nothing is cut off`)
  }
  // That a page is a 404 or a 400 is one, and meant.
  t.same(
    complaints.filter(text => !/status of 4\d\d/.test(text)),
    [],
    `${name}: console`,
  )
}

for (const [language, color, looks] of [
  ['en', '#ffcc00', ALL_LOOKS],
  ['de', '#1d5fa8', [{ shape: 'wide', scheme: 'dark' }]],
] as const)
  t.test(`pages can be used and read: ${language}, ${color}`, async t => {
    const { see, link, formAt, post, contact, confirmLink, archive, nowhere } = await open(t, color)
    const visitor = await see({ ...NARROW, language })
    const { page } = visitor
    const look = (name: string) => inspect(t, visitor, `${name}-${language}`, looks)

    await page.goto(link('unsubscribe', 'ann@mail.example'))
    await look('unsubscribe')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('status').waitFor()
    await look('unsubscribed')
    await page.getByRole('link').click()
    await page.waitForURL('**/p/**')
    await look('preferences-unsubscribed')
    await page.getByRole('button').click()

    const news = await post('/lists', { name: 'News', description: 'Every Friday, short', public: true })
    await post('/lists', { name: 'Offers from the shop around the corner', public: true })
    await post('/contacts', { email: 'ann@mail.example', list_id: news })
    await page.goto(link('preferences', 'ann@mail.example'))
    t.same(await page.getByRole('checkbox', { checked: true }).count(), 1)
    await look('preferences')
    await page.getByText('Offers from the shop around').click()
    await page.locator('button[value=save]').click()
    await page.getByRole('status').waitFor()
    t.same(await page.getByRole('checkbox', { checked: true }).count(), 2)
    await look('preferences-saved')

    const form = await formAt({
      name: 'x',
      title: 'Our newsletter',
      description: 'Once a month, and never more.',
      fields: FIELDS,
      double_opt_in: true,
    })
    await page.goto(form)
    await look('form')
    await page.getByRole('button').click()
    await page.getByRole('alert').waitFor()
    await look('form-faults')
    await page.locator('input[type=email]').fill('bob@mail.example')
    await page.getByLabel('First name').fill('Bob')
    await page.locator('select').selectOption('M')
    await page.getByRole('checkbox').check()
    await page.evaluate(`document.querySelector('[name=leave_blank]').value = 'filled in by a program'`)
    await page.keyboard.press('Enter')
    await page.locator('[role=alert]:not(:has(li))').waitFor()
    await look('form-send-again')
    t.equal(await page.getByLabel('First name').inputValue(), 'Bob', 'nothing has to be filled in again')
    await page.getByRole('button').click()
    await page.locator('form').waitFor({ state: 'detached' })
    await look('form-sent')
    t.equal(await contact('bob@mail.example'), undefined)

    await page.goto(await confirmLink('bob@mail.example'))
    await look('opt-in')
    await page.getByRole('button').click()
    await page.locator('form').waitFor({ state: 'detached' })
    await look('opted-in')
    t.match(await contact('bob@mail.example'), {
      subscribed: true,
      first_name: 'Bob',
      attributes: { size: 'M' },
    })

    await page.goto(await archive())
    await page.getByText('Spring is here').waitFor()
    await look('archive')

    await page.goto(nowhere)
    await look('bad-link')
  })

for (const color of ['#7a0c3b', '#ffffff'])
  t.test(`a brand colour leaves every text readable: ${color}`, async t => {
    const { see, link, formAt } = await open(t, color)
    const visitor = await see(NARROW)
    await visitor.page.goto(link('unsubscribe', 'ann@mail.example'))
    await inspect(t, visitor, 'unsubscribe', BOTH_SCHEMES)
    await visitor.page.goto(await formAt({ name: 'x', title: 'Our newsletter', fields: FIELDS }))
    await inspect(t, visitor, 'form', BOTH_SCHEMES)
    await visitor.page.getByRole('button').click()
    await visitor.page.getByRole('alert').waitFor()
    await inspect(t, visitor, 'form-faults', BOTH_SCHEMES)
    await visitor.page.goto(link('preferences', 'ann@mail.example'))
    await inspect(t, visitor, 'preferences', BOTH_SCHEMES)
  })

t.test('a form leads a browser to its own address, which its policy lets it', async t => {
  const { see, formAt, nowhere } = await open(t, '#1d5fa8')
  const { page, complaints } = await see({ shape: 'wide', scheme: 'light' })
  // Another origin: the same server by another name.
  const thanks = nowhere.replace('127.0.0.1', 'localhost')
  await page.goto(await formAt({ name: 'x', redirect_url: thanks }))
  await page.locator('input[type=email]').fill('ann@mail.example')
  await page.getByRole('button').click()
  await page.waitForURL(thanks)
  t.same(
    complaints.filter(text => !/status of 404/.test(text)),
    [],
  )
})
