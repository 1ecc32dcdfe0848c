/**
 * The console in a browser: signed in to, every screen looked at in all forms, and used by the keyboard alone.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import {
  ALL_LOOKS,
  axeFindings,
  isTooWide,
  rulesFor,
  takePicture,
  type Looking,
} from '../support/program/browser.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole, WIDE } from '../support/program/console.js'
import { once } from '../support/once.js'
import { tokenWith } from '../support/program/operators.js'

const PASSWORD = 'correct horse battery staple'
const DAY_MS = 86_400_000

/** Shared: no test changes what another one looks at. With mail of today and of the day before, so that figures have something to be compared with. */
const filledAppliance = once(async () => {
  const appliance = await openTestAppliance(t)
  const { key, clock } = appliance
  const send = async (count: number) => {
    for (let n = 1; n <= count; n++) {
      const { status, body } = await appliance.send(key, {
        to: [`person${n}@recipient.example`],
        from_email: 'shop@sender.example',
        subject: `Order ${n} is on its way`,
        text: 'Thank you.',
      })
      if (status !== 200) throw new Error(JSON.stringify(body))
    }
  }
  await send(5)
  clock.skip(DAY_MS)
  await send(30)
  return appliance
})

async function open(t: Test, looking: Looking = WIDE) {
  const appliance = await filledAppliance()
  // Where a session has ended, requests are refused.
  return { ...appliance, ...(await openConsole(t, appliance, { looking, expected: /401 \(Unauthorized\)/ })) }
}

/** Path below /console, and the name of its picture. */
const SCREENS = [
  ['/', 'console-overview'],
  ['/messages', 'console-messages'],
  ['/delivery', 'console-delivery'],
  ['/inbound', 'console-inbound'],
  ['/reports', 'console-reports'],
  ['/captured', 'console-captured'],
  ['/bounces', 'console-bounces'],
  ['/suppressions', 'console-suppressions'],
  ['/contacts', 'console-contacts'],
  ['/contacts/import', 'console-import-empty'],
  ['/media', 'console-media'],
  ['/lists', 'console-lists'],
  ['/segments', 'console-segments'],
  ['/segments/new', 'console-segment-new'],
  ['/tags', 'console-tags'],
  ['/attributes', 'console-attributes'],
  ['/forms', 'console-forms'],
  ['/campaigns', 'console-campaigns'],
  ['/automations', 'console-automations'],
  ['/campaigns/compare', 'console-campaign-compare-empty'],
  ['/feeds', 'console-feeds'],
  ['/templates', 'console-templates'],
  ['/account', 'console-account'],
  ['/domains', 'console-domains'],
  ['/webhooks', 'console-webhooks'],
  ['/keys', 'console-keys'],
  ['/workspaces', 'console-workspaces'],
  ['/operators', 'console-operators'],
  ['/activity', 'console-activity'],
  ['/health', 'console-health'],
  ['/jobs', 'console-jobs'],
  ['/backups', 'console-backups'],
  ['/certificates', 'console-certificates'],
  ['/settings', 'console-settings'],
] as const

const SIZES = { wide: { width: 1_440, height: 900 }, narrow: { width: 390, height: 844 } } as const
/** A window of 1280 by 800 at 200 %. */
const ENLARGED = { width: 640, height: 400 }

t.test(
  'every screen can be read in all forms and at twice the size, and names its requests as curl commands that work',
  async t => {
    const visited = await open(t)
    const { page, go, turnTo, settled, complaints } = visited
    const commands = new Set<string>()
    await go('/')
    for (const [path, name] of SCREENS) {
      await page.setViewportSize(SIZES.wide)
      await turnTo(path)
      for (const command of await shownCommands(page)) commands.add(command)
      await page.keyboard.press('Escape')
      for (const looking of ALL_LOOKS) {
        await page.setViewportSize(SIZES[looking.shape])
        await page.emulateMedia({ colorScheme: looking.scheme })
        await settled()
        await takePicture(page, name, looking)
        const at = `${name}, ${looking.shape}, ${looking.scheme}`
        t.same(await axeFindings(page, 'html', rulesFor(looking)), [], `${at}: axe`)
        t.equal(await isTooWide(page), false, `${at}: nothing is cut off`)
      }
      await page.setViewportSize(ENLARGED)
      await settled()
      t.equal(await isTooWide(page), false, `${name}, enlarged: nothing is cut off`)
      t.same(complaints(), [], `${name}: the browser complains of nothing`)
    }

    const token = await tokenWith(visited, 'owner')
    t.ok(commands.size >= SCREENS.length, 'each screen has at least one request')
    for (const text of commands) {
      if (text.startsWith('curl -X')) continue
      const [, url = ''] = /^curl '([^']+)'/.exec(text) ?? []
      const headers = [...text.matchAll(/-H '([^:]+): ([^']*)'/g)].map(([, name = '', value = '']) => [
        name,
        value,
      ])
      const { status } = await fetch(url, {
        headers: { ...Object.fromEntries(headers), Authorization: `Bearer ${token}` },
      })
      t.equal(status, 200, text)
    }
  },
)

async function shownCommands(page: Page): Promise<string[]> {
  await page.getByRole('button', { name: 'As an API call' }).click()
  return page.getByRole('dialog', { name: 'As an API call' }).locator('pre').allTextContents()
}

