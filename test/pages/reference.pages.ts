/**
 * The API reference in a browser: looked at, searched, samples in other languages, requests sent from the page, and without its script.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { once } from '../support/once.js'
import { openTestAppliance } from '../support/program/appliance.js'
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

const WIDE = { shape: 'wide', scheme: 'light' } as const

/** Shared: only contacts are made, by tests that look for no others. */
const sharedAppliance = once(() => openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } }))

async function open(t: Test) {
  const postroad = await sharedAppliance()
  return { postroad, see: await openBrowser(t), at: (path: string) => postroad.baseUrl + path }
}

/** The request sample of an operation that is shown, in the chosen language. */
function sample(page: Page, operationId: string) {
  return page.locator(`figure[data-call=${operationId}] pre:not([hidden])`)
}

function tryButton(page: Page, operationId: string) {
  return page.locator(`figure[data-call=${operationId}] + button`)
}

t.test('pages and dialogs can be read in all forms', async t => {
  const { see, at } = await open(t)
  const { page, complaints } = await see(WIDE)
  const inspect = async (name: string, looking: Looking, within?: string) => {
    await takePicture(page, `docs-${name}`, looking)
    const form = `${name}, ${looking.shape}, ${looking.scheme}`
    t.same(await axeFindings(page, within, rulesFor(looking)), [], `${form}: axe`)
    t.equal(await isTooWide(page), false, `${form}: nothing is wider than the screen`)
  }
  for (const [name, path] of [
    ['introduction', '/docs'],
    ['authentication', '/docs/authentication'],
    ['suppressions', '/docs/api/suppressions'],
  ] as const) {
    await page.goto(at(path))
    for (const looking of ALL_LOOKS) {
      await lookAs(page, looking)
      await inspect(name, looking)
    }
  }
  for (const looking of ALL_LOOKS) {
    await lookAs(page, looking)
    if (looking.shape === 'narrow') {
      await page.getByRole('button', { name: 'Menu' }).click()
      await inspect('menu', looking, 'nav')
      await page.keyboard.press('Escape')
      t.equal(await page.locator('nav').isVisible(), false, 'the menu closes')
    }
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('send')
    await page.getByRole('option').first().waitFor()
    await inspect('search', looking, 'dialog[open]')
    await page.keyboard.press('Escape')
    await tryButton(page, 'addSuppression').click()
    await inspect('try', looking, 'dialog[open]')
    await page.keyboard.press('Escape')
  }
  t.same(complaints, [])
})

t.test('the search is opened by a slash and leads to an operation with the keyboard alone', async t => {
  const { see, at } = await open(t)
  const { page } = await see(WIDE)
  await page.goto(at('/docs'))
  await page.keyboard.press('/')
  await page.keyboard.type('create cont')
  await page.getByRole('option', { name: 'Create a contact' }).waitFor()
  t.equal(await page.getByRole('combobox').inputValue(), 'create cont', 'the slash is not typed')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/docs/api/contacts#createContact')
  t.ok(await page.getByRole('heading', { name: 'Create a contact' }).isVisible())
})

t.test('the chosen language and theme hold for every sample and the next page', async t => {
  const { see, at } = await open(t)
  const { page } = await see(WIDE)
  await page.goto(at('/docs/api/contacts'))
  t.match(await sample(page, 'createContact').textContent(), /^curl /)
  await page.locator('figure[data-call=listContacts]').getByRole('button', { name: 'Python' }).click()
  t.match(await sample(page, 'createContact').textContent(), 'urllib.request.Request(')
  await page.getByRole('button', { name: /light and dark/ }).click()
  await page.goto(at('/docs/api/email'))
  t.match(await sample(page, 'sendEmail').textContent(), 'urllib.request.Request(')
  t.equal(await page.evaluate<string>('getComputedStyle(document.body).colorScheme'), 'dark')
})

