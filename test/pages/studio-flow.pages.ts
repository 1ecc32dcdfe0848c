/**
 * The studio from an empty template to a click, against the real program: a mail is built by dragging and again by the keyboard alone, checked,
 * sent to 1,000 imported contacts, and one of them follows a link of it.
 *
 * Mail is delivered over SMTP to a sink of the test. Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { simpleParser } from 'mailparser'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openConsole } from '../support/program/console.js'
import { initialise, routeTo } from '../support/program/process.js'
import { dnsServer, RCODE } from '../support/smtp/dns-server.js'
import { openMassSink } from '../support/smtp/mass-sink.js'
import { unusedPort } from '../support/smtp/sink.js'

const PEOPLE = 1_000
/** Long enough for a spam filter: a link with few words is one of the things that the check finds. */
const NEWS =
  'This is new in the shop: jugs and cups from three small potteries by the sea, plates for every day, and bowls that go into the oven. All of them can be sent back within a month.'
const CLICKER = 'reader471@recipient.test'
/** Far beyond what a busy machine takes for a page, and for all of the mail. */
const PATIENCE_MS = 120_000
const DELIVERY_MS = 480_000
/** A person's browser: what says that it has no window is taken for a machine. */
const READER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** Every tenth has no first name. */
function csv(): string {
  const rows = Array.from(
    { length: PEOPLE },
    (_, at) => `reader${at}@recipient.test,${at % 10 === 0 ? '' : `Reader ${at}`}`,
  )
  return ['email,first_name', ...rows].join('\n')
}

async function open(t: Test) {
  const sink = await openMassSink(t)
  const shop = await openShop(t)
  const dns = await dnsServer(t, ({ question }) =>
    /^A \S+\.localhost$/.test(question)
      ? { answers: [{ type: 'A', name: question.slice(2), data: '127.0.0.1' }] }
      : { rcode: RCODE.NXDOMAIN },
  )
  const port = await unusedPort()
  const publicUrl = `http://mail.localhost:${port}`
  const postroad = await initialise(t, {
    toml: `public_url = "${publicUrl}"\n[webhooks]\nallow_networks = ["127.0.0.0/8"]`,
    env: {
      ...routeTo(sink.port),
      POSTROAD_HTTP_LISTEN: `127.0.0.1:${port}`,
      POSTROAD_DNS_SERVERS: dns.address,
    },
  })
  const { workspaceId, key } = postroad
  const settings = ['default_from_email=news@shop.test', 'company_address=1 High Street']
  const limits = ['hourly_limit=0', 'daily_limit=0', 'allow_private_webhooks=true']
  await postroad.json('workspace', 'set', workspaceId, ...settings, ...limits)
  await postroad.json('domain', 'add', 'shop.test', '--workspace', workspaceId, '--vouch')
  const server = await postroad.serve()
  const api = async (path: string) => (await server.get(`/api/v1${path}`, { key })).body.data
  await server.post('/api/v1/lists', { name: 'Readers' }, { key })
  const { baseUrl } = server
  const console = await openConsole(t, { ...postroad, baseUrl }, { expected: /status of 404/ })
  console.page.setDefaultTimeout(PATIENCE_MS)
  return { ...console, sink, shop, api }
}

/** What the mail links to. Browsers and the test's DNS server take `*.localhost` for this machine. */
async function openShop(t: Test): Promise<{ url: string }> {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end('<!doctype html><title>Shop</title><h1>Offers of the month</h1>')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://shop.localhost:${(server.address() as AddressInfo).port}` }
}

const canvas = (page: Page) => page.getByRole('region', { name: 'Mail' })
const block = (page: Page, name: RegExp) => canvas(page).getByRole('group', { name })
const column = (page: Page, number: number) => canvas(page).getByRole('list', { name: `Column ${number}` })