t.test('filters of a list are in its curl command', async t => {
  const { page, go, settled } = await open(t)
  await go('/messages?status=delivered&to=%40recipient.example&since=2026-01-01')
  await settled()
  const [command = ''] = (await shownCommands(page)).filter(text => /\/messages\?/.test(text))
  t.match(command, 'status=delivered')
  t.match(command, 'to=%40recipient.example')
  t.match(command, 'since=2026-01-01')
  t.match(command, ' \\\n  -H "Authorization: Bearer $POSTROAD_TOKEN"')
})

t.test('the palette leads everywhere by the keyboard alone', async t => {
  const { page, go } = await open(t)
  await go('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('messag')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  t.match(page.url(), /\/console\/messages$/)
  t.equal(await page.evaluate<string>('document.activeElement.tagName'), 'H1', 'the title has the focus')
  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.press('?')
  t.ok(await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).isVisible())
  await page.keyboard.press('Escape')
})

t.test('a main flow needs no mouse: skip, search, rows, dialogs and menus', async t => {
  const { page, go } = await open(t)
  const focused = () =>
    page.evaluate<string>(
      "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText",
    )
  /** Tab until what has the focus is called so. */
  const tabTo = async (name: RegExp) => {
    for (let presses = 0; presses < 60 && !name.test(await focused()); presses++)
      await page.keyboard.press('Tab')
    t.match(await focused(), name)
  }

  await go('/messages')
  await page.getByRole('link', { name: 'person30@recipient.example' }).waitFor()
  const length = await page.evaluate<number>('history.length')
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'Skip to content', 'the first stop leads past the navigation')
  await page.keyboard.press('Enter')
  t.equal(await focused(), 'Messages', 'to the title')
  t.equal(await page.evaluate<number>('history.length'), length, 'Back is not used up by it')

  await page.keyboard.press('/')
  t.equal(await focused(), 'Recipient or @domain')
  await page.keyboard.type('@recipient.example')
  await page.waitForURL(/to=%40recipient\.example/)
  await tabTo(/^person30@/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  t.match(await focused(), /^person28@/, 'arrows go from row to row')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Order 29 is on its way' }).waitFor()

  await page.keyboard.press('g')
  await page.keyboard.press('n')
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await tabTo(/^Add a domain$/)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Add a domain' })
  await dialog.waitFor()
  await page.keyboard.type('shop.example')
  t.equal(await dialog.getByLabel('Domain').inputValue(), 'shop.example', 'the first field has the focus')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  t.equal(await focused(), 'Add a domain', 'the focus is back where the dialog was opened')

  await page.keyboard.press('Shift+Tab')
  await page.getByRole('button', { name: 'Your account' }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'Your account')
  await page.keyboard.press('ArrowDown')
  t.equal(await focused(), 'API reference', 'arrows go through the menu')
  await page.keyboard.press('Escape')
  t.equal(await page.getByRole('group', { name: 'Your account' }).isVisible(), false)

  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Menu' }).focus()
  await page.keyboard.press('Enter')
  t.equal(await focused(), 'Domains', 'the navigation on the phone has the focus at the current screen')
  await page.keyboard.press('Escape')
  t.equal(await focused(), 'Menu')
})

t.test('the authenticator app is set up by a QR code', async t => {
  const { page, go, complaints } = await open(t, { shape: 'narrow', scheme: 'dark' })
  await page.setViewportSize(SIZES.narrow)
  await go('/account')
  await page.getByRole('button', { name: 'Set up' }).click()
  const code = page.getByRole('img', { name: 'QR code for the authenticator app' })
  await code.waitFor()
  const { width, height } = (await code.boundingBox()) ?? { width: 0, height: 0 }
  t.ok(width >= 160 && width === height, 'large enough for a camera')
  t.same(complaints(), [], 'under the policy')
})

t.test('a session that ends is begun again without leaving the screen', async t => {
  const postroad = await open(t)
  const { baseUrl, email, page, go } = postroad
  await page.request.put(`${baseUrl}/api/admin/v1/me/password`, {
    data: { password: PASSWORD },
    headers: { Origin: baseUrl, 'Sec-Fetch-Site': 'same-origin' },
  })
  await go('/messages')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.context().clearCookies()
  await page.getByRole('searchbox', { name: 'Part of the subject' }).fill('Order 7')
  const dialog = page.getByRole('dialog', { name: 'Sign in again' })
  await dialog.getByLabel('Email address').fill(email)
  await dialog.getByLabel('Password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText('Order 7 is on its way').waitFor()
  t.match(page.url(), /subject=Order/, 'the filter is still there, and applied')
})

t.test('while the server is away the console says so', async t => {
  const postroad = await open(t)
  const { page, go } = postroad
  await go('/messages')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.context().setOffline(true)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('alert').filter({ hasText: 'The server is not responding. What you see' }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await t.resolves(
    page.getByRole('alert').first().waitFor({ state: 'detached' }),
    'and says no more of it once it is back',
  )
})

t.test('languages and the theme are kept', async t => {
  const postroad = await open(t)
  const { page, go } = postroad
  await go('/')
  await page.getByRole('button', { name: 'Your account' }).click()
  await page.getByLabel('Language').selectOption('de')
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
  await page.getByLabel('Darstellung').selectOption('dark')
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
  t.equal(await page.evaluate<string>('document.documentElement.dataset.theme'), 'dark')
  t.equal(await page.evaluate<string>('document.documentElement.lang'), 'de')
})