t.test(
  'a request is sent from the page: edited, repeated with another Idempotency-Key, its key kept in the tab',
  async t => {
    const { postroad, see, at } = await open(t)
    const { page } = await see(WIDE)
    await page.goto(at('/docs/api/contacts'))
    await tryButton(page, 'createContact').click()
    const idempotencyKey = page.getByLabel('Idempotency-Key')
    const first = await idempotencyKey.inputValue()
    await page.getByLabel('API key').fill('ts_live_wrong')
    t.ok(await page.getByText('This is a live key').isVisible())
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.result', { hasText: 'unauthorized' }).waitFor()
    t.match(await page.locator('.result .status').textContent(), '401')
    await page.getByLabel('API key').fill(postroad.key)
    await page.getByRole('textbox', { name: 'JSON' }).fill('{"email": "bob@example.com"}')
    t.match(await page.locator('dialog figure pre').first().textContent(), '"email": "bob@example.com"')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.result', { hasText: 'bob@example.com' }).waitFor()
    t.match(await page.locator('.result .status').textContent(), '201')
    t.match(await page.locator('.result').textContent(), / ms/)
    t.not(await idempotencyKey.inputValue(), first)
    const { body } = await postroad.get('/api/v1/contacts?search=bob', { key: postroad.key })
    t.match(body.data, [{ email: 'bob@example.com' }])

    await page.reload()
    await tryButton(page, 'listContacts').click()
    await page.getByLabel('limit').fill('1')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.result', { hasText: 'bob@example.com' }).waitFor()
    t.match(await page.locator('.result').textContent(), '"limit": 1')
    const { page: other } = await see(WIDE)
    t.equal(await other.evaluate('1'), 1)
    t.notMatch(await page.evaluate('JSON.stringify(localStorage)'), postroad.key)
  },
)

t.test('an upload sends the chosen file', async t => {
  const { postroad, see, at } = await open(t)
  const { page } = await see(WIDE)
  await page.goto(at('/docs/api/contacts'))
  await tryButton(page, 'importContacts').click()
  await page.getByLabel('API key').fill(postroad.key)
  await page.getByLabel('text/csv').setInputFiles({
    name: 'people.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('Email\ncid@example.com\n'),
  })
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.result', { hasText: 'import_id' }).waitFor()
  t.match(await page.locator('.result .status').textContent(), '202')
})

t.test('an object opens where it is mentioned', async t => {
  const { see, at } = await open(t)
  const { page } = await see(WIDE)
  await page.goto(at('/docs/api/contacts'))
  const operation = page.locator('section.operation', { has: page.locator('#getContact') })
  await operation.getByText('Fields of ContactDetails').click()
  t.ok(await operation.locator('details.inner').getByText('last_opened_at').first().isVisible())
})

t.test('without its script every page is complete', async t => {
  const { see, at } = await open(t)
  const { page } = await see(WIDE)
  await page.route('**/*.js', route => route.abort())
  await page.goto(at('/docs/webhooks'))
  for (const text of ['is_from_postroad() {', 'def is_from_postroad', 'func IsFromPostroad'])
    t.ok(await page.getByText(text).first().isVisible(), text)
  await page.getByRole('link', { name: 'Contacts' }).first().click()
  t.ok(await page.getByText('curl').first().isVisible())
  await page.getByText('Fields of ContactDetails').first().click()
  t.match(page.url(), '#object-ContactDetails', 'the link leads to the object')
})

t.test('a page is printed black on white, without navigation and buttons, with all of its text', async t => {
  const { see, at } = await open(t)
  const { page } = await see({ shape: 'wide', scheme: 'dark' })
  await page.goto(at('/docs/api/suppressions'))
  const errors = page.locator('details.errors dl').first()
  t.equal(await errors.isVisible(), false, 'closed on the screen')
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  for (const hidden of ['nav#nav', 'header.top', 'button'])
    for (const one of await page.locator(hidden).all()) t.equal(await one.isVisible(), false, hidden)
  t.ok(await errors.isVisible(), 'no closed section')
  const colours = await page.evaluate<string[][]>(
    `['body', 'pre', '.endpoints a', '.responses .status', 'h2 a'].map(one => {
      const { color, backgroundColor } = getComputedStyle(document.querySelector(one))
      return [one, color, backgroundColor]
    })`,
  )
  for (const [one = '', ink, ground = ''] of colours) {
    t.equal(ink, 'rgb(0, 0, 0)', one)
    t.match(ground, /^rgba?\((255, 255, 255|0, 0, 0, 0)\)$/, one)
  }
  await page.goto(at('/docs/webhooks'))
  const [href = '', shown = ''] = await page.evaluate<string[]>(
    `[document.querySelector('main a[href^="/"]')].flatMap(one => [
      one.getAttribute('href'),
      getComputedStyle(one, '::after').content,
    ])`,
  )
  t.ok(href !== '' && shown.includes(href), 'the address of a link can be read')
  t.equal(await isTooWide(page), false)
  await takePicture(page, 'docs-printed', { shape: 'wide', scheme: 'light' })
})