async function buildByDragging(page: Page, offers: string): Promise<void> {
  const tile = (name: string) =>
    page.getByRole('list', { name: 'Types of blocks' }).getByRole('button', { name, exact: true })
  await page.getByRole('button', { name: 'New template' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New template' })
  await dialog.getByLabel('Name').fill('By mouse')
  await dialog.getByRole('radio', { name: 'Blank' }).check()
  await dialog.getByRole('button', { name: 'Create' }).click()

  await tile('Heading').dragTo(page.getByText('Drag a block here'))
  const heading = block(page, /^Heading/)
  const { height = 0 } = (await heading.boundingBox()) ?? {}
  // Below the middle of the heading.
  await tile('Columns').dragTo(heading, { targetPosition: { x: 40, y: height - 4 } })
  await block(page, /^Columns, 2 of 2/).waitFor()
  await tile('Text').dragTo(column(page, 1))
  await tile('Button').dragTo(column(page, 2))

  await heading.getByRole('textbox').fill('Hello ')
  await page
    .getByRole('toolbar', { name: 'Text tools' })
    .getByRole('button', { name: 'Insert a merge tag' })
    .click()
  await page.getByLabel('If there is no value').fill('there')
  await page.getByRole('button', { name: /^First name/ }).click()
  await block(page, /^Text/).getByRole('textbox').fill(NEWS)
  await block(page, /^Button/)
    .getByRole('textbox')
    .fill('See the offers')
  await page.getByLabel('Link', { exact: true }).fill(`${offers}/offers`)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
}

/** No pointer is used from here on. */
async function buildByKeyboard(t: Test, page: Page, offers: string): Promise<void> {
  const focused = () =>
    page.evaluate<string>(
      "(e => (e.getAttribute('aria-label') ?? e.labels?.[0]?.innerText ?? e.innerText ?? '').trim())(document.activeElement)",
    )
  const tabTo = async (name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab') => {
    for (let presses = 0; presses < 200 && !name.test(await focused()); presses++)
      await page.keyboard.press(key)
    t.match(await focused(), name)
  }
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const announced = (text: string) => page.getByText(text, { exact: true }).waitFor()
  const add = async (tile: RegExp, news: string) => {
    await tabTo(tile)
    await press('Enter')
    await announced(news)
  }

  await tabTo(/^New template$/)
  await press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.type('By keys')
  await press('Tab', 'ArrowUp', 'ArrowUp', 'Enter')
  await page.getByText('Drag a block here').waitFor()

  await add(/^Heading$/, 'Heading added at position 1 of 1.')
  await press('Enter', 'Control+a')
  await page.keyboard.type('Hello ')
  await tabTo(/^Insert a merge tag$/, 'Shift+Tab')
  await press('Enter')
  await tabTo(/^If there is no value/)
  await page.keyboard.type('there')
  await tabTo(/^First name/)
  await press('Enter', 'Escape')
  await add(/^Columns$/, 'Columns added at position 2 of 2.')
  await add(/^Text$/, 'Text added at position 3 of 3.')
  await press('Alt+ArrowUp')
  await announced('Text moved to position 1 of 1 in Columns, Column 2.')
  await press('Alt+ArrowLeft')
  await announced('Text moved to position 1 of 1 in Columns, Column 1.')
  await press('Enter', 'Control+a')
  await page.keyboard.type(NEWS)
  await press('Escape')
  await tabTo(/^Add a block: Column 2$/)
  await press('Enter')
  await tabTo(/^Button$/)
  await press('Enter')
  await announced('Button added at position 1 of 1 in Columns, Column 2.')
  await press('Enter', 'Control+a')
  await page.keyboard.type('See the offers')
  await press('Escape')
  await tabTo(/^Link\b/)
  await press('Control+a')
  await page.keyboard.type(`${offers}/offers`)
  await press('Control+s')
  await page.getByText('Saved as version 2').waitFor()
}

/** A document as JSON, but for the ids of its blocks. */
const withoutIds = (structure: unknown) =>
  JSON.stringify(structure, (name, value: unknown) => (name === 'id' ? undefined : value), 1)

/** As a file manager does it. */
async function dropFile(page: Page, name: string, text: string): Promise<void> {
  // A text: the compiler knows no browser.
  const dataTransfer = await page.evaluateHandle(`(() => {
    const carried = new DataTransfer()
    carried.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/csv' }))
    return carried
  })()`)
  await page.getByText('Drop a CSV file here').dispatchEvent('drop', { dataTransfer })
}

/** Notes how many of the recipients are done, each time that another number is shown. @returns a function that tells them */
async function watchDone(page: Page): Promise<() => Promise<number[]>> {
  await page.getByText(/of 1,000 done/).waitFor()
  // A text: the compiler knows no browser.
  await page.evaluate(`(() => {
    const shown = () => Number(/([\\d,]+) of 1,000 done/.exec(document.body.innerText)?.[1].replaceAll(',', ''))
    window.done = [shown()]
    new MutationObserver(() => {
      const now = shown()
      if (!Number.isNaN(now) && now !== window.done.at(-1)) window.done.push(now)
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  })()`)
  return () => page.evaluate<number[]>('window.done')
}

t.test('from an empty template to 1,000 delivered mails and a click', async t => {
  const { sink, shop, page, api, go, inspect, complaints } = await open(t)

  t.comment('builds a mail by dragging, and the same by the keyboard alone')
  await go('/templates')
  await page.getByText('No templates').waitFor()
  await buildByDragging(page, shop.url)
  await go('/templates')
  await page
    .getByRole('link', { name: /By mouse/ })
    .first()
    .waitFor()
  await buildByKeyboard(t, page, shop.url)
  const found = (await api('/templates')) as { id: string; name: string }[]
  const structureOf = async (name: string) => {
    const { id = '' } = found.find(one => one.name === name) ?? {}
    return (await api(`/templates/${id}`)).json_structure as object
  }
  const byKeys = withoutIds(await structureOf('By keys'))
  t.equal(byKeys, withoutIds(await structureOf('By mouse')), 'both ways lead to the same mail')
  t.match(byKeys, /Hello \{\{first_name\|there\}\}/)

  t.comment('imports whom it goes to')
  await go('/contacts/import')
  await dropFile(page, 'readers.csv', csv())
  await page.getByRole('cell', { name: 'reader0@recipient.test' }).waitFor()
  await page.getByLabel('Add everyone to the list').selectOption({ label: 'Readers' })
  await page.getByRole('button', { name: 'Start import' }).click()
  await page.getByText('Completed').waitFor()
  t.match(await page.getByRole('region', { name: 'Progress' }).innerText(), /Created\s+1,000/)

  t.comment('composes a campaign, and lets it be checked')
  await go('/campaigns')
  await page.getByRole('button', { name: 'New campaign' }).first().click()
  const creating = page.getByRole('dialog', { name: 'New campaign' })
  await creating.getByLabel('Name').fill('May news')
  await creating.getByLabel('Subject').fill('News of May, {{first_name|dear reader}}')
  await creating.getByLabel('Template').selectOption({ label: 'By keys' })
  await creating.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'May news' }).waitFor()
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  await page.getByText('Nothing is wrong for any of 1,000 recipients.').waitFor()
  await inspect('studio-checked')

  t.comment('sends it, and watches until everybody has it')
  await page.getByRole('button', { name: 'Send…' }).click()
  const sending = page.getByRole('dialog', { name: 'Send “May news”' })
  await sending.getByText('1,000 recipients can be mailed now').waitFor()
  await sending.getByRole('button', { name: 'Send to 1000' }).click()
  const watched = await watchDone(page)
  await page.getByText('1,000 of 1,000 done').waitFor({ timeout: DELIVERY_MS })
  const seen = await watched()
  t.same(
    seen,
    seen.toSorted((one, other) => one - other),
    'the progress never goes back',
  )
  await page.getByText('Completed').first().waitFor()
  const results = page.getByRole('region', { name: 'Results' })
  await results.getByText('Delivered (100%)').waitFor()
  t.match(await results.innerText(), /Delivered \(100%\)\s+1,000/)
  const mails = sink.mails()
  const recipients = new Set(mails.map(raw => /^To: (.*)\r$/m.exec(raw.toString('latin1'))?.[1]))
  t.equal(mails.length, PEOPLE)
  t.equal(recipients.size, PEOPLE, 'everybody got one mail')

  t.comment('a reader opens the mail and follows its link')
  const raw = mails.find(one => one.includes(`To: ${CLICKER}\r\n`)) ?? ''
  const mail = await simpleParser(raw)
  t.equal(mail.subject, 'News of May, Reader 471')
  const context = await page.context().browser()?.newContext({ userAgent: READER })
  const reader = await context?.newPage()
  if (!reader) throw new Error('there is no browser')
  await reader.setContent(String(mail.html))
  await reader.getByText('Hello Reader 471').waitFor()
  await reader.getByRole('link', { name: 'See the offers' }).click()
  await reader.getByRole('heading', { name: 'Offers of the month' }).waitFor()
  t.equal(reader.url(), `${shop.url}/offers`)

  t.comment('and the click is in the report')
  const row = page.getByRole('row', { name: `${shop.url}/offers 1 1 100%` })
  await row.waitFor()
  await results.getByText('Clicked (0.1%)').waitFor()
  t.match(await results.innerText(), /Clicked \(0\.1%\)\s+1\b/)
  await page.getByLabel('What became of it').selectOption('clicked')
  await page.getByRole('link', { name: CLICKER }).waitFor()
  await inspect('studio-report')
  t.same(complaints(), [], 'the browser complains of nothing')
})
